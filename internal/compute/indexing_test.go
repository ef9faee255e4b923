package compute

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

func TestSlice(t *testing.T) {
	for _, dt := range wordTypes {
		x := iota(dt, 4, 5)
		for _, c := range []struct {
			in                 []op.Arg
			rows, cols         int
			row, col, up, over int
		}{
			{[]op.Arg{ints(1), ints(3)}, 2, 5, 1, 0, 1, 1},
			{[]op.Arg{ints(1, 4), ints(math.MaxInt64, -100), ints(0, 1), ints(2, -2)}, 2, 3, 1, 4, 2, -2},
			{[]op.Arg{ints(-1), ints(-100), ints(-2), ints(-1)}, 4, 5, 3, 0, -1, 1},
			{[]op.Arg{ints(2), ints(4), ints(1)}, 4, 2, 0, 2, 1, 1},
			{[]op.Arg{ints(3), ints(1)}, 0, 5, 0, 0, 1, 1},
			{[]op.Arg{ints(1, 1), ints(2, 3)}, 1, 2, 1, 1, 1, 1}, // in one piece: a view
			{[]op.Arg{arg([]int32{0}, 1), arg([]int32{9}, 1), arg([]int32{-1}, 1)}, 4, 5, 0, 0, 1, 1},
		} {
			want := moved(x, []int{c.rows, c.cols}, func(i []int) []int { return []int{c.row + i[0]*c.up, c.col + i[1]*c.over} })
			expect(t, "slice", eval(t, "slice", nil, append([]op.Arg{x}, c.in...)...), []int{c.rows, c.cols}, want, 0)
		}
	}
	big := random(dtype.F32, 1, 0, 1, 500, 301)
	want := moved(big, []int{500, 150}, func(i []int) []int { return []int{i[0], 1 + 2*i[1]} })
	expect(t, "slice", eval(t, "slice", nil, big, ints(1), ints(301), ints(1), ints(2)), []int{500, 150}, want, 0)
}

func TestGather(t *testing.T) {
	for _, dt := range wordTypes {
		x := iota(dt, 3, 4, 2)
		index := []int64{2, 0, -1, 1, -4, 3}
		for _, at := range []op.Arg{arg(index, 2, 3), arg([]int32{2, 0, -1, 1, -4, 3}, 2, 3)} {
			want := moved(x, []int{3, 2, 3, 2}, func(i []int) []int { return []int{i[0], (int(index[i[1]*3+i[2]]) + 4) % 4, i[3]} })
			expect(t, "gather", eval(t, "gather", attrs("axis", 1), x, at), []int{3, 2, 3, 2}, want, 0)
		}
		want := moved(x, []int{4, 2}, func(i []int) []int { return []int{2, i[0], i[1]} })
		expect(t, "gather", eval(t, "gather", nil, x, scalar[int64](-1)), []int{4, 2}, want, 0)
		expect(t, "gather", eval(t, "gather", nil, x, ints()), []int{0, 4, 2}, nil, 0)
	}
	words := arg([]uint8{0, 1, 2, 3, 4, 5, 6, 7}, 2, 4) // slices of four bytes that lie anywhere
	expect(t, "gather", eval(t, "gather", nil, words, ints(1, 0)), []int{2, 4}, []float64{4, 5, 6, 7, 0, 1, 2, 3}, 0)
	big := random(dtype.F32, 1, 0, 1, 1000, 300)
	index := values[int64](3, 900, 0, 999)
	want := moved(big, []int{900, 300}, func(i []int) []int { return []int{int(index[i[0]]), i[1]} })
	expect(t, "gather", eval(t, "gather", nil, big, ints(index...)), []int{900, 300}, want, 0)
}

func TestGatherElementsAndND(t *testing.T) {
	for _, dt := range wordTypes {
		x := iota(dt, 3, 3)
		index := []int64{1, 2, 0, -1, 0, 0}
		for _, at := range []op.Arg{arg(index, 2, 3), arg([]int32{1, 2, 0, -1, 0, 0}, 2, 3)} {
			want := moved(x, []int{2, 3}, func(i []int) []int { return []int{(int(index[i[0]*3+i[1]]) + 3) % 3, i[1]} })
			expect(t, "gather_elements", eval(t, "gather_elements", nil, x, at), []int{2, 3}, want, 0)
			want = moved(x, []int{2, 3}, func(i []int) []int { return []int{i[0], (int(index[i[0]*3+i[1]]) + 3) % 3} })
			expect(t, "gather_elements", eval(t, "gather_elements", attrs("axis", -1), x, at), []int{2, 3}, want, 0)
		}
		cube := iota(dt, 2, 3, 4)
		at := arg([]int64{0, -1, 1, 2}, 2, 2)
		want := moved(cube, []int{2, 4}, func(i []int) []int { return [][]int{{0, 2, i[1]}, {1, 2, i[1]}}[i[0]] })
		expect(t, "gather_nd", eval(t, "gather_nd", nil, cube, at), []int{2, 4}, want, 0)
		batched := arg([]int64{2, -3}, 2, 1)
		want = moved(cube, []int{2, 4}, func(i []int) []int { return [][]int{{0, 2, i[1]}, {1, 0, i[1]}}[i[0]] })
		expect(t, "gather_nd", eval(t, "gather_nd", attrs("batch_dims", 1), cube, batched), []int{2, 4}, want, 0)
	}
}

func TestIndicesAreChecked(t *testing.T) {
	x, u := iota(dtype.F32, 2, 3), iota(dtype.F32, 1, 3)
	bad := func(c *op.Call, want string) {
		t.Helper()
		for i := range c.Out {
			c.Out[i].Data = emptyData(c.Out[i].Type)
			for k := range c.Out[i].Data {
				c.Out[i].Data[k] = 0x77
			}
		}
		err := Eval(c)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want %q", err, want)
		}
		if i := slices.IndexFunc(c.Out[0].Data, func(b byte) bool { return b != 0x77 }); i >= 0 {
			t.Errorf("%s: a run that failed in Start has written", c.Def.Name)
		}
	}
	bad(call(t, "gather", attrs("axis", 1), 1, x, ints(0, 3)), "got 3 at position 1, want -3 to 2")
	bad(call(t, "gather_elements", nil, 1, x, arg([]int64{0, -3, 0}, 1, 3)), "got -3 at position 1, want -2 to 1")
	bad(call(t, "gather_nd", nil, 1, x, arg([]int64{0, 0, 1, 9}, 2, 2)), "got 9 at position 3, want -3 to 2")
	bad(call(t, "scatter_elements", nil, 1, x, arg([]int64{2, 0, 0}, 1, 3), u), "got 2 at position 0, want -2 to 1")
	bad(call(t, "scatter_nd", nil, 1, x, arg([]int64{5}, 1, 1), u), "got 5 at position 0, want -2 to 1")
	cache := iota(dtype.F32, 1, 4, 2)
	bad(call(t, "tensor_scatter", nil, 1, cache, iota(dtype.F32, 1, 2, 2), ints(3)), "got 3 for sample 0, want 0 to 2")
	bad(call(t, "tensor_scatter", attrs("mode", "circular"), 1, cache, iota(dtype.F32, 1, 2, 2), ints(-1)), "got -1 for sample 0")
	axis := call(t, "cum_sum", nil, 1, x, scalar[int64](1))
	axis.In[1] = scalar[int64](2)
	bad(axis, "axis: got 2, want -2 to 1")
	half := call(t, "cum_sum", nil, 1, iota(dtype.F16, 2, 3), scalar[int64](1)) // through a conversion
	half.In[1] = scalar[int64](-3)
	bad(half, "axis: got -3, want -2 to 1")
}

func TestScatter(t *testing.T) {
	for _, dt := range append(floatTypes, intTypes...) {
		x := fromFloats(dt, []float64{1, 2, 3, 4, 5, 6}, 2, 3)
		at, u := arg([]int64{1, 0, 1, 1, 0, -1}, 2, 3), fromFloats(dt, []float64{7, 2, 9, 1, 3, 4}, 2, 3)
		rows, v := arg([]int64{-1, 1}, 2, 1), fromFloats(dt, []float64{7, 2, 9, 1, 9, 4}, 2, 3)
		for how, want := range map[string][2][]float64{
			"none": {{1, 3, 3, 1, 5, 4}, {1, 2, 3, 1, 9, 4}},
			"add":  {{1, 7, 3, 12, 5, 19}, {1, 2, 3, 12, 16, 19}},
			"mul":  {{1, 12, 3, 28, 5, 216}, {1, 2, 3, 28, 90, 216}},
			"max":  {{1, 3, 3, 7, 5, 9}, {1, 2, 3, 7, 9, 9}},
			"min":  {{1, 2, 3, 1, 5, 4}, {1, 2, 3, 1, 2, 4}},
		} {
			if how == "mul" && dt == dtype.I8 {
				continue // 216 wraps
			}
			a := attrs("reduction", how)
			expect(t, "scatter_elements "+how, eval(t, "scatter_elements", a, x, at, u), []int{2, 3}, want[0], 0)
			expect(t, "scatter_nd "+how, eval(t, "scatter_nd", a, x, rows, v), []int{2, 3}, want[1], 0)
		}
		short := arg([]int32{2, 0}, 2, 1)
		got := eval(t, "scatter_elements", attrs("axis", 1), x, short, fromFloats(dt, []float64{8, 9}, 2, 1))
		expect(t, "scatter_elements", got, []int{2, 3}, []float64{1, 2, 8, 9, 5, 6}, 0)
		points := arg([]int64{0, 2, 1, 0}, 2, 2)
		got = eval(t, "scatter_nd", nil, x, points, fromFloats(dt, []float64{8, 9}, 2))
		expect(t, "scatter_nd", got, []int{2, 3}, []float64{1, 2, 8, 9, 5, 6}, 0)
	}
	big := random(dtype.F32, 1, 0, 1, 300, 400)
	want := floats(big)
	copy(want[7*400:], want[:400])
	row := fromFloats(dtype.F32, want[:400], 1, 400)
	expect(t, "scatter_nd", eval(t, "scatter_nd", nil, big, arg([]int64{7}, 1, 1), row), []int{300, 400}, want, 0)
}

func TestTensorScatter(t *testing.T) {
	for _, dt := range wordTypes {
		cache := iota(dt, 2, 2, 4, 2)
		update := fromFloats(dt, []float64{100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114, 115}, 2, 2, 2, 2)
		for _, c := range []struct {
			mode  string
			start []int64
		}{{"linear", nil}, {"linear", []int64{1, 2}}, {"circular", []int64{3, 6}}} {
			in := []op.Arg{cache, update}
			if c.start != nil {
				in = append(in, ints(c.start...))
			}
			want, u := floats(cache), floats(update)
			each([]int{2, 2, 2, 2}, func(i []int) {
				p := i[2]
				if c.start != nil {
					p += int(c.start[i[0]])
				}
				want[((i[0]*2+i[1])*4+p%4)*2+i[3]] = u[((i[0]*2+i[1])*2+i[2])*2+i[3]]
			})
			got := eval(t, "tensor_scatter", attrs("mode", c.mode), in...)
			expect(t, "tensor_scatter "+c.mode, got, []int{2, 2, 4, 2}, want, 0)
		}
	}
	packed := func(a op.Arg) op.Arg { return eval(t, "cast", attrs("to", dtype.I4), a) }
	got := eval(t, "tensor_scatter", nil, packed(iota(dtype.I8, 1, 3, 1)), packed(arg([]int8{7}, 1, 1, 1)), ints(1))
	expect(t, "tensor_scatter of i4", eval(t, "cast", attrs("to", dtype.I8), got), []int{1, 3, 1}, []float64{0, 7, 2}, 0)
}

func TestScatterOfBooleans(t *testing.T) {
	for how, want := range map[string][]float64{"add": {0, 1, 1, 1}, "max": {0, 1, 1, 1}, "mul": {0, 0, 0, 1}, "min": {0, 0, 0, 1}} {
		x, updates := fromFloats(dtype.Bool, []float64{0, 0, 1, 1}, 4), fromFloats(dtype.Bool, []float64{0, 1, 0, 1}, 4)
		got := eval(t, "scatter_elements", attrs("reduction", how), x, ints(0, 1, 2, 3), updates)
		expect(t, "scatter_elements "+how, got, []int{4}, want, 0)
	}
}
