package ortdiff_test

import "github.com/tenure-go/tenure/dtype"

func init() {
	scaled := func(name string, params ...string) {
		generators[name] = func(d *drawer) {
			d.node(name)
			d.in(dtype.F32, d.dims(0, 4)...)
			for _, p := range params {
				d.attr(p, pick(d, 0.5, 2, -1))
			}
			d.outs(1)
		}
		tolerances[name] = tolerance{8, 8, 0, "functions of their own on both sides, and sums of products"}
	}
	scaled("Affine", "alpha", "beta")
	scaled("Scale", "scale")
	scaled("ParametricSoftplus", "alpha", "beta")
	scaled("ScaledTanh", "alpha", "beta")
	generators["ImageScaler"] = func(d *drawer) {
		d.node("ImageScaler")
		dims := full(d.dims(4, 4))
		d.in(dtype.F32, dims...)
		bias := make([]float32, dims[1])
		for i := range bias {
			bias[i] = float32(d.float())
		}
		d.attr("bias", bias)
		d.maybe("scale", pick(d, 0.5, 2))
		d.outs(1)
	}
	tolerances["ImageScaler"] = tolerance{2, 2, 0, "a product and a sum, rounded once or twice"}
	generators["Crop"] = func(d *drawer) {
		d.node("Crop")
		dims := []int{d.between(1, 2), d.between(1, 3), d.between(3, 6), d.between(3, 6)}
		d.in(dtype.F32, dims...)
		d.attr("border", []int{d.IntN(2), d.IntN(2), d.IntN(2), d.IntN(2)})
		if d.chance(0.5) {
			d.attr("scale", []int{d.between(1, dims[2]-1), d.between(1, dims[3]-1)})
		}
		d.outs(1)
	}
	generators["DynamicSlice"] = func(d *drawer) {
		d.node("DynamicSlice")
		dims := full(d.dims(1, 3))
		d.in(dtype.F32, dims...)
		axes := d.some(len(dims), 0.7)
		var starts, ends, written []int64
		for _, axis := range axes {
			starts, ends, written = append(starts, int64(d.between(-2, 1))), append(ends, int64(d.between(1, 5))), append(written, int64(axis))
		}
		if len(axes) == 0 {
			starts, ends, written = []int64{0}, []int64{9}, []int64{0}
		}
		d.ints(starts...)
		d.ints(ends...)
		if len(written) == len(dims) && d.chance(0.5) {
			d.skip()
		} else {
			d.ints(written...)
		}
		d.outs(1)
	}
}
