package ortdiff_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
)

// reason says why results of a network differ by so much, "" where it finds
// nothing: a node departs from ONNX Runtime as the table of departures says,
// each node agrees alone and roundings grow, or ONNX Runtime's own results
// differ as much.
func (x *mixer) reason(m *model, file []byte, want, got map[string]*value, exact bool, most float64) string {
	p := x.takeApart(m, file)
	outcomes := p.replay(x, nil)
	for name, outcome := range outcomes {
		if _, why, known := strings.Cut(outcome, "departs: "); known {
			return name + " departs: " + why
		}
	}
	switch {
	case bytes.Contains(file, []byte("DynamicQuantizeLSTM")):
		return "states of an LSTM are not quantised"
	case len(outcomes) == 0 && p.grows(x, m, got, exact):
		return "each node agrees alone: roundings grow"
	case x.unsteady(m, file, want, most):
		return "ONNX Runtime's own results are as far apart"
	case !exact && !x.finite(m, file):
		return "a NaN or an infinity is quantised, which is left open"
	}
	return ""
}

// grows reports whether the whole network has the same results when nothing in
// it is fused, and each node agrees with ONNX Runtime on the values that it has
// then.
func (p *parts) grows(x *mixer, m *model, got map[string]*value, exact bool) bool {
	if p == nil || got == nil {
		return false
	}
	ours, err := m.alone(p.file)
	if err != nil {
		return false
	}
	for name, g := range got {
		if ours[name] == nil || m.far(ours[name], g, exact) != "" {
			return false
		}
	}
	for _, outcome := range p.replay(x, ours) {
		if !strings.HasPrefix(outcome, "departs: ") {
			return false
		}
	}
	return true
}

// refusals says why Tenure refuses a network that ONNX Runtime runs, "" where
// it finds nothing.
func (x *mixer) refusals(m *model, file []byte, ours error) string {
	fault := "refused: " + ours.Error()
	for _, g := range m.graphs() {
		for i, n := range g.nodes {
			named := func(name string) bool { return name != "" && strings.Contains(fault, name+"\"") }
			if !named(strings.Join(n.out, "")) && !slices.ContainsFunc(n.out, named) {
				continue
			}
			if g != &m.graph && x.isIdle(m, g, i) {
				return "a branch or body that does not run must fit the sizes too"
			}
			if why := excuseOf(&model{opset: m.opset, graph: graph{nodes: []*node{n}}, values: m.values}, fault); why != "" {
				return n.op + " departs: " + why
			}
		}
	}
	for name, outcome := range x.takeApart(m, file).replay(x, nil) {
		if _, why, ok := strings.Cut(outcome, "departs: "); ok {
			return name + " departs: " + why
		}
	}
	if errors.Is(ours, tenure.ErrUnsupported) {
		_, text, _ := strings.Cut(fault, "not supported: ")
		text, _, _ = strings.Cut(text, "(\"node ")
		return "not supported: " + shortened.ReplaceAllString(text, "")
	}
	return ""
}

// shortened takes out of an error what differs from model to model.
var shortened = regexp.MustCompile(`\(opset \d+\)|\[[^\]]*\]|\d+`)

// graphs lists the graph and those nested in it and in functions.
func (m *model) graphs() (list []*graph) {
	list = append(list, &m.graph)
	var visit func(nodes []*node)
	visit = func(nodes []*node) {
		for _, n := range nodes {
			for _, g := range n.nested() {
				list = append(list, g)
				visit(g.nodes)
			}
		}
	}
	visit(m.graph.nodes)
	for _, f := range m.functions {
		visit(f.nodes)
	}
	return list
}

// isIdle reports whether ONNX Runtime runs the network as well with nodes
// before node i of a nested graph that fail whenever they run.
func (x *mixer) isIdle(m *model, g *graph, i int) bool {
	n := g.nodes[i]
	if len(n.in) == 0 {
		return false
	}
	was := g.nodes
	defer func() { g.nodes, g.nodes[i] = was, n }()
	replaced := *n
	replaced.in = slices.Clone(n.in)
	replaced.in[0] = "kept"
	g.nodes = slices.Concat(was[:i], []*node{
		{op: "Gather", in: []string{"flag", "beyond"}, out: []string{"failed"}},
		{op: "Where", in: []string{"failed", n.in[0], n.in[0]}, out: []string{"kept"}},
		&replaced,
	}, was[i+1:])
	other := *m
	other.values = append(slices.Clone(m.values), &value{name: "flag", dt: dtype.Bool, dims: []int{1}, data: []byte{1}, constant: true},
		&value{name: "beyond", dt: dtype.I64, dims: []int{}, data: encodeInts(dtype.I64, 7), constant: true})
	_, err := x.runs.run(other.encode(), m.values)
	if err != nil && *verbose {
		fmt.Printf("not idle: %v\n", err)
	}
	return err == nil
}

// excuseOf looks a fault of one node up among the departures.
func excuseOf(m *model, fault string) (why string) {
	defer func() { _ = recover() }() // operands of nested nodes are not known
	name := m.graph.operators()[0]
	for _, d := range slices.Concat(departures, lax) {
		if d.ops != nil && slices.Contains(d.ops, name) && d.when(m, fault) {
			return d.why
		}
	}
	return ""
}

// parts are the nodes of a network, each as a model of its own.
type parts struct {
	m     *model
	file  []byte // the whole network, every tensor of which is an output
	nodes map[string]*part
}

type part struct {
	file   []byte
	inputs []*value // as they are when ONNX Runtime runs the network
}

// takeApart returns the nodes of a network, nil where ONNX Runtime or package
// onnx do not read it.
func (x *mixer) takeApart(m *model, file []byte) *parts {
	answer, err := x.apart.run(file, m.values)
	if err != nil {
		if *verbose {
			fmt.Printf("no replay: %v\n", err)
		}
		return nil
	}
	p := &parts{m: m, file: answer["model"].data, nodes: map[string]*part{}}
	for key, v := range answer {
		if n, ok := strings.CutSuffix(key, "/model"); ok {
			p.nodes[n] = &part{file: v.data}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(answer)) {
		if n, name, ok := strings.Cut(key, "/in/"); ok {
			moved := *answer[key]
			moved.name = name
			p.nodes[n].inputs = append(p.nodes[n].inputs, &moved)
		}
	}
	return p
}

// replay runs each node alone, with the values that it has in ONNX Runtime or
// else those given, and returns what came out other than agreement, by
// operator.
func (p *parts) replay(x *mixer, values map[string]*value) map[string]string {
	outcomes := map[string]string{}
	if p == nil {
		return outcomes
	}
	for _, part := range p.nodes {
		inputs := slices.Clone(part.inputs)
		for i, v := range inputs {
			if values[v.name] != nil {
				inputs[i] = values[v.name]
			}
		}
		decoded, err := wire.Decode(part.file)
		if err != nil {
			continue
		}
		single, err := modelOf(decoded, inputs)
		if err != nil {
			continue
		}
		name := single.graph.operators()[0]
		o := &operator{name: name, ref: x.runs, tally: tally{}}
		fault, err := "", error(nil)
		if len(single.graph.nodes[0].nested()) > 0 {
			fault = x.body(p.m, single, part.file)
		} else {
			fault, err = o.tryFile(single, part.file)
		}
		if fault != "" && err == nil {
			outcomes[name] = fault
			if why := excuseOf(single, fault); why != "" {
				outcomes[name] = "departs: " + why
			}
		}
		if *verbose {
			fmt.Printf("alone, %s: %s\n", name, o.tally)
		}
		for outcome := range o.tally {
			if strings.HasPrefix(outcome, "departs: ") {
				outcomes[name] = outcome
			}
		}
	}
	return outcomes
}

// body compares a node with nested graphs within the tolerance of the network.
func (x *mixer) body(m, single *model, file []byte) (fault string) {
	want, err := x.runs.run(file, single.values)
	if err != nil {
		return ""
	}
	got, err := single.alone(file)
	if err != nil {
		return "refused: " + err.Error()
	}
	for name, w := range want {
		if text := m.far(got[name], w, true); text != "" {
			fault = "output " + name + ": " + text
			for _, g := range single.graphs() {
				for _, n := range g.nodes {
					if why := excuseOf(&model{opset: single.opset, graph: graph{nodes: []*node{n}}, values: single.values}, fault); why != "" {
						fault = "departs: " + why
					}
				}
			}
		}
	}
	return fault
}

// unsteady reports whether ONNX Runtime's own results differ by a fourth of so
// much: after its optimiser, or after changes of the inputs in their last bits.
func (x *mixer) unsteady(m *model, file []byte, want map[string]*value, most float64) bool {
	differs := func(got map[string]*value, err error) bool {
		for name, w := range want {
			if d := distance(got[name], w); err == nil && d > 0 && 4*d >= most {
				return true
			}
		}
		return false
	}
	how := &value{name: "how", dt: dtype.String, dims: []int{}, data: encodeStrings([]string{"moved"})}
	if answer, err := x.rewrites.run(file, append([]*value{how}, m.values...)); err == nil && differs(x.runs.run(answer["model"].data, m.values)) {
		return true
	}
	if differs(x.optimises.run(file, m.values)) {
		return true
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		inputs := nudged(r, m.values, func(dt dtype.DType) float64 {
			if !dt.IsFloat() || dt.Bits() < 16 {
				return 0
			}
			return epsilon(dt)
		})
		if differs(x.runs.run(file, inputs)) {
			return true
		}
	}
	return false
}

// explain runs the nodes of a network alone, for a person who reads a fault.
func (x *mixer) explain(m *model, file []byte) string {
	var b strings.Builder
	for name, outcome := range x.takeApart(m, file).replay(x, nil) {
		fmt.Fprintf(&b, "alone, %s: %.600s\n", name, outcome)
	}
	return b.String()
}
