package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"celu":             unaryOp(kernel.Celu, "alpha"),
	"mish":             unaryOp(kernel.Mish),
	"thresholded_relu": unaryOp(kernel.ThresholdedRelu, "alpha"),
	"shrink":           bindShrink,
	"prelu":            binaryOp(kernel.PRelu),
	"is_nan":           classOp(isNaN[float32], isNaN[float64]),
	"is_inf":           classOp(isInf[float32], isInf[float64]),
	"bitwise_and":      binaryOp(kernel.BitAnd),
	"bitwise_or":       binaryOp(kernel.BitOr),
	"bitwise_xor":      binaryOp(kernel.BitXor),
	"bitwise_not":      bindBitNot,
	"bit_shift":        bindBitShift,
})

// bindShrink computes on integers as floats do.
func bindShrink(c *op.Call) (*Task, error) {
	if c.In[0].DType.IsInt() {
		return converted(c, []dtype.DType{dtype.F64}, []dtype.DType{dtype.F64})
	}
	return unaryOp(kernel.Shrink, "lambd", "bias")(c)
}

// classOp binds a question about the class of a float.
func classOp(f32, f64 binder) binder {
	return func(c *op.Call) (*Task, error) {
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

func isNaN[T kernel.Float](c *op.Call) (*Task, error) {
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.IsNaN(machine.Best(), c.Out[0].Data[lo:hi], in[T](c, 0)[lo:hi])
	}}, nil
}

func isInf[T kernel.Float](c *op.Call) (*Task, error) {
	n := elements(&c.Out[0])
	negative, positive := c.Int("detect_negative") != 0, c.Int("detect_positive") != 0
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.IsInf(c.Out[0].Data[lo:hi], in[T](c, 0)[lo:hi], negative, positive)
	}}, nil
}

func bindBitNot(c *op.Call) (*Task, error) {
	bind, ok := intOf(c.In[0].DType, bitNot[int8], bitNot[int16], bitNot[int32], bitNot[int64],
		bitNot[uint8], bitNot[uint16], bitNot[uint32], bitNot[uint64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c), nil
}

func bitNot[T kernel.Integer](c *op.Call) *Task {
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.BitNot(out[T](c, 0)[lo:hi], in[T](c, 0)[lo:hi])
	}}
}

func bindBitShift(c *op.Call) (*Task, error) {
	if c.Str("direction") == "LEFT" {
		return binaryTask(c, kernel.ShiftLeft)
	}
	return binaryTask(c, kernel.ShiftRight)
}
