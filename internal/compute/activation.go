package compute

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"prelu":       binaryOp(kernel.Prelu),
	"is_nan":      classOp(newIsNaN[float32], newIsNaN[float64]),
	"is_inf":      classOp(newIsInf[float32], newIsInf[float64]),
	"bitwise_not": bindBitNot,
	"bit_shift":   bindBitShift,
})

// classOp binds a question about the class of a float.
func classOp(f32, f64 binder) binder {
	return func(c *op.Call) (Kernel, error) {
		if isHalf(c.In[0].DType) {
			return halfAsF32(c)
		}
		bind, ok := floatOf(c.In[0].DType, f32, f64)
		if !ok {
			return nil, unsupported(c)
		}
		return bind(c)
	}
}

type isNaN[T kernel.Float] struct{ flat }

func newIsNaN[T kernel.Float](*op.Call) (Kernel, error) { return &isNaN[T]{}, nil }

func (k *isNaN[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	elementwise.IsNaN(t.variant, t.Call.Out[0].Data[lo:hi], in[T](t.Call, 0)[lo:hi])
}

type isInf[T kernel.Float] struct {
	flat
	negative, positive bool
}

func newIsInf[T kernel.Float](c *op.Call) (Kernel, error) {
	return &isInf[T]{negative: c.Int("detect_negative") != 0, positive: c.Int("detect_positive") != 0}, nil
}

func (k *isInf[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	elementwise.IsInf(t.Call.Out[0].Data[lo:hi], in[T](t.Call, 0)[lo:hi], k.negative, k.positive)
}

func bindBitNot(c *op.Call) (Kernel, error) {
	bind, ok := intOf(c.In[0].DType, newBitNot[int8], newBitNot[int16], newBitNot[int32], newBitNot[int64],
		newBitNot[uint8], newBitNot[uint16], newBitNot[uint32], newBitNot[uint64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

type bitNot[T kernel.Integer] struct{ flat }

func newBitNot[T kernel.Integer]() Kernel { return &bitNot[T]{} }

func (k *bitNot[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	elementwise.BitNot(out[T](t.Call, 0)[lo:hi], in[T](t.Call, 0)[lo:hi])
}

func bindBitShift(c *op.Call) (Kernel, error) {
	if c.Str("direction") == "LEFT" {
		return binaryOn(c, kernel.ShiftLeft)
	}
	return binaryOn(c, kernel.ShiftRight)
}
