package compute

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

func TestConstant(t *testing.T) {
	for _, dt := range append(floatTypes, intTypes...) {
		name, one, many := "ints", any([]int64{3}), any([]int64{1, 2, 3, 4, 5, 6})
		if dt.IsFloat() {
			name, one, many = "floats", []float64{3}, []float64{1, 2, 3, 4, 5, 6}
		}
		got := eval(t, "constant", attrs("dtype", dt, "dims", []int64{2, 3}, name, many))
		expect(t, "constant", got, []int{2, 3}, []float64{1, 2, 3, 4, 5, 6}, 0)
		got = eval(t, "constant", attrs("dtype", dt, "dims", []int64{2, 2}, name, one))
		expect(t, "constant", got, []int{2, 2}, []float64{3, 3, 3, 3}, 0)
		expect(t, "constant", eval(t, "constant", attrs("dtype", dt, name, one)), nil, []float64{3}, 0)

		if name == "floats" {
			got = eval(t, "constant_of_shape", attrs("dtype", dt, "value", 3.0), ints(2, 2))
		} else {
			got = eval(t, "constant_of_shape", attrs("dtype", dt, "ints", one), ints(2, 2))
		}
		expect(t, "constant_of_shape", got, []int{2, 2}, []float64{3, 3, 3, 3}, 0)
		expect(t, "constant_of_shape", eval(t, "constant_of_shape", attrs("dtype", dt), ints(3)), []int{3}, []float64{0, 0, 0}, 0)
	}
	got := eval(t, "constant_of_shape", attrs("dtype", dtype.Bool, "ints", []int64{1}), ints(2))
	expect(t, "constant_of_shape", got, []int{2}, []float64{1, 1}, 0)
	big := eval(t, "constant_of_shape", attrs("value", 0.5), ints(100_001))
	for i, v := range floats(big) {
		if v != 0.5 {
			t.Fatalf("element %d: got %v, want 0.5", i, v)
		}
	}
	for dt, bytes := range map[dtype.DType]byte{dtype.I4: 0x33, dtype.U4: 0x33, dtype.U2: 0xff} {
		got := eval(t, "constant_of_shape", attrs("dtype", dt, "ints", []int64{3}), ints(5))
		last := byte(1<<(5*dt.Bits()%8) - 1)
		if got.Data[0] != bytes || got.Data[len(got.Data)-1] != bytes&last {
			t.Errorf("constant_of_shape of %v: got % x", dt, got.Data)
		}
	}
}

func TestRange(t *testing.T) {
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I16, dtype.I32, dtype.I64} {
		a, b, d := fromFloats(dt, []float64{1}), fromFloats(dt, []float64{10}), fromFloats(dt, []float64{3})
		expect(t, "range", eval(t, "range", nil, a, b, d), []int{3}, []float64{1, 4, 7}, 0)
		down := fromFloats(dt, []float64{-4})
		expect(t, "range", eval(t, "range", nil, b, a, down), []int{3}, []float64{10, 6, 2}, 0)
		expect(t, "range", eval(t, "range", nil, a, b, down), []int{0}, nil, 0)
	}
	want := make([]float64, 2*spanElements+1)
	for i := range want {
		want[i] = float64(i)
	}
	got := eval(t, "range", nil, scalar[int64](0), scalar(int64(len(want))), scalar[int64](1))
	expect(t, "range", got, []int{len(want)}, want, 0)
}

func TestOneHot(t *testing.T) {
	values := arg([]float32{-1, 5}, 2)
	for _, dt := range []dtype.DType{dtype.I64, dtype.I32, dtype.F32, dtype.U8, dtype.F64} {
		src := []float64{1, 0, 2, 3}
		if dt.IsSigned() {
			src[3] = -3
		}
		at := fromFloats(dt, src, 2, 2)
		for _, axis := range []int{-1, 0, 1} {
			sizes := [][]int{{3, 2, 2}, {2, 3, 2}, {2, 2, 3}}[(axis+3)%3]
			var want []float64
			each(sizes, func(i []int) {
				k := (axis + 3) % 3
				rest := append(append([]int{}, i[:k]...), i[k+1:]...)
				v := -1.0
				if x := src[rest[0]*2+rest[1]]; x == float64(i[k]) || x+3 == float64(i[k]) {
					v = 5
				}
				want = append(want, v)
			})
			got := eval(t, "one_hot", attrs("axis", axis), at, scalar[int64](3), values)
			expect(t, "one_hot", got, sizes, want, 0)
		}
	}
	index := make([]int64, 3000)
	want := make([]float64, 3000*100)
	for i := range index {
		index[i] = int64(i * 7 % 100)
		want[i*100+i*7%100] = 1
	}
	got := eval(t, "one_hot", nil, ints(index...), scalar[int64](100), arg([]int8{0, 1}, 2))
	expect(t, "one_hot", got, []int{3000, 100}, want, 0)
}

func TestTrilu(t *testing.T) {
	for _, dt := range append(wordTypes, dtype.C128) {
		if dt == dtype.C128 {
			continue
		}
		x := fromFloats(dt, values[float64](1, 24, 1, 9), 2, 3, 4)
		data := floats(x)
		for _, upper := range []int{0, 1} {
			for _, k := range []int64{-9, -1, 0, 2, math.MaxInt64, math.MinInt64} {
				var want []float64
				each([]int{2, 3, 4}, func(i []int) {
					v := at(x, data, i)
					if d := int64(i[2] - i[1]); upper == 1 && d < k || upper == 0 && d > k {
						v = 0
					}
					want = append(want, v)
				})
				got := eval(t, "trilu", attrs("upper", upper), x, scalar(k))
				expect(t, "trilu", got, []int{2, 3, 4}, want, 0)
			}
		}
		if got := floats(eval(t, "trilu", nil, x)); got[4] != 0 || got[5] != data[5] {
			t.Errorf("trilu without k: got %v", got)
		}
	}
	eval(t, "trilu", nil, random(dtype.F32, 1, 0, 1, 5, 200, 201))
}

func TestCumSum(t *testing.T) {
	for _, dt := range []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I32, dtype.I64, dtype.U32, dtype.U64} {
		x := fromFloats(dt, []float64{1, 2, 3, 4, 5, 6}, 2, 3)
		for _, c := range []struct {
			axis int32
			a    op.Attrs
			want []float64
		}{
			{1, nil, []float64{1, 3, 6, 4, 9, 15}},
			{-2, nil, []float64{1, 2, 3, 5, 7, 9}},
			{1, attrs("exclusive", 1), []float64{0, 1, 3, 0, 4, 9}},
			{1, attrs("reverse", 1), []float64{6, 5, 3, 15, 11, 6}},
			{0, attrs("reverse", 1, "exclusive", 1), []float64{4, 5, 6, 0, 0, 0}},
		} {
			expect(t, "cum_sum", eval(t, "cum_sum", c.a, x, scalar(c.axis)), []int{2, 3}, c.want, 0)
		}
	}
	x := random(dtype.I32, 1, -9, 9, 9000, 10)
	want := floats(x)
	for i := range want {
		if i%10 > 0 {
			want[i] += want[i-1]
		}
	}
	expect(t, "cum_sum", eval(t, "cum_sum", nil, x, scalar[int64](1)), []int{9000, 10}, want, 0)
}
