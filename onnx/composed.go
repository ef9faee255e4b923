package onnx

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// composedTable holds operators that are a few others together.
var composedTable = map[string]operator{
	"LRN":                       lifted(0, inSingle(liftLRN)),
	"MeanVarianceNormalization": lifted(9, inSingle(liftMeanVariance)),
	"LpNormalization":           lifted(0, inSingle(liftLpNorm)),
	"LpPool":                    lifted(0, inSingle(liftLpPool)),
	"GlobalLpPool":              lifted(0, inSingle(liftGlobalLpPool)),
	"CenterCropPad":             lifted(18, liftCenterCropPad),
	"EyeLike":                   lifted(9, liftEyeLike),
}

// operand returns operand 0 of a node that has so many, nil where the type of
// one is not known: then the node has ended.
func (n *node) operand(count int) *ir.Value {
	if len(n.args) != count {
		n.fail("got %d operands, want %d", len(n.args), count)
		return nil
	}
	for i, v := range n.args {
		if v == nil {
			n.fail("operand %d is absent, want a value", i)
			return nil
		}
		if v.Type.IsZero() {
			n.giveUp()
			return nil
		}
	}
	return n.args[0]
}

// inSingle lifts a node of half precision in single precision: powers and sums
// on the way may be larger than the result.
func inSingle(lift func(*node)) func(*node) {
	return func(n *node) {
		if x := n.arg(0); x != nil && (x.Type.DType == dtype.F16 || x.Type.DType == dtype.BF16) {
			n.narrow = x.Type.DType
			n.args = slices.Clone(n.args)
			n.args[0] = n.call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: dtype.F32})
		}
		lift(n)
	}
}

func intAttr(name string, v int64) op.Attr    { return op.Attr{Name: name, Value: v} }
func intsAttr(name string, v []int64) op.Attr { return op.Attr{Name: name, Value: v} }

// with emits an operator of a value and a number of its type.
func (n *node) with(name string, x *ir.Value, number float64, dt dtype.DType) *ir.Value {
	return n.call(name, []*ir.Value{x, n.scalar(dt, number)})
}

// liftLRN divides by a power of the mean square of neighbouring channels: an
// average pooling over channels as a spatial axis.
func liftLRN(n *node) {
	size, ok := take[int64](n, "size")
	alpha, beta, bias := takeOr(n, "alpha", float32(1e-4)), takeOr(n, "beta", float32(0.75)), takeOr(n, "bias", float32(1))
	n.noMoreAttrs()
	x := n.operand(1)
	if x == nil {
		return
	}
	rank, known := n.rank(0)
	if !known {
		n.unsupported("an operand of unknown rank")
		return
	}
	if !ok || size < 1 || size > math.MaxInt32 || rank < 3 {
		n.fail("got size %d for %s, want 1 or more for 3 dimensions or more: %w", size, x.Type, shape.ErrShape)
		return
	}
	kernel, pads := make([]int64, rank-1), make([]int64, 2*(rank-1))
	for i := range kernel {
		kernel[i] = 1
	}
	kernel[0], pads[0], pads[rank-1] = size, (size-1)/2, size/2
	dt := x.Type.DType
	squares := n.call("unsqueeze", []*ir.Value{n.call("mul", []*ir.Value{x, x}), n.ints([]int64{1})})
	mean := n.call("average_pool", []*ir.Value{squares}, intsAttr("kernel_shape", kernel), intsAttr("pads", pads), intAttr("count_include_pad", 1))
	mean = n.call("squeeze", []*ir.Value{mean, n.ints([]int64{1})})
	power := n.with("pow", n.with("add", n.with("mul", mean, float64(alpha), dt), float64(bias), dt), float64(beta), dt)
	n.finish("div", []*ir.Value{x, power})
}

// liftMeanVariance makes mean 0 and deviation 1 along axes.
func liftMeanVariance(n *node) {
	axes := takeOr(n, "axes", []int64{0, 2, 3})
	n.noMoreAttrs()
	x := n.operand(1)
	if x == nil {
		return
	}
	along := n.ints(axes)
	centred := n.call("sub", []*ir.Value{x, n.call("reduce_mean", []*ir.Value{x, along})})
	variance := n.call("reduce_mean", []*ir.Value{n.call("mul", []*ir.Value{centred, centred}), along})
	n.finish("div", []*ir.Value{centred, n.with("add", n.call("sqrt", []*ir.Value{variance}), 1e-9, x.Type.DType)})
}

// liftLpNorm divides by the norm along an axis; zeros stay.
func liftLpNorm(n *node) {
	axis, p := takeOr(n, "axis", int64(-1)), takeOr(n, "p", int64(2))
	n.noMoreAttrs()
	x := n.operand(1)
	if x == nil {
		return
	}
	name, ok := map[int64]string{1: "reduce_l1", 2: "reduce_l2"}[p]
	if !ok {
		n.unsupported("p %d", p)
		return
	}
	norm := n.call(name, []*ir.Value{x, n.ints([]int64{axis})})
	none := n.with("equal", norm, 0, x.Type.DType)
	n.finish("where", []*ir.Value{none, x, n.call("div", []*ir.Value{x, norm})})
}

// liftLpPool is the root of the sum of powers, which an average pooling makes
// where pads count.
func liftLpPool(n *node) {
	p := float64(takeOr(n, "p", int64(2)))
	kernel, sized := take[[]int64](n, "kernel_shape")
	attrs := []op.Attr{intsAttr("kernel_shape", kernel), intAttr("count_include_pad", 1)}
	for _, name := range []string{"strides", "dilations", "pads"} {
		if v, ok := take[[]int64](n, name); ok {
			attrs = append(attrs, intsAttr(name, v))
		}
	}
	auto, ok := take[string](n, "auto_pad")
	if ok {
		attrs = append(attrs, op.Attr{Name: "auto_pad", Value: auto})
	}
	ceil := takeOr(n, "ceil_mode", int64(0)) != 0 && (auto == "" || auto == "NOTSET") // the others say the size themselves
	n.noMoreAttrs()
	x := n.operand(1)
	if x == nil {
		return
	}
	if !sized || p < 1 {
		n.fail("got kernel_shape %v and p %v, want a kernel and 1 or more", kernel, p)
		return
	}
	taps := 1.0
	for _, k := range kernel {
		taps *= float64(k)
	}
	powers := n.power(x, p)
	if ceil {
		powers = n.padLast(powers, attrs)
	}
	mean := n.call("average_pool", []*ir.Value{powers}, attrs...)
	n.root(n.with("mul", mean, taps, x.Type.DType), p)
}

// padLast adds the zeros that windows reach into which begin inside and end
// outside: rounded down, the sizes are then what they are rounded up without.
func (n *node) padLast(x *ir.Value, attrs []op.Attr) *ir.Value {
	if n.err != nil {
		return x
	}
	if !x.Type.IsStatic() {
		n.unsupported("ceil_mode 1 for %s, whose sizes are not known at load", x.Type)
		return x
	}
	at := func(name string, i int, absent int64) int64 {
		for _, a := range attrs {
			if list, ok := a.Value.([]int64); ok && a.Name == name && i < len(list) {
				return list[i]
			}
		}
		return absent
	}
	rank := x.Type.Shape.Rank()
	pads, any := make([]int64, 2*rank), false
	for i := range rank - 2 {
		size, stride := int64(x.Type.Shape.Size(i+2)), max(at("strides", i, 1), 1)
		begin, end := at("pads", i, 0), at("pads", rank-2+i, 0)
		past := size + begin + end - (at("kernel_shape", i, 1)-1)*at("dilations", i, 1) - 1 // where the last window may start
		if extra := (stride - past%stride) % stride; past >= 0 && extra > 0 && past+extra < size+begin {
			pads[rank+2+i], any = extra, true
		}
	}
	if !any {
		return x
	}
	return n.call("pad", []*ir.Value{x, n.ints(pads)})
}

// liftGlobalLpPool is liftLpPool over all spatial axes.
func liftGlobalLpPool(n *node) {
	p := float64(takeOr(n, "p", int64(2)))
	n.noMoreAttrs()
	x := n.operand(1)
	if x == nil {
		return
	}
	rank, known := n.rank(0)
	if !known {
		n.unsupported("an operand of unknown rank")
		return
	}
	if rank < 3 || p < 1 {
		n.fail("got %s and p %v, want 3 dimensions or more and 1 or more: %w", x.Type, p, shape.ErrShape)
		return
	}
	var axes []int64
	for i := 2; i < rank; i++ {
		axes = append(axes, int64(i))
	}
	n.root(n.call("reduce_sum", []*ir.Value{n.power(x, p), n.ints(axes)}), p)
}

// power is |x| to the power of p.
func (n *node) power(x *ir.Value, p float64) *ir.Value {
	if p == 2 {
		return n.call("mul", []*ir.Value{x, x})
	}
	return n.with("pow", n.call("abs", []*ir.Value{x}), p, x.Type.DType)
}

// root ends the node with the p-th root of x.
func (n *node) root(x *ir.Value, p float64) {
	if x == nil || p == 2 {
		n.finish("sqrt", []*ir.Value{x})
		return
	}
	n.finish("pow", []*ir.Value{x, n.scalar(n.args[0].Type.DType, 1/p)})
}

// liftCenterCropPad cuts and pads around the middle: pads that are worked out
// from the sizes, below zero where it cuts.
func liftCenterCropPad(n *node) {
	axes, given := take[[]int64](n, "axes")
	n.noMoreAttrs()
	x := n.operand(2)
	if x == nil {
		return
	}
	rank, known := n.rank(0)
	if !given && !known {
		n.unsupported("an operand of unknown rank without axes")
		return
	}
	if !given {
		for i := range rank {
			axes = append(axes, int64(i))
		}
	}
	along := n.ints(axes)
	target := n.call("cast", n.args[1:2], op.Attr{Name: "to", Value: dtype.I64})
	sizes := n.call("gather", []*ir.Value{n.call("shape", []*ir.Value{x}), along})
	extra := n.call("sub", []*ir.Value{target, sizes})
	before := n.with("div", extra, 2, dtype.I64) // toward zero: what is odd goes to the end
	after := n.call("sub", []*ir.Value{extra, before})
	pads := n.call("concat", []*ir.Value{before, after}, intAttr("axis", 0))
	n.finish("pad", []*ir.Value{x, pads, nil, along})
}

// liftEyeLike cuts everything but a diagonal from a matrix of ones.
func liftEyeLike(n *node) {
	diagonal := n.scalar(dtype.I64, 0)
	if k := takeOr(n, "k", int64(0)); k != 0 {
		diagonal = n.call("squeeze", []*ir.Value{n.ints([]int64{k})})
	}
	code, given := take[int64](n, "dtype")
	n.noMoreAttrs()
	x := n.operand(1)
	if x == nil {
		return
	}
	dt := x.Type.DType
	if given {
		v, err := convertAttr(code, op.DTypeKind)
		if err != nil {
			n.fail("attribute %q: %w", "dtype", err)
			return
		}
		dt = v.(dtype.DType)
	}
	ones := n.call("expand", []*ir.Value{n.scalar(dt, 1), n.shapeOf(x)})
	upper := n.call("trilu", []*ir.Value{ones, diagonal})
	n.finish("trilu", []*ir.Value{upper, diagonal}, intAttr("upper", 0))
}
