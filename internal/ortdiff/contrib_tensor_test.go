package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

func contribTensors(ms func(string, tolerance, func(*drawer)), sums tolerance) {
	generators[contribDomain+"::GridSample"] = func(d *drawer) {
		d.m.opset = 16
		generators["GridSample"](d)
		for i, a := range d.n.attrs {
			if name, ok := map[any]string{"linear": "bilinear", "cubic": "bicubic"}[a.value]; ok && a.name == "mode" {
				d.n.attrs[i].value = name
			}
		}
	}
	tolerances[contribDomain+"::GridSample"] = tolerance{64, 512, 0, "positions are made in another order; a cubic multiplies them by large weights"}
	ms("MatMulInteger16", tolerance{}, func(d *drawer) {
		a, b := d.product()
		d.in(dtype.I16, a...)
		d.in(dtype.I16, b...)
	})
	ms("Inverse", tolerance{64, 512, 0, "sums in another order, in single precision there"}, func(d *drawer) {
		n, dt := d.between(1, 5), pick(d, dtype.F32, dtype.F64, dtype.F16)
		dims := append(full(d.dims(0, 2)), n, n)
		list := make([]float64, elements(dims))
		for i := range list {
			list[i] = d.NormFloat64()
			if at := i % (n * n); at/n == at%n {
				list[i] += float64(4 * n) // far from singular
			}
		}
		d.with(dt, dims, encodeFloats(dt, list...))
	})
	ms("SampleOp", tolerance{}, func(d *drawer) { d.in(dtype.F32, d.dims(0, 3)...) })
	ms("UnfoldTensor", tolerance{}, func(d *drawer) {
		dims := full(d.dims(1, 4))
		at, axis := d.axis(len(dims))
		d.in(pick(d, dtype.F32, dtype.I64, dtype.U8), dims...)
		d.attr("size", d.between(1, dims[at]))
		if at != len(dims)-1 || d.chance(0.5) {
			d.attr("dim", axis)
		}
		d.maybe("step", d.between(1, 3))
	})
	ms("Unique", tolerance{}, func(d *drawer) {
		list := make([]float64, d.between(1, 8))
		for i := range list {
			list[i] = float64(d.IntN(5))
		}
		d.with(dtype.F32, []int{len(list)}, encodeFloats(dtype.F32, list...))
		d.outs(3)
	})
	ms("MatMulBnb4", tolerance{64, 256, 0, "sums in another order"}, func(d *drawer) {
		n, k, block := d.between(1, 5), d.between(1, 40), pick(d, 16, 32, 64)
		last := k
		if d.chance(0.2) {
			last = n
			d.attr("transB", 0)
		}
		d.in(dtype.F32, append(d.dims(1, 2), last)...)
		d.operand(d.value(dtype.U8, []int{(n*k + 1) / 2}, d.someBytes((n*k+1)/2), true))
		d.fixedFloats(dtype.F32, 0, 2, (n*k+block-1)/block)
		d.attr("K", k)
		d.attr("N", n)
		d.attr("block_size", block)
		d.attr("quant_type", d.IntN(2))
		if d.chance(0.2) {
			d.attr("training_mode", d.IntN(2))
		}
	})
}
