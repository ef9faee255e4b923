package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// importer turns the messages of one file into a program.
type importer struct {
	model      *Model
	reg        *op.Registry
	weights    *initializers
	prog       *ir.Program
	functions  map[functionKey]*wire.Function
	missing    collector
	taken      map[string]bool      // names of values of the program
	text       map[*ir.Value]bool   // values that hold strings
	small      map[string]*ir.Value // constants made by lifting, by their text
	inlined    int                  // bytes that functions have expanded to
	maxInlined int
}

// run imports the graph of the file into im.model.
func (im *importer) run(m *wire.Model) (err error) {
	if im.model.Opsets, err = opsetsOf(m.Opsets); err != nil {
		return err
	}
	if im.functions, err = functionsOf(m.Functions); err != nil {
		return err
	}
	name := m.Graph.Name
	if name == "" {
		name = "main"
	}
	im.prog = &ir.Program{Name: name, Body: &ir.Block{}}
	im.model.Program = im.prog
	im.taken, im.small, im.text = map[string]bool{}, map[string]*ir.Value{}, map[*ir.Value]bool{}
	s := &scope{importer: im, opsets: im.model.Opsets, block: im.prog.Body, values: map[string]*binding{}, used: usedNames(m.Graph)}
	// Names of the main graph are kept as they are: a name of a nested graph
	// that is met first must not take them.
	s.reserve(m.Graph)
	if err := s.graph(m.Graph); err != nil {
		return err
	}
	return im.missing.err()
}

// opsetsOf returns the imported versions by domain.
func opsetsOf(list []wire.Opset) (map[string]int64, error) {
	opsets := map[string]int64{}
	for _, o := range list {
		domain := domainOf(o.Domain)
		if old, ok := opsets[domain]; ok && old != o.Version {
			return nil, wire.Corruptf("opset_import: got versions %d and %d of domain %q, want one", old, o.Version, o.Domain)
		}
		opsets[domain] = o.Version
	}
	if v, ok := opsets[""]; ok && (v < MinOpset || v > MaxOpset) {
		return nil, fmt.Errorf("opset_import: got opset %d, want %d to %d: %w", v, MinOpset, MaxOpset, op.ErrUnsupported)
	}
	return opsets, nil
}

// domainOf returns the one name of a domain: that of ONNX has two.
func domainOf(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// scope is a graph or a function body that is being imported: the names that
// its nodes may use, and the block that takes the calls.
type scope struct {
	*importer
	parent *scope // the graph around a nested one
	opsets map[string]int64
	block  *ir.Block
	values map[string]*binding
	used   map[string]bool // names that somebody reads
	path   string          // before names of nodes without a name
	nodes  []wire.Node
	at     int       // the node that is being imported
	fn     *inlining // in a function body
}

// binding is what a name stands for.
type binding struct {
	value *ir.Value    // nil: an initializer that nobody has used yet, an absent operand of a function, or an output that nobody reads
	init  *initializer // nil for everything else
	list  *list        // a sequence, or an optional that holds nothing: then value is nil
}

// initializer is a tensor that becomes a weight when somebody uses it.
type initializer struct {
	proto *wire.Tensor
	data  wire.TensorData
	err   error // why it cannot be used, of kind ErrUnsupported
}

// newInitializer checks a tensor.
func newInitializer(t *wire.Tensor) (*initializer, error) {
	d, err := t.Check()
	if err != nil && !errors.Is(err, op.ErrUnsupported) {
		return nil, err
	}
	return &initializer{t, d, err}, nil
}

// reserve marks the names of a graph as taken.
func (s *scope) reserve(g *wire.Graph) {
	for i := range g.Inputs {
		s.taken[g.Inputs[i].Name] = true
	}
	for i := range g.Initializers {
		s.taken[g.Initializers[i].Name] = true
	}
	for _, name := range g.Sparse {
		s.taken[name] = true
	}
	for i := range g.Nodes {
		for _, name := range g.Nodes[i].Outputs {
			s.taken[name] = true
		}
	}
}

// graph imports the main graph.
func (s *scope) graph(g *wire.Graph) error {
	if err := s.initializers(g); err != nil {
		return err
	}
	if err := s.inputs(g); err != nil {
		return err
	}
	if err := s.body(g.Nodes); err != nil {
		return err
	}
	if err := s.compare(g); err != nil {
		return err
	}
	return s.outputs(g)
}

func (s *scope) initializers(g *wire.Graph) error {
	for i, name := range g.Sparse {
		if name == "" {
			return wire.Corruptf("sparse initializer %d has no name", i)
		}
		s.values[name] = &binding{init: &initializer{err: fmt.Errorf("sparse initializer: %w", op.ErrUnsupported)}}
	}
	for i := range g.Initializers {
		t := &g.Initializers[i]
		if t.Name == "" {
			return wire.Corruptf("initializer %d has no name", i)
		}
		if s.values[t.Name] != nil {
			return wire.Corruptf("initializer %q: got a second one of that name", t.Name)
		}
		init, err := newInitializer(t)
		if err != nil {
			return err
		}
		s.values[t.Name] = &binding{init: init}
	}
	return nil
}

// inputs makes parameters of the inputs that have no initializer: those that
// have one are weights, as all were before IR version 4.
func (s *scope) inputs(g *wire.Graph) error {
	seen := map[string]bool{}
	var fixed []string
	for i := range g.Inputs {
		in := &g.Inputs[i]
		if in.Name == "" {
			return wire.Corruptf("input %d has no name", i)
		}
		if seen[in.Name] {
			return wire.Corruptf("input %q: got a second one of that name", in.Name)
		}
		seen[in.Name] = true
		if s.values[in.Name] != nil {
			fixed = append(fixed, in.Name)
			continue
		}
		typ, text, err := typeOf(in, textWidthOf(in.Name, g.Inputs))
		switch {
		case errors.Is(err, op.ErrUnsupported):
			s.missing.add("", 0, "input of "+in.Type.String(), in.Name)
		case err != nil:
			return fmt.Errorf("input %q: %w", in.Name, err)
		}
		v := s.prog.NewValue(ir.Param, in.Name, typ)
		v.Index = len(s.block.Params)
		s.block.Params = append(s.block.Params, v)
		s.values[in.Name] = &binding{value: v}
		if text {
			s.text[v] = true
		}
		s.model.Inputs = append(s.model.Inputs, Value{in.Name, typ, text})
	}
	if len(fixed) > 0 && s.model.IRVersion >= 4 {
		s.model.Notes = append(s.model.Notes, fmt.Sprintf("values of inputs in the file are weights, which no run replaces: %s",
			named(fixed)))
	}
	return nil
}

// outputs returns the results of the main graph. A result has the name of the
// output, also when a function gave the value another.
func (s *scope) outputs(g *wire.Graph) error {
	if len(g.Outputs) == 0 {
		return wire.Corruptf("the graph has no outputs")
	}
	seen := map[string]bool{}
	for i := range g.Outputs {
		out := &g.Outputs[i]
		if seen[out.Name] {
			return wire.Corruptf("output %q: got a second one of that name", out.Name)
		}
		seen[out.Name] = true
		v, err := s.lookup(out.Name)
		if errors.Is(err, op.ErrUnsupported) {
			s.missing.add("", 0, reason(err), out.Name)
			continue
		}
		if err != nil {
			return fmt.Errorf("output %d is %q: %w", i, out.Name, err)
		}
		if v.Name != out.Name {
			n := &node{scope: s, name: out.Name, proto: &wire.Node{OpType: "Identity"}}
			same := n.emit("identity", []*ir.Value{v}, nil, []string{out.Name})[0]
			if n.err != nil {
				return n.err
			}
			s.text[same] = s.text[v]
			v = same
		}
		s.block.Results = append(s.block.Results, v)
		typ, _, err := typeOf(out, shape.Unknown)
		if err != nil {
			typ = v.Type // said nothing, or nothing that can be: compare has looked
		}
		s.model.Outputs = append(s.model.Outputs, Value{out.Name, typ, s.text[v]})
	}
	return nil
}

// body imports nodes in their order.
func (s *scope) body(nodes []wire.Node) error {
	s.nodes = nodes
	for s.at = range nodes {
		if err := s.node(s.at); err != nil {
			return err
		}
	}
	s.at = len(nodes)
	return nil
}

// lookup returns the value that a name stands for, nil for an absent operand
// of a function.
func (s *scope) lookup(name string) (*ir.Value, error) {
	b, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if b.list != nil {
		return nil, fmt.Errorf("a sequence or optional as an output: %w", op.ErrUnsupported)
	}
	return b.value, nil
}

// find returns what a name stands for.
func (s *scope) find(name string) (*binding, error) {
	for in := s; in != nil; in = in.parent {
		b := in.values[name]
		switch {
		case b == nil:
		case b.value == nil && b.init != nil:
			return b, in.load(name, b)
		default:
			return b, nil
		}
	}
	for in := s; in != nil; in = in.parent {
		for i := in.at; i < len(in.nodes); i++ {
			if slices.Contains(in.nodes[i].Outputs, name) {
				return nil, wire.Corruptf("only node %q, which is not before it, gives that: the graph is cyclic or unsorted", in.nodeName(i))
			}
		}
	}
	return nil, wire.Corruptf("no input, initializer or node gives that")
}

// load makes a weight of an initializer at its first use: what no node reads
// takes no memory.
func (s *scope) load(name string, b *binding) error {
	b.value = s.prog.NewValue(ir.Weight, s.valueName(name), op.Type{})
	if b.init.err != nil {
		s.missing.add("", 0, reason(b.init.err), name)
		return nil
	}
	b.value.Type = b.init.data.Type
	if b.init.data.Text {
		s.text[b.value] = true
		if s.inlined += b.init.data.Bytes; s.inlined > s.maxInlined {
			return wire.Corruptf("the strings and functions of the model expand to more than %d bytes", s.maxInlined)
		}
	}
	s.prog.Weights = append(s.prog.Weights, b.value)
	return s.weights.add(b.value, b.init.proto, b.init.data)
}

// valueName returns the name in the program of a value of this scope. Names of
// the main graph are their own.
func (s *scope) valueName(name string) string {
	if s.fn == nil && s.parent == nil {
		return name
	}
	if s.fn == nil {
		return s.fresh(name)
	}
	if outside, ok := s.fn.outputs[name]; ok && s.parent == nil {
		return outside
	}
	return s.fresh(s.path + name)
}

// fresh returns the name or, if it is taken, the name with a number.
func (im *importer) fresh(name string) string {
	for n, base := 2, name; im.taken[name]; n++ {
		name = base + "#" + strconv.Itoa(n)
	}
	im.taken[name] = true
	return name
}

// nodeName returns what errors and calls name node i.
func (s *scope) nodeName(i int) string {
	n := &s.nodes[i]
	switch {
	case n.Name == "":
		return s.path + n.OpType + "#" + strconv.Itoa(i)
	case s.fn != nil:
		return s.path + n.Name
	}
	return n.Name
}

// typeOf returns the declared type of a value, for strings that of their
// bytes, and whether it is of strings.
func typeOf(v *wire.Value, width shape.Dim) (typ op.Type, text bool, err error) {
	t := &v.Type
	if t.Kind == "" {
		return op.Type{}, false, wire.Corruptf("got no type")
	}
	dt, err := dtype.FromONNX(t.ElemType)
	if t.Kind != "tensor" {
		return op.Type{}, false, fmt.Errorf("%s: %w", t, op.ErrUnsupported)
	}
	if text = dt == dtype.String; text {
		dt = dtype.U8
	}
	if err != nil || !t.HasShape {
		return op.Type{DType: dt}, text, err
	}
	dims := make([]shape.Dim, len(t.Dims), len(t.Dims)+1)
	for i, d := range t.Dims {
		switch {
		case !d.Sized:
			dims[i] = shape.Sym(d.Symbol)
		case d.Size < -1 || d.Size > math.MaxInt64>>5:
			return op.Type{}, text, fmt.Errorf("dim %d: got %d, want a size: %w", i, d.Size, tensor.ErrShape)
		case d.Size >= 0: // some exporters write -1 for a size that they do not know
			dims[i] = shape.N(int(d.Size))
		}
	}
	if text {
		dims = append(dims, width)
	}
	sh, err := shape.FromDims(dims...)
	return op.Type{DType: dt, Shape: sh}, text, err
}
