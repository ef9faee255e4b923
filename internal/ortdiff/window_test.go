package ortdiff_test

import (
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
)

// window draws the attributes of a window that moves over n axes of the sizes
// of x, and returns the sizes of the kernel.
func (d *drawer) window(x []int, dilates bool) (kernel, strides, dilations []int) {
	n := len(x)
	kernel, strides, dilations = make([]int, n), make([]int, n), make([]int, n)
	dilated := dilates && d.chance(0.3)
	for i := range x {
		kernel[i], strides[i], dilations[i] = d.between(1, pick(d, 3, 3, 3, 5)), d.between(1, pick(d, 3, 3, 5)), 1
		if dilated {
			dilations[i] = d.between(1, pick(d, 2, 2, 5))
		}
		x[i] = max(x[i], 1)
		if d.chance(0.9) {
			x[i] = max(x[i], (kernel[i]-1)*dilations[i]+1)
		}
	}
	if d.chance(0.4) {
		for i := range strides {
			strides[i] = 1
		}
	}
	return kernel, strides, dilations
}

// padding draws pads that are smaller than the kernel, or an auto_pad.
func (d *drawer) padding(kernel, dilations []int) {
	if d.chance(0.35) {
		d.attr("auto_pad", pick(d, "SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"))
		return
	}
	if d.chance(0.4) {
		return
	}
	pads := make([]int, 2*len(kernel))
	for i := range pads {
		k := i % len(kernel)
		most := kernel[k] - 1 // of a pool
		if strings.Contains(d.n.op, "Conv") {
			most = pick(d, most, most, (kernel[k]-1)*dilations[k], 4)
		}
		pads[i] = d.between(0, most)
	}
	d.attr("pads", pads)
}

// moves sets strides and dilations where they are not 1, and sometimes where
// they are.
func (d *drawer) moves(strides, dilations []int) {
	ones := func(list []int) bool {
		for _, v := range list {
			if v != 1 {
				return false
			}
		}
		return true
	}
	if !ones(strides) || d.chance(0.3) {
		d.attr("strides", strides)
	}
	if dilations != nil && (!ones(dilations) || d.chance(0.3)) {
		d.attr("dilations", dilations)
	}
}

// spatial draws the sizes of 1 to 3 axes, mostly 2.
func (d *drawer) spatial() []int {
	n := pick(d, 1, 2, 2, 2, 3)
	out := make([]int, n)
	for i := range out {
		out[i] = d.between(1, 2*d.size)
	}
	return out
}

func init() {
	generators["Conv"] = func(d *drawer) {
		d.node("Conv")
		d.conv(pick(d, floats...), dtype.Invalid)
		d.outs(1)
	}
	generators["ConvInteger"] = func(d *drawer) {
		d.node("ConvInteger")
		d.conv(dtype.U8, pick(d, dtype.U8, dtype.I8))
		d.outs(1)
	}
	generators["QLinearConv"] = func(d *drawer) {
		d.node("QLinearConv")
		d.conv(pick(d, dtype.U8, dtype.I8), dtype.I8)
		d.outs(1)
	}
	tolerances["QLinearConv"] = tolerance{0, 0, 1, "the scales are multiplied in another order: what lies next to a tie may go either way"}
	generators["ConvTranspose"] = drawConvTranspose
	tolerances["Conv"] = tolerance{16, 64, 0, "sums in another order; the terms may be larger than their sum"}
	tolerances["ConvTranspose"] = tolerances["Conv"]
	for _, name := range []string{"MaxPool", "AveragePool", "LpPool"} {
		generators[name] = func(d *drawer) { d.pool(name) }
	}
	tolerances["AveragePool"] = tolerance{8, 8, 0, "sums in another order"}
	tolerances["LpPool"] = tolerance{32, 16, 0, "sums in another order, powers of their own on both sides"}
	for _, name := range []string{"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"} {
		generators[name] = func(d *drawer) {
			d.node(name)
			d.in(pick(d, floats...), append([]int{d.dim(), d.dim()}, full(d.spatial())...)...)
			if name == "GlobalLpPool" {
				d.maybe("p", d.between(1, 3))
			}
			d.outs(1)
		}
	}
	tolerances["GlobalAveragePool"] = tolerance{8, 16, 0, "sums in another order"}
	tolerances["GlobalLpPool"] = tolerance{32, 16, 0, "sums in another order, powers of their own on both sides"}
	generators["DeformConv"] = drawDeformConv
	tolerances["DeformConv"] = tolerance{64, 256, 0, "sums in another order"}
	generators["Col2Im"] = func(d *drawer) {
		d.node("Col2Im")
		image := d.spatial()
		block, strides, dilations := d.window(image, true)
		blocks := 1
		pads := make([]int, 2*len(image))
		withPads := d.chance(0.5)
		for i := range image {
			if withPads {
				pads[i], pads[i+len(image)] = d.between(0, 2), d.between(0, 2)
			}
			reach := image[i] + pads[i] + pads[i+len(image)] - dilations[i]*(block[i]-1) - 1
			if reach < 0 {
				image[i] -= reach
				reach = 0
			}
			blocks *= reach/strides[i] + 1
		}
		d.in(pick(d, numbers...), max(1, d.dim()), elements(block)*d.between(1, 2), blocks)
		d.ints(int64s(image)...)
		d.ints(int64s(block)...)
		d.moves(strides, dilations)
		if withPads {
			d.attr("pads", pads)
		}
		d.outs(1)
	}
	tolerances["Col2Im"] = tolerance{4, 4, 0, "half precision is rounded after each term by one of them"}
	generators["MaxUnpool"] = drawMaxUnpool
}

func drawMaxUnpool(d *drawer) {
	d.node("MaxUnpool")
	x := full(d.spatial())
	kernel, strides, _ := d.window(x, false)
	var attrs []func()
	if d.chance(0.8) {
		attrs = append(attrs, func() { d.attr("strides", strides) })
	} else {
		strides = slices.Repeat([]int{1}, len(x))
	}
	pads := make([]int, 2*len(x))
	if d.chance(0.4) {
		for i := range pads {
			pads[i] = d.IntN((kernel[i%len(x)] + 1) / 2)
		}
		attrs = append(attrs, func() { d.attr("pads", pads) })
	}
	out := make([]int, len(x))
	more, given := pick(d, 0, 0, 1, 3), d.chance(0.4)
	for i := range x {
		out[i] = (x[i]-1)*strides[i] + kernel[i] - pads[i] - pads[i+len(x)]
		if given {
			out[i] += more
		}
	}
	dims := append([]int{1, max(1, d.dim())}, x...)
	image := elements(out)
	d.attr("kernel_shape", kernel)
	for _, set := range attrs {
		set()
	}
	if image < elements(x) {
		d.outs(1)
		return
	}
	var list []int64
	for c := range dims[1] {
		for _, at := range d.Perm(image)[:elements(x)] {
			list = append(list, int64(c*image+at))
		}
	}
	d.in(pick(d, dtype.F32, dtype.F32, dtype.F64), dims...)
	d.with(dtype.I64, dims, encodeInts(dtype.I64, list...))
	if given {
		d.ints(append([]int64{1, int64(dims[1])}, int64s(out)...)...)
	}
	d.outs(1)
}

// conv draws a convolution: of floats where w is invalid, or else of integers
// with zero points, and scales if it is the linear one.
func (d *drawer) conv(x, w dtype.DType) {
	space := d.spatial()
	kernel, strides, dilations := d.window(space, true)
	group := pick(d, 1, 1, 1, 2, 3)
	in, out := d.between(1, 3), d.between(1, 3)
	if d.chance(0.1) {
		in, out = 1, 1
		group = d.between(1, 6)
	}
	if d.chance(0.05) {
		in, out, group = 17, 19, 1
	}
	dims := append([]int{d.dim(), group * in}, space...)
	weights := append([]int{group * out, in}, kernel...)
	linear := d.n.op == "QLinearConv"
	d.in(x, dims...)
	if linear {
		d.scale(dtype.F32)
		d.in(x)
	}
	switch {
	case w == dtype.Invalid:
		d.in(x, weights...)
		d.optional(0.5, x, group*out)
	case linear:
		d.in(w, weights...)
		if d.chance(0.5) {
			d.scale(dtype.F32, group*out)
			d.with(w, []int{group * out}, make([]byte, group*out))
		} else {
			d.scale(dtype.F32)
			d.in(w)
		}
		d.scale(dtype.F32)
		d.in(x)
		d.optional(0.5, dtype.I32, group*out)
	default:
		d.in(w, weights...)
		if d.chance(0.6) {
			d.in(x)
			if d.chance(0.6) {
				d.in(w)
			}
		}
	}
	if d.chance(0.5) {
		d.attr("kernel_shape", kernel)
	}
	if group != 1 || d.chance(0.3) {
		d.attr("group", group)
	}
	d.moves(strides, dilations)
	d.padding(kernel, dilations)
}

func drawConvTranspose(d *drawer) {
	d.node("ConvTranspose")
	x := d.spatial()
	for i := range x {
		x[i] = d.between(1, 4)
	}
	n := len(x)
	space := clone(x)
	kernel, strides, dilations := d.window(space, true)
	group := pick(d, 1, 1, 2)
	in, out := d.between(1, 3), d.between(1, 3)
	dt := pick(d, floats...)
	d.in(dt, append([]int{max(1, d.dim()), group * in}, x...)...)
	d.in(dt, append([]int{group * in, out}, kernel...)...)
	d.optional(0.5, dt, group*out)
	if d.chance(0.5) {
		d.attr("kernel_shape", kernel)
	}
	if group != 1 {
		d.attr("group", group)
	}
	d.moves(strides, dilations)
	extra := make([]int, n)
	withExtra := d.chance(0.4)
	for i := range extra {
		if withExtra {
			extra[i] = d.IntN(strides[i])
		}
	}
	if withExtra {
		d.attr("output_padding", extra)
	}
	switch d.IntN(4) {
	case 0:
		shape := make([]int, n)
		for i := range shape {
			most := (x[i]-1)*strides[i] + (kernel[i]-1)*dilations[i] + 1 + extra[i]
			shape[i] = max(1, most-d.between(0, 2))
		}
		d.attr("output_shape", shape)
		if d.chance(0.5) {
			d.attr("auto_pad", pick(d, "SAME_UPPER", "SAME_LOWER", "NOTSET"))
		}
	case 1:
		d.attr("auto_pad", pick(d, "SAME_UPPER", "SAME_LOWER", "VALID"))
	case 2:
		pads := make([]int, 2*n)
		for i := range pads {
			pads[i] = d.between(0, 1)
		}
		d.attr("pads", pads)
	}
	d.outs(1)
}

func (d *drawer) pool(name string) {
	d.node(name)
	dt := pick(d, floats...)
	if name == "MaxPool" && d.m.opset >= 12 && d.chance(0.2) {
		dt = pick(d, dtype.I8, dtype.U8)
	}
	dilates := map[string]int{"MaxPool": 10, "AveragePool": 19, "LpPool": 18}[name]
	space := d.spatial()
	kernel, strides, dilations := d.window(space, d.m.opset >= dilates)
	d.in(dt, append([]int{d.dim(), d.dim()}, space...)...)
	d.attr("kernel_shape", kernel)
	if d.m.opset < dilates {
		dilations = nil
	}
	d.moves(strides, dilations)
	d.padding(kernel, dilations)
	if name == "LpPool" {
		d.maybe("p", d.between(1, 3))
	}
	if d.m.opset >= 10 && (name != "LpPool" || d.m.opset >= 18) {
		d.maybe("ceil_mode", d.chance(0.5))
	}
	if name == "AveragePool" && d.m.opset >= 7 {
		d.maybe("count_include_pad", d.chance(0.5))
	}
	outs := 1
	if name == "MaxPool" && d.m.opset >= 8 {
		if d.chance(0.3) {
			d.attr("storage_order", d.IntN(2))
		}
		outs = d.between(1, 2)
	}
	d.outs(outs)
}

func drawDeformConv(d *drawer) {
	d.node("DeformConv")
	x := []int{d.between(1, 6), d.between(1, 6)}
	kernel, strides, dilations := d.window(x, true)
	group, deform := d.between(1, 2), d.between(1, 2)
	in, out := group*deform*d.between(1, 2), group*d.between(1, 2)
	pads := []int{d.IntN(2), d.IntN(2), d.IntN(2), d.IntN(2)}
	area := make([]int, 2)
	for i := range area {
		reach := x[i] + pads[i] + pads[i+2] - dilations[i]*(kernel[i]-1) - 1
		if reach < 0 {
			x[i] -= reach
			reach = 0
		}
		area[i] = reach/strides[i] + 1
	}
	dt, batch, k := pick(d, dtype.F32, dtype.F32, dtype.F64), d.between(1, 2), kernel[0]*kernel[1]
	d.in(dt, batch, in, x[0], x[1])
	d.in(dt, out, in/group, kernel[0], kernel[1])
	d.in(dt, batch, deform*k*2, area[0], area[1])
	d.optional(0.5, dt, out)
	d.optional(0.5, dt, batch, deform*k, area[0], area[1])
	d.moves(strides, dilations)
	d.maybe("kernel_shape", kernel)
	d.attr("pads", pads)
	d.attr("group", group)
	d.attr("offset_group", deform)
	d.outs(1)
}
