package eager

import (
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Reductions.

var (
	opReduceSum       = builtin("reduce_sum")
	opReduceMean      = builtin("reduce_mean")
	opReduceMax       = builtin("reduce_max")
	opReduceMin       = builtin("reduce_min")
	opReduceProd      = builtin("reduce_prod")
	opReduceL1        = builtin("reduce_l1")
	opReduceL2        = builtin("reduce_l2")
	opReduceLogSumExp = builtin("reduce_log_sum_exp")
	opReduceSumSquare = builtin("reduce_sum_square")
	opReduceLogSum    = builtin("reduce_log_sum")
)

// reduce reduces over the given axes, over all where there are none.
func (c call) reduce(axes []int, keep bool) call {
	if len(axes) > 0 {
		c = c.ints(1, []int{len(axes)}, axes...)
	}
	return c.with(op.Attr{Name: "keepdims", Value: bit(keep)})
}

// reduceSum computes the sum of x along the given axes, or along all if there
// are none. keep retains these axes with size 1.
func reduceSum(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceSum, x).reduce(axes, keep)
}

// reduceMean computes the mean of x along the given axes, or along all if there
// are none. keep retains these axes with size 1.
func reduceMean(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMean, x).reduce(axes, keep)
}

// reduceMax returns the maximum of x along the given axes, or along all if
// there are none. keep retains these axes with size 1.
func reduceMax(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMax, x).reduce(axes, keep)
}

// reduceMin returns the minimum of x along the given axes, or along all if
// there are none. keep retains these axes with size 1.
func reduceMin(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMin, x).reduce(axes, keep)
}

// reduceProd computes the product of x along the given axes, or along all if
// there are none. keep retains these axes with size 1.
func reduceProd(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceProd, x).reduce(axes, keep)
}

// reduceL1 computes the sum of absolute values of x along the given axes, or
// along all if there are none. keep retains these axes with size 1.
func reduceL1(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceL1, x).reduce(axes, keep)
}

// reduceL2 computes the square root of the sum of squares of x along the given
// axes, or along all if there are none. keep retains these axes with size 1.
func reduceL2(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceL2, x).reduce(axes, keep)
}

// reduceLogSum computes the logarithm of the sum of x along the given axes, or
// along all if there are none. keep retains these axes with size 1.
func reduceLogSum(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceLogSum, x).reduce(axes, keep)
}

// reduceLogSumExp computes the logarithm of the sum of exp(x) along the given
// axes, or along all if there are none. keep retains these axes with size 1.
func reduceLogSumExp(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceLogSumExp, x).reduce(axes, keep)
}

// reduceSumSquare computes the sum of squares of x along the given axes, or
// along all if there are none. keep retains these axes with size 1.
func reduceSumSquare(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceSumSquare, x).reduce(axes, keep)
}
