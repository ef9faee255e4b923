package ortdiff_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

// mixed is a random network of values of all types under way: layers of
// network, single nodes as their generators draw them, nested graphs, sequences
// and sizes that are computed. ONNX Runtime runs each step as soon as it is
// drawn: what it refuses is dropped, and so is what overflows, so that values
// are known with their elements.
type mixed struct {
	*network
	ref   *reference
	pool  []*value // results so far, and the parameters of the graph under way
	depth int      // of nested graphs
}

// drawMixed draws a network of 5 to 60 nodes, with its inputs.
func drawMixed(r *rand.Rand, ref *reference) *model {
	d := &drawer{Rand: r, m: &model{}, size: 4, mild: true, calm: true, fixed: true}
	d.m.opset = d.between(9, 25)
	base := pick(d, dtype.F32, dtype.F32, dtype.F32, dtype.F32, dtype.F32, dtype.F32, dtype.F32, dtype.F16, dtype.F64)
	x := &mixed{network: newNetwork(d, base), ref: ref}
	x.share = 0.15
	for range d.between(1, 3) {
		x.origin()
	}
	most := d.between(5, 60)
	for tries := 0; x.m.graph.size() < most && tries < 2*most; tries++ {
		x.step(x.anything)
	}
	x.finish()
	return x.m
}

// size counts the nodes of a graph and of those nested in it.
func (g *graph) size() int {
	return len(g.operators())
}

// origin adds an input that layers like.
func (x *mixed) origin() {
	dims := []int{x.between(1, 3), x.between(2, 6), 4 * x.between(1, 4)}
	switch x.IntN(5) {
	case 0, 1:
		dims = []int{x.between(1, 2), x.between(1, 6), x.between(4, 9), x.between(4, 9)}
	case 2:
		dims = []int{x.between(1, 5), x.between(1, 12)}
	case 3:
		x.step(func() []string { x.add(x.words()); return nil })
	}
	s := x.add(x.source(dims...))
	x.m.values[len(x.m.values)-1].free = true
	x.used[s.name] = true
}

// step keeps what draw adds if ONNX Runtime runs it and its results are numbers
// of a moderate size. Draw returns the results that count, nil for those of all
// nodes.
func (x *mixed) step(draw func() []string) bool {
	nodes, values, live, pool := len(x.m.graph.nodes), len(x.m.values), len(x.live), len(x.pool)
	names := draw()
	added := x.m.graph.nodes[nodes:]
	if names == nil {
		for _, n := range added {
			names = append(names, n.out...)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	results := x.try(added, names)
	if results == nil {
		x.m.graph.nodes, x.m.values = x.m.graph.nodes[:nodes], x.m.values[:values]
		x.live, x.pool = x.live[:live], x.pool[:pool]
		return false
	}
	x.live, x.pool = x.live[:live], x.pool[:pool] // steps within this one have shown theirs
	for _, v := range results {
		x.show(v)
	}
	return true
}

// show makes a value one that later steps may use.
func (x *mixed) show(v *value) {
	x.pool = append(x.pool, v)
	if v.dt == x.dt && len(v.dims) > 0 && elements(v.dims) > 0 {
		x.live = append(x.live, shaped{v.name, v.dims})
	}
}

// mostOfValue is the number of elements of a result that is kept.
const mostOfValue = 6000

// try runs nodes with the values that they read, and returns the results; nil
// where it refuses, or where a result is not to be kept.
func (x *mixed) try(nodes []*node, names []string) []*value {
	if len(nodes) == 0 {
		return nil
	}
	m := &model{opset: x.m.opset, graph: graph{nodes: nodes}}
	for _, name := range outside(nodes, nil) {
		v := x.find(name)
		if v == nil {
			return nil
		}
		m.values = append(m.values, v)
	}
	for _, name := range names {
		m.graph.outputs = append(m.graph.outputs, typed{name: name})
	}
	got, err := x.ref.run(m.encode(), m.values)
	if err != nil {
		return nil
	}
	results := []*value{}
	for _, name := range names {
		v := got[name]
		if v == nil {
			continue // a sequence
		}
		if !moderate(v) {
			return nil
		}
		results = append(results, v)
	}
	return results
}

// moderate reports whether a value is small, of numbers of a moderate size.
func moderate(v *value) bool {
	if elements(v.dims) > mostOfValue {
		return false
	}
	if !v.dt.IsFloat() || v.dt.Bits() < 16 {
		return true
	}
	most := 1e4
	if v.dt == dtype.F16 {
		most = 500
	}
	for _, e := range decode(v.dt, v.data) {
		if !(math.Abs(e.f) < most) {
			return false
		}
	}
	return true
}

// find returns a value that nodes of the graph under way may read.
func (x *mixed) find(name string) *value {
	for _, list := range [][]*value{x.pool, x.m.values} {
		for _, v := range list {
			if v.name == name {
				return v
			}
		}
	}
	return nil
}

// outside lists the names that nodes and results read and that no node before
// makes, in order of the first use.
func outside(nodes []*node, results []typed) (names []string) {
	made := map[string]bool{"": true}
	read := func(name string) {
		if !made[name] && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, n := range nodes {
		for _, name := range n.in {
			read(name)
		}
		for _, g := range n.nested() {
			own := map[string]bool{}
			for _, p := range g.params {
				own[p.name] = true
			}
			for _, v := range g.values {
				own[v.name] = true
			}
			for _, name := range outside(g.nodes, g.outputs) {
				if !own[name] {
					read(name)
				}
			}
		}
		for _, name := range n.out {
			made[name] = true
		}
	}
	for _, r := range results {
		read(r.name)
	}
	return names
}

// nested lists the graphs in a node's attributes.
func (n *node) nested() (list []*graph) {
	for _, a := range n.attrs {
		if g, ok := a.value.(*graph); ok {
			list = append(list, g)
		}
	}
	return list
}

// anything draws one step.
func (x *mixed) anything() []string {
	switch n := x.IntN(100); {
	case n < 45:
		x.layer(x.newest())
	case n < 65:
		return x.graft()
	case n < 80:
		x.measured(x.newest())
	case n < 85:
		x.converted()
	case n < 90:
		return x.sequence()
	case x.depth < 2:
		x.control()
	}
	return nil
}

// node adds a node of ONNX with one result, and returns its name.
func (x *mixed) node(op string, in []string, attrs ...attr) string {
	return x.put("", op, in, []string{x.name()}, attrs...)
}

// converted casts a value, or compares, counts or selects with it.
func (x *mixed) converted() {
	v := pick(x.drawer, append(slices.Clone(x.pool), x.m.values...)...)
	if v.dt == dtype.String {
		return
	}
	to := func(name string, dt dtype.DType) string {
		return x.node("Cast", []string{name}, attr{"to", int64(dt.ONNX())})
	}
	number := func(n int64) string { return x.value(dtype.I64, []int{}, encodeInts(dtype.I64, n), true).name }
	switch x.IntN(6) {
	case 0, 1:
		dt := pick(x.drawer, x.dt, x.dt, dtype.F32, dtype.F64, dtype.F16, dtype.BF16, dtype.I64, dtype.I32, dtype.U8, dtype.I8, dtype.Bool, dtype.U16, dtype.I16, dtype.U32, dtype.U64)
		x.cast(v, dt)
	case 2: // integers
		y := x.node(pick(x.drawer, "Add", "Mul", "Sub", "Max", "Min"), []string{to(x.bounded(v), dtype.I64), number(int64(x.between(-3, 3)))})
		to(x.node(pick(x.drawer, "Equal", "Greater", "Less"), []string{y, number(int64(x.IntN(3)))}), x.dt)
	case 3:
		data := make([]byte, max(1, v.dt.Size()))
		if v.dt.IsFloat() && v.dt.Bits() >= 16 {
			data = encodeFloats(v.dt, threshold)
		}
		level := x.value(v.dt, []int{}, data, true).name
		test := x.node(pick(x.drawer, "Greater", "Less", "Equal"), []string{v.name, level})
		x.node("Where", []string{pick(x.drawer, test, x.node("Not", []string{test})), v.name, level})
	case 4:
		if len(v.dims) == 0 {
			return
		}
		axis, _ := x.axis(len(v.dims))
		at := x.node(pick(x.drawer, "ArgMax", "ArgMin"), []string{v.name}, attr{"axis", int64(axis)}, attr{"keepdims", int64(1)})
		if x.m.opset >= 11 {
			x.node("GatherElements", []string{v.name, at}, attr{"axis", int64(axis)})
		}
	default:
		to(x.node("Not", []string{x.cast(v, dtype.Bool)}), x.dt)
	}
}

// cast brings a value to another type. Of floats it makes small integers, and
// truths by comparison, since a rounding decides whether a number is 0.
func (x *mixed) cast(v *value, dt dtype.DType) string {
	name := v.name
	switch {
	case v.dt == dt:
		return name
	case v.dt.IsFloat() && v.dt.Bits() >= 16 && dt == dtype.Bool:
		return x.node("Greater", []string{name, x.value(v.dt, []int{}, encodeFloats(v.dt, threshold), true).name})
	case v.dt.IsFloat() && !dt.IsFloat():
		name = x.bounded(v)
	}
	return x.node("Cast", []string{name}, attr{"to", int64(dt.ONNX())})
}

// bounded cuts a value of floats to what all integers have.
func (x *mixed) bounded(v *value) string {
	if !v.dt.IsFloat() {
		return v.name
	}
	bound := func(f float64) string { return x.value(v.dt, []int{}, encodeFloats(v.dt, f), true).name }
	return x.node("Min", []string{x.node("Max", []string{v.name, bound(0)}), bound(100)})
}

// sequence makes a sequence and takes something out of it.
func (x *mixed) sequence() []string {
	if x.m.opset < 11 {
		return []string{}
	}
	a := x.newest()
	b, c := x.like(a), x.like(a)
	at := func(n int) string {
		return x.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(n)), x.chance(0.6)).name
	}
	var s string
	switch x.IntN(3) {
	case 0:
		s = x.node("SplitToSequence", []string{a.name}, attr{"axis", int64(x.IntN(len(a.dims)))}, attr{"keepdims", int64(x.IntN(2))})
	case 1:
		s = x.node("SequenceConstruct", []string{a.name, b.name, c.name})
	default:
		s = x.node("SequenceInsert", []string{x.node("SequenceConstruct", []string{a.name}), b.name})
	}
	if x.chance(0.3) {
		s = x.node("SequenceInsert", []string{s, c.name, at(x.between(-1, 1))})
	}
	if x.chance(0.2) {
		s = x.node("SequenceErase", []string{s, at(0)})
	}
	if x.chance(0.2) {
		x.node("Identity", []string{s})
	}
	switch x.IntN(4) {
	case 0:
		return []string{x.node("SequenceAt", []string{s, at(x.between(-1, 0))})}
	case 1:
		return []string{x.node("SequenceLength", []string{s}), x.node("SequenceAt", []string{s, at(0)})}
	}
	return []string{x.node("ConcatFromSequence", []string{s}, attr{"axis", int64(x.IntN(2))}, attr{"new_axis", int64(x.IntN(2))})}
}

// prefixed gives every name of a graph a prefix.
func (g *graph) prefixed(prefix string) {
	list := func(names []string) {
		for i, name := range names {
			if name != "" {
				names[i] = prefix + name
			}
		}
	}
	for i := range g.params {
		g.params[i].name = prefix + g.params[i].name
	}
	for i := range g.outputs {
		g.outputs[i].name = prefix + g.outputs[i].name
	}
	for _, n := range g.nodes {
		n.in, n.out = slices.Clone(n.in), slices.Clone(n.out)
		list(n.in)
		list(n.out)
		for _, inner := range n.nested() {
			inner.prefixed(prefix)
		}
	}
}

// replace reads another value instead of one.
func (g *graph) replace(from, to string) {
	for _, n := range g.nodes {
		for i, name := range n.in {
			if name == from {
				n.in[i] = to
			}
		}
		for _, inner := range n.nested() {
			inner.replace(from, to)
		}
	}
}

// finish says which values are outputs, and how inputs and constants are
// declared.
func (x *mixed) finish() {
	x.outputs()
	for _, v := range x.m.values {
		if v.constant && v.dt != dtype.String && x.chance(0.05) {
			v.listed = true
		}
	}
	if x.chance(0.25) && x.m.opset >= 13 {
		x.outline()
	}
	if x.chance(0.6) {
		x.open()
	}
}

// outputs makes most values that nobody reads outputs, and some others.
func (x *mixed) outputs() {
	read := map[string]bool{}
	for _, name := range outside(x.m.graph.nodes, nil) {
		read[name] = true
	}
	for i := range x.m.graph.nodes {
		for _, name := range outside(x.m.graph.nodes[i:i+1], nil) {
			read[name] = true
		}
	}
	out := func(v *value) {
		if len(x.m.graph.outputs) < 8 && !slices.ContainsFunc(x.m.graph.outputs, func(t typed) bool { return t.name == v.name }) {
			x.m.graph.outputs = append(x.m.graph.outputs, typed{name: v.name, dt: v.dt})
		}
	}
	for _, v := range slices.Backward(x.pool) {
		if !read[v.name] && x.chance(0.85) || read[v.name] && x.chance(0.04) {
			out(v)
		}
	}
	for _, v := range x.m.values {
		if v.dt != dtype.String && x.chance(0.02) {
			out(v)
		}
	}
	if len(x.m.graph.outputs) == 0 && len(x.pool) > 0 {
		out(x.pool[len(x.pool)-1])
	}
	if x.chance(0.5) {
		for i := range x.m.graph.outputs {
			o := &x.m.graph.outputs[i]
			o.dims = make([]int, len(x.find(o.name).dims))
			for k := range o.dims {
				o.dims[k] = -1
			}
		}
	}
}

// outline makes some nodes in a row a function of the model.
func (x *mixed) outline() {
	nodes := x.m.graph.nodes
	from := x.IntN(len(nodes))
	till := min(len(nodes), from+x.between(1, 8))
	part, rest := nodes[from:till], slices.Concat(nodes[:from], nodes[till:])
	read := outside(rest, x.m.graph.outputs)
	for _, n := range rest { // of each node for itself: what one reads may be made by another one before the part
		read = append(read, outside([]*node{n}, nil)...)
	}
	f := &ownFunction{name: fmt.Sprint("Part", len(x.m.functions)), in: outside(part, nil)}
	for _, n := range part {
		f.nodes = append(f.nodes, n)
		for _, name := range n.out {
			if name != "" && (slices.Contains(read, name) || slices.ContainsFunc(x.m.graph.outputs, func(t typed) bool { return t.name == name })) {
				f.out = append(f.out, name)
			}
		}
	}
	if len(f.out) == 0 || len(f.in) == 0 {
		return
	}
	call := &node{op: f.name, domain: localDomain, in: slices.Clone(f.in), out: slices.Clone(f.out)}
	x.m.graph.nodes = slices.Concat(nodes[:from], []*node{call}, nodes[till:])
	x.m.functions = append(x.m.functions, f)
}

// open declares sizes of inputs as symbols, or as unknown.
func (x *mixed) open() {
	symbols := map[int]int{}
	for _, v := range x.m.values {
		if v.constant || !v.free || len(v.dims) == 0 {
			continue
		}
		v.written = slices.Clone(v.dims)
		for axis, n := range v.dims {
			switch {
			case axis > 0 && x.chance(0.6):
				continue
			case x.chance(0.2):
				v.written[axis] = -1
				continue
			}
			if symbols[n] == 0 || x.chance(0.3) {
				x.made++
				symbols[n] = -1 - x.made
			}
			v.written[axis] = symbols[n]
		}
	}
}
