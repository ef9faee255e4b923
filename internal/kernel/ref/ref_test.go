package ref_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// The reference is held to results worked out by hand.

func wantFloats(t *testing.T, what string, got []float64, want ...float64) {
	t.Helper()
	if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-12 }) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestProducts(t *testing.T) {
	g := ref.Gemm{M: 2, N: 2, K: 2, LDA: 2, LDB: 2, Alpha: 1, Epilogue: ref.Epilogue{Bias: "col", Beta: 2, Act: "relu"}}
	wantFloats(t, "gemm", g.Run([]float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}, []float32{1, -100}, nil), 21, 0, 45, 0)
	g.TransB, g.Epilogue = true, ref.Epilogue{}
	wantFloats(t, "gemm with b transposed", g.Run([]float32{1, 2, 3, 4}, []float32{5, 6, 7, 8}, nil, []float32{0, 0, 0, 1}), 17, 23, 39, 54)

	w := ref.Window{In: []int{4}, Kernel: []int{2}, Stride: []int{1}, Dilation: []int{2}, PadBegin: []int{1}, PadEnd: []int{0}, Out: []int{3}}
	c := ref.Conv{Batch: 1, Group: 1, InChannels: 1, OutChannels: 1, Window: w}
	wantFloats(t, "conv", c.Run([]float32{1, 2, 3, 4}, []float32{10, 1}, nil, nil), 2, 13, 24)
	c.Scale, c.Shift = []float32{1}, []float32{5}
	wantFloats(t, "conv with prologue", c.Run([]float32{1, 2, 3, 4}, []float32{10, 1}, nil, nil), 7, 68, 79)

	up := ref.Window{In: []int{2}, Kernel: []int{3}, Stride: []int{2}, Dilation: []int{1}, PadBegin: []int{1}, Out: []int{4}}
	wantFloats(t, "conv_transpose", ref.ConvTranspose(1, 1, 1, 1, up, []float32{1, 10}, []float32{1, 2, 3}, nil), 2, 13, 20, 30)
}

func TestPools(t *testing.T) {
	p := ref.Pool{Kind: "max", Planes: 1, Window: ref.Window{
		In: []int{3}, Kernel: []int{2}, Stride: []int{2}, Dilation: []int{1}, PadBegin: []int{1}, PadEnd: []int{0}, Out: []int{2},
	}}
	max, where := p.Run([]float64{4, 5, 6})
	wantFloats(t, "max", max, 4, 6)
	if !slices.Equal(where, []int64{0, 2}) {
		t.Errorf("indices: got %v, want [0 2]", where)
	}
	p.Kind = "average"
	mean, _ := p.Run([]float64{4, 5, 6})
	wantFloats(t, "average", mean, 4, 5.5)
	p.Kind = "average_padded"
	mean, _ = p.Run([]float64{4, 5, 6})
	wantFloats(t, "average_padded", mean, 2, 5.5)
}

func TestRows(t *testing.T) {
	x := []float64{1, 2, 3, 4}
	wantFloats(t, "sum of columns", ref.Reduce("sum", x, []int{2, 2}, []bool{true, false}), 4, 6)
	wantFloats(t, "mean of rows", ref.Reduce("mean", x, []int{2, 2}, []bool{false, true}), 1.5, 3.5)
	wantFloats(t, "log_sum_exp", ref.Reduce("log_sum_exp", []float64{1000, 1000}, []int{2}, []bool{true}), 1000+math.Ln2)
	wantFloats(t, "softmax", ref.Softmax([]float64{0, math.Ln2 * 2}, 1, 2, 1, false), 0.2, 0.8)
	y, mean, inv := ref.Norm([]float64{1, 3}, 0, false)
	wantFloats(t, "norm", append(y, mean, inv), -1, 1, 2, 1)
	wantFloats(t, "cumsum", ref.Scan([]float64{1, 2, 3}, []int{3}, 0, false, true, true), 5, 3, 0)
	wantFloats(t, "cumprod", ref.Scan([]float64{4, 2, 3}, []int{3}, 0, true, false, false), 4, 8, 24)
}

func TestResize(t *testing.T) {
	up := ref.Resize{In: []int{2}, Out: []int{4}, Scale: []float64{2}, Mode: "linear", Transform: "half_pixel"}
	wantFloats(t, "linear", up.Run([]float64{1, 2}), 1, 1.25, 1.75, 2)
	up.Transform = "align_corners"
	wantFloats(t, "corners", up.Run([]float64{1, 2}), 1, 4.0/3, 5.0/3, 2)
	more := ref.Resize{In: []int{5}, Out: []int{7}, Scale: []float64{1.5}, Mode: "linear", Transform: "align_corners"} // figures of ONNX Runtime
	wantFloats(t, "corners of a fraction", more.Run([]float64{1, 4, 9, 16, 25}), 1, 3, 17.0/3, 9, 41.0/3, 19, 25)
	up.Mode, up.Transform, up.Nearest = "nearest", "asymmetric", "floor"
	wantFloats(t, "nearest", up.Run([]float64{1, 2}), 1, 1, 2, 2)
}

func TestCast(t *testing.T) {
	value := func(f float32) ref.Value {
		b := math.Float32bits(f)
		return ref.Decode(dtype.F32, []byte{byte(b), byte(b >> 8), byte(b >> 16), byte(b >> 24)}, 0)
	}
	for _, c := range []struct {
		f    float32
		to   dtype.DType
		want uint64
	}{
		{-1.9, dtype.I8, 0xff}, {300, dtype.U8, 44}, {3e9, dtype.I32, 0x7fffffff}, {-9, dtype.I4, 7}, {2.5, dtype.I4, 2}, {-3.6, dtype.I4, 12}, {1.5, dtype.U2, 2}, {1, dtype.F16, 0x3c00}, {65520, dtype.F16, 0x7c00},
		{1 + 0x1p-11, dtype.F16, 0x3c00}, {1 + 0x1p-11 + 0x1p-20, dtype.F16, 0x3c01}, {1e9, dtype.F8E4M3FN, 0x7e}, {float32(math.NaN()), dtype.Bool, 1},
		{float32(math.NaN()), dtype.I64, 0}, {3, dtype.F8E8M0, 129},
	} {
		if got := ref.Cast(value(c.f), c.to, true, dtype.RoundUp); got != c.want {
			t.Errorf("%v to %s: got %#x, want %#x", c.f, c.to, got, c.want)
		}
	}
}
