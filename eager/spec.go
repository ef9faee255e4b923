package eager

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// The files spec*.go define the Go arguments of the operations that take more than operands and numbers in order. From each function
// there that returns a call, the generator makes a package function and a method of Scope; those of operators without attributes come
// from the table alone. After a change: go generate ./eager.
//
//go:generate go test -run TestGenerated generated_test.go -update

// calls is a call with several results, pair is a call with two, whose names end its comment.
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

// clone copies the elements of x into bytes of their own, in row-major order.
func clone(x tensor.Operand) call { return unary(opCopy, x) }

// clip clamps each element of x to the range lo to hi; an infinite bound is no bound. An integer element type of x must
// hold the bounds; otherwise the error is ErrDType. The result has the shape and type of x.
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

// number sets operand i to a scalar of the given type.
func (c call) number(i int, dt dtype.DType, v float64) call {
	data, err := encode(dt, v)
	if err != nil {
		c.err = fmt.Errorf("%s: operand %d: %w", c.op.def.Name, i, err)
		return c
	}
	return c.constant(i, dt, nil, data)
}

// addScalar adds v to each element of x. An integer element type of x must hold v; otherwise the error is ErrDType. The
// result has the shape and type of x.
func addScalar(x tensor.Operand, v float64) call { return withNumber(opAdd, x, v) }

// mulScalar multiplies each element of x by v. An integer element type of x must hold v; otherwise the error is
// ErrDType. The result has the shape and type of x.
func mulScalar(x tensor.Operand, v float64) call { return withNumber(opMul, x, v) }

func withNumber(o *operator, x tensor.Operand, v float64) call {
	c := unary(o, x)
	if x == nil || x.Tensor() == nil {
		return c // the missing operand is the error
	}
	return c.number(1, x.Tensor().DType(), v)
}

// cast converts each element of x to another element type. Floating-point numbers become integers by truncation;
// numbers outside the range of the type are converted as ONNX's Cast does.
func cast(x tensor.Operand, to dtype.DType) call {
	return unary(opCast, x).with(op.Attr{Name: "to", Value: to})
}

// gelu multiplies each element of x, of a floating-point type, by the standard normal distribution function of it.
func gelu(x tensor.Operand) call { return unary(opGelu, x) }

// geluTanh approximates [Gelu] by tanh.
func geluTanh(x tensor.Operand) call {
	return unary(opGelu, x).with(op.Attr{Name: "approximate", Value: "tanh"})
}

// mod returns the remainder of x / y element by element, with broadcasting, with the sign of y. x and y have one
// element type.
func mod(x, y tensor.Operand) call { return binary(opMod, x, y) }

// fMod returns the remainder of x / y element by element, with broadcasting. It has the sign of x, as that of C's fmod.
// x and y have one element type.
func fMod(x, y tensor.Operand) call {
	return binary(opMod, x, y).with(op.Attr{Name: "fmod", Value: int64(1)})
}

// GemmOptions are the factors of [Gemm], where 0 stands for 1, and the operands that are transposed first.
type GemmOptions struct {
	Alpha, Beta    float64
	TransA, TransB bool
}

// shiftLeft shifts the bits of the integers x up by y places, element by element, with broadcasting. x and y have one
// element type.
func shiftLeft(x, y tensor.Operand) call { return shift(x, y, "LEFT") }

// shiftRight shifts the bits of the integers x down by y places, element by element, with broadcasting; vacated bits
// are copies of the sign. x and y have one element type.
func shiftRight(x, y tensor.Operand) call { return shift(x, y, "RIGHT") }

func shift(x, y tensor.Operand, direction string) call {
	return binary(opBitShift, x, y).with(op.Attr{Name: "direction", Value: direction})
}

// isInf reports for each element of x, of a floating-point type, whether it is an infinity of either sign. The result
// is bool.
func isInf(x tensor.Operand) call { return unary(opIsInf, x) }

// bitCast reinterprets the bytes of x as elements of another type of the same size. The result is a view of x; a type
// of another size is ErrDType.
func bitCast(x tensor.Operand, to dtype.DType) call {
	return unary(opBitCast, x).with(op.Attr{Name: "to", Value: to})
}

// gemm computes alpha * a * b + beta * c of matrices. a is [M,K] and b [K,N] after the transpositions that the options
// ask for; c broadcasts to the result's shape [M,N] and may be nil. The result is written into c if c is given up and
// has that shape.
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

// softmax divides exp(x) by its sum along an axis; a negative axis counts from the last one. The result has the shape
// and type of x, a floating-point type.
func softmax(x tensor.Operand, axis int) call { return unary(opSoftmax, x).axis(axis) }

// logSoftmax computes the logarithm of [Softmax] along an axis; a negative axis counts from the last one.
func logSoftmax(x tensor.Operand, axis int) call { return unary(opLogSoftmax, x).axis(axis) }

// hardmax returns 1 at the first maximum along an axis and 0 elsewhere, in the shape and type of x.
func hardmax(x tensor.Operand, axis int) call { return unary(opHardmax, x).axis(axis) }

func (c call) axis(axis int) call { return c.with(op.Attr{Name: "axis", Value: int64(axis)}) }

// layerNorm normalises x to mean 0 and variance 1 over the axes from the given one on, multiplies by scale and adds
// bias, which may be nil. Scale and bias broadcast to those axes. Epsilon is added to the variance.
func layerNorm(x, scale, bias tensor.Operand, axis int, epsilon float64) call {
	return ternary(opLayerNorm, x, scale, bias).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// rmsNorm divides x by its root mean square over the axes from the given one on, and multiplies by scale, which
// broadcasts to those axes. Epsilon is added to the mean square.
func rmsNorm(x, scale tensor.Operand, axis int, epsilon float64) call {
	return binary(opRMSNorm, x, scale).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// batchNorm normalises x [N,C,...] by a mean [C] and a variance [C] per channel, multiplies by scale [C] and adds bias
// [C]. Epsilon is added to the variance.
func batchNorm(x, scale, bias, mean, variance tensor.Operand, epsilon float64) call {
	return nary(opBatchNorm, []tensor.Operand{x, scale, bias, mean, variance}).with(op.Attr{Name: "epsilon", Value: epsilon})
}

// instanceNorm normalises each channel of each sample of x [N,C,...] to mean 0 and variance 1, multiplies by scale [C]
// and adds bias [C]. Epsilon is added to the variance.
func instanceNorm(x, scale, bias tensor.Operand, epsilon float64) call {
	return ternary(opInstanceNorm, x, scale, bias).with(op.Attr{Name: "epsilon", Value: epsilon})
}

// groupNorm normalises each group of channels of each sample of x [N,C,...] to mean 0 and variance 1, multiplies by
// scale [C] and adds bias [C]. groups must divide C. Epsilon is added to the variance.
func groupNorm(x, scale, bias tensor.Operand, groups int, epsilon float64) call {
	return ternary(opGroupNorm, x, scale, bias).with(op.Attr{Name: "num_groups", Value: int64(groups)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// Window describes how a convolution or a pooling traverses the spatial axes of x [N,C,...]. A list has one number per spatial
// axis, Pads one for the beginning of each axis and then one for the end of each. Empty lists stand for strides and dilations of 1
// and no padding.
type Window struct {
	Strides, Pads, Dilations []int
	Groups                   int  // of a convolution; 0 stands for 1
	Ceil                     bool // of a pooling: the last window may extend beyond the padded axis
	CountPads                bool // of an average: padding counts as zeros
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

// conv convolves x [N,C,...] with w [M,C/group,...] and adds bias [M], which may be nil. The result is [N,M,...], with
// the spatial sizes that the [Window] leaves.
func conv(x, w, bias tensor.Operand, o Window) call {
	return ternary(opConv, x, w, bias).with(o.conv()...)
}

// convTranspose computes the transposed convolution of x [N,C,...] with w [C,M/group,...] and adds bias [M], which may
// be nil. The result is [N,M,...].
func convTranspose(x, w, bias tensor.Operand, o Window) call {
	return ternary(opConvTranspose, x, w, bias).with(o.conv()...)
}

// maxPool returns the maximum of each window of the given size, one number per spatial axis of x [N,C,...].
func maxPool(x tensor.Operand, size []int, o Window) call {
	return unary(opMaxPool, x).with(o.pool(size)...)
}

// averagePool computes the mean of each window of the given size, one number per spatial axis of x [N,C,...].
func averagePool(x tensor.Operand, size []int, o Window) call {
	return unary(opAveragePool, x).with(append(o.pool(size), op.Attr{Name: "count_include_pad", Value: bit(o.CountPads)})...)
}

// gather returns the slices of x along axis that indices name. The result has the shape of x with axis replaced by the
// shape of indices, which are i32 or i64; a negative index counts from the end, and one out of range is an error.
func gather(x, indices tensor.Operand, axis int) call { return binary(opGather, x, indices).axis(axis) }

// gatherElements returns, for each position of indices, the element of x at that position with its coordinate along
// axis replaced by the index. The result has the shape of indices, which are i32 or i64.
func gatherElements(x, indices tensor.Operand, axis int) call {
	return binary(opGatherElements, x, indices).axis(axis)
}

// gatherND returns the slices of x that the index tuples in the last axis of indices, as i64, name. The result has the
// shape of indices without its last axis, followed by the axes of x that the tuples leave.
func gatherND(x, indices tensor.Operand) call { return binary(opGatherND, x, indices) }

// scatterElements returns x with each update written to the element at the update's position with its coordinate along
// axis replaced by the index. Updates have the shape of indices. The result is written into x if x is given up.
func scatterElements(x, indices, updates tensor.Operand, axis int) call {
	return ternary(opScatterElements, x, indices, updates).axis(axis)
}

// scatterND returns x with updates written into the slices that the index tuples in the last axis of indices, as i64,
// name. The result is written into x if x is given up.
func scatterND(x, indices, updates tensor.Operand) call {
	return ternary(opScatterND, x, indices, updates)
}

// concat concatenates the operands along an axis. They have one element type, and equal sizes along all other axes.
func concat(axis int, xs ...tensor.Operand) call { return nary(opConcat, xs).axis(axis) }

// split splits x along an axis into parts of the given sizes, which add up to the size of the axis. A part is a view of
// x where its elements lie together.
func split(x tensor.Operand, axis int, sizes ...int) calls {
	c := unary(opSplit, x).axis(axis).ints(1, []int{len(sizes)}, sizes...)
	c.results = len(sizes)
	return calls(c)
}

// pad surrounds x with elements of the given value. pads holds one number for the beginning of each axis, then one for
// the end of each; a negative number removes elements.
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

// expand broadcasts x with the given dimensions. The result has bytes of its own where anything is repeated, and is a
// view of x otherwise.
func expand(x tensor.Operand, dims ...int) call {
	return unary(opExpand, x).ints(1, []int{len(dims)}, dims...)
}

// cumSum computes the cumulative sum of x along an axis, in the shape and type of x.
func cumSum(x tensor.Operand, axis int) call { return unary(opCumSum, x).ints(1, nil, axis) }

// cumProd computes the cumulative product of x along an axis, in the shape and type of x.
func cumProd(x tensor.Operand, axis int) call { return unary(opCumProd, x).ints(1, nil, axis) }

// trilu keeps one side of the k-th diagonal of the matrices in the last two axes of x, the diagonal included, and sets
// the rest to zero: the part above it if upper is set, else the part below.
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

// reduceSum computes the sum of x along the given axes, or along all if there are none. keep retains these axes with
// size 1.
func reduceSum(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceSum, x).reduce(axes, keep)
}

// reduceMean computes the mean of x along the given axes, or along all if there are none. keep retains these axes with
// size 1.
func reduceMean(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMean, x).reduce(axes, keep)
}

// reduceMax returns the maximum of x along the given axes, or along all if there are none. keep retains these axes with
// size 1.
func reduceMax(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMax, x).reduce(axes, keep)
}

// reduceMin returns the minimum of x along the given axes, or along all if there are none. keep retains these axes with
// size 1.
func reduceMin(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceMin, x).reduce(axes, keep)
}

// reduceProd computes the product of x along the given axes, or along all if there are none. keep retains these axes
// with size 1.
func reduceProd(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceProd, x).reduce(axes, keep)
}

// reduceL1 computes the sum of absolute values of x along the given axes, or along all if there are none. keep retains
// these axes with size 1.
func reduceL1(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceL1, x).reduce(axes, keep)
}

// reduceL2 computes the square root of the sum of squares of x along the given axes, or along all if there are none.
// keep retains these axes with size 1.
func reduceL2(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceL2, x).reduce(axes, keep)
}

// reduceLogSum computes the logarithm of the sum of x along the given axes, or along all if there are none. keep
// retains these axes with size 1.
func reduceLogSum(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceLogSum, x).reduce(axes, keep)
}

// reduceLogSumExp computes the logarithm of the sum of exp(x) along the given axes, or along all if there are none.
// keep retains these axes with size 1.
func reduceLogSumExp(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceLogSumExp, x).reduce(axes, keep)
}

// reduceSumSquare computes the sum of squares of x along the given axes, or along all if there are none. keep retains
// these axes with size 1.
func reduceSumSquare(x tensor.Operand, axes []int, keep bool) call {
	return unary(opReduceSumSquare, x).reduce(axes, keep)
}

// reshape returns the elements of x in other dimensions; one of dims may be -1 and stands for what remains. The result
// is a view where x is in row-major order. Another number of elements is ErrShape.
func reshape(x tensor.Operand, dims ...int) call {
	return unary(opReshape, x).ints(1, []int{len(dims)}, dims...)
}

// flatten reshapes x to a matrix: its rows are the axes before the given one, its columns the others. The result is a
// view where x is in row-major order.
func flatten(x tensor.Operand, axis int) call { return unary(opFlatten, x).axis(axis) }

// squeeze removes the given axes of x, which must have size 1; without any, it removes all axes of size 1. The result
// is a view where x is in row-major order.
func squeeze(x tensor.Operand, axes ...int) call {
	c := unary(opSqueeze, x)
	if len(axes) > 0 {
		c = c.ints(1, []int{len(axes)}, axes...)
	}
	return c
}

// unsqueeze inserts axes of size 1 into x; axes are positions in the result. The result is a view where x is in
// row-major order.
func unsqueeze(x tensor.Operand, axes ...int) call {
	return unary(opUnsqueeze, x).ints(1, []int{len(axes)}, axes...)
}

// transpose permutes the axes of x: dimension i of the result is dimension axes[i] of x. Without axes it reverses them.
// The result is in row-major order, in bytes of its own where an element moves; [tensor.Tensor.Permute] makes a view.
func transpose(x tensor.Operand, axes ...int) call {
	if len(axes) == 0 {
		return unary(opTranspose, x)
	}
	return unary(opTranspose, x).with(op.Attr{Name: "perm", Value: intsOf(axes)})
}

// flip reverses the order of the elements of x along the given axes, or along all. x needs at least one axis.
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

// depthToSpace moves channels of x [N,C*block*block,H,W] into blocks of height and width: the result is
// [N,C,H*block,W*block].
func depthToSpace(x tensor.Operand, block int) call { return unary(opDepthToSpace, x).block(block) }

// spaceToDepth moves blocks of height and width of x [N,C,H*block,W*block] into channels: the result is
// [N,C*block*block,H,W].
func spaceToDepth(x tensor.Operand, block int) call { return unary(opSpaceToDepth, x).block(block) }

func (c call) block(n int) call { return c.with(op.Attr{Name: "blocksize", Value: int64(n)}) }

// arange returns the numbers from start in steps of step up to, but not including, limit, as a vector of type dt. All
// three must be values of that type.
func arange(dt dtype.DType, start, limit, step float64) call {
	return call{op: opRange, results: 1}.number(0, dt, start).number(1, dt, limit).number(2, dt, step)
}
