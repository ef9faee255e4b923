package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func init() {
	generators["Resize"] = drawResize
	tolerances["Resize"] = tolerance{32, 256, 1, "weights are made in single precision by ONNX Runtime, and integers cut after it"}
	generators["Upsample"] = func(d *drawer) {
		d.node("Upsample")
		dims := full(d.dims(2, 4))
		mode := pick(d, "nearest", "linear")
		scales := make([]float32, len(dims))
		for i := range scales {
			scales[i] = pick[float32](d, 1, 2, 3, 1.5)
			if mode == "linear" && i < len(dims)-2 {
				scales[i] = 1
			}
		}
		d.in(dtype.F32, dims...)
		d.maybe("mode", mode)
		if d.m.opset < 9 {
			d.attr("scales", scales)
		} else {
			list := make([]float64, len(scales))
			for i := range list {
				list[i] = float64(scales[i])
			}
			d.operand(d.value(dtype.F32, []int{len(dims)}, encodeFloats(dtype.F32, list...), true))
		}
		d.outs(1)
	}
	tolerances["Upsample"] = tolerances["Resize"]
	generators["GridSample"] = func(d *drawer) {
		d.node("GridSample")
		dt := pick(d, dtype.F32, dtype.F32, dtype.F64)
		n, space := d.between(1, 2), []int{d.between(1, 5), d.between(1, 5)}
		out := []int{d.between(1, 3), d.between(1, 3)}
		modes := []string{"bilinear", "nearest", "bicubic"}
		if d.m.opset >= 20 {
			modes = []string{"linear", "nearest", "cubic"}
			if d.chance(0.3) {
				space, out = append(space, d.between(1, 4)), append(out, d.between(1, 3))
				modes = []string{"linear", "nearest"}
			}
		}
		d.in(dt, append([]int{n, d.between(1, 2)}, space...)...)
		grid := append(append([]int{n}, out...), len(space))
		list := make([]float64, elements(grid))
		for i := range list {
			list[i] = d.NormFloat64() * pick(d, 0.5, 1, 2)
			if d.chance(0.2) {
				list[i] = pick(d, -1, 0, 1, 0.5, -0.5)
			}
		}
		d.with(dt, grid, encodeFloats(dt, list...))
		d.maybe("mode", pick(d, modes...))
		d.maybe("padding_mode", pick(d, "zeros", "border", "reflection"))
		d.maybe("align_corners", d.chance(0.5))
		d.outs(1)
	}
	tolerances["GridSample"] = tolerance{64, 512, 0, "positions are made in another order; a cubic multiplies them by large weights"}
	generators["AffineGrid"] = func(d *drawer) {
		d.node("AffineGrid")
		n, size := d.between(1, 2), []int64{int64(d.between(1, 4)), int64(d.between(1, 4))}
		if d.chance(0.4) {
			size = append(size, int64(d.between(1, 4)))
		}
		d.in(pick(d, dtype.F32, dtype.F32, dtype.F64), n, len(size), len(size)+1)
		d.ints(append([]int64{int64(n), 2}, size...)...)
		d.maybe("align_corners", d.chance(0.5))
		d.outs(1)
	}
	tolerances["AffineGrid"] = tolerance{8, 16, 0, "sums in another order"}
	generators["RoiAlign"] = func(d *drawer) {
		d.node("RoiAlign")
		dt := pick(d, dtype.F32, dtype.F32, dtype.F64)
		n, h, w, rois := d.between(1, 2), d.between(1, 7), d.between(1, 7), d.between(0, 3)
		d.in(dt, n, d.between(1, 3), h, w)
		var list []float64
		var batch []int64
		for range rois {
			x, y := d.Float64()*float64(w), d.Float64()*float64(h)
			list = append(list, x, y, x+d.Float64()*4, y+d.Float64()*4)
			batch = append(batch, int64(d.IntN(n)))
		}
		d.with(dt, []int{rois, 4}, encodeFloats(dt, list...))
		d.with(dtype.I64, []int{rois}, encodeInts(dtype.I64, batch...))
		d.maybe("mode", pick(d, "avg", "max"))
		d.maybe("output_height", d.between(1, 3))
		d.maybe("output_width", d.between(1, 3))
		d.maybe("sampling_ratio", d.between(0, 3))
		d.maybe("spatial_scale", pick(d, 1, 0.5, 2))
		if d.m.opset >= 16 {
			d.maybe("coordinate_transformation_mode", pick(d, "half_pixel", "output_half_pixel"))
		}
		d.outs(1)
	}
	tolerances["RoiAlign"] = tolerance{64, 256, 0, "positions are made in another order"}
	generators["MaxRoiPool"] = func(d *drawer) {
		d.node("MaxRoiPool")
		n, h, w, rois := d.between(1, 2), d.between(2, 7), d.between(2, 7), d.between(1, 3)
		d.in(dtype.F32, n, d.between(1, 3), h, w)
		var list []float64
		for range rois {
			x, y := d.IntN(w), d.IntN(h)
			list = append(list, float64(d.IntN(n)), float64(x), float64(y), float64(d.between(x, w-1)), float64(d.between(y, h-1)))
		}
		d.with(dtype.F32, []int{rois, 5}, encodeFloats(dtype.F32, list...))
		d.attr("pooled_shape", []int{d.between(1, 3), d.between(1, 3)})
		d.maybe("spatial_scale", pick(d, 1, 0.5))
		d.outs(1)
	}
	generators["NonMaxSuppression"] = func(d *drawer) {
		d.node("NonMaxSuppression")
		batch, classes, n := d.between(1, 2), d.between(1, 3), d.between(1, 8)
		center := d.chance(0.5)
		var boxes []float64
		for range batch * n {
			y, x, h, w := d.Float64()*3, d.Float64()*3, d.Float64()*3, d.Float64()*3
			switch {
			case center:
				boxes = append(boxes, x, y, w, h)
			case d.chance(0.3): // any pair of diagonal corners
				boxes = append(boxes, y+h, x+w, y, x)
			default:
				boxes = append(boxes, y, x, y+h, x+w)
			}
		}
		scores := make([]float64, batch*classes*n)
		for i := range scores {
			scores[i] = d.Float64()
			if d.chance(0.3) {
				scores[i] = pick(d, 0.5, 0.25)
			}
		}
		d.with(dtype.F32, []int{batch, n, 4}, encodeFloats(dtype.F32, boxes...))
		d.with(dtype.F32, []int{batch, classes, n}, encodeFloats(dtype.F32, scores...))
		scalar := pick(d, []int{}, []int{1})
		if d.chance(0.9) {
			d.operand(d.value(dtype.I64, scalar, encodeInts(dtype.I64, int64(d.between(0, 5))), d.fixed))
		} else {
			d.skip()
		}
		for _, list := range [][]float64{{0, 0.3, 0.5, 1}, {0, 0.25, 0.5, 0.9}} {
			if d.chance(0.7) {
				d.with(dtype.F32, scalar, encodeFloats(dtype.F32, pick(d, list...)))
			} else {
				d.skip()
			}
		}
		if center || d.chance(0.3) {
			d.attr("center_point_box", center)
		}
		d.outs(1)
	}
}

func drawResize(d *drawer) {
	d.node("Resize")
	dims := full(d.dims(1, 4))
	for i := range dims {
		if i >= len(dims)-2 {
			dims[i] = d.between(1, 2*d.size)
		}
	}
	mode := pick(d, "nearest", "linear", "linear", "cubic")
	dt := pick(d, dtype.F32, dtype.F32, dtype.F32, dtype.F64, dtype.F16, dtype.I8, dtype.U8, dtype.I32)
	if d.m.opset < 11 {
		mode = pick(d, "nearest", "linear")
	}
	if mode == "cubic" && d.chance(0.8) {
		dt = dtype.F32
	}
	d.in(dt, dims...)
	// ONNX Runtime interpolates over the last axes alone.
	first := 0
	switch {
	case mode == "linear" && d.chance(0.9):
		first = max(0, len(dims)-2)
	case mode == "cubic":
		first = max(0, len(dims)-2)
	}
	axes := []int{}
	for i := first; i < len(dims); i++ {
		axes = append(axes, i)
	}
	someAxes := d.m.opset >= 18 && d.chance(0.4)
	if !someAxes {
		axes = nil
		for i := range dims {
			axes = append(axes, i)
		}
	}
	scales, sizes := make([]float64, len(axes)), make([]int64, len(axes))
	for i, at := range axes {
		scales[i], sizes[i] = 1, int64(dims[at])
		if at < first {
			continue
		}
		scales[i] = pick(d, 1, 2, 3, 0.5, 1.5, 0.7, 0.25, 1.3, 2.7)
		sizes[i] = int64(d.between(1, 3*d.size))
	}
	if mode != "nearest" || d.chance(0.5) {
		d.attr("mode", mode)
	}
	if d.m.opset < 11 {
		d.operand(d.value(dtype.F32, []int{len(dims)}, encodeFloats(dtype.F32, scales...), d.fixed))
		d.outs(1)
		return
	}
	d.resizeAttributes(mode, dt, axes, scales, sizes, someAxes, len(dims))
	d.outs(1)
}

func (d *drawer) resizeAttributes(mode string, dt dtype.DType, axes []int, scales []float64, sizes []int64, someAxes bool, rank int) {
	transforms := []string{"half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize"}
	if d.m.opset >= 19 {
		transforms = append(transforms, "half_pixel_symmetric")
	}
	if d.m.opset < 13 {
		transforms = append(transforms, "tf_half_pixel_for_nn")
	}
	transform := pick(d, transforms...)
	if transform != "half_pixel" || d.chance(0.3) {
		d.attr("coordinate_transformation_mode", transform)
	}
	if transform == "tf_crop_and_resize" {
		roi := make([]float64, 2*len(axes))
		for i := range axes {
			roi[i], roi[i+len(axes)] = 0, 1
			if scales[i] != 1 {
				roi[i], roi[i+len(axes)] = pick(d, 0, 0.25, -0.25, 0.5), pick(d, 1, 0.75, 1.25, 0.625)
			}
		}
		d.operand(d.value(dtype.F32, []int{len(roi)}, encodeFloats(dtype.F32, roi...), d.fixed))
		d.maybe("extrapolation_value", pick(d, 0, 3, -1))
	} else if d.m.opset < 13 || d.chance(0.2) {
		d.operand(d.value(dtype.F32, []int{0}, nil, true))
	} else {
		d.skip()
	}
	bySizes := d.chance(0.5)
	if bySizes {
		if d.m.opset < 13 {
			d.operand(d.value(dtype.F32, []int{0}, nil, true))
		} else {
			d.skip()
		}
		d.ints(sizes...)
		if d.m.opset >= 18 && d.chance(0.4) {
			d.attr("keep_aspect_ratio_policy", pick(d, "stretch", "not_larger", "not_smaller"))
		}
	} else {
		d.operand(d.value(dtype.F32, []int{len(scales)}, encodeFloats(dtype.F32, scales...), d.fixed))
	}
	if mode == "cubic" {
		d.maybe("cubic_coeff_a", pick(d, -0.5, -0.75))
		d.maybe("exclude_outside", d.chance(0.5))
	}
	if mode == "nearest" {
		d.maybe("nearest_mode", pick(d, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"))
	}
	if d.m.opset >= 18 && mode != "nearest" && d.chance(0.3) {
		d.attr("antialias", 1)
		if mode == "linear" && d.chance(0.3) {
			d.attr("exclude_outside", 1)
		}
	}
	if someAxes {
		list := make([]int64, len(axes))
		for i, at := range axes {
			list[i] = d.signed(at, rank)
		}
		d.attr("axes", list)
	}
}
