package ortdiff_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx"
)

// grafted are the operators that networks have as their generators draw them.
var grafted = slices.DeleteFunc(onnx.Operators(), func(s onnx.Support) bool { return random[s.Name] || never[s.Name] })

// graft adds a model of one operator, of which some inputs are values of the
// network. It returns the results.
func (x *mixed) graft() []string {
	s := grafted[x.IntN(len(grafted))]
	draw := generatorOf(s)
	if draw == nil || x.m.opset < int(s.From) || x.m.opset > int(s.Till) && !strings.Contains(s.Name, "::") {
		return []string{}
	}
	d := &drawer{Rand: x.Rand, m: &model{opset: x.m.opset}, size: 4, mild: true, calm: true, fixed: x.chance(0.9)}
	draw(d)
	if d.m.ml != 0 && d.m.ml != 4 {
		return []string{}
	}
	if domain, name, ok := strings.Cut(s.Name, "::"); ok {
		for _, n := range d.m.graph.nodes {
			if n.op == name {
				n.domain = domain
			}
		}
	}
	x.made++
	prefix := fmt.Sprintf("g%d.", x.made)
	g := &d.m.graph
	g.prefixed(prefix)
	for _, v := range d.m.values {
		v.name = prefix + v.name
	}
	for _, v := range d.m.values {
		if strings.HasSuffix(v.name, ".keys") || strings.HasSuffix(v.name, ".values") {
			return []string{} // a map is an input of the model
		}
		if v.free && !v.constant && v.dt != dtype.String {
			if name := x.instead(v); name != "" {
				g.replace(v.name, name)
				continue
			}
		}
		if !v.constant && x.chance(0.6) {
			v.constant = true
		}
		x.m.values = append(x.m.values, v)
	}
	x.m.graph.nodes = append(x.m.graph.nodes, g.nodes...)
	names := []string{}
	for _, out := range g.outputs {
		names = append(names, out.name)
	}
	return names
}

// instead returns a value of the network to take the place of v, as it is or
// brought to its type and sizes, or "".
func (x *mixed) instead(v *value) string {
	var same []*value
	for _, p := range x.pool {
		if p.dt == v.dt && slices.Equal(p.dims, v.dims) {
			same = append(same, p)
		}
	}
	n := elements(v.dims)
	switch {
	case len(same) > 0 && x.chance(0.8):
		return pick(x.drawer, same...).name
	case x.chance(0.3) || len(x.live) == 0 || n == 0 || v.dt.Bits() < 8 || v.dt.IsComplex() || v.dt.IsFloat() && v.dt.Bits() < 16:
		return ""
	}
	from := x.find(x.newest().name)
	if from == nil || from.dt == dtype.String {
		return ""
	}
	name := x.cast(from, v.dt)
	if !slices.Equal(from.dims, v.dims) {
		flat := x.node("Reshape", []string{name, x.list([]int{1}, -1)})
		more := x.value(v.dt, []int{n}, v.data, true).name
		flat = x.node("Concat", []string{flat, more}, attr{"axis", int64(0)})
		if x.m.opset < 10 {
			flat = x.node("Slice", []string{flat}, attr{"starts", []int64{0}}, attr{"ends", []int64{int64(n)}})
		} else {
			flat = x.node("Slice", []string{flat, x.list([]int{1}, 0), x.list([]int{1}, int64(n))})
		}
		name = x.node("Reshape", []string{flat, x.list([]int{len(v.dims)}, int64s(v.dims)...)})
	}
	return name
}
