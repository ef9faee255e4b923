package eager

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// The files spec*.go define the Go arguments of the operations that take more
// than operands and numbers in order. From each function there that returns a
// call, the generator makes a package function and a method of Scope; those of
// operators without attributes come from the table alone. After a change: go
// generate ./eager.
//
//go:generate go test -run TestGenerated generated_test.go -update

// calls is a call with several results, pair is a call with two, whose names
// end its comment.
type (
	calls call
	pair  call
)

var (
	opCopy          = builtin("copy")
	opGemm          = builtin("gemm")
	opSoftmax       = builtin("softmax")
	opLogSoftmax    = builtin("log_softmax")
	opLayerNorm     = builtin("layer_normalization")
	opBatchNorm     = builtin("batch_normalization")
	opInstanceNorm  = builtin("instance_normalization")
	opGroupNorm     = builtin("group_normalization")
	opRMSNorm       = builtin("rms_normalization")
	opConv          = builtin("conv")
	opConvTranspose = builtin("conv_transpose")
	opMaxPool       = builtin("max_pool")
	opAveragePool   = builtin("average_pool")
	opClip          = builtin("clip")
	opCast          = elementwise("cast")
	opGelu          = elementwise("gelu")
	opMod           = builtin("mod")
	opBitCast       = builtin("bit_cast")
	opBitShift      = builtin("bit_shift")
	opIsInf         = builtin("is_inf")
	opHardmax       = builtin("hardmax")
	opRange         = builtin("range")
)

// clone copies the elements of x into bytes of their own, in row-major order.
func clone(x tensor.Operand) call { return unary(opCopy, x) }

// clip clamps each element of x to the range lo to hi; an infinite bound is no
// bound. An integer element type of x must hold the bounds; otherwise the error
// is ErrDType. The result has the shape and type of x.
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

// addScalar adds v to each element of x. An integer element type of x must hold
// v; otherwise the error is ErrDType. The result has the shape and type of x.
func addScalar(x tensor.Operand, v float64) call { return withNumber(opAdd, x, v) }

// mulScalar multiplies each element of x by v. An integer element type of x
// must hold v; otherwise the error is ErrDType. The result has the shape and
// type of x.
func mulScalar(x tensor.Operand, v float64) call { return withNumber(opMul, x, v) }

func withNumber(o *operator, x tensor.Operand, v float64) call {
	c := unary(o, x)
	if x == nil || x.Tensor() == nil {
		return c // the missing operand is the error
	}
	return c.number(1, x.Tensor().DType(), v)
}

// cast converts each element of x to another element type. Floating-point
// numbers become integers by truncation; numbers outside the range of the type
// are converted as ONNX's Cast does.
func cast(x tensor.Operand, to dtype.DType) call {
	return unary(opCast, x).with(op.Attr{Name: "to", Value: to})
}

// gelu multiplies each element of x, of a floating-point type, by the standard
// normal distribution function of it.
func gelu(x tensor.Operand) call { return unary(opGelu, x) }

// geluTanh approximates [Gelu] by tanh.
func geluTanh(x tensor.Operand) call {
	return unary(opGelu, x).with(op.Attr{Name: "approximate", Value: "tanh"})
}

// mod returns the remainder of x / y element by element, with broadcasting,
// with the sign of y. x and y have one element type.
func mod(x, y tensor.Operand) call { return binary(opMod, x, y) }

// fMod returns the remainder of x / y element by element, with broadcasting. It
// has the sign of x, as that of C's fmod. x and y have one element type.
func fMod(x, y tensor.Operand) call {
	return binary(opMod, x, y).with(op.Attr{Name: "fmod", Value: int64(1)})
}

// GemmOptions are the factors of [Gemm], where 0 stands for 1, and the operands
// that are transposed first.
type GemmOptions struct {
	Alpha, Beta    float64
	TransA, TransB bool
}

// shiftLeft shifts the bits of the integers x up by y places, element by
// element, with broadcasting. x and y have one element type.
func shiftLeft(x, y tensor.Operand) call { return shift(x, y, "LEFT") }

// shiftRight shifts the bits of the integers x down by y places, element by
// element, with broadcasting; vacated bits are copies of the sign. x and y have
// one element type.
func shiftRight(x, y tensor.Operand) call { return shift(x, y, "RIGHT") }

func shift(x, y tensor.Operand, direction string) call {
	return binary(opBitShift, x, y).with(op.Attr{Name: "direction", Value: direction})
}

// isInf reports for each element of x, of a floating-point type, whether it is
// an infinity of either sign. The result is bool.
func isInf(x tensor.Operand) call { return unary(opIsInf, x) }

// bitCast reinterprets the bytes of x as elements of another type of the same
// size. The result is a view of x; a type of another size is ErrDType.
func bitCast(x tensor.Operand, to dtype.DType) call {
	return unary(opBitCast, x).with(op.Attr{Name: "to", Value: to})
}

// gemm computes alpha * a * b + beta * c of matrices. a is [M,K] and b [K,N]
// after the transpositions that the options ask for; c broadcasts to the
// result's shape [M,N] and may be nil. The result is written into c if c is
// given up and has that shape.
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

// softmax divides exp(x) by its sum along an axis; a negative axis counts from
// the last one. The result has the shape and type of x, a floating-point type.
func softmax(x tensor.Operand, axis int) call { return unary(opSoftmax, x).axis(axis) }

// logSoftmax computes the logarithm of [Softmax] along an axis; a negative axis
// counts from the last one.
func logSoftmax(x tensor.Operand, axis int) call { return unary(opLogSoftmax, x).axis(axis) }

// hardmax returns 1 at the first maximum along an axis and 0 elsewhere, in the
// shape and type of x.
func hardmax(x tensor.Operand, axis int) call { return unary(opHardmax, x).axis(axis) }

func (c call) axis(axis int) call { return c.with(op.Attr{Name: "axis", Value: int64(axis)}) }

// layerNorm normalises x to mean 0 and variance 1 over the axes from the given
// one on, multiplies by scale and adds bias, which may be nil. Scale and bias
// broadcast to those axes. Epsilon is added to the variance.
func layerNorm(x, scale, bias tensor.Operand, axis int, epsilon float64) call {
	return ternary(opLayerNorm, x, scale, bias).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// rmsNorm divides x by its root mean square over the axes from the given one
// on, and multiplies by scale, which broadcasts to those axes. Epsilon is added
// to the mean square.
func rmsNorm(x, scale tensor.Operand, axis int, epsilon float64) call {
	return binary(opRMSNorm, x, scale).with(op.Attr{Name: "axis", Value: int64(axis)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// batchNorm normalises x [N,C,...] by a mean [C] and a variance [C] per
// channel, multiplies by scale [C] and adds bias [C]. Epsilon is added to the
// variance.
func batchNorm(x, scale, bias, mean, variance tensor.Operand, epsilon float64) call {
	return nary(opBatchNorm, []tensor.Operand{x, scale, bias, mean, variance}).with(op.Attr{Name: "epsilon", Value: epsilon})
}

// instanceNorm normalises each channel of each sample of x [N,C,...] to mean 0
// and variance 1, multiplies by scale [C] and adds bias [C]. Epsilon is added
// to the variance.
func instanceNorm(x, scale, bias tensor.Operand, epsilon float64) call {
	return ternary(opInstanceNorm, x, scale, bias).with(op.Attr{Name: "epsilon", Value: epsilon})
}

// groupNorm normalises each group of channels of each sample of x [N,C,...] to
// mean 0 and variance 1, multiplies by scale [C] and adds bias [C]. groups must
// divide C. Epsilon is added to the variance.
func groupNorm(x, scale, bias tensor.Operand, groups int, epsilon float64) call {
	return ternary(opGroupNorm, x, scale, bias).with(op.Attr{Name: "num_groups", Value: int64(groups)}, op.Attr{Name: "epsilon", Value: epsilon})
}

// Window describes how a convolution or a pooling traverses the spatial axes of
// x [N,C,...]. A list has one number per spatial axis, Pads one for the
// beginning of each axis and then one for the end of each. Empty lists stand
// for strides and dilations of 1 and no padding.
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

// conv convolves x [N,C,...] with w [M,C/group,...] and adds bias [M], which
// may be nil. The result is [N,M,...], with the spatial sizes that the [Window]
// leaves.
func conv(x, w, bias tensor.Operand, o Window) call {
	return ternary(opConv, x, w, bias).with(o.conv()...)
}

// convTranspose computes the transposed convolution of x [N,C,...] with w
// [C,M/group,...] and adds bias [M], which may be nil. The result is [N,M,...].
func convTranspose(x, w, bias tensor.Operand, o Window) call {
	return ternary(opConvTranspose, x, w, bias).with(o.conv()...)
}

// maxPool returns the maximum of each window of the given size, one number per
// spatial axis of x [N,C,...].
func maxPool(x tensor.Operand, size []int, o Window) call {
	return unary(opMaxPool, x).with(o.pool(size)...)
}

// averagePool computes the mean of each window of the given size, one number
// per spatial axis of x [N,C,...].
func averagePool(x tensor.Operand, size []int, o Window) call {
	return unary(opAveragePool, x).with(append(o.pool(size), op.Attr{Name: "count_include_pad", Value: bit(o.CountPads)})...)
}

// arange returns the numbers from start in steps of step up to, but not
// including, limit, as a vector of type dt. All three must be values of that
// type.
func arange(dt dtype.DType, start, limit, step float64) call {
	return call{op: opRange, results: 1}.number(0, dt, start).number(1, dt, limit).number(2, dt, step)
}
