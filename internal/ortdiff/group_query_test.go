package ortdiff_test

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

const groupQueryName = contribDomain + "::GroupQueryAttention"

func init() {
	generators[groupQueryName] = drawGroupQuery
	tolerances[groupQueryName] = tolerance{16, 16, 0, "sums in another order, exponentials of their own on both sides; of halves also what is rounded on the way"}
}

// groups are the sizes of a call of GroupQueryAttention.
type groups struct {
	dt                        dtype.DType
	batch, heads, groups      int
	size, length, past, total int
	hasPast                   bool
	lengths                   []int // of the samples, with the new tokens
}

func drawGroups(d *drawer) *groups {
	g := &groups{dt: pick(d, dtype.F32, dtype.F32, dtype.F32, dtype.F16), batch: d.between(1, 3), groups: d.between(1, 3), size: 8 * d.between(1, 2), hasPast: true}
	g.heads = g.groups * d.between(1, 3)
	g.length = 1
	kinds := 6
	if g.dt == dtype.F16 { // a past with room needs the Where that follows, which ONNX Runtime has not of halves
		kinds = 3
	}
	switch d.IntN(kinds) {
	case 0: // a prompt
		g.hasPast = d.chance(0.5)
		g.length = d.between(1, 5)
		g.total = g.length
	case 1: // a token behind a past that grows
		g.past = d.between(1, 5)
		g.total = g.past + 1
	case 2: // some tokens behind one
		g.batch, g.past, g.length = 1, d.between(1, 4), d.between(2, 4)
		g.total = g.past + g.length
	case 3: // a prompt in a past with room
		g.length = d.between(1, 4)
		g.total = g.length
		g.past = g.total + d.IntN(4)
	case 4: // a token in one
		g.total = d.between(2, 5)
		g.past = g.total + d.IntN(4)
	case 5: // some tokens in one
		g.batch, g.length = 1, d.between(2, 4)
		g.total = g.length + d.between(1, 3)
		g.past = g.total + d.IntN(3)
	}
	for range g.batch {
		g.lengths = append(g.lengths, g.total)
	}
	isPrompt := g.length == g.total
	if g.dt == dtype.F32 && d.chance(0.5) {
		for i := range g.lengths {
			least := g.length
			if isPrompt {
				least = 1
			}
			g.lengths[i] = d.between(least, g.total)
		}
	}
	return g
}

func drawGroupQuery(d *drawer) {
	d.calm, d.mild, d.special = true, true, false
	g := drawGroups(d)
	rotary := d.chance(0.5)
	if rotary {
		g.size = 16 * d.between(1, 2)
	}
	d.node("GroupQueryAttention")
	if d.chance(0.4) {
		d.in(g.dt, g.batch, g.length, (g.heads+2*g.groups)*g.size)
		d.skip()
		d.skip()
	} else {
		d.in(g.dt, g.batch, g.length, g.heads*g.size)
		d.in(g.dt, g.batch, g.length, g.groups*g.size)
		d.in(g.dt, g.batch, g.length, g.groups*g.size)
	}
	for range 2 {
		if g.hasPast {
			d.in(g.dt, g.batch, g.groups, g.past, g.size)
		} else {
			d.skip()
		}
	}
	var last []int64
	for _, n := range g.lengths {
		last = append(last, int64(n-1))
	}
	d.with(dtype.I32, []int{g.batch}, encodeInts(dtype.I32, last...))
	d.with(dtype.I32, pick(d, []int{}, []int{1}), encodeInts(dtype.I32, int64(g.total)))
	if rotary {
		drawGroupAngles(d, g)
	} else {
		d.skip()
		d.skip()
		d.skip()
	}
	d.optional(0.3, g.dt, pick(d, 1, g.batch), pick(d, 1, g.heads), g.length, g.total)
	d.attr("num_heads", g.heads)
	d.attr("kv_num_heads", g.groups)
	d.attr("do_rotary", rotary)
	if d.chance(0.3) {
		d.attr("local_window_size", pick(d, -1, 1, 2, 3, 9))
	}
	if d.chance(0.3) {
		d.attr("softcap", pick(d, 0, 0.5, 5))
	}
	if d.chance(0.3) {
		d.attr("scale", pick(d, 0, 0.1, 0.7))
	}
	if d.chance(0.2) {
		d.attr("smooth_softmax", pick(d, 0, -1, 1))
	}
	if d.chance(0.2) {
		causal := d.IntN(2)
		if w := d.n.get("local_window_size"); w != nil && w != int64(-1) {
			causal = 1
		}
		d.attr("causal", causal)
	}
	d.optional(0.3, g.dt, g.heads)
	g.outputs(d)
}

// drawGroupAngles adds the tables of cosines and sines, and positions.
func drawGroupAngles(d *drawer, g *groups) {
	rows, half := g.total+d.IntN(3), g.size/2
	if g.size == 32 && d.chance(0.5) {
		half = 8
	}
	var cos, sin []float64
	for range rows * half {
		s, c := math.Sincos(d.float())
		cos, sin = append(cos, c), append(sin, s)
	}
	d.with(g.dt, []int{rows, half}, encodeFloats(g.dt, cos...))
	d.with(g.dt, []int{rows, half}, encodeFloats(g.dt, sin...))
	d.maybe("rotary_interleaved", d.chance(0.5))
	if !d.chance(0.4) {
		d.skip()
		return
	}
	list := make([]int64, g.batch*g.length)
	for i := range list {
		list[i] = int64(d.IntN(rows))
		if g.length == g.total {
			list[i] = int64(d.IntN(rows - g.length + 1)) // the first one of all counts, and others follow it
		}
	}
	d.with(dtype.I64, []int{g.batch, g.length}, encodeInts(dtype.I64, list...))
}

// outputs are those of the node; if samples are shorter than the longest one,
// only their own part is compared: the rest is undefined.
func (g *groups) outputs(d *drawer) {
	n := 3
	if !g.hasPast { // without these outputs ONNX Runtime reads no past
		n = pick(d, 1, 3)
	}
	isStatic := g.past >= g.total // its places behind the new keys are left open too
	if all := !slices.ContainsFunc(g.lengths, func(n int) bool { return n < g.total }); all && n == 3 && !isStatic && d.chance(0.3) {
		n = 4
		d.attr("qk_output", d.between(1, 2))
	}
	if g.dt != dtype.F32 || !isStatic && !slices.ContainsFunc(g.lengths, func(n int) bool { return n < g.total }) {
		d.outs(n)
		return
	}
	d.n.out = []string{"y", "keys", "values"}[:n]
	present := max(g.past, g.total)
	tokens, places := make([]int64, g.batch*g.length), make([]int64, g.batch*present)
	for b, length := range g.lengths {
		first := max(0, length-g.length)
		for i := range g.length {
			if first+i < length {
				tokens[b*g.length+i] = 1
			}
		}
		for i := range length {
			places[b*present+i] = 1
		}
	}
	zero := d.value(dtype.F32, []int{}, encodeFloats(dtype.F32, 0), true)
	there := d.value(dtype.Bool, []int{g.batch, g.length, 1}, encodeInts(dtype.Bool, tokens...), true)
	cached := d.value(dtype.Bool, []int{g.batch, 1, present, 1}, encodeInts(dtype.Bool, places...), true)
	for i, name := range []string{"y", "keys", "values"}[:n] {
		d.node("Where")
		d.operand(there)
		if i > 0 {
			d.n.in[0] = cached.name
		}
		d.n.in = append(d.n.in, name, zero.name)
		d.outs(1)
	}
}
