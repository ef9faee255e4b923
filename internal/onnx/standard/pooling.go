package standard

import (
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var poolingTable = map[string]lift.Operator{
	"MaxPool":           lift.Lifted(0, liftPool),
	"AveragePool":       lift.Lifted(0, liftPool),
	"GlobalMaxPool":     lift.Since(0),
	"GlobalAveragePool": lift.Since(0),
	"MaxRoiPool":        lift.Since(0),
	"RoiAlign":          lift.Lifted(10, liftRoiAlign),
	"MaxUnpool":         lift.Since(9),
	"Col2Im":            lift.Since(18),

	"LpPool":       lift.Lifted(0, lift.InSingle(liftLpPool)),
	"GlobalLpPool": lift.Lifted(0, lift.InSingle(liftGlobalLpPool)),
}

// liftRoiAlign says what holds before opset 16: elements lie at whole numbers.
func liftRoiAlign(n *lift.Node) {
	if n.Opset < 16 {
		n.FinishNewest(n.Args, op.Attr{Name: "coordinate_transformation_mode", Value: "output_half_pixel"})
		return
	}
	lift.Plain(n)
}

// liftPool lifts a pooling, whose pads do not count beside auto_pad.
func liftPool(n *lift.Node) {
	withoutPads(n)
	lift.Plain(n)
}

// withoutPads drops the pads of a pooling that makes them itself: the
// specification wants one of the two attributes, ONNX Runtime reads one.
func withoutPads(n *lift.Node) {
	i := n.AttrIndex("auto_pad")
	if i >= 0 && n.Attrs[i].Value != "NOTSET" && n.Attrs[i].Value != "" {
		n.Ignore("pads")
	}
}

// liftLpPool is the root of the sum of powers, which an average pooling makes
// where pads count.
func liftLpPool(n *lift.Node) {
	withoutPads(n)
	p := float64(lift.TakeOr(n, "p", int64(2)))
	kernel, sized := lift.Take[[]int64](n, "kernel_shape")
	attrs := []op.Attr{lift.IntsAttr("kernel_shape", kernel), lift.IntAttr("count_include_pad", 1)}
	for _, name := range []string{"strides", "dilations", "pads"} {
		if v, ok := lift.Take[[]int64](n, name); ok {
			attrs = append(attrs, lift.IntsAttr(name, v))
		}
	}
	auto, ok := lift.Take[string](n, "auto_pad")
	if ok {
		attrs = append(attrs, op.Attr{Name: "auto_pad", Value: auto})
	}
	ceil := lift.TakeOr(n, "ceil_mode", int64(0)) != 0 && (auto == "" || auto == "NOTSET") // the others say the size themselves
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	if !sized || p < 1 {
		n.Fail("got kernel_shape %v and p %v, want a kernel and 1 or more", kernel, p)
		return
	}
	taps := 1.0
	for _, k := range kernel {
		taps *= float64(k)
	}
	mean := meanOfWindows(n, power(n, x, p), attrs, len(kernel), ceil)
	root(n, n.WithNumber("mul", mean, taps, x.Type.DType), p)
}

// meanOfWindows pools x over the given number of axes. With ceil, windows that
// begin inside and end outside count too: x gets zeros for them at its end, and
// the sizes, rounded down, are those that rounding up would produce without.
func meanOfWindows(n *lift.Node, x *ir.Value, attrs []op.Attr, axes int, ceil bool) *ir.Value {
	if n.Err != nil || !ceil {
		return n.Call("average_pool", []*ir.Value{x}, attrs...)
	}
	at := func(name string, i int, absent int64) int64 {
		for _, a := range attrs {
			if list, ok := a.Value.([]int64); ok && a.Name == name && i < len(list) {
				return list[i]
			}
		}
		return absent
	}
	pads, some, more := make([]int64, 2*(axes+2)), false, false
	for i := range axes {
		stride, begin, end := max(at("strides", i, 1), 1), at("pads", i, 0), at("pads", axes+i, 0)
		span := (at("kernel_shape", i, 1)-1)*at("dilations", i, 1) + 1
		extra := stride - 1
		if x.Type.IsStatic() && x.Type.Shape.Rank() == axes+2 {
			size := int64(x.Type.Shape.Size(i + 2))
			past := size + begin + end - span // where the last window may start
			if extra = (stride - past%stride) % stride; past+extra < 0 || past+extra >= size+begin {
				extra = 0
			}
		} else if end+stride > span {
			more = true // for some size a window would begin in the pads
		}
		pads[axes+4+i], some = extra, some || extra > 0
	}
	padded := x
	if some {
		padded = n.Call("pad", []*ir.Value{x, n.Ints(pads)})
	}
	mean := n.Call("average_pool", []*ir.Value{padded}, attrs...)
	if !more {
		return mean
	}
	up := n.Call("average_pool", []*ir.Value{x}, append(slices.Clone(attrs), lift.IntAttr("ceil_mode", 1))...)
	sizes := n.Call("shape", []*ir.Value{up}, lift.IntAttr("start", 2))
	starts, along := make([]int64, axes), make([]int64, axes)
	for i := range axes {
		along[i] = int64(i + 2)
	}
	return n.Call("slice", []*ir.Value{mean, n.Ints(starts), sizes, n.Ints(along)})
}

// liftGlobalLpPool is liftLpPool over all spatial axes.
func liftGlobalLpPool(n *lift.Node) {
	p := float64(lift.TakeOr(n, "p", int64(2)))
	n.NoMoreAttrs()
	x := n.Operand(1)
	if x == nil {
		return
	}
	rank, known := n.Rank(0)
	if !known {
		n.Unsupported("an operand of unknown rank")
		return
	}
	if rank < 3 || p < 1 {
		n.Fail("got %s and p %v, want 3 dimensions or more and 1 or more: %w", x.Type, p, shape.ErrShape)
		return
	}
	var axes []int64
	for i := 2; i < rank; i++ {
		axes = append(axes, int64(i))
	}
	root(n, n.Call("reduce_sum", []*ir.Value{power(n, x, p), n.Ints(axes)}), p)
}
