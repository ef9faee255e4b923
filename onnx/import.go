package onnx

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
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
	functions  map[functionKey]*functionProto
	missing    collector
	taken      map[string]bool      // names of values of the program
	text       map[*ir.Value]bool   // values that hold strings
	small      map[string]*ir.Value // constants made by lifting, by their text
	inlined    int                  // bytes that functions have expanded to
	maxInlined int
}

// run imports the graph of the file into im.model.
func (im *importer) run(m *modelProto) (err error) {
	if im.model.Opsets, err = opsetsOf(m.opsets); err != nil {
		return err
	}
	if im.functions, err = functionsOf(m.functions); err != nil {
		return err
	}
	name := m.graph.name
	if name == "" {
		name = "main"
	}
	im.prog = &ir.Program{Name: name, Body: &ir.Block{}}
	im.model.Program = im.prog
	im.taken, im.small, im.text = map[string]bool{}, map[string]*ir.Value{}, map[*ir.Value]bool{}
	s := &scope{importer: im, opsets: im.model.Opsets, block: im.prog.Body, values: map[string]*binding{}, used: usedNames(m.graph)}
	// Names of the main graph are kept as they are: a name of a nested graph
	// that is met first must not take them.
	s.reserve(m.graph)
	if err := s.graph(m.graph); err != nil {
		return err
	}
	return im.missing.err()
}

// opsetsOf returns the imported versions by domain.
func opsetsOf(list []opsetProto) (map[string]int64, error) {
	opsets := map[string]int64{}
	for _, o := range list {
		domain := domainOf(o.domain)
		if old, ok := opsets[domain]; ok && old != o.version {
			return nil, corruptf("opset_import: got versions %d and %d of domain %q, want one", old, o.version, o.domain)
		}
		opsets[domain] = o.version
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
	nodes  []nodeProto
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
	proto *tensorProto
	data  tensorData
	err   error // why it cannot be used, of kind ErrUnsupported
}

// newInitializer checks a tensor.
func newInitializer(t *tensorProto) (*initializer, error) {
	d, err := t.check()
	if err != nil && !errors.Is(err, op.ErrUnsupported) {
		return nil, err
	}
	return &initializer{t, d, err}, nil
}

// reserve marks the names of a graph as taken.
func (s *scope) reserve(g *graphProto) {
	for i := range g.inputs {
		s.taken[g.inputs[i].name] = true
	}
	for i := range g.initializers {
		s.taken[g.initializers[i].name] = true
	}
	for _, name := range g.sparse {
		s.taken[name] = true
	}
	for i := range g.nodes {
		for _, name := range g.nodes[i].outputs {
			s.taken[name] = true
		}
	}
}

// graph imports the main graph.
func (s *scope) graph(g *graphProto) error {
	if err := s.initializers(g); err != nil {
		return err
	}
	if err := s.inputs(g); err != nil {
		return err
	}
	if err := s.body(g.nodes); err != nil {
		return err
	}
	if err := s.compare(g); err != nil {
		return err
	}
	return s.outputs(g)
}

func (s *scope) initializers(g *graphProto) error {
	for i, name := range g.sparse {
		if name == "" {
			return corruptf("sparse initializer %d has no name", i)
		}
		s.values[name] = &binding{init: &initializer{err: fmt.Errorf("sparse initializer: %w", op.ErrUnsupported)}}
	}
	for i := range g.initializers {
		t := &g.initializers[i]
		if t.name == "" {
			return corruptf("initializer %d has no name", i)
		}
		if s.values[t.name] != nil {
			return corruptf("initializer %q: got a second one of that name", t.name)
		}
		init, err := newInitializer(t)
		if err != nil {
			return err
		}
		s.values[t.name] = &binding{init: init}
	}
	return nil
}

// inputs makes parameters of the inputs that have no initializer: those that
// have one are weights, as all were before IR version 4.
func (s *scope) inputs(g *graphProto) error {
	seen := map[string]bool{}
	var fixed []string
	for i := range g.inputs {
		in := &g.inputs[i]
		if in.name == "" {
			return corruptf("input %d has no name", i)
		}
		if seen[in.name] {
			return corruptf("input %q: got a second one of that name", in.name)
		}
		seen[in.name] = true
		if s.values[in.name] != nil {
			fixed = append(fixed, in.name)
			continue
		}
		typ, text, err := typeOf(in, textWidthOf(in.name, g.inputs))
		switch {
		case errors.Is(err, op.ErrUnsupported):
			s.missing.add("", 0, "input of "+in.typ.String(), in.name)
		case err != nil:
			return fmt.Errorf("input %q: %w", in.name, err)
		}
		v := s.prog.NewValue(ir.Param, in.name, typ)
		v.Index = len(s.block.Params)
		s.block.Params = append(s.block.Params, v)
		s.values[in.name] = &binding{value: v}
		if text {
			s.text[v] = true
		}
		s.model.Inputs = append(s.model.Inputs, Value{in.name, typ, text})
	}
	if len(fixed) > 0 && s.model.IRVersion >= 4 {
		s.model.Notes = append(s.model.Notes, fmt.Sprintf("values of inputs in the file are weights, which no run replaces: %s",
			named(fixed)))
	}
	return nil
}

// outputs returns the results of the main graph. A result has the name of the
// output, also when a function gave the value another.
func (s *scope) outputs(g *graphProto) error {
	if len(g.outputs) == 0 {
		return corruptf("the graph has no outputs")
	}
	seen := map[string]bool{}
	for i := range g.outputs {
		out := &g.outputs[i]
		if seen[out.name] {
			return corruptf("output %q: got a second one of that name", out.name)
		}
		seen[out.name] = true
		v, err := s.lookup(out.name)
		if errors.Is(err, op.ErrUnsupported) {
			s.missing.add("", 0, reason(err), out.name)
			continue
		}
		if err != nil {
			return fmt.Errorf("output %d is %q: %w", i, out.name, err)
		}
		if v.Name != out.name {
			n := &node{scope: s, name: out.name, proto: &nodeProto{opType: "Identity"}}
			same := n.emit("identity", []*ir.Value{v}, nil, []string{out.name})[0]
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
		s.model.Outputs = append(s.model.Outputs, Value{out.name, typ, s.text[v]})
	}
	return nil
}

// body imports nodes in their order.
func (s *scope) body(nodes []nodeProto) error {
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
			if slices.Contains(in.nodes[i].outputs, name) {
				return nil, corruptf("only node %q, which is not before it, gives that: the graph is cyclic or unsorted", in.nodeName(i))
			}
		}
	}
	return nil, corruptf("no input, initializer or node gives that")
}

// load makes a weight of an initializer at its first use: what no node reads
// takes no memory.
func (s *scope) load(name string, b *binding) error {
	b.value = s.prog.NewValue(ir.Weight, s.valueName(name), op.Type{})
	if b.init.err != nil {
		s.missing.add("", 0, reason(b.init.err), name)
		return nil
	}
	b.value.Type = b.init.data.typ
	if b.init.data.text {
		s.text[b.value] = true
		if s.inlined += b.init.data.bytes; s.inlined > s.maxInlined {
			return corruptf("the strings and functions of the model expand to more than %d bytes", s.maxInlined)
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
	case n.name == "":
		return s.path + n.opType + "#" + strconv.Itoa(i)
	case s.fn != nil:
		return s.path + n.name
	}
	return n.name
}

// String returns the kind of a declared type in words.
func (t *typeProto) String() string {
	if t.kind != "tensor" {
		return "type " + t.kind
	}
	if dt, err := dtype.FromONNX(t.elemType); err == nil {
		return "element type " + dt.String()
	}
	return fmt.Sprintf("element type %d", t.elemType)
}

// typeOf returns the declared type of a value, for strings that of their
// bytes, and whether it is of strings.
func typeOf(v *valueProto, width shape.Dim) (typ op.Type, text bool, err error) {
	t := &v.typ
	if t.kind == "" {
		return op.Type{}, false, corruptf("got no type")
	}
	dt, err := dtype.FromONNX(t.elemType)
	if t.kind != "tensor" {
		return op.Type{}, false, fmt.Errorf("%s: %w", t, op.ErrUnsupported)
	}
	if text = dt == dtype.String; text {
		dt = dtype.U8
	}
	if err != nil || !t.hasShape {
		return op.Type{DType: dt}, text, err
	}
	dims := make([]shape.Dim, len(t.dims), len(t.dims)+1)
	for i, d := range t.dims {
		switch {
		case !d.sized:
			dims[i] = shape.Sym(d.symbol)
		case d.size < -1 || d.size > math.MaxInt64>>5:
			return op.Type{}, text, fmt.Errorf("dim %d: got %d, want a size: %w", i, d.size, tensor.ErrShape)
		case d.size >= 0: // some exporters write -1 for a size that they do not know
			dims[i] = shape.N(int(d.size))
		}
	}
	if text {
		dims = append(dims, width)
	}
	sh, err := shape.FromDims(dims...)
	return op.Type{DType: dt, Shape: sh}, text, err
}
