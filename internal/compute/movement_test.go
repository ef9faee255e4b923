package compute

import (
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// wordTypes has one element type of every size.
var wordTypes = []dtype.DType{dtype.U8, dtype.BF16, dtype.F32, dtype.I64}

func iota(dt dtype.DType, dims ...int) op.Arg {
	n := 1
	for _, d := range dims {
		n *= d
	}
	src := make([]float64, n)
	for i := range src {
		src[i] = float64(i % 120)
	}
	return fromFloats(dt, src, dims...)
}

// moved computes a result whose element at an index is the operand's element
// at from(index).
func moved(x op.Arg, sizes []int, from func(i []int) []int) []float64 {
	data := floats(x)
	var want []float64
	each(sizes, func(i []int) { want = append(want, at(x, data, from(i))) })
	return want
}

func TestViewsRunAsCopies(t *testing.T) {
	for _, dt := range append(wordTypes, dtype.Bool, dtype.I4) {
		x := iota(dt, 2, 1, 3)
		if dt == dtype.Bool {
			x = arg([]bool{true, false, true, true, false, true}, 2, 1, 3)
		}
		for name, c := range map[string]*op.Call{
			"identity":  call(t, "identity", nil, 1, x),
			"copy":      call(t, "copy", nil, 1, x),
			"reshape":   call(t, "reshape", nil, 1, x, ints(3, 2)),
			"squeeze":   call(t, "squeeze", nil, 1, x, ints(1)),
			"unsqueeze": call(t, "unsqueeze", nil, 1, x, ints(0, 2)),
			"flatten":   call(t, "flatten", attrs("axis", 2), 1, x),
			"expand":    call(t, "identity", nil, 1, x),
		} {
			if got := run(t, c)[0]; !slices.Equal(got.Data, x.Data) {
				t.Errorf("%s of %v: got bytes %v, want %v", name, dt, got.Data, x.Data)
			}
		}
	}
	big := random(dtype.F32, 1, 0, 1, copySpan, 2)
	if got := eval(t, "copy", nil, big); !slices.Equal(got.Data, big.Data) {
		t.Error("copy of several tiles differs from its operand")
	}
}

func TestTranspose(t *testing.T) {
	for _, dt := range wordTypes {
		for _, c := range []struct{ dims, perm []int }{
			{[]int{2, 3}, nil}, {[]int{2, 3, 4}, []int{2, 0, 1}}, {[]int{2, 3, 4, 5}, []int{0, 2, 1, 3}}, {[]int{1, 3, 1, 4}, []int{2, 1, 0, 3}},
			{[]int{2, 0, 3}, []int{1, 0, 2}}, {nil, nil}, {[]int{3, 40, 50}, []int{0, 2, 1}},
		} {
			x := iota(dt, c.dims...)
			perm, a := c.perm, op.Attrs(nil)
			if perm == nil {
				for i := range c.dims {
					perm = append(perm, len(c.dims)-1-i)
				}
			} else {
				list := make([]int64, len(perm))
				for i, p := range perm {
					list[i] = int64(p)
				}
				a = attrs("perm", list)
			}
			sizes := make([]int, len(perm))
			for i, p := range perm {
				sizes[i] = c.dims[p]
			}
			want := moved(x, sizes, func(i []int) []int {
				from := make([]int, len(i))
				for k, p := range perm {
					from[p] = i[k]
				}
				return from
			})
			expect(t, "transpose", eval(t, "transpose", a, x), sizes, want, 0)
		}
	}
	big := random(dtype.F32, 1, 0, 1, 300, 400)
	want := moved(big, []int{400, 300}, func(i []int) []int { return []int{i[1], i[0]} })
	expect(t, "transpose", eval(t, "transpose", nil, big), []int{400, 300}, want, 0)
	packed := eval(t, "cast", attrs("to", dtype.U4), arg([]uint8{1, 2, 3, 4, 5, 6}, 2, 3))
	back := eval(t, "cast", attrs("to", dtype.U8), eval(t, "transpose", nil, packed))
	expect(t, "transpose of u4", back, []int{3, 2}, []float64{1, 4, 2, 5, 3, 6}, 0)
}

func TestConcat(t *testing.T) {
	for _, dt := range wordTypes {
		x, y := iota(dt, 2, 3), fromFloats(dt, []float64{10, 11}, 2, 1)
		expect(t, "concat", eval(t, "concat", attrs("axis", 1), x, y), []int{2, 4}, []float64{0, 1, 2, 10, 3, 4, 5, 11}, 0)
		expect(t, "concat", eval(t, "concat", attrs("axis", -1), y, x, y), []int{2, 5}, []float64{10, 0, 1, 2, 10, 11, 3, 4, 5, 11}, 0)
		expect(t, "concat", eval(t, "concat", attrs("axis", 0), x), []int{2, 3}, []float64{0, 1, 2, 3, 4, 5}, 0)
		none := fromFloats(dt, nil, 2, 0)
		expect(t, "concat", eval(t, "concat", attrs("axis", 1), none, x), []int{2, 3}, []float64{0, 1, 2, 3, 4, 5}, 0)
		expect(t, "concat", eval(t, "concat", attrs("axis", 1), none, none), []int{2, 0}, nil, 0)
	}
	var list []op.Arg
	var want []float64
	for i := range 40 {
		list = append(list, ints(int64(i)))
		want = append(want, float64(i))
	}
	c := call(t, "concat", attrs("axis", 0), 1, list...)
	expect(t, "concat", run(t, c)[0], []int{40}, want, 0)
	if task, _ := Bind(c); task.Tiles != 1 {
		t.Errorf("concat of 40 numbers: got %d tiles, want 1", task.Tiles)
	}
	a, b := random(dtype.F32, 1, 0, 1, 2, 300, 100), random(dtype.F32, 2, 0, 1, 2, 500, 100)
	da, db := floats(a), floats(b)
	want = slices.Concat(da[:30_000], db[:50_000], da[30_000:], db[50_000:])
	expect(t, "concat", eval(t, "concat", attrs("axis", 1), a, b), []int{2, 800, 100}, want, 0)
}

func TestSplit(t *testing.T) {
	x := iota(dtype.I64, 2, 6)
	got := run(t, call(t, "split", attrs("axis", 1, "num_outputs", 3), 3, x))
	expect(t, "split", got[0], []int{2, 2}, []float64{0, 1, 6, 7}, 0)
	expect(t, "split", got[2], []int{2, 2}, []float64{4, 5, 10, 11}, 0)
	got = run(t, call(t, "split", attrs("axis", 1), 2, x, ints(1, 5)))
	expect(t, "split", got[0], []int{2, 1}, []float64{0, 6}, 0)
	expect(t, "split", got[1], []int{2, 5}, []float64{1, 2, 3, 4, 5, 7, 8, 9, 10, 11}, 0)
	got = run(t, call(t, "split", attrs("axis", 0), 2, x)) // views of x
	expect(t, "split", got[1], []int{1, 6}, []float64{6, 7, 8, 9, 10, 11}, 0)
	got = run(t, call(t, "split", attrs("axis", 1, "num_outputs", 4), 4, iota(dtype.F32, 1, 7)))
	expect(t, "split", got[3], []int{1, 1}, []float64{6}, 0)

	for _, c := range []*op.Call{
		call(t, "split", attrs("axis", 1), 3, x, ints(1, 3, 2)),
		call(t, "split", attrs("axis", 1, "num_outputs", 3), 3, x),
	} {
		c.Out[1] = absent // not wanted
		c.Results[1] = op.Type{}
		last := run(t, c)[2]
		expect(t, "split", last, []int{2, 2}, []float64{4, 5, 10, 11}, 0)
	}
}

func TestExpandAndTile(t *testing.T) {
	for _, dt := range wordTypes {
		x := iota(dt, 3, 1)
		want := moved(x, []int{2, 3, 4}, func(i []int) []int { return i })
		expect(t, "expand", eval(t, "expand", nil, x, ints(2, 1, 4)), []int{2, 3, 4}, want, 0)
		expect(t, "expand", eval(t, "expand", nil, x, ints(1)), []int{3, 1}, []float64{0, 1, 2}, 0)
		expect(t, "expand", eval(t, "expand", nil, x, ints(3, 0)), []int{3, 0}, nil, 0)
		expect(t, "tile", eval(t, "tile", nil, x, ints(2, 3)), []int{6, 3}, []float64{0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0, 1, 1, 1, 2, 2, 2}, 0)
		expect(t, "tile", eval(t, "tile", nil, x, ints(1, 1)), []int{3, 1}, []float64{0, 1, 2}, 0)
		expect(t, "tile", eval(t, "tile", nil, x, ints(0, 2)), []int{0, 2}, nil, 0)
		two := iota(dt, 2, 2)
		expect(t, "tile", eval(t, "tile", nil, two, ints(1, 2)), []int{2, 4}, []float64{0, 1, 0, 1, 2, 3, 2, 3}, 0)
	}
	big := random(dtype.F32, 3, 0, 1, 1, 50_000)
	want := moved(big, []int{3, 50_000}, func(i []int) []int { return i })
	expect(t, "expand", eval(t, "expand", nil, big, ints(3, 1)), []int{3, 50_000}, want, 0)
}

func TestPad(t *testing.T) {
	x := iota(dtype.F32, 2, 3)
	pads := ints(0, 1, 1, 2)
	for mode, want := range map[string][]float64{
		"constant": {9, 0, 1, 2, 9, 9, 9, 3, 4, 5, 9, 9, 9, 9, 9, 9, 9, 9},
		"edge":     {0, 0, 1, 2, 2, 2, 3, 3, 4, 5, 5, 5, 3, 3, 4, 5, 5, 5},
		"reflect":  {1, 0, 1, 2, 1, 0, 4, 3, 4, 5, 4, 3, 1, 0, 1, 2, 1, 0},
		"wrap":     {2, 0, 1, 2, 0, 1, 5, 3, 4, 5, 3, 4, 2, 0, 1, 2, 0, 1},
	} {
		got := eval(t, "pad", attrs("mode", mode), x, pads, scalar[float32](9))
		expect(t, "pad "+mode, got, []int{3, 6}, want, 0)
	}
	expect(t, "pad", eval(t, "pad", nil, x, ints(-1, 1, 0, -1)), []int{1, 3}, []float64{0, 3, 4}, 0)
	expect(t, "pad", eval(t, "pad", nil, x, ints(1, 0), absent, ints(-1)), []int{2, 4}, []float64{0, 0, 1, 2, 0, 3, 4, 5}, 0)
	all := eval(t, "pad", nil, x, ints(0, -5, 0, 4), scalar[float32](9)) // and some of the added elements
	expect(t, "pad", all, []int{2, 2}, []float64{9, 9, 9, 9}, 0)
	expect(t, "pad", eval(t, "pad", nil, x, ints(0, 0, 0, 0)), []int{2, 3}, []float64{0, 1, 2, 3, 4, 5}, 0)
	for _, dt := range wordTypes {
		got := eval(t, "pad", nil, iota(dt, 2), ints(1, 2), fromFloats(dt, []float64{7}))
		expect(t, "pad", got, []int{5}, []float64{7, 0, 1, 7, 7}, 0)
	}
	big := random(dtype.F32, 1, 0, 1, 200, 300)
	data := floats(big)
	var want []float64
	each([]int{203, 300}, func(i []int) {
		v := 0.0
		if i[0] >= 3 {
			v = data[(i[0]-3)*300+i[1]]
		}
		want = append(want, v)
	})
	expect(t, "pad", eval(t, "pad", nil, big, ints(3, 0, 0, 0)), []int{203, 300}, want, 0)

	c := call(t, "pad", nil, 1, x, pads)
	c.Known = nil
	if _, err := Bind(c); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("pad by unknown pads: got %v, want ErrUnsupported", err)
	}
}

func TestDepthToSpace(t *testing.T) {
	const b, ch = 2, 3
	for _, dt := range wordTypes {
		x := iota(dt, 2, ch*b*b, 3, 4)
		for _, mode := range []string{"DCR", "CRD"} {
			want := moved(x, []int{2, ch, 3 * b, 4 * b}, func(i []int) []int {
				block := i[2]%b*b + i[3]%b
				if mode == "DCR" {
					return []int{i[0], block*ch + i[1], i[2] / b, i[3] / b}
				}
				return []int{i[0], i[1]*b*b + block, i[2] / b, i[3] / b}
			})
			y := eval(t, "depth_to_space", attrs("blocksize", b, "mode", mode), x)
			expect(t, "depth_to_space "+mode, y, []int{2, ch, 3 * b, 4 * b}, want, 0)
			back := eval(t, "space_to_depth", attrs("blocksize", b, "mode", mode), y)
			expect(t, "space_to_depth "+mode, back, x.Shape.Sizes(), floats(x), 0)
		}
	}
}

func TestTooManyLoops(t *testing.T) {
	dims := slices.Repeat([]int{2}, 17)
	x := random(dtype.U8, 1, 0, 9, dims...)
	c := call(t, "transpose", nil, 1, x)
	if _, err := Bind(c); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("transpose of 17 dimensions: got %v, want ErrUnsupported", err)
	}
}
