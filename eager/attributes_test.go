package eager_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// A function's parameters reach its operator: each result differs from that of
// another order or another default.
func TestParameters(t *testing.T) {
	memorytest.Check(t)
	m := of(t, []float32{1, -2, 3, 4, 5, -6}, 2, 3)
	by := of(t, []float32{-2, 2, 2}, 3)
	row := of(t, []float32{0, 3, 4}, 1, 3)
	image := of(t, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1, 1, 3, 3)
	filter := of(t, []float32{1, 2, 3, 4}, 1, 1, 2, 2)
	pair := of(t, []float32{1, 3, 10, 30}, 1, 2, 2)
	one, two := vector(t, 2, 3), vector(t, 10, 20)
	bias, ten, twos := vector(t, 100), vector(t, 10), vector(t, 2, 2)
	over, by3 := ok(tensor.Of([]int32{-7, 7}, 2))(t), ok(tensor.Of([]int32{3, -3}, 2))(t)
	zero, four := vector(t, 0, 0), vector(t, 4, 100)
	inf := float32(math.Inf(1))
	at := ok(tensor.Of([]int64{2, 0}, 2, 1))(t)
	tuple := ok(tensor.Of([]int64{1, 2}, 1, 2))(t)
	updates := of(t, []float32{70, 80}, 2, 1)
	for _, c := range []struct {
		what   string
		got    func() (*tensor.Tensor, error)
		dims   string
		values []float64
	}{
		{"clone", func() (*tensor.Tensor, error) { return eager.Clone(row) }, "[1,3]", []float64{0, 3, 4}},
		{"clip", func() (*tensor.Tensor, error) { return eager.Clip(m, -1, 4) }, "[2,3]", []float64{1, -1, 3, 4, 4, -1}},
		{"clip below", func() (*tensor.Tensor, error) { return eager.Clip(m, 0, float64(inf)) }, "[2,3]", []float64{1, 0, 3, 4, 5, 0}},
		{"mod", func() (*tensor.Tensor, error) { return eager.FMod(m, by) }, "[2,3]", []float64{1, 0, 1, 0, 1, 0}},
		{"mod of integers", func() (*tensor.Tensor, error) { return eager.Mod(over, by3) }, "[2]", []float64{2, -2}},
		{"fmod of integers", func() (*tensor.Tensor, error) { return eager.FMod(over, by3) }, "[2]", []float64{-1, 1}},
		{"layer norm", func() (*tensor.Tensor, error) { return eager.LayerNorm(pair, one, two, -1, 0) }, "[1,2,2]", []float64{8, 23, 8, 23}},
		{"rms norm", func() (*tensor.Tensor, error) { return eager.RMSNorm(twos, one, 0, 12) }, "[2]", []float64{1, 1.5}},
		{"batch norm", func() (*tensor.Tensor, error) { return eager.BatchNorm(pair, one, two, zero, four, 0) }, "[1,2,2]", []float64{11, 13, 23, 29}},
		{"instance norm", func() (*tensor.Tensor, error) { return eager.InstanceNorm(pair, one, two, 0) }, "[1,2,2]", []float64{8, 12, 17, 23}},
		{"group norm", func() (*tensor.Tensor, error) { return eager.GroupNorm(pair, one, two, 2, 0) }, "[1,2,2]", []float64{8, 12, 17, 23}},
		{"conv", func() (*tensor.Tensor, error) {
			return eager.Conv(image, filter, bias, eager.Window{Strides: []int{1, 2}, Pads: []int{0, 1, 0, 0}})
		},
			"[1,1,2,2]", []float64{118, 100 + 2 + 6 + 15 + 24, 136, 100 + 5 + 12 + 24 + 36}},
		{"dilated conv", func() (*tensor.Tensor, error) {
			return eager.Conv(image, filter, nil, eager.Window{Dilations: []int{2, 2}, Groups: 1})
		},
			"[1,1,1,1]", []float64{1 + 6 + 21 + 36}},
		{"conv transpose", func() (*tensor.Tensor, error) {
			return eager.ConvTranspose(filter, filter, nil, eager.Window{Strides: []int{2, 2}, Pads: []int{0, 0, 2, 2}})
		},
			"[1,1,2,2]", []float64{1, 2, 3, 4}},
		{"max pool", func() (*tensor.Tensor, error) {
			return eager.MaxPool(image, []int{2, 1}, eager.Window{Strides: []int{2, 2}, Ceil: true})
		}, "[1,1,2,2]", []float64{4, 6, 7, 9}},
		{"average pool", func() (*tensor.Tensor, error) {
			return eager.AveragePool(image, []int{1, 3}, eager.Window{Pads: []int{0, 1, 0, 0}})
		},
			"[1,1,3,2]", []float64{1.5, 2, 4.5, 5, 7.5, 8}},
		{"average pool of pads", func() (*tensor.Tensor, error) {
			return eager.AveragePool(image, []int{1, 3}, eager.Window{Pads: []int{0, 1, 0, 0}, CountPads: true})
		},
			"[1,1,3,2]", []float64{1, 2, 3, 5, 5, 8}},
		{"gather elements", func() (*tensor.Tensor, error) { return eager.GatherElements(m, at, 1) }, "[2,1]", []float64{3, 4}},
		{"gather tuples", func() (*tensor.Tensor, error) { return eager.GatherND(m, tuple) }, "[1]", []float64{-6}},
		{"scatter elements", func() (*tensor.Tensor, error) { return eager.ScatterElements(m, at, updates, 1) }, "[2,3]", []float64{1, -2, 70, 80, 5, -6}},
		{"pad", func() (*tensor.Tensor, error) { return eager.Pad(row, 9, 1, 0, 0, -1) }, "[2,2]", []float64{9, 9, 0, 3}},
		{"tile", func() (*tensor.Tensor, error) { return eager.Tile(row, 2, 1) }, "[2,3]", []float64{0, 3, 4, 0, 3, 4}},
		{"expand", func() (*tensor.Tensor, error) { return eager.Expand(row, 2, 3) }, "[2,3]", []float64{0, 3, 4, 0, 3, 4}},
		{"running sum", func() (*tensor.Tensor, error) { return eager.CumSum(m, -1) }, "[2,3]", []float64{1, -1, 2, 4, 9, 3}},
		{"triangle above", func() (*tensor.Tensor, error) { return eager.Trilu(m, 1, true) }, "[2,3]", []float64{0, -2, 3, 0, 0, -6}},
		{"triangle below", func() (*tensor.Tensor, error) { return eager.Trilu(m, 0, false) }, "[2,3]", []float64{1, 0, 0, 4, 5, 0}},
		{"mean", func() (*tensor.Tensor, error) { return eager.ReduceMean(m, []int{0}, true) }, "[1,3]", []float64{2.5, 1.5, -1.5}},
		{"largest", func() (*tensor.Tensor, error) { return eager.ReduceMax(m, []int{1}, false) }, "[2]", []float64{3, 5}},
		{"smallest", func() (*tensor.Tensor, error) { return eager.ReduceMin(m, nil, false) }, "[]", []float64{-6}},
		{"product", func() (*tensor.Tensor, error) { return eager.ReduceProd(m, []int{-1}, true) }, "[2,1]", []float64{-6, -120}},
		{"absolute sum", func() (*tensor.Tensor, error) { return eager.ReduceL1(m, []int{1}, false) }, "[2]", []float64{6, 15}},
		{"length", func() (*tensor.Tensor, error) { return eager.ReduceL2(row, []int{1}, false) }, "[1]", []float64{5}},
		{"sum of squares", func() (*tensor.Tensor, error) { return eager.ReduceSumSquare(row, []int{1}, false) }, "[1]", []float64{25}},
		{"sum of exponentials", func() (*tensor.Tensor, error) { return eager.ReduceLogSumExp(ten, []int{0}, false) }, "[]", []float64{10}},
		{"place of the largest", func() (*tensor.Tensor, error) { return eager.ArgMax(m, 1, false) }, "[2]", []float64{2, 1}},
		{"place of the smallest", func() (*tensor.Tensor, error) { return eager.ArgMin(m, 0, true) }, "[1,3]", []float64{0, 0, 1}},
	} {
		got, err := c.got()
		shaped(t, c.what, got, err, c.dims, c.values...)
	}
	release(t, m, by, row, image, filter, pair, one, two, bias, ten, zero, four, at, tuple, updates, twos, over, by3)
}

// The two forms of gelu differ in the fourth digit, and softmax's logarithm is
// along its axis.
func TestApproximations(t *testing.T) {
	memorytest.Check(t)
	x := of(t, []float32{1, 1, 1, 1}, 1, 4)
	for _, c := range []struct {
		what string
		f    func(x tensor.Operand) (*tensor.Tensor, error)
		want float64
	}{
		{"gelu", eager.Gelu, 0.8413447},
		{"gelu by tanh", eager.GeluTanh, 0.8411920},
		{"log softmax of rows", func(x tensor.Operand) (*tensor.Tensor, error) { return eager.LogSoftmax(x, 1) }, -math.Log(4)},
		{"log softmax of columns", func(x tensor.Operand) (*tensor.Tensor, error) { return eager.LogSoftmax(x, 0) }, 0},
	} {
		y := ok(c.f(x))(t)
		got, err := tensor.Float32s(y)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range got {
			if math.Abs(float64(v)-c.want) > 1e-6 {
				t.Errorf("%s: got %v, want %v", c.what, v, c.want)
			}
		}
		release(t, y)
	}
	release(t, x)
}

// A scope's assignments return the results of the functions.
func TestScopeAssigns(t *testing.T) {
	memorytest.Check(t)
	s := eager.NewScope()
	x, y, two := vector(t, 8, 12), vector(t, 2, 4), vector(t, 2)
	at := address(x)
	s.AddAssign(&x, y)
	s.SubAssign(&x, two)
	s.MulAssign(&x, y)
	s.DivAssign(&x, y)
	want(t, x, 8, 14)
	if address(x) != at {
		t.Error("the result is not in the bytes of what was given up")
	}
	release(t, y, two)
	if err := s.Close(); err != nil || x.Alive() {
		t.Errorf("got %v, and the result alive: %v; want it to end with its scope", err, x.Alive())
	}
}
