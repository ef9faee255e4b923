package tensor

import (
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
)

func TestFloat32s(t *testing.T) {
	memorytest.Check(t)
	half := dtype.Float16FromFloat32
	for _, c := range []struct {
		x    *Tensor
		want []float32
	}{
		{ok(Of([]float32{1.5, -2}, 2))(t), []float32{1.5, -2}},
		{ok(Of([]float64{0.1, 1e300}, 2))(t), []float32{0.1, float32(math.Inf(1))}},
		{ok(Of([]dtype.Float16{half(0.5), half(-3)}, 2))(t), []float32{0.5, -3}},
		{ok(Of([]dtype.BFloat16{dtype.BFloat16FromFloat32(7)}, 1))(t), []float32{7}},
		{ok(Of([]int8{-128, 127}, 2))(t), []float32{-128, 127}},
		{ok(Of([]int16{-300}))(t), []float32{-300}},
		{ok(Of([]int32{1<<24 + 1}))(t), []float32{1 << 24}},
		{ok(Of([]int64{-1 << 40}))(t), []float32{-1 << 40}},
		{ok(Of([]uint8{255}))(t), []float32{255}},
		{ok(Of([]uint16{65535}))(t), []float32{65535}},
		{ok(Of([]uint32{1 << 31}))(t), []float32{1 << 31}},
		{ok(Of([]uint64{1 << 63}))(t), []float32{1 << 63}},
		{ok(Of([]bool{true, false}, 2))(t), []float32{1, 0}},
		{ok(FromBytes(dtype.F8E4M3FN, shape.MustOf(2), []byte{0x38, 0xb8}))(t), []float32{1, -1}},
		{ok(FromBytes(dtype.F4E2M1, shape.MustOf(3), []byte{0x7a, 0x01}))(t), []float32{-1, 6, 0.5}},
		{ok(FromBytes(dtype.I4, shape.MustOf(3), []byte{0x8f, 0x07}))(t), []float32{-1, -8, 7}},
		{ok(FromBytes(dtype.U2, shape.MustOf(4), []byte{0b11100100}))(t), []float32{0, 1, 2, 3}},
		{ok(Of([]float32{}, 0))(t), []float32{}},
	} {
		got, err := Float32s(c.x)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v (%v), want %v", c.x.describe(), got, err, c.want)
		}
		release(t, c.x)
	}
	x := ok(ok(Of([]int16{1, 2, 3, 4, 5, 6}, 2, 3))(t).Donate().Transpose())(t)
	if got, err := Float32s(x); err != nil || !slices.Equal(got, []float32{1, 4, 2, 5, 3, 6}) {
		t.Errorf("transposed: got %v (%v), want 1 4 2 5 3 6", got, err)
	}
	release(t, x)
	wantErr(t, "released", second(Float32s(x)), ErrReleased)
	wantErr(t, "none", second(Float32s(nil)), ErrNoTensor)
	for _, dt := range []dtype.DType{dtype.C64, dtype.C32, dtype.Opaque} {
		c := ok(New(dt, shape.MustOf(1)))(t)
		wantErr(t, dt.String(), second(Float32s(c)), ErrDType)
		release(t, c)
	}
}
