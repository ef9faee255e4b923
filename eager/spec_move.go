package eager

import (
	"math"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Operations that select, place, join or rearrange elements.

var (
	opGather          = builtin("gather")
	opGatherElements  = builtin("gather_elements")
	opGatherND        = builtin("gather_nd")
	opScatterElements = builtin("scatter_elements")
	opScatterND       = builtin("scatter_nd")
	opConcat          = builtin("concat")
	opSplit           = builtin("split")
	opPad             = builtin("pad")
	opTile            = builtin("tile")
	opExpand          = builtin("expand")
	opCumSum          = builtin("cum_sum")
	opReshape         = builtin("reshape")
	opSqueeze         = builtin("squeeze")
	opUnsqueeze       = builtin("unsqueeze")
	opTranspose       = builtin("transpose")
	opTrilu           = builtin("trilu")
	opCumProd         = builtin("cum_prod")
	opFlatten         = builtin("flatten")
	opSlice           = builtin("slice")
	opDepthToSpace    = builtin("depth_to_space")
	opSpaceToDepth    = builtin("space_to_depth")
)

// gather returns the slices of x along axis that indices name. The result has
// the shape of x with axis replaced by the shape of indices, which are i32 or
// i64; a negative index counts from the end, and one out of range is an error.
func gather(x, indices tensor.Operand, axis int) call { return binary(opGather, x, indices).axis(axis) }

// gatherElements returns, for each position of indices, the element of x at
// that position with its coordinate along axis replaced by the index. The
// result has the shape of indices, which are i32 or i64.
func gatherElements(x, indices tensor.Operand, axis int) call {
	return binary(opGatherElements, x, indices).axis(axis)
}

// gatherND returns the slices of x that the index tuples in the last axis of
// indices, as i64, name. The result has the shape of indices without its last
// axis, followed by the axes of x that the tuples leave.
func gatherND(x, indices tensor.Operand) call { return binary(opGatherND, x, indices) }

// scatterElements returns x with each update written to the element at the
// update's position with its coordinate along axis replaced by the index.
// Updates have the shape of indices. The result is written into x if x is given
// up.
func scatterElements(x, indices, updates tensor.Operand, axis int) call {
	return ternary(opScatterElements, x, indices, updates).axis(axis)
}

// scatterND returns x with updates written into the slices that the index
// tuples in the last axis of indices, as i64, name. The result is written into
// x if x is given up.
func scatterND(x, indices, updates tensor.Operand) call {
	return ternary(opScatterND, x, indices, updates)
}

// concat concatenates the operands along an axis. They have one element type,
// and equal sizes along all other axes.
func concat(axis int, xs ...tensor.Operand) call { return nary(opConcat, xs).axis(axis) }

// split splits x along an axis into parts of the given sizes, which add up to
// the size of the axis. A part is a view of x where its elements lie together.
func split(x tensor.Operand, axis int, sizes ...int) calls {
	c := unary(opSplit, x).axis(axis).ints(1, []int{len(sizes)}, sizes...)
	c.results = len(sizes)
	return calls(c)
}

// pad surrounds x with elements of the given value. pads holds one number for
// the beginning of each axis, then one for the end of each; a negative number
// removes elements.
func pad(x tensor.Operand, value float64, pads ...int) call {
	c := unary(opPad, x).ints(1, []int{len(pads)}, pads...)
	if x != nil && x.Tensor() != nil {
		c = c.number(2, x.Tensor().DType(), value)
	}
	return c
}

// tile repeats x along each axis; repeats holds one number per axis.
func tile(x tensor.Operand, repeats ...int) call {
	return unary(opTile, x).ints(1, []int{len(repeats)}, repeats...)
}

// expand broadcasts x with the given dimensions. The result has bytes of its
// own where anything is repeated, and is a view of x otherwise.
func expand(x tensor.Operand, dims ...int) call {
	return unary(opExpand, x).ints(1, []int{len(dims)}, dims...)
}

// cumSum computes the cumulative sum of x along an axis, in the shape and type
// of x.
func cumSum(x tensor.Operand, axis int) call { return unary(opCumSum, x).ints(1, nil, axis) }

// cumProd computes the cumulative product of x along an axis, in the shape and
// type of x.
func cumProd(x tensor.Operand, axis int) call { return unary(opCumProd, x).ints(1, nil, axis) }

// trilu keeps one side of the k-th diagonal of the matrices in the last two
// axes of x, the diagonal included, and sets the rest to zero: the part above
// it if upper is set, else the part below.
func trilu(x tensor.Operand, k int, upper bool) call {
	return unary(opTrilu, x).ints(1, nil, k).with(op.Attr{Name: "upper", Value: bit(upper)})
}

// reshape returns the elements of x in other dimensions; one of dims may be -1
// and stands for what remains. The result is a view where x is in row-major
// order. Another number of elements is ErrShape.
func reshape(x tensor.Operand, dims ...int) call {
	return unary(opReshape, x).ints(1, []int{len(dims)}, dims...)
}

// flatten reshapes x to a matrix: its rows are the axes before the given one,
// its columns the others. The result is a view where x is in row-major order.
func flatten(x tensor.Operand, axis int) call { return unary(opFlatten, x).axis(axis) }

// squeeze removes the given axes of x, which must have size 1; without any, it
// removes all axes of size 1. The result is a view where x is in row-major
// order.
func squeeze(x tensor.Operand, axes ...int) call {
	c := unary(opSqueeze, x)
	if len(axes) > 0 {
		c = c.ints(1, []int{len(axes)}, axes...)
	}
	return c
}

// unsqueeze inserts axes of size 1 into x; axes are positions in the result.
// The result is a view where x is in row-major order.
func unsqueeze(x tensor.Operand, axes ...int) call {
	return unary(opUnsqueeze, x).ints(1, []int{len(axes)}, axes...)
}

// transpose permutes the axes of x: dimension i of the result is dimension
// axes[i] of x. Without axes it reverses them. The result is in row-major
// order, in bytes of its own where an element moves; [tensor.Tensor.Permute]
// makes a view.
func transpose(x tensor.Operand, axes ...int) call {
	if len(axes) == 0 {
		return unary(opTranspose, x)
	}
	return unary(opTranspose, x).with(op.Attr{Name: "perm", Value: intsOf(axes)})
}

// flip reverses the order of the elements of x along the given axes, or along
// all. x needs at least one axis.
func flip(x tensor.Operand, axes ...int) call {
	c := unary(opSlice, x)
	if len(axes) == 0 && x != nil && x.Tensor() != nil {
		for axis := range x.Tensor().Shape().Rank() {
			axes = append(axes, axis)
		}
	}
	n := []int{len(axes)}
	last, first, back := fill(len(axes), -1), fill(len(axes), math.MinInt), fill(len(axes), -1)
	return c.ints(1, n, last...).ints(2, n, first...).ints(3, n, axes...).ints(4, n, back...)
}

func fill(n, v int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// depthToSpace moves channels of x [N,C*block*block,H,W] into blocks of height
// and width: the result is [N,C,H*block,W*block].
func depthToSpace(x tensor.Operand, block int) call { return unary(opDepthToSpace, x).block(block) }

// spaceToDepth moves blocks of height and width of x [N,C,H*block,W*block] into
// channels: the result is [N,C*block*block,H,W].
func spaceToDepth(x tensor.Operand, block int) call { return unary(opSpaceToDepth, x).block(block) }

func (c call) block(n int) call { return c.with(op.Attr{Name: "blocksize", Value: int64(n)}) }
