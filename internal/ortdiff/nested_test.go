package ortdiff_test

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

// control adds a node with nested graphs, which read values around them.
func (x *mixed) control() {
	switch x.IntN(4) {
	case 0, 1:
		x.conditional()
	case 2:
		x.looped()
	default:
		x.scanned()
	}
}

// nested draws a graph with these parameters. It returns the values that are
// made in it, the parameters first; of these choose picks the results, and may
// add nodes.
func (x *mixed) nested(params []*value, choose func(made []*value) []string) *graph {
	outer, pool, live, values := x.m.graph, len(x.pool), len(x.live), len(x.m.values)
	x.m.graph = graph{}
	x.depth++
	for _, p := range params {
		x.show(p)
	}
	for range x.between(1, 3) {
		x.step(x.anything)
	}
	results := choose(slices.Clone(x.pool[pool:]))
	g := x.m.graph
	x.m.graph, x.pool, x.live = outer, x.pool[:pool], x.live[:live]
	x.depth--
	for _, p := range params {
		t := typed{name: p.name, dt: p.dt}
		if x.chance(0.2) {
			t.dims = p.dims
		}
		g.params = append(g.params, t)
	}
	for _, name := range results {
		g.outputs = append(g.outputs, typed{name: name})
	}
	if x.chance(0.3) { // constants of its own
		kept := x.m.values[:values:values]
		for _, v := range x.m.values[values:] {
			if v.constant {
				g.values = append(g.values, v)
			} else {
				kept = append(kept, v)
			}
		}
		x.m.values = kept
	}
	return &g
}

// resultLike returns a value made in the graph under way of the same type and
// sizes, or a copy of v.
func (x *mixed) resultLike(made []*value, v *value, bound bool) string {
	name := ""
	for _, y := range slices.Backward(made) {
		if y.dt == v.dt && slices.Equal(y.dims, v.dims) && y.name != v.name {
			name = y.name
			break
		}
	}
	switch {
	case name == "":
		return x.node("Identity", []string{v.name})
	case bound && v.dt.IsFloat():
		return x.node("Tanh", []string{name})
	}
	return name
}

// isMade reports whether a node of the graph under way makes the value, which a
// nested graph may have as its result then.
func (x *mixed) isMade(name string) bool {
	return slices.ContainsFunc(x.m.graph.nodes, func(n *node) bool { return slices.Contains(n.out, name) })
}

// truth adds nodes that compute a condition.
func (x *mixed) truth() string {
	if x.chance(0.5) {
		n := x.node("Gather", []string{x.node("Shape", []string{x.newest().name}), x.value(dtype.I64, []int{}, encodeInts(dtype.I64, 0), true).name}, attr{"axis", int64(0)})
		return x.node(pick(x.drawer, "Less", "Greater"), []string{n, x.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(x.between(1, 4))), true).name})
	}
	all := x.node("ReduceMean", []string{x.newest().name}, attr{"keepdims", int64(0)})
	return x.node(pick(x.drawer, "Less", "Greater"), []string{all, x.number(threshold)})
}

func (x *mixed) conditional() {
	cond := ""
	if x.chance(0.4) {
		cond = x.value(dtype.Bool, []int{}, []byte{byte(x.IntN(2))}, x.chance(0.3)).name
	} else if !x.step(func() []string { cond = x.truth(); return []string{cond} }) {
		return
	}
	var first *value
	then := x.nested(nil, func(made []*value) []string {
		made = slices.DeleteFunc(made, func(v *value) bool { return !x.isMade(v.name) || v.dt == dtype.String })
		if len(made) > 0 {
			first = made[len(made)-1]
			return []string{first.name}
		}
		first = x.find(x.newest().name)
		return []string{x.node("Identity", []string{first.name})}
	})
	other := x.nested(nil, func(made []*value) []string {
		made = slices.DeleteFunc(made, func(v *value) bool { return !x.isMade(v.name) || v.dt != first.dt })
		for _, v := range slices.Backward(made) {
			if slices.Equal(v.dims, first.dims) || x.chance(0.1) {
				return []string{v.name}
			}
		}
		if v := x.find(first.name); v != nil {
			return []string{x.node("Identity", []string{v.name})}
		}
		for _, v := range slices.Backward(x.pool) {
			if v.dt == first.dt && slices.Equal(v.dims, first.dims) {
				return []string{x.node("Identity", []string{v.name})}
			}
		}
		return []string{x.node("Identity", []string{x.value(first.dt, first.dims, slices.Clone(first.data), true).name})}
	})
	branches := []attr{{"then_branch", then}, {"else_branch", other}}
	if x.chance(0.5) {
		branches[0].value, branches[1].value = other, then
	}
	x.node("If", []string{cond}, branches...)
}

// state picks a value of the network that a loop may change.
func (x *mixed) state() *value {
	if len(x.pool) > 0 && x.chance(0.3) {
		if v := pick(x.drawer, x.pool...); v.dt != dtype.String {
			return v
		}
	}
	return x.find(x.newest().name)
}

// param is a parameter of a nested graph, with the elements of v.
func (x *mixed) param(dt dtype.DType, dims []int, data []byte) *value {
	return &value{name: x.name(), dt: dt, dims: dims, data: data}
}

func (x *mixed) looped() {
	trips := x.between(0, 4)
	count := x.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(trips)), x.chance(0.5)).name
	cond := ""
	if x.chance(0.5) || x.m.opset < 11 {
		cond = x.value(dtype.Bool, []int{}, []byte{1}, x.chance(0.5)).name
	}
	params := []*value{x.param(dtype.I64, []int{}, encodeInts(dtype.I64, 0)), x.param(dtype.Bool, []int{}, []byte{1})}
	in := []string{count, cond}
	states := x.between(1, 2)
	for range states {
		v := x.state()
		in = append(in, v.name)
		params = append(params, x.param(v.dt, v.dims, v.data))
	}
	lists := 0
	body := x.nested(params, func(made []*value) []string {
		on := x.node("Identity", []string{params[1].name})
		if x.chance(0.3) {
			on = x.node("Less", []string{params[0].name, x.value(dtype.I64, []int{}, encodeInts(dtype.I64, int64(x.between(0, 3))), true).name})
		}
		results := []string{on}
		for _, p := range params[2:] {
			results = append(results, x.resultLike(made, p, x.chance(0.7)))
		}
		for _, v := range made[len(params):] {
			if x.isMade(v.name) && v.dt != dtype.String && !slices.Contains(results, v.name) && x.chance(0.2) {
				results = append(results, v.name)
				lists++
			}
		}
		return results
	})
	out := []string{}
	for range states + lists {
		out = append(out, x.name())
	}
	x.put("", "Loop", in, out, attr{"body", body})
}

func (x *mixed) scanned() {
	a := x.newest()
	v := x.find(a.name)
	if v == nil || len(a.dims) < 2 || elements(v.dims) == 0 {
		return
	}
	s := x.state()
	row := v.data[:len(v.data)/v.dims[0]]
	params := []*value{x.param(s.dt, s.dims, s.data), x.param(v.dt, v.dims[1:], row)}
	lists := 0
	body := x.nested(params, func(made []*value) []string {
		results := []string{x.resultLike(made, params[0], x.chance(0.7))}
		for _, v := range slices.Backward(made[len(params):]) {
			if x.isMade(v.name) && v.dt != dtype.String && !slices.Contains(results, v.name) && (lists == 0 || x.chance(0.2)) {
				results = append(results, v.name)
				lists++
			}
		}
		if lists == 0 {
			results = append(results, x.node("Identity", []string{params[1].name}))
			lists++
		}
		return results
	})
	out := []string{}
	for range 1 + lists {
		out = append(out, x.name())
	}
	attrs := []attr{{"body", body}, {"num_scan_inputs", int64(1)}}
	if x.chance(0.3) {
		attrs = append(attrs, attr{"scan_input_directions", []int64{int64(x.IntN(2))}})
	}
	x.put("", "Scan", []string{s.name, v.name}, out, attrs...)
}
