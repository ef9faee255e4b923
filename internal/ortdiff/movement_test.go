package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["Reshape"] = func(d *drawer) {
		d.node("Reshape")
		dims := d.dims(0, 4)
		d.in(pick(d, moved...), dims...)
		target := regroup(d, dims)
		to := int64s(target)
		allowZero := d.m.opset >= 14 && d.chance(0.3)
		for i := range to {
			if i < len(dims) && to[i] == int64(dims[i]) && !allowZero && d.chance(0.3) {
				to[i] = 0
			}
		}
		if len(to) > 0 && elements(dims) > 0 && d.chance(0.5) {
			to[d.IntN(len(to))] = -1
		}
		if allowZero {
			d.attr("allowzero", 1)
		}
		d.ints(to...)
		d.outs(1)
	}
	generators["Flatten"] = func(d *drawer) {
		d.node("Flatten")
		dims := d.dims(0, 4)
		d.in(pick(d, all...), dims...)
		lo := -len(dims)
		if d.m.opset < 11 {
			lo = 0
		}
		if len(dims) == 0 || d.chance(0.7) {
			d.attr("axis", d.between(lo, len(dims)))
		}
		d.outs(1)
	}
	generators["Squeeze"] = func(d *drawer) {
		d.node("Squeeze")
		dims := d.dims(1, 5)
		var axes []int64
		for _, i := range d.some(len(dims), 0.5) {
			dims[i] = 1
			axes = append(axes, d.signed(i, len(dims)))
		}
		d.Shuffle(len(axes), func(i, j int) { axes[i], axes[j] = axes[j], axes[i] })
		d.in(pick(d, moved...), dims...)
		d.axes(axes, d.chance(0.7) && len(axes) > 0, 13, 11, len(dims))
		d.outs(1)
	}
	generators["Unsqueeze"] = func(d *drawer) {
		d.node("Unsqueeze")
		dims := d.dims(0, 3)
		n := d.between(1, 3)
		var axes []int64
		for i, at := range d.Perm(len(dims) + n) {
			if i < n {
				axes = append(axes, d.signed(at, len(dims)+n))
			}
		}
		d.in(pick(d, moved...), dims...)
		d.axes(axes, true, 13, 11, len(dims)+n)
		d.outs(1)
	}
	generators["Transpose"] = func(d *drawer) {
		d.node("Transpose")
		dims := d.dims(0, 5)
		d.in(pick(d, moved...), dims...)
		if d.chance(0.8) && len(dims) > 0 {
			d.attr("perm", d.Perm(len(dims)))
		}
		d.outs(1)
	}
	generators["Concat"] = func(d *drawer) {
		d.node("Concat")
		dims, dt := d.dims(1, 4), pick(d, moved...)
		at, axis := d.axis(len(dims))
		if d.m.opset < 11 {
			axis = int64(at)
		}
		for range d.between(1, 4) {
			dims = clone(dims)
			dims[at] = d.dim()
			d.in(dt, dims...)
		}
		d.attr("axis", axis)
		d.outs(1)
	}
	generators["Split"] = drawSplit
	generators["Slice"] = drawSlice
	generators["Tile"] = func(d *drawer) {
		d.node("Tile")
		dims := d.dims(1, 4)
		repeats := make([]int64, len(dims))
		for i := range repeats {
			repeats[i] = int64(d.between(1, 3))
			if d.empty && d.chance(0.2) {
				repeats[i] = 0
			}
		}
		d.in(pick(d, moved...), dims...)
		d.ints(repeats...)
		d.outs(1)
	}
	generators["Expand"] = func(d *drawer) {
		d.node("Expand")
		dims := d.dims(0, 4)
		d.in(pick(d, moved...), d.broadcast(dims)...)
		d.ints(int64s(d.broadcast(dims))...)
		d.outs(1)
	}
	generators["DepthToSpace"] = func(d *drawer) {
		d.node("DepthToSpace")
		b := d.between(1, 3)
		d.in(pick(d, all...), d.dim(), b*b*d.between(1, 2), d.dim(), d.dim())
		d.attr("blocksize", b)
		if d.m.opset >= 11 {
			d.maybe("mode", pick(d, "DCR", "CRD"))
		}
		d.outs(1)
	}
	generators["SpaceToDepth"] = func(d *drawer) {
		d.node("SpaceToDepth")
		b := d.between(1, 3)
		d.in(pick(d, all...), d.dim(), d.dim(), b*d.dim(), b*d.dim())
		d.attr("blocksize", b)
		if d.m.opset >= 27 {
			d.maybe("mode", pick(d, "DCR", "CRD"))
		}
		d.outs(1)
	}
	generators["ReverseSequence"] = func(d *drawer) {
		d.node("ReverseSequence")
		dims := d.dims(2, 4)
		batch := d.IntN(2)
		time := 1 - batch
		lengths := make([]int64, dims[batch])
		for i := range lengths {
			lengths[i] = int64(d.between(min(1, dims[time]), dims[time]))
		}
		d.in(pick(d, all...), dims...)
		d.with(dtype.I64, []int{dims[batch]}, encodeInts(dtype.I64, lengths...))
		if batch == 0 || d.chance(0.5) {
			d.attr("batch_axis", batch)
			d.attr("time_axis", time)
		}
		d.outs(1)
	}
	generators["Trilu"] = func(d *drawer) {
		d.node("Trilu")
		d.in(pick(d, all...), d.dims(2, 4)...)
		if d.chance(0.6) {
			d.with(dtype.I64, []int{}, encodeInts(dtype.I64, int64(d.between(-5, 5))))
		}
		d.maybe("upper", d.chance(0.5))
		d.outs(1)
	}
	generators["CenterCropPad"] = func(d *drawer) {
		d.node("CenterCropPad")
		dims := d.dims(1, 4)
		d.in(pick(d, all...), dims...)
		n := len(dims)
		var axes []int64
		if d.chance(0.5) {
			for _, i := range d.some(n, 0.6) {
				axes = append(axes, d.signed(i, n))
			}
		}
		if len(axes) > 0 {
			n = len(axes)
			d.attr("axes", axes)
		}
		target := make([]int64, n)
		for i := range target {
			target[i] = int64(d.between(1, 7))
		}
		d.ints(target...)
		d.outs(1)
	}
	generators["Pad"] = drawPad
}

// axes gives axes as an operand from an opset on, as an attribute before;
// before signed they are not negative.
func (d *drawer) axes(axes []int64, given bool, operand, signed, rank int) {
	if !given {
		return
	}
	if d.m.opset < signed {
		for i := range axes {
			axes[i] = (axes[i] + int64(rank)) % int64(rank)
		}
	}
	if d.m.opset >= operand {
		d.ints(axes...)
		return
	}
	d.attr("axes", axes)
}

// regroup draws sizes with the same number of elements.
func regroup(d *drawer, dims []int) []int {
	n := elements(dims)
	if n == 0 {
		return clone(dims)
	}
	var out []int
	for range d.between(0, 3) {
		f := d.between(1, 4)
		if n%f == 0 {
			out, n = append(out, f), n/f
		}
	}
	if n > 1 || d.chance(0.3) {
		out = append(out, n)
	}
	d.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	if out == nil {
		out = []int{}
	}
	return out
}

func drawSplit(d *drawer) {
	d.node("Split")
	dims := d.dims(1, 4)
	at, axis := d.axis(len(dims))
	if d.m.opset < 11 {
		axis = int64(at)
	}
	n := d.between(1, 4)
	parts := make([]int64, n)
	explicit := d.chance(0.6)
	dims[at] = 0
	for i := range parts {
		parts[i] = int64(d.between(0, 3))
		if !explicit {
			parts[i] = max(parts[0], 1)
		}
		dims[at] += int(parts[i])
	}
	if !explicit && d.m.opset >= 18 { // the last one may be smaller
		dims[at] -= d.IntN(int(parts[n-1]))
	}
	d.in(pick(d, moved...), dims...)
	if axis != 0 || d.chance(0.5) {
		d.attr("axis", axis)
	}
	switch {
	case explicit && d.m.opset >= 13:
		d.ints(parts...)
	case explicit:
		d.attr("split", parts)
	case d.m.opset >= 18:
		d.attr("num_outputs", n)
	}
	d.outs(n)
}

func drawSlice(d *drawer) {
	d.node("Slice")
	dims := d.dims(1, 4)
	d.in(pick(d, moved...), dims...)
	var starts, ends, axes, steps []int64
	chosen := d.some(len(dims), 0.6)
	leading := true
	for i, at := range chosen {
		leading = leading && i == at
	}
	for _, at := range chosen {
		n := dims[at]
		bound := func() int64 {
			if d.chance(0.15) {
				return pick[int64](d, 1<<31-1, -1<<31, 1<<63-1, -1<<63, -1<<63+1, 1<<62)
			}
			return int64(d.between(-n-2, n+2))
		}
		starts, ends = append(starts, bound()), append(ends, bound())
		axes = append(axes, d.signed(at, len(dims)))
		step := int64(d.between(1, 3))
		if d.chance(0.4) {
			step = -step
		}
		if d.chance(0.05) {
			step = pick[int64](d, 1<<63-1, -1<<63, 1<<31, -1<<63+1)
		}
		steps = append(steps, step)
	}
	withAxes := !leading || d.chance(0.6)
	if d.m.opset < 10 {
		for i := range axes {
			axes[i] = int64(chosen[i])
		}
		d.attr("starts", starts)
		d.attr("ends", ends)
		if withAxes {
			d.attr("axes", axes)
		}
		d.outs(1)
		return
	}
	d.ints(starts...)
	d.ints(ends...)
	if withAxes {
		d.ints(axes...)
	} else {
		d.skip()
	}
	if d.chance(0.7) {
		d.ints(steps...)
	}
	d.outs(1)
}

func drawPad(d *drawer) {
	d.node("Pad")
	dims, dt := d.dims(1, 4), dtype.F32
	if d.m.opset >= 11 {
		dt = pick(d, numbers...)
	}
	if d.m.opset >= 13 {
		dt = pick(d, all...)
	}
	modes := []string{"constant", "constant", "reflect", "edge"}
	if d.m.opset >= 19 {
		modes = append(modes, "wrap")
	}
	mode := pick(d, modes...)
	d.in(dt, dims...)
	chosen := d.some(len(dims), 0.5)
	withAxes := d.m.opset >= 18 && len(chosen) > 0 && d.chance(0.6)
	if !withAxes {
		chosen = nil
		for i := range dims {
			chosen = append(chosen, i)
		}
	}
	pads := make([]int64, 2*len(chosen))
	axes := make([]int64, len(chosen))
	for i, at := range chosen {
		axes[i] = d.signed(at, len(dims))
		for k := range 2 {
			most := 3
			if mode == "reflect" {
				most = min(3, dims[at]-1)
			}
			if dims[at] == 0 && mode != "constant" {
				most = 0
			}
			p := d.between(0, max(0, most))
			if d.chance(0.2) {
				p = -d.between(0, (dims[at]+1)/2)
			}
			pads[i+k*len(chosen)] = int64(p)
		}
		if mode == "constant" && d.chance(0.1) { // all elements are removed, and some of those that the other side adds
			k := d.IntN(2)
			pads[i+k*len(chosen)], pads[i+(1-k)*len(chosen)] = int64(-dims[at]-d.between(0, 2)), int64(d.between(1, 4))
		}
	}
	if mode != "constant" || d.chance(0.5) {
		d.attr("mode", mode)
	}
	if d.m.opset < 11 {
		d.attr("pads", pads)
		d.maybe("value", d.float())
		d.outs(1)
		return
	}
	d.ints(pads...)
	d.optional(0.6, dt)
	if withAxes {
		d.ints(axes...)
	}
	d.outs(1)
}
