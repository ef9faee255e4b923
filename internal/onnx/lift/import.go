package lift

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Options say how a graph is imported.
type Options struct {
	Registry  *op.Registry
	Operators Tables
	Weights   *weights.Store // takes the weights
	FileSize  int            // bytes of the file, which bound what its functions may expand to
}

// Result is the result of importing a graph.
type Result struct {
	Program *ir.Program
	Opsets  map[string]int64 // by domain; "" is that of ONNX

	// Inputs and Outputs are the file's declarations, in its order, without
	// inputs that have an initializer.
	Inputs, Outputs []Value

	Notes   []string      // remarks on contents of the file and their treatment
	Missing []Unsupported // the unsupported operators: the program is of use only if there is none
}

// Value is an input or output as the file declares it. If Text is set
// it holds strings, and its type is that of their bytes.
type Value struct {
	Name string
	Type op.Type
	Text bool
	Of   *Composite // of which it is a part; nil for a tensor of the file
}

// String returns "name: f32[batch,3]" or "name: string[batch]".
func (v Value) String() string { return v.Name + ": " + TypeText(v.Type, v.Text) }

// Import makes a program of the graph of a model whose nodes [Order] has
// sorted.
func Import(m *wire.Model, o Options) (*Result, error) {
	im := &importer{
		result:     &Result{},
		noted:      map[string]bool{},
		Registry:   o.Registry,
		tables:     o.Operators,
		Store:      o.Weights,
		maxInlined: wire.ExpansionLimit(o.FileSize),
		weights:    &sources{store: o.Weights, loaded: map[any]string{}, maxSparse: minSparse + maxSparse*o.FileSize},
		irVersion:  m.IRVersion,
	}
	im.weights.note = im.Note
	if err := im.run(m); err != nil {
		return nil, err
	}
	im.result.Missing = im.missing.sorted()
	return im.result, nil
}

// importer makes a program of the messages of one file.
type importer struct {
	result     *Result
	tables     Tables
	Store      *weights.Store
	irVersion  int64
	Registry   *op.Registry
	weights    *sources
	Program    *ir.Program
	functions  map[functionKey]*wire.Function
	missing    collector
	taken      map[string]bool      // names of values of the program
	IsText     map[*ir.Value]bool   // values that hold strings
	lookups    map[*ir.Value]Lookup // those of some values that hold strings
	small      map[string]*ir.Value // constants made by lifting, by their text
	noted      map[string]bool      // the notes of the result
	inlined    int                  // bytes that functions have expanded to
	maxInlined int
}

// run imports the graph of the file into im.result.
func (im *importer) run(m *wire.Model) (err error) {
	if im.result.Opsets, err = im.opsetsOf(m.Opsets); err != nil {
		return err
	}
	if im.functions, err = functionsOf(m.Functions); err != nil {
		return err
	}
	name := m.Graph.Name
	if name == "" {
		name = "main"
	}
	im.Program = &ir.Program{Name: name, Body: &ir.Block{}}
	im.result.Program = im.Program
	im.taken, im.small, im.IsText = map[string]bool{}, map[string]*ir.Value{}, map[*ir.Value]bool{}
	im.lookups = map[*ir.Value]Lookup{}
	s := &Scope{importer: im, opsets: im.result.Opsets, Block: im.Program.Body, Values: map[string]*Binding{}, used: usedNames(m.Graph)}
	// Names of the main graph are kept as they are: a name of a nested graph
	// that is met first must not take them.
	s.reserve(m.Graph)
	return s.graph(m.Graph)
}

// Note adds a remark on the content of the file, once.
func (im *importer) Note(text string) {
	if !im.noted[text] {
		im.noted[text] = true
		im.result.Notes = append(im.result.Notes, text)
	}
}

// opsetsOf returns the imported versions by domain. As in ONNX Runtime the last
// one counts where a file imports several of one domain.
func (im *importer) opsetsOf(list []wire.Opset) (map[string]int64, error) {
	opsets := map[string]int64{}
	several := map[string]bool{}
	for _, o := range list {
		domain := DomainOf(o.Domain)
		if old, ok := opsets[domain]; ok && old != o.Version {
			several[domain] = true
		}
		opsets[domain] = o.Version
	}
	for _, domain := range slices.Sorted(maps.Keys(several)) {
		im.Note(fmt.Sprintf("the file imports several versions of domain %q: the last one, %d, counts", domain, opsets[domain]))
	}
	if v, ok := opsets[""]; ok && (v < MinOpset || v > MaxOpset) {
		return nil, fmt.Errorf("opset_import: got opset %d, want %d to %d, to which onnx.version_converter converts many models: %w", v, MinOpset, MaxOpset, op.ErrUnsupported)
	}
	return opsets, nil
}

// DomainOf returns the one name of a domain: that of ONNX has two.
func DomainOf(domain string) string {
	if domain == "ai.onnx" {
		return ""
	}
	return domain
}

// Scope is a graph or a function body that is being imported: the names that
// its nodes may use, and the block that takes the calls.
type Scope struct {
	*importer
	parent *Scope // the graph around a nested one
	opsets map[string]int64
	Block  *ir.Block
	Values map[string]*Binding
	used   map[string]bool // names that are read
	Path   string          // before names of nodes without a name
	nodes  []wire.Node
	fn     *inlining // in a function body
}

// Binding is the meaning of a name.
type Binding struct {
	Value *ir.Value    // nil: an initializer that is not used yet, an absent operand of a function, or an output that is not read
	init  *initializer // nil for everything else
	List  *List        // a sequence, an optional that may hold nothing, or maps: then Value is nil
}

// initializer is a tensor that becomes a weight when it is first used.
type initializer struct {
	proto  *wire.Tensor
	data   wire.TensorData
	sparse *wire.Sparse // instead of proto and data
	listed wire.SparseData
	err    error // why it cannot be used, of kind ErrUnsupported
}

// newSparse checks a sparse tensor.
func newSparse(t *wire.Sparse) (*initializer, error) {
	d, err := t.Check()
	if err != nil && !errors.Is(err, op.ErrUnsupported) {
		return nil, err
	}
	return &initializer{sparse: t, listed: d, err: err}, nil
}

// typ returns the type of the weight.
func (i *initializer) typ() op.Type {
	if i.sparse != nil {
		return i.listed.Type
	}
	return i.data.Type
}

// newInitializer checks a tensor.
func newInitializer(t *wire.Tensor) (*initializer, error) {
	d, err := t.Check()
	if err != nil && !errors.Is(err, op.ErrUnsupported) {
		return nil, err
	}
	return &initializer{proto: t, data: d, err: err}, nil
}

// reserve marks the names of a graph as taken.
func (s *Scope) reserve(g *wire.Graph) {
	for i := range g.Inputs {
		s.taken[g.Inputs[i].Name] = true
	}
	for i := range g.Initializers {
		s.taken[g.Initializers[i].Name] = true
	}
	for i := range g.Sparse {
		s.taken[g.Sparse[i].Values.Name] = true
	}
	for i := range g.Nodes {
		for _, name := range g.Nodes[i].Outputs {
			s.taken[name] = true
		}
	}
}

// graph imports the main graph.
func (s *Scope) graph(g *wire.Graph) error {
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

// initializers binds the weights of a graph. As in ONNX Runtime the last one
// counts where several have one name and type, and no node reads one without a
// name.
func (s *Scope) initializers(g *wire.Graph) error {
	nameless := 0
	several := map[string]bool{}
	enter := func(kind, name string, init *initializer, err error) error {
		if err != nil {
			return err
		}
		if name == "" {
			nameless++
			return nil
		}
		if old := s.Values[name]; old != nil && old.init != nil {
			if x, y := old.init.typ(), init.typ(); x != y {
				return wire.Corruptf("%s %q: got %s after one of %s of that name, want one", kind, name, y, x)
			}
			several[name] = true
		}
		s.Values[name] = &Binding{init: init}
		return nil
	}
	for i := range g.Sparse {
		init, err := newSparse(&g.Sparse[i])
		if err := enter("sparse initializer", g.Sparse[i].Values.Name, init, err); err != nil {
			return err
		}
	}
	for i := range g.Initializers {
		init, err := newInitializer(&g.Initializers[i])
		if err := enter("initializer", g.Initializers[i].Name, init, err); err != nil {
			return err
		}
	}
	if nameless > 0 {
		s.Note(fmt.Sprintf("the file has %d initializers without a name, which no node can read", nameless))
	}
	if len(several) > 0 {
		s.Note("the file has several initializers of one name, of which the last one counts: " + Named(slices.Sorted(maps.Keys(several))))
	}
	return nil
}

// inputs makes parameters of the inputs that have no initializer: those that
// have one are weights, as all were before IR version 4.
func (s *Scope) inputs(g *wire.Graph) error {
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
		if s.Values[in.Name] != nil {
			fixed = append(fixed, in.Name)
			continue
		}
		if in.Type.Kind == "sequence" || in.Type.Kind == "optional" || in.Type.Kind == "map" {
			if err := s.compositeInput(in); err != nil {
				return err
			}
			continue
		}
		typ, text, err := TypeOf(in, textWidthOf(in.Name, g.Inputs))
		switch {
		case errors.Is(err, op.ErrUnsupported):
			s.missing.add("", 0, "input of "+in.Type.String(), in.Name)
		case err != nil:
			return fmt.Errorf("input %q: %w", in.Name, err)
		}
		s.Values[in.Name] = &Binding{Value: s.param(in.Name, typ, text)}
	}
	if len(fixed) > 0 && s.irVersion >= 4 {
		s.Note("values of inputs in the file are weights, which no run replaces: " + Named(fixed))
	}
	return nil
}

// outputs returns the results of the main graph. A result has the name of the
// output, even if the value has another name in a function.
func (s *Scope) outputs(g *wire.Graph) error {
	if len(g.Outputs) == 0 {
		return wire.Corruptf("the graph has no outputs")
	}
	seen := map[string]bool{}
	for i := range g.Outputs {
		out := &g.Outputs[i]
		if seen[out.Name] {
			s.Note(fmt.Sprintf("the file lists output %q again, which is one output", out.Name))
			continue
		}
		seen[out.Name] = true
		b, err := s.find(out.Name)
		if err == nil && (b.List != nil || out.Type.Kind == "optional") {
			if err = s.compositeOutput(out, b); err == nil {
				continue
			}
		}
		if errors.Is(err, op.ErrUnsupported) {
			s.missing.add("", 0, reason(err), out.Name)
			continue
		}
		if err != nil {
			return fmt.Errorf("output %d is %q: %w", i, out.Name, err)
		}
		v := b.Value
		if v.Name != out.Name {
			n := &Node{Scope: s, Name: out.Name, Proto: &wire.Node{OpType: "Identity"}}
			same := n.Emit("identity", []*ir.Value{v}, nil, []string{out.Name})[0]
			if n.Err != nil {
				return n.Err
			}
			s.IsText[same] = s.IsText[v]
			v = same
		}
		s.Block.Results = append(s.Block.Results, v)
		typ, _, err := TypeOf(out, shape.Unknown)
		if err != nil || stale(typ, v.Type) {
			typ = v.Type // said nothing, or nothing that can be: compare has looked
		}
		s.result.Outputs = append(s.result.Outputs, Value{Name: out.Name, Type: typ, Text: s.IsText[v]})
	}
	return nil
}

// body imports nodes in their order, in which [Order] has put them.
func (s *Scope) body(nodes []wire.Node) error {
	s.nodes = nodes
	for i := range nodes {
		if err := s.node(i); err != nil {
			return err
		}
	}
	return nil
}
