package ortdiff_test

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnxtest"
)

// value is a tensor with its name: an input of a model, or a constant of it.
type value struct {
	name     string
	dt       dtype.DType
	dims     []int
	data     []byte
	constant bool

	free    bool  // any numbers would do
	listed  bool  // a constant that the graph lists among its inputs too
	written []int // the sizes that the graph declares, as those of typed; nil: dims
}

// typed is the declaration of a value without bytes: a parameter of a nested
// graph.
type typed struct {
	name string
	dt   dtype.DType
	dims []int // nil: the rank is not declared; -1 is a size that is not known, less a symbol
}

// attr is an attribute: int64, float32, string, []int64, []float32, []string,
// *graph or *value.
type attr struct {
	name  string
	value any
}

type node struct {
	op, domain string
	in, out    []string
	attrs      []attr
}

// graph is the body of a model, or one nested in a node.
type graph struct {
	values  []*value // constants of a nested graph
	nodes   []*node
	params  []typed
	outputs []typed // of dtype Invalid where nothing is declared
}

// model is a model with the values of its inputs.
type model struct {
	opset  int
	ml     int // of the domain of classical machine learning; 0: 4
	graph  graph
	values []*value

	named int // values that have a name so far

	functions []*ownFunction
}

// ownFunction is a function that the model defines, in the domain localDomain.
type ownFunction struct {
	name    string
	in, out []string
	nodes   []*node
}

const localDomain = "local"

// irVersion is one that has all the element types and that ONNX Runtime reads.
const irVersion = 10

func (m *model) encode() []byte {
	g, keys := m.graph.encode(), dtype.Invalid
	for _, v := range m.values {
		if v.constant {
			if g = g.Bytes(5, v.encode()); v.listed {
				g = g.Bytes(11, typed{v.name, v.dt, v.dims}.encode())
			}
			continue
		}
		if strings.HasSuffix(v.name, ".keys") { // of a map, whose values are the next value
			keys = v.dt
			continue
		}
		if name, ok := strings.CutSuffix(v.name, ".values"); ok {
			g = g.Bytes(11, mapInput(name, keys, v.dt))
			continue
		}
		dims := v.dims
		if v.written != nil {
			dims = v.written
		}
		g = g.Bytes(11, typed{v.name, v.dt, dims}.encode())
	}
	w := onnxtest.Message(nil).Varint(1, irVersion).Bytes(7, g)
	for _, opset := range m.opsets() {
		w = w.Bytes(8, opset)
	}
	for _, f := range m.functions {
		w = w.Bytes(25, f.encode(m.opsets()))
	}
	return w
}

// opsets encodes the imports of operators.
func (m *model) opsets() []onnxtest.Message {
	list := []onnxtest.Message{
		onnxtest.Message(nil).Varint(2, int64(m.opset)), onnxtest.Message(nil).Text(1, contribDomain).Varint(2, 1),
		onnxtest.Message(nil).Text(1, mlDomain).Varint(2, int64(cmp.Or(m.ml, 4))),
	}
	if m.functions != nil {
		list = append(list, onnxtest.Message(nil).Text(1, localDomain).Varint(2, 1))
	}
	return list
}

func (f *ownFunction) encode(opsets []onnxtest.Message) onnxtest.Message {
	w := onnxtest.Message(nil).Text(1, f.name)
	for _, name := range f.in {
		w = w.Text(4, name)
	}
	for _, name := range f.out {
		w = w.Text(5, name)
	}
	for _, n := range f.nodes {
		w = w.Bytes(7, n.encode())
	}
	for _, opset := range opsets {
		w = w.Bytes(9, opset)
	}
	return w.Text(10, localDomain)
}

// mapInput declares an input that is a map.
func mapInput(name string, keys, values dtype.DType) onnxtest.Message {
	tensor := onnxtest.Message(nil).Bytes(1, onnxtest.Message(nil).Varint(1, int64(values.ONNX())).Bytes(2, nil))
	of := onnxtest.Message(nil).Varint(1, int64(keys.ONNX())).Bytes(2, tensor)
	return onnxtest.Message(nil).Text(1, name).Bytes(2, onnxtest.Message(nil).Bytes(5, of))
}

func (g *graph) encode() onnxtest.Message {
	var w onnxtest.Message
	for _, n := range g.nodes {
		w = w.Bytes(1, n.encode())
	}
	w = w.Text(2, "main")
	for _, v := range g.values {
		w = w.Bytes(5, v.encode())
	}
	for _, p := range g.params {
		w = w.Bytes(11, p.encode())
	}
	for _, out := range g.outputs {
		w = w.Bytes(12, out.encode())
	}
	return w
}

func (n *node) encode() onnxtest.Message {
	var w onnxtest.Message
	for _, name := range n.in {
		w = w.Text(1, name)
	}
	for _, name := range n.out {
		w = w.Text(2, name)
	}
	w = w.Text(3, "node "+strings.Join(n.out, "")).Text(4, n.op)
	for _, a := range n.attrs {
		w = w.Bytes(5, a.encode())
	}
	if n.domain != "" {
		w = w.Text(7, n.domain)
	}
	return w
}

func (a attr) encode() onnxtest.Message {
	w := onnxtest.Message(nil).Text(1, a.name)
	switch v := a.value.(type) {
	case int64:
		return w.Varint(3, v).Varint(20, 2)
	case float32:
		return w.Float(2, v).Varint(20, 1)
	case string:
		return w.Text(4, v).Varint(20, 3)
	case *value:
		return w.Bytes(5, v.encode()).Varint(20, 4)
	case *graph:
		return w.Bytes(6, v.encode()).Varint(20, 5)
	case []int64:
		for _, x := range v {
			w = w.Varint(8, x)
		}
		return w.Varint(20, 7)
	case []float32:
		for _, x := range v {
			w = w.Float(7, x)
		}
		return w.Varint(20, 6)
	case []string:
		for _, x := range v {
			w = w.Text(9, x)
		}
		return w.Varint(20, 8)
	}
	panic(fmt.Sprintf("attribute %s: got a %T", a.name, a.value))
}

func (v *value) encode() onnxtest.Message {
	var w onnxtest.Message
	for _, d := range v.dims {
		w = w.Varint(1, int64(d))
	}
	w = w.Varint(2, int64(v.dt.ONNX())).Text(8, v.name)
	if v.dt == dtype.String {
		for _, s := range decodeStrings(v.data) {
			w = w.Text(6, s)
		}
		return w
	}
	return w.Bytes(9, v.data)
}

func (t typed) encode() onnxtest.Message {
	w := onnxtest.Message(nil).Text(1, t.name)
	if t.dt == dtype.Invalid {
		return w
	}
	tensor := onnxtest.Message(nil).Varint(1, int64(t.dt.ONNX()))
	if t.dims != nil {
		var shape onnxtest.Message
		for _, d := range t.dims {
			var dim onnxtest.Message
			switch {
			case d >= 0:
				dim = dim.Varint(1, int64(d))
			case d < -1:
				dim = dim.Text(2, fmt.Sprint("n", -d))
			}
			shape = shape.Bytes(1, dim)
		}
		tensor = tensor.Bytes(2, shape)
	}
	return w.Bytes(2, onnxtest.Message(nil).Bytes(1, tensor))
}

// String gives the model as text, with the values of its inputs.
func (m *model) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "opset %d\n", m.opset)
	for _, v := range m.values {
		fmt.Fprintln(&b, v)
	}
	for _, f := range m.functions {
		fmt.Fprintf(&b, "function %s(%s) (%s)\n%s", f.name, strings.Join(f.in, ", "), strings.Join(f.out, ", "), &graph{nodes: f.nodes})
	}
	b.WriteString(m.graph.String())
	return b.String()
}

func (v *value) String() string {
	kind, declared := "input", ""
	switch {
	case v.listed:
		kind = "constant and input"
	case v.constant:
		kind = "constant"
	case v.written != nil:
		declared = fmt.Sprint(" declared as ", v.written)
	}
	return fmt.Sprintf("%s %s: %s%v%s = %s", kind, v.name, v.dt, v.dims, declared, format(v.dt, v.data))
}

// format gives the first elements of a tensor as numbers.
func format(dt dtype.DType, data []byte) string {
	if dt == dtype.String {
		return quoted(data)
	}
	const most = 200
	numbers := decode(dt, data)
	if len(numbers) > most {
		return fmt.Sprintf("%v and %d more", numbers[:most], len(numbers)-most)
	}
	return fmt.Sprint(numbers)
}

func (g *graph) String() string {
	var b strings.Builder
	for _, v := range g.values {
		fmt.Fprintln(&b, v)
	}
	for _, n := range g.nodes {
		fmt.Fprintf(&b, "%s = %s(%s)", strings.Join(n.out, ", "), n.op, strings.Join(n.in, ", "))
		for _, a := range n.attrs {
			switch v := a.value.(type) {
			case *graph:
				fmt.Fprintf(&b, " %s={%v\n%s}", a.name, v.params, v)
			case string:
				fmt.Fprintf(&b, " %s=%q", a.name, v)
			default:
				fmt.Fprintf(&b, " %s=%v", a.name, v)
			}
		}
		b.WriteByte('\n')
	}
	b.WriteString("return")
	for _, out := range g.outputs {
		b.WriteString(" " + out.name)
	}
	b.WriteByte('\n')
	return b.String()
}
