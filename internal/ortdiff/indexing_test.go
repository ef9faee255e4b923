package ortdiff_test

import (
	"github.com/tenure-go/tenure/dtype"
)

// indices adds an operand of positions on an axis of size n, some counted from
// the end.
func (d *drawer) indices(n int, signed bool, dims ...int) *value {
	dt := pick(d, dtype.I64, dtype.I64, dtype.I32)
	list := make([]int64, elements(dims))
	for i := range list {
		list[i] = int64(d.IntN(max(n, 1)))
		if signed && d.chance(0.3) {
			list[i] -= int64(n)
		}
	}
	return d.with(dt, dims, encodeInts(dt, list...))
}

// full makes sizes that are not 0: an index needs something to point to.
func full(dims []int) []int {
	for i := range dims {
		dims[i] = max(1, dims[i])
	}
	return dims
}

func init() {
	generators["Gather"] = func(d *drawer) {
		d.node("Gather")
		dims := full(d.dims(1, 4))
		at, axis := d.axis(len(dims))
		if d.m.opset < 11 {
			axis = int64(at)
		}
		d.in(pick(d, moved...), dims...)
		d.indices(dims[at], d.m.opset >= 11, d.dims(0, 3)...)
		if axis != 0 || d.chance(0.5) {
			d.attr("axis", axis)
		}
		d.outs(1)
	}
	generators["GatherElements"] = func(d *drawer) {
		d.node("GatherElements")
		dims := full(d.dims(1, 4))
		at, axis := d.axis(len(dims))
		d.in(pick(d, all...), dims...)
		d.indices(dims[at], true, d.within(dims, at)...)
		if axis != 0 || d.chance(0.5) {
			d.attr("axis", axis)
		}
		d.outs(1)
	}
	generators["GatherND"] = func(d *drawer) {
		d.node("GatherND")
		dims := full(d.dims(1, 4))
		batch := 0
		if d.m.opset >= 12 && d.chance(0.4) {
			batch = d.IntN(len(dims))
			d.attr("batch_dims", batch)
		}
		depth := d.between(1, len(dims)-batch)
		d.in(pick(d, all...), dims...)
		lead := append(clone(dims[:batch]), d.dims(0, 2)...)
		d.with(dtype.I64, append(clone(lead), depth), d.points(elements(lead), dims[batch:batch+depth], true))
		d.outs(1)
	}
	scatter := func(name string) func(d *drawer) {
		return func(d *drawer) {
			d.node(name)
			dims, dt := full(d.dims(1, 4)), pick(d, all...)
			at, axis := d.axis(len(dims))
			if name == "Scatter" {
				axis = int64(at)
			}
			if d.m.opset >= 16 && d.chance(0.6) {
				reductions := []string{"none", "add", "mul"}
				if d.m.opset >= 18 {
					reductions = append(reductions, "max", "min")
				}
				d.attr("reduction", pick(d, reductions...))
			}
			d.in(dt, dims...)
			to := d.within(dims, at)
			if d.unreduced() {
				to[at] = min(to[at], dims[at])
				d.distinct(at, dims[at], to)
			} else {
				d.indices(dims[at], true, to...)
			}
			d.in(dt, to...)
			if axis != 0 || d.chance(0.5) {
				d.attr("axis", axis)
			}
			d.outs(1)
		}
	}
	generators["Scatter"] = scatter("Scatter")
	generators["ScatterElements"] = scatter("ScatterElements")
	generators["ScatterND"] = func(d *drawer) {
		d.node("ScatterND")
		dims, dt := full(d.dims(1, 4)), pick(d, all...)
		if d.m.opset >= 16 && d.chance(0.6) {
			reductions := []string{"none", "add", "mul"}
			if d.m.opset >= 18 {
				reductions = append(reductions, "max", "min")
			}
			d.attr("reduction", pick(d, reductions...))
		}
		depth := d.between(1, len(dims))
		d.in(dt, dims...)
		lead := d.dims(0, 2)
		points := d.points(elements(lead), dims[:depth], d.m.opset >= 11)
		if d.unreduced() { // each point once
			lead = []int{min(elements(lead), elements(dims[:depth]))}
			points = nil
			for _, at := range d.Perm(elements(dims[:depth]))[:lead[0]] {
				p := make([]int64, depth)
				for i := depth - 1; i >= 0; i-- {
					p[i] = int64(at % dims[i])
					at /= dims[i]
				}
				points = append(points, encodeInts(dtype.I64, p...)...)
			}
		}
		d.with(dtype.I64, append(clone(lead), depth), points)
		d.in(dt, append(clone(lead), dims[depth:]...)...)
		d.outs(1)
	}
	generators["TensorScatter"] = func(d *drawer) {
		d.node("TensorScatter")
		dims, dt := full(d.dims(2, 4)), pick(d, all...)
		at := d.between(1, len(dims)-1)
		mode := pick(d, "linear", "circular")
		d.in(dt, dims...)
		update := clone(dims)
		update[at] = d.between(1, dims[at])
		d.in(dt, update...)
		if d.chance(0.7) {
			list := make([]int64, dims[0])
			for i := range list {
				list[i] = int64(d.between(0, dims[at]-update[at]))
				if mode == "circular" {
					list[i] = int64(d.IntN(dims[at]))
				}
			}
			d.with(dtype.I64, []int{dims[0]}, encodeInts(dtype.I64, list...))
		}
		d.maybe("mode", mode)
		for _, a := range d.n.attrs {
			if a.name == "mode" {
				mode = ""
			}
		}
		if mode != "" {
			d.attr("mode", mode)
		}
		if at != len(dims)-2 || d.chance(0.5) {
			d.attr("axis", d.signed(at, len(dims)))
		}
		d.outs(1)
	}
	generators["OneHot"] = func(d *drawer) {
		d.node("OneHot")
		dt, out := pick(d, dtype.I64, dtype.I64, dtype.I32, dtype.F32, dtype.U8), pick(d, dtype.F32, dtype.I64, dtype.I32, dtype.F64, dtype.U8, dtype.Bool)
		dims := d.dims(0, 3)
		depth := d.between(1, 5)
		list, numbers := make([]int64, elements(dims)), make([]float64, elements(dims))
		for i := range list {
			list[i] = int64(d.between(-depth-1, depth))
			if dt == dtype.U8 {
				list[i] = int64(d.between(0, depth))
			}
			numbers[i] = float64(list[i])
		}
		if dt.IsFloat() {
			d.with(dt, dims, encodeFloats(dt, numbers...))
		} else {
			d.with(dt, dims, encodeInts(dt, list...))
		}
		shape := pick(d, []int{}, []int{1})
		d.operand(d.value(dtype.I64, shape, encodeInts(dtype.I64, int64(depth)), d.fixed))
		d.in(out, 2)
		d.maybe("axis", d.between(-len(dims)-1, len(dims)))
		d.outs(1)
	}
	generators["Compress"] = func(d *drawer) {
		d.node("Compress")
		dims := d.dims(1, 4)
		n := elements(dims)
		d.in(pick(d, all...), dims...)
		if d.chance(0.7) {
			at, axis := d.axis(len(dims))
			if d.m.opset < 11 {
				axis = int64(at)
			}
			n = dims[at]
			d.attr("axis", axis)
		}
		d.in(dtype.Bool, d.between(0, n))
		d.outs(1)
	}
	generators["NonZero"] = func(d *drawer) {
		d.node("NonZero")
		d.in(pick(d, append([]dtype.DType{dtype.Bool, dtype.Bool}, numbers...)...), d.dims(0, 4)...)
		d.outs(1)
	}
	generators["Unique"] = func(d *drawer) {
		d.node("Unique")
		dt, dims := pick(d, numbers...), d.dims(1, 3)
		list := make([]int64, elements(dims))
		reals := make([]float64, len(list))
		for i := range list {
			list[i] = int64(d.IntN(3))
			reals[i] = pick(d, 1, -2, 0.5)
		}
		if dt.IsFloat() {
			d.with(dt, dims, encodeFloats(dt, reals...))
		} else {
			d.with(dt, dims, encodeInts(dt, list...))
		}
		if d.chance(0.6) {
			_, axis := d.axis(len(dims))
			d.attr("axis", axis)
		}
		d.maybe("sorted", d.chance(0.5))
		d.outs(d.between(1, 4))
	}
}

// within draws sizes that are no larger than dims but on axis at.
func (d *drawer) within(dims []int, at int) []int {
	out := clone(dims)
	for i := range out {
		if d.chance(0.4) {
			out[i] = d.between(1, out[i])
		}
		if i == at {
			out[i] = d.dim()
		}
	}
	return out
}

// points draws positions on the leading axes of a tensor.
func (d *drawer) points(n int, dims []int, signed bool) []byte {
	var list []int64
	for range n {
		for _, size := range dims {
			v := int64(d.IntN(size))
			if signed && d.chance(0.3) {
				v -= int64(size)
			}
			list = append(list, v)
		}
	}
	return encodeInts(dtype.I64, list...)
}

// unreduced reports whether the node writes without a reduction, so that an
// index may be there but once.
func (d *drawer) unreduced() bool {
	for _, a := range d.n.attrs {
		if a.name == "reduction" {
			return a.value == "none"
		}
	}
	return true
}

// distinct adds indices of an axis of size n that differ along that axis.
func (d *drawer) distinct(at, n int, dims []int) {
	list := make([]int64, elements(dims))
	inner := elements(dims[at+1:])
	for i := range list {
		if i/inner%dims[at] > 0 {
			continue
		}
		for k, v := range d.Perm(n)[:dims[at]] {
			list[i+k*inner] = int64(v)
			if d.m.opset >= 11 && d.chance(0.3) {
				list[i+k*inner] -= int64(n)
			}
		}
	}
	dt := pick(d, dtype.I64, dtype.I32)
	d.with(dt, dims, encodeInts(dt, list...))
}
