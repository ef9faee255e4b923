package eager

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// The files spec*.go say which Go arguments the operations take that need more than operands and numbers in order. Each function
// there becomes a package function and a method of Scope; those of operators without attributes come from the table alone. After
// a change: go generate ./eager.
//
//go:generate go test -run TestGenerated generated_test.go -update

// calls is a call with several results, pair one with two, which its comment names.
type (
	calls call
	pair  call
)

var (
	opCopy            = builtin("copy")
	opGemm            = builtin("gemm")
	opSoftmax         = builtin("softmax")
	opLogSoftmax      = builtin("log_softmax")
	opLayerNorm       = builtin("layer_normalization")
	opBatchNorm       = builtin("batch_normalization")
	opInstanceNorm    = builtin("instance_normalization")
	opGroupNorm       = builtin("group_normalization")
	opRMSNorm         = builtin("rms_normalization")
	opConv            = builtin("conv")
	opConvTranspose   = builtin("conv_transpose")
	opMaxPool         = builtin("max_pool")
	opAveragePool     = builtin("average_pool")
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
	opClip            = builtin("clip")
	opCast            = elementwise("cast")
	opGelu            = elementwise("gelu")
	opMod             = builtin("mod")
	opReduceSum       = builtin("reduce_sum")
	opReduceMean      = builtin("reduce_mean")
	opReduceMax       = builtin("reduce_max")
	opReduceMin       = builtin("reduce_min")
	opReduceProd      = builtin("reduce_prod")
	opReduceL1        = builtin("reduce_l1")
	opReduceL2        = builtin("reduce_l2")
	opReduceLogSumExp = builtin("reduce_log_sum_exp")
	opReduceSumSquare = builtin("reduce_sum_square")
	opReshape         = builtin("reshape")
	opSqueeze         = builtin("squeeze")
	opUnsqueeze       = builtin("unsqueeze")
	opTranspose       = builtin("transpose")
	opTrilu           = builtin("trilu")
	opReduceLogSum    = builtin("reduce_log_sum")
	opCumProd         = builtin("cum_prod")
	opFlatten         = builtin("flatten")
	opSlice           = builtin("slice")
	opDepthToSpace    = builtin("depth_to_space")
	opSpaceToDepth    = builtin("space_to_depth")
	opBitCast         = builtin("bit_cast")
	opBitShift        = builtin("bit_shift")
	opIsInf           = builtin("is_inf")
	opHardmax         = builtin("hardmax")
	opRange           = builtin("range")
)

// clone is the elements of x in bytes of their own, in row-major order.
func clone(x tensor.Operand) call { return unary(opCopy, x) }

// clip is x held between lo and hi, each element of x's type; an infinite bound is none.
func clip(x tensor.Operand, lo, hi float64) call {
	c := unary(opClip, x)
	for i, bound := range [2]float64{lo, hi} {
		if math.IsInf(bound, 2*i-1) || x == nil || x.Tensor() == nil {
			continue
		}
		c = c.number(i+1, x.Tensor().DType(), bound)
	}
	return c
}

// number makes operand i one number of the given type.
func (c call) number(i int, dt dtype.DType, v float64) call {
	data, err := encode(dt, v)
	if err != nil {
		c.err = fmt.Errorf("%s: operand %d: %w", c.op.def.Name, i, err)
		return c
	}
	return c.constant(i, dt, nil, data)
}

// addScalar is x + v, where x's element type holds v.
func addScalar(x tensor.Operand, v float64) call { return withNumber(opAdd, x, v) }

// mulScalar is x * v, where x's element type holds v.
func mulScalar(x tensor.Operand, v float64) call { return withNumber(opMul, x, v) }

func withNumber(o *operator, x tensor.Operand, v float64) call {
	c := unary(o, x)
	if x == nil || x.Tensor() == nil {
		return c // the missing operand is the error
	}
	return c.number(1, x.Tensor().DType(), v)
}

// cast is x converted to another element type.
func cast(x tensor.Operand, to dtype.DType) call {
	return unary(opCast, x).with(op.Attr{Name: "to", Value: to})
}

// gelu is x times the normal distribution function of x.
func gelu(x tensor.Operand) call { return unary(opGelu, x) }

// geluTanh is [Gelu] approximated by tanh.
func geluTanh(x tensor.Operand) call {
	return unary(opGelu, x).with(op.Attr{Name: "approximate", Value: "tanh"})
}

// mod is the remainder of x / y, broadcast, with the sign of y.
func mod(x, y tensor.Operand) call { return binary(opMod, x, y) }

// fMod is the remainder of x / y, broadcast, with the sign of x.
func fMod(x, y tensor.Operand) call {
	return binary(opMod, x, y).with(op.Attr{Name: "fmod", Value: int64(1)})
}

// GemmOptions are the factors of a product, 1 where they are 0, and which operands are transposed first.
type GemmOptions struct {
	Alpha, Beta    float64
	TransA, TransB bool
}

// shiftLeft is the integers x with their bits moved up by y places, broadcast.
func shiftLeft(x, y tensor.Operand) call { return shift(x, y, "LEFT") }

// shiftRight is the integers x with their bits moved down by y places, broadcast; the sign fills from the left.
func shiftRight(x, y tensor.Operand) call { return shift(x, y, "RIGHT") }

func shift(x, y tensor.Operand, direction string) call {
	return binary(opBitShift, x, y).with(op.Attr{Name: "direction", Value: direction})
}

// isInf is whether x is infinite, of either sign.
func isInf(x tensor.Operand) call { return unary(opIsInf, x) }

// bitCast is the bytes of x as elements of another type of the same size: a view.
func bitCast(x tensor.Operand, to dtype.DType) call {
	return unary(opBitCast, x).with(op.Attr{Name: "to", Value: to})
}

// gemm is alpha * a * b + beta * c of matrices. c may be nil; given up, it takes the result where the shapes are equal.
func gemm(a, b, c tensor.Operand, o GemmOptions) call {
	if o.Alpha == 0 {
		o.Alpha = 1
	}
	if o.Beta == 0 {
		o.Beta = 1
	}
	return ternary(opGemm, a, b, c).with(op.Attr{Name: "alpha", Value: o.Alpha}, op.Attr{Name: "beta", Value: o.Beta},
		op.Attr{Name: "transA", Value: bit(o.TransA)}, op.Attr{Name: "transB", Value: bit(o.TransB)})
}

// softmax is exp(x) over its sum along an axis.
func softmax(x tensor.Operand, axis int) call { return unary(opSoftmax, x).axis(axis) }

// logSoftmax is the logarithm of softmax along an axis.
func logSoftmax(x tensor.Operand, axis int) call { return unary(opLogSoftmax, x).axis(axis) }

// hardmax is 1 at the first largest element along an axis, and 0 elsewhere.
func hardmax(x tensor.Operand, axis int) call { return unary(opHardmax, x).axis(axis) }

func (c call) axis(axis int) call { return c.with(op.Attr{Name: "axis", Value: int64(axis)}) }

// layerNorm is x normalised over the axes from the given one on, times scale, plus bias, which may be nil.
func layerNorm(x, scale, bias tensor.Operand, axis int, epsilon float64) call {
	return ternary(opLayerNorm, x, scale, bias).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// rmsNorm is x over its root mean square over the axes from the given one on, times scale.
func rmsNorm(x, scale tensor.Operand, axis int, epsilon float64) call {
	return binary(opRMSNorm, x, scale).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// batchNorm is x [N,C,...] normalised by a mean and a variance per channel, times scale [C], plus bias [C].
func batchNorm(x, scale, bias, mean, variance tensor.Operand, epsilon float64) call {
	return nary(opBatchNorm, []tensor.Operand{x, scale, bias, mean, variance}).with(op.Attr{Name: "epsilon", Value: epsilon})
}

// instanceNorm is x [N,C,...] normalised within each channel, times scale [C], plus bias [C].
func instanceNorm(x, scale, bias tensor.Operand, epsilon float64) call {
	return ternary(opInstanceNorm, x, scale, bias).with(op.Attr{Name: "epsilon", Value: epsilon})
}

// groupNorm is x [N,C,...] normalised within each group of channels, times scale [C], plus bias [C].
func groupNorm(x, scale, bias tensor.Operand, groups int, epsilon float64) call {
	return ternary(opGroupNorm, x, scale, bias).with(op.Attr{Name: "num_groups", Value: int64(groups)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// Window is how a convolution or a pooling walks over the spatial axes of x [N,C,...]. Lists are one number per spatial axis,
// Pads all beginnings and then all ends; empty ones stand for steps of 1 and no pads.
type Window struct {
	Strides, Pads, Dilations []int
	Groups                   int  // of a convolution; 0 stands for 1
	Ceil                     bool // of a pooling: windows may begin where they do not end
	CountPads                bool // of an average: pads count as zeros
}

func (w Window) attrs() []op.Attr {
	var attrs []op.Attr
	given := func(name string, list []int) {
		if len(list) > 0 {
			attrs = append(attrs, op.Attr{Name: name, Value: intsOf(list)})
		}
	}
	given("strides", w.Strides)
	given("pads", w.Pads)
	given("dilations", w.Dilations)
	return attrs
}

func (w Window) conv() []op.Attr {
	if w.Groups == 0 {
		return w.attrs()
	}
	return append(w.attrs(), op.Attr{Name: "group", Value: int64(w.Groups)})
}

func (w Window) pool(size []int) []op.Attr {
	return append(w.attrs(), op.Attr{Name: "kernel_shape", Value: intsOf(size)}, op.Attr{Name: "ceil_mode", Value: bit(w.Ceil)})
}

// conv is the convolution of x [N,C,...] with w [M,C/group,...], plus a bias [M], which may be nil.
func conv(x, w, bias tensor.Operand, o Window) call {
	return ternary(opConv, x, w, bias).with(o.conv()...)
}

// convTranspose is the transposed convolution of x [N,C,...] with w [C,M/group,...], plus a bias [M], which may be nil.
func convTranspose(x, w, bias tensor.Operand, o Window) call {
	return ternary(opConvTranspose, x, w, bias).with(o.conv()...)
}

// maxPool is the largest element of each window of the given size.
func maxPool(x tensor.Operand, size []int, o Window) call {
	return unary(opMaxPool, x).with(o.pool(size)...)
}

// averagePool is the mean of each window of the given size.
func averagePool(x tensor.Operand, size []int, o Window) call {
	return unary(opAveragePool, x).with(append(o.pool(size), op.Attr{Name: "count_include_pad", Value: bit(o.CountPads)})...)
}

// gather is the slices of x along an axis that the indices name.
func gather(x, indices tensor.Operand, axis int) call { return binary(opGather, x, indices).axis(axis) }

// gatherElements is, for each index, the element of x at its place, with the index along an axis.
func gatherElements(x, indices tensor.Operand, axis int) call {
	return binary(opGatherElements, x, indices).axis(axis)
}

// gatherND is the slices of x that the index tuples in the last axis of the indices name.
func gatherND(x, indices tensor.Operand) call { return binary(opGatherND, x, indices) }

// scatterElements is x with the updates in the places that the indices name along an axis; x given up takes the result.
func scatterElements(x, indices, updates tensor.Operand, axis int) call {
	return ternary(opScatterElements, x, indices, updates).axis(axis)
}

// scatterND is x with the updates in the places that the index tuples name; x given up takes the result.
func scatterND(x, indices, updates tensor.Operand) call {
	return ternary(opScatterND, x, indices, updates)
}

// concat is the operands one after the other along an axis.
func concat(axis int, xs ...tensor.Operand) call { return nary(opConcat, xs).axis(axis) }

// split is x cut into parts of the given sizes along an axis.
func split(x tensor.Operand, axis int, sizes ...int) calls {
	c := unary(opSplit, x).axis(axis).ints(1, []int{len(sizes)}, sizes...)
	c.results = len(sizes)
	return calls(c)
}

// pad is x with value around it: pads is all beginnings and then all ends, negative ones cut.
func pad(x tensor.Operand, value float64, pads ...int) call {
	c := unary(opPad, x).ints(1, []int{len(pads)}, pads...)
	if x != nil && x.Tensor() != nil {
		c = c.number(2, x.Tensor().DType(), value)
	}
	return c
}

// tile is x repeated so many times along each axis.
func tile(x tensor.Operand, repeats ...int) call {
	return unary(opTile, x).ints(1, []int{len(repeats)}, repeats...)
}

// expand is x broadcast together with the given dimensions: bytes of its own where anything repeats, else a view.
func expand(x tensor.Operand, dims ...int) call {
	return unary(opExpand, x).ints(1, []int{len(dims)}, dims...)
}

// cumSum is the running sum along an axis.
func cumSum(x tensor.Operand, axis int) call { return unary(opCumSum, x).ints(1, nil, axis) }

// cumProd is the running product along an axis.
func cumProd(x tensor.Operand, axis int) call { return unary(opCumProd, x).ints(1, nil, axis) }

// trilu is the part of each matrix on one side of its k-th diagonal, that above where upper is set, and zeros elsewhere.
func trilu(x tensor.Operand, k int, upper bool) call {
	return unary(opTrilu, x).ints(1, nil, k).with(op.Attr{Name: "upper", Value: bit(upper)})
}

// reduce reduces over the given axes, over all where there are none.
func (c call) reduce(axes []int, keep bool) call {
	if len(axes) > 0 {
		c = c.ints(1, []int{len(axes)}, axes...)
	}
	return c.with(op.Attr{Name: "keepdims", Value: bit(keep)})
}

// reduceSum is the sum along the given axes, or along all; keep leaves them with size 1.
func reduceSum(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceSum, x).reduce(axes, keep)
}

// reduceMean is the mean along the given axes, or along all; keep leaves them with size 1.
func reduceMean(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMean, x).reduce(axes, keep)
}

// reduceMax is the largest element along the given axes, or along all; keep leaves them with size 1.
func reduceMax(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMax, x).reduce(axes, keep)
}

// reduceMin is the smallest element along the given axes, or along all; keep leaves them with size 1.
func reduceMin(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMin, x).reduce(axes, keep)
}

// reduceProd is the product along the given axes, or along all; keep leaves them with size 1.
func reduceProd(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceProd, x).reduce(axes, keep)
}

// reduceL1 is the sum of absolute values along the given axes, or along all; keep leaves them with size 1.
func reduceL1(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceL1, x).reduce(axes, keep)
}

// reduceL2 is the root of the sum of squares along the given axes, or along all; keep leaves them with size 1.
func reduceL2(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceL2, x).reduce(axes, keep)
}

// reduceLogSum is the logarithm of the sum along the given axes, or along all; keep leaves them with size 1.
func reduceLogSum(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceLogSum, x).reduce(axes, keep)
}

// reduceLogSumExp is the logarithm of the sum of exponentials along the given axes, or along all; keep leaves them with size 1.
func reduceLogSumExp(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceLogSumExp, x).reduce(axes, keep)
}

// reduceSumSquare is the sum of squares along the given axes, or along all; keep leaves them with size 1.
func reduceSumSquare(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceSumSquare, x).reduce(axes, keep)
}

// reshape is x with other dimensions over the same elements; one of dims may be -1, for what is left. It is a view where x is
// in row-major order.
func reshape(x tensor.Operand, dims ...int) call {
	return unary(opReshape, x).ints(1, []int{len(dims)}, dims...)
}

// flatten is x as a matrix: the axes before the given one, and the others. It is a view where x is in row-major order.
func flatten(x tensor.Operand, axis int) call { return unary(opFlatten, x).axis(axis) }

// squeeze is x without the given axes, which must have size 1; without any, x without all axes of size 1.
func squeeze(x tensor.Operand, axes ...int) call {
	c := unary(opSqueeze, x)
	if len(axes) > 0 {
		c = c.ints(1, []int{len(axes)}, axes...)
	}
	return c
}

// unsqueeze is x with new axes of size 1 at the given places of the result.
func unsqueeze(x tensor.Operand, axes ...int) call {
	return unary(opUnsqueeze, x).ints(1, []int{len(axes)}, axes...)
}

// transpose is x with dimension i its dimension axes[i], or with all reversed, in row-major order: bytes of its own where
// anything moves. For a view, see the tensor's own methods.
func transpose(x tensor.Operand, axes ...int) call {
	if len(axes) == 0 {
		return unary(opTranspose, x)
	}
	return unary(opTranspose, x).with(op.Attr{Name: "perm", Value: intsOf(axes)})
}

// flip is x with the order of the elements along the given axes reversed, or along all; at least one must be there.
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

// depthToSpace is x [N,C,H,W] with each block*block channels moved into a block of height and width.
func depthToSpace(x tensor.Operand, block int) call { return unary(opDepthToSpace, x).block(block) }

// spaceToDepth is x [N,C,H,W] with each block of height and width moved into block*block channels.
func spaceToDepth(x tensor.Operand, block int) call { return unary(opSpaceToDepth, x).block(block) }

func (c call) block(n int) call { return c.with(op.Attr{Name: "blocksize", Value: int64(n)}) }

// arange is the numbers of type dt from start by step up to, and without, limit, in one dimension.
func arange(dt dtype.DType, start, limit, step float64) call {
	return call{op: opRange, results: 1}.number(0, dt, start).number(1, dt, limit).number(2, dt, step)
}
