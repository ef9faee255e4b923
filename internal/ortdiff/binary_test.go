package ortdiff_test

import (
	"maps"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
)

var (
	bools    = []dtype.DType{dtype.Bool}
	integers = slices.Concat(ints, uints)
)

// binaries draw models of the operators of functions of two operands.
var binaries = func() map[string]func(*drawer) {
	table := map[string]func(*drawer){}
	for _, f := range elementwise.Binaries() {
		if f.ONNX != "" {
			table[f.ONNX] = binaryFunction(f)
		}
	}
	return table
}()

func binaryFunction(f *elementwise.Binary) func(*drawer) {
	return func(d *drawer) {
		d.node(f.ONNX)
		d.pair(pick(d, typesOf(f.Types)...), f.Nonzero)
		d.outs(1)
	}
}

func init() {
	maps.Copy(generators, binaries)
	for _, name := range []string{"Max", "Min", "Sum", "Mean"} {
		types := numbers
		if name == "Sum" || name == "Mean" {
			types = floats
		}
		generators[name] = func(d *drawer) {
			d.node(name)
			dt, dims := pick(d, types...), d.dims(0, 4)
			for range d.between(1, 4) {
				if d.m.opset < 8 {
					d.in(dt, dims...)
					continue
				}
				d.in(dt, d.broadcast(dims)...)
			}
			d.outs(1)
		}
	}
	generators["Mod"] = func(d *drawer) {
		d.node("Mod")
		dt := pick(d, numbers...)
		d.pair(dt, true)
		if dt.IsFloat() || d.chance(0.4) {
			d.attr("fmod", 1)
		}
		d.outs(1)
	}
	generators["BitShift"] = func(d *drawer) {
		d.node("BitShift")
		dt, dims := pick(d, uints...), d.dims(0, 4)
		d.in(dt, dims...)
		other := d.broadcast(dims)
		shift := make([]int64, elements(other))
		for i := range shift {
			shift[i] = int64(d.IntN(dt.Bits() + 2)) // a shift by all bits and more gives 0
		}
		d.with(dt, other, encodeInts(dt, shift...))
		d.attr("direction", pick(d, "LEFT", "RIGHT"))
		d.outs(1)
	}
	generators["Pow"] = func(d *drawer) {
		d.node("Pow")
		dt := pick(d, append([]dtype.DType{dtype.I32, dtype.I64}, floats...)...)
		dims, to := d.dims(0, 3), dt
		if d.m.opset >= 12 && d.chance(0.5) {
			to = pick(d, dtype.F32, dtype.F64, dtype.I32, dtype.I64)
		}
		d.in(dt, dims...)
		other := d.broadcast(dims)
		if d.m.opset < 7 {
			other = d.oneSided(dims)
		}
		if !to.IsFloat() && !d.chance(0.1) {
			list := make([]int64, elements(other))
			for i := range list {
				list[i] = int64(d.between(0, 4))
			}
			d.with(to, other, encodeInts(to, list...))
		} else if d.chance(0.5) && to.IsFloat() {
			list := make([]float64, elements(other))
			for i := range list {
				list[i] = pick(d, 2, 0.5, 3, -1, 0, 1, -2)
			}
			d.with(to, other, encodeFloats(to, list...))
		} else {
			d.in(to, other...)
		}
		d.outs(1)
	}
	generators["PRelu"] = func(d *drawer) {
		d.node("PRelu")
		dt, dims := pick(d, wide...), d.dims(min(1, max(0, 8-d.m.opset)), 4)
		d.in(dt, dims...)
		slope := clone(dims)
		for i := range slope {
			if d.chance(0.5) {
				slope[i] = 1
			}
		}
		switch {
		case d.m.opset < 7 && len(dims) > 1:
			slope = []int{pick(d, 1, dims[1])}
		case d.m.opset < 7:
			slope = []int{1}
		case d.chance(0.2):
			slope = append(slices.Repeat([]int{1}, d.between(1, 2)), slope...)
		default:
			slope = slope[d.IntN(len(slope)+1):]
		}
		d.in(dt, slope...)
		d.outs(1)
	}
	generators["Where"] = func(d *drawer) {
		d.node("Where")
		dims, dt := d.dims(0, 4), pick(d, moved...)
		d.in(dtype.Bool, d.broadcast(dims)...)
		d.in(dt, d.broadcast(dims)...)
		d.in(dt, d.broadcast(dims)...)
		d.outs(1)
	}
	generators["Clip"] = func(d *drawer) {
		d.node("Clip")
		dt := pick(d, numbers...)
		if d.m.opset < 12 {
			dt = pick(d, floats...)
		}
		d.in(dt, d.dims(0, 4)...)
		if d.m.opset < 11 {
			d.maybe("min", d.float())
			d.maybe("max", d.float())
		} else {
			d.optional(0.7, dt)
			d.optional(0.7, dt)
		}
		d.outs(1)
	}
	tolerances["Pow"] = tolerance{64, 0, 0, "large powers of doubles are squared and multiplied here, with a rounding in each step"}
	tolerances["Sum"] = tolerance{2, 2, 0, "half precision is rounded after each term by ONNX Runtime"}
	tolerances["Mean"] = tolerance{4, 4, 0, "half precision is rounded after each term by ONNX Runtime"}
}

// pair adds two operands that broadcast. Where the second one divides, no
// integer in it is 0.
func (d *drawer) pair(dt dtype.DType, divides bool) {
	dims := d.dims(0, 4)
	a, b := d.broadcast(dims), d.broadcast(dims)
	if d.m.opset < 7 { // one-sided, from an axis on
		a, b = dims, d.oneSided(dims)
	}
	d.in(dt, a...)
	if !divides || dt.IsFloat() {
		d.in(dt, b...)
		return
	}
	list := make([]int64, elements(b))
	for i := range list {
		for list[i] == 0 || list[i] == -1 && d.special { // the least number by -1 ends some processes
			list[i] = d.integer(dt)
		}
		if v := encodeInts(dt, list[i]); !slices.ContainsFunc(v, func(b byte) bool { return b != 0 }) || d.special && one(dt, v).i == -1 {
			list[i] = 3
		}
	}
	d.with(dt, b, encodeInts(dt, list...))
}

// oneSided draws a second operand as opset 6 repeats it: some axes of the first
// one, from an axis on.
func (d *drawer) oneSided(dims []int) []int {
	if len(dims) == 0 || d.chance(0.4) {
		return clone(dims)
	}
	at := d.IntN(len(dims))
	till := d.between(at+1, len(dims))
	d.attr("broadcast", 1)
	if till < len(dims) || d.chance(0.5) {
		d.attr("axis", at)
	}
	return clone(dims[at:till])
}
