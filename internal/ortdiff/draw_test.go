package ortdiff_test

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tenure-go/tenure/dtype"
)

// Domains other than ONNX's own.
const (
	contribDomain = "com.microsoft"
	mlDomain      = "ai.onnx.ml"
)

// drawer draws one model. Everything that it draws comes from its random
// numbers and depends on nothing else.
type drawer struct {
	*rand.Rand
	size    int  // no dimension drawn is larger
	special bool // values are NaN, infinities, extreme numbers too
	mild    bool // but no numbers whose sums and products leave the range of the type
	calm    bool // and no NaN and infinities either
	empty   bool // some dimension may be 0
	fixed   bool // operands that say shapes and axes are constants
	m       *model
	n       *node // the one under way
}

func newDrawer(r *rand.Rand, size int) *drawer {
	d := &drawer{Rand: r, size: size, m: &model{}}
	d.special, d.empty, d.fixed = d.chance(0.15), d.chance(0.06), d.chance(0.8)
	return d
}

func (d *drawer) chance(p float64) bool { return d.Float64() < p }

// between draws from lo to hi, both included.
func (d *drawer) between(lo, hi int) int { return lo + d.IntN(hi-lo+1) }

func pick[T any](d *drawer, list ...T) T { return list[d.IntN(len(list))] }

// dim draws a size.
func (d *drawer) dim() int {
	if d.empty && d.chance(0.15) {
		return 0
	}
	return d.between(1, d.size)
}

// dims draws the sizes of a tensor of a rank from lo to hi.
func (d *drawer) dims(lo, hi int) []int {
	out := make([]int, d.between(lo, hi))
	for i := range out {
		out[i] = d.dim()
		if i > 3 {
			out[i] = min(out[i], 2)
		}
	}
	return out
}

// some draws a choice of 0 to n-1, in order.
func (d *drawer) some(n int, p float64) []int {
	var list []int
	for i := range n {
		if d.chance(p) {
			list = append(list, i)
		}
	}
	return list
}

// signed makes an axis of a tensor of that rank negative, perhaps.
func (d *drawer) signed(axis, rank int) int64 {
	if d.chance(0.4) {
		return int64(axis - rank)
	}
	return int64(axis)
}

// axis draws an axis of a tensor of that rank, which is not 0.
func (d *drawer) axis(rank int) (axis int, written int64) {
	axis = d.IntN(rank)
	return axis, d.signed(axis, rank)
}

// float draws a number of a size that most functions like.
func (d *drawer) float() float64 {
	switch d.IntN(8) {
	case 0:
		return float64(d.between(-4, 4))
	case 1:
		return float64(d.between(-8, 8)) / 2
	case 2:
		return d.NormFloat64() * 10
	}
	return d.NormFloat64() * 1.5
}

var specials = []float64{math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, 1e-40, -1e-42, 3e38, -3e38, 1e5, -1e5, 0.5, 1.5, 2.5, -0.5, 1e-8, 88.8, -104, 65504, 6e-8}

// data draws the bytes of n elements.
func (d *drawer) data(dt dtype.DType, n int) []byte {
	if dt == dtype.String {
		return encodeStrings(d.texts(n))
	}
	if dt.IsFloat() && dt.Bits() >= 16 || dt.IsComplex() {
		list := make([]float64, n)
		for i := range list {
			list[i] = d.float()
			if d.special && d.chance(0.25) {
				list[i] = pick(d, specials...)
			}
			if a := math.Abs(list[i]); d.mild && !math.IsInf(list[i], 0) && (a > 1e3 || a > 0 && a < 1e-6) {
				list[i] = 7
			}
			if d.calm && (math.IsNaN(list[i]) || math.IsInf(list[i], 0)) {
				list[i] = 0
			}
		}
		return encodeFloats(dt, list...)
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = d.integer(dt)
	}
	return encodeInts(dt, list...)
}

// integer draws an integer, a bool, or the bits of a float of at most 8 bits.
func (d *drawer) integer(dt dtype.DType) int64 {
	switch {
	case dt == dtype.Bool:
		return int64(d.IntN(2))
	case dt.IsFloat() && !d.special:
		b := dt.Bits()
		if dt == dtype.F8E8M0 {
			return int64(d.between(120, 134))
		}
		v := int64(d.Uint64() & (1<<b - 1))
		if dt != dtype.F4E2M1 && v&0x60 == 0x60 { // NaN and infinities
			v ^= 0x20
		}
		if v == 0x80 && dt != dtype.F4E2M1 {
			v = 0
		}
		return v
	case d.special && !d.mild && d.chance(0.3):
		b := dt.Bits()
		if dt.IsSigned() {
			return pick[int64](d, -1<<(b-1), 1<<(b-1)-1, 0, -1, int64(d.Uint64()))
		}
		return pick[int64](d, -1, 0, 1, int64(d.Uint64())) // -1: all bits
	case !dt.IsSigned():
		return int64(d.IntN(10))
	}
	return int64(d.between(-7, 7))
}

// node begins a node; its outputs are made by outs.
func (d *drawer) node(op string) {
	d.n = &node{op: op}
	d.m.graph.nodes = append(d.m.graph.nodes, d.n)
}

// value makes a value of the model, an input or a constant.
func (d *drawer) value(dt dtype.DType, dims []int, data []byte, constant bool) *value {
	v := &value{name: fmt.Sprint("x", d.m.named), dt: dt, dims: dims, data: data, constant: constant}
	d.m.named++
	d.m.values = append(d.m.values, v)
	return v
}

func (d *drawer) operand(v *value) *value {
	d.n.in = append(d.n.in, v.name)
	return v
}

// in adds an operand with drawn elements, mostly an input of the model.
func (d *drawer) in(dt dtype.DType, dims ...int) *value {
	v := d.value(dt, dims, d.data(dt, elements(dims)), d.chance(0.2))
	v.free = true
	return d.operand(v)
}

// smaller divides the elements of some operands by 256, so that an epsilon
// counts.
func (d *drawer) smaller(v *value) {
	if d.chance(0.7) {
		return
	}
	list := []float64{}
	for _, x := range decode(v.dt, v.data) {
		list = append(list, x.f/256)
	}
	v.data = encodeFloats(v.dt, list...)
}

// with adds an operand with the given elements.
func (d *drawer) with(dt dtype.DType, dims []int, data []byte) *value {
	return d.operand(d.value(dt, dims, data, d.chance(0.3)))
}

// ints adds an operand that says shapes, axes or the like: mostly a constant.
func (d *drawer) ints(list ...int64) *value {
	return d.operand(d.value(dtype.I64, []int{len(list)}, encodeInts(dtype.I64, list...), d.fixed))
}

// skip leaves an operand out.
func (d *drawer) skip() { d.n.in = append(d.n.in, "") }

// optional adds an operand of these sizes, or leaves it out. The end of the
// list is cut by outs.
func (d *drawer) optional(p float64, dt dtype.DType, dims ...int) *value {
	if d.chance(p) {
		return d.in(dt, dims...)
	}
	d.skip()
	return nil
}

func (d *drawer) attr(name string, v any) {
	switch x := v.(type) {
	case int:
		v = int64(x)
	case float64:
		v = float32(x)
	case []int:
		list := make([]int64, len(x))
		for i := range x {
			list[i] = int64(x[i])
		}
		v = list
	case bool:
		v = int64(0)
		if x {
			v = int64(1)
		}
	}
	d.n.attrs = append(d.n.attrs, attr{name, v})
}

// maybe sets an attribute, or leaves it to its default.
func (d *drawer) maybe(name string, v any) {
	if d.chance(0.7) {
		d.attr(name, v)
	}
}

// outs ends a node: it has n outputs, all of them results of the model.
func (d *drawer) outs(n int) {
	for i := range n {
		name := fmt.Sprint("y", i)
		if len(d.m.graph.nodes) > 1 {
			name = fmt.Sprintf("y%d_%d", len(d.m.graph.nodes)-1, i)
		}
		d.n.out = append(d.n.out, name)
		d.m.graph.outputs = append(d.m.graph.outputs, typed{name: name})
	}
	for len(d.n.in) > 0 && d.n.in[len(d.n.in)-1] == "" && d.chance(0.8) {
		d.n.in = d.n.in[:len(d.n.in)-1]
	}
}

// broadcast draws the sizes of an operand that broadcasts with dims.
func (d *drawer) broadcast(dims []int) []int {
	out := append([]int(nil), dims...)
	if d.chance(0.5) {
		return out
	}
	for i := range out {
		if d.chance(0.3) {
			out[i] = 1
		}
	}
	if d.chance(0.5) {
		out = out[d.IntN(len(out)+1):]
	}
	return out
}

func clone(dims []int) []int { return append([]int{}, dims...) }

func int64s(list []int) []int64 {
	out := make([]int64, len(list))
	for i := range list {
		out[i] = int64(list[i])
	}
	return out
}
