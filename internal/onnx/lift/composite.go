package lift

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Kind says what an input or output of a model is, other than a tensor.
type Kind uint8

// The kinds of composites.
const (
	Sequence         Kind = iota + 1 // tensors of one element type
	Optional                         // a tensor, or none
	OptionalSequence                 // a sequence, or none
	Map                              // keys with a value each
	MapSequence                      // maps of the same keys
)

// What follows the name of an input or output that is no tensor in the names of
// its parts.
const (
	Elements = ".elements"
	Sizes    = ".sizes"
	Has      = ".has"
	Keys     = ".keys"
	Values   = ".values"
)

// Composite is an input or output of a model that is no tensor. It consists of
// several parts, which are parameters or results of the program.
type Composite struct {
	Name string
	Kind Kind
	Elem op.Type     // of the elements, or of the values of a map; Shape is nil if elements differ, or if the file does not say
	Text bool        // these are strings: Elem is the type of their bytes
	Key  dtype.DType // of the keys of a map; String for strings

	// Items is how many elements a sequence has whose length is known at load:
	// its parts are the elements, NAME[0] and so on. Of other sequences it is
	// -1; their parts are NAME.elements and NAME.sizes.
	Items int
}

// CompositeOf returns the composite that a type declares. The error is of kind
// ErrUnsupported for a type that cannot be one.
func CompositeOf(v *wire.Value) (*Composite, error) {
	c := &Composite{Name: v.Name, Items: -1}
	t := &v.Type
	var elem *wire.Type
	switch declaredForm(t) {
	case asOptionalTensor:
		c.Kind, elem = Optional, t.Elem
	case asOptionalSequence:
		c.Kind, elem = OptionalSequence, t.Elem.Elem
	case asSequence:
		c.Kind, elem = Sequence, t.Elem
	}
	switch {
	case t.Kind == "map":
		c.Kind, elem = Map, t.Elem
	case elem != nil && elem.Kind == "map" && c.Kind == Sequence:
		c.Kind, t, elem = MapSequence, elem, elem.Elem
	}
	unsupported := fmt.Errorf("%s: %w", v.Type.String(), op.ErrUnsupported)
	if elem == nil || elem.Kind != "tensor" {
		return nil, unsupported
	}
	var err error
	c.Elem, c.Text, err = TypeOf(&wire.Value{Name: v.Name, Type: *elem}, shape.Unknown)
	if err == nil && (c.Kind == Map || c.Kind == MapSequence) {
		c.Key, err = dtype.FromONNX(t.Key)
		if c.Key != dtype.String && c.Key != dtype.I64 {
			return nil, unsupported
		}
	}
	return c, err
}

// compositeInput makes parameters of an input that is no tensor.
func (s *Scope) compositeInput(in *wire.Value) error {
	c, err := CompositeOf(in)
	if errors.Is(err, op.ErrUnsupported) {
		s.missing.add("", 0, "input of "+in.Type.String(), in.Name)
		s.Values[in.Name] = &Binding{Value: s.Program.NewValue(ir.Param, in.Name, op.Type{})}
		return nil
	}
	if err != nil {
		return fmt.Errorf("input %q: %w", in.Name, err)
	}
	part := func(suffix string, dt dtype.DType, text bool, dims ...shape.Dim) *ir.Value {
		if text {
			dt, dims = dtype.U8, append(dims, shape.Sym(in.Name+suffix+".width"))
		}
		sh, _ := shape.FromDims(dims...)
		if s.taken[in.Name+suffix] {
			s.missing.add("", 0, "input with a part whose name is that of another value", in.Name)
		}
		v := s.param(s.Fresh(in.Name+suffix), op.Type{DType: dt, Shape: sh}, text)
		s.result.Inputs[len(s.result.Inputs)-1].Of = c
		return v
	}
	length := shape.Sym(in.Name + ".length")
	if c.Kind == Map || c.Kind == MapSequence {
		key := part(Keys, c.Key, c.Key == dtype.String, length)
		sizes := []shape.Dim{shape.Sym(in.Name + ".rows"), length}
		if c.Kind == Map {
			sizes = sizes[1:]
		}
		values := part(Values, c.Elem.DType, c.Text, sizes...)
		s.Values[in.Name] = &Binding{List: &List{Maps: &Maps{Keys: key, Values: values, One: c.Kind == Map}}}
		return nil
	}
	p := &Packed{One: c.Kind == Optional, rank: &rank{}, scope: s}
	p.Data = part(Elements, c.Elem.DType, false, shape.Unknown)
	p.Table = part(Sizes, dtype.I64, false, length, shape.N(TableWidth))
	if c.Text {
		s.IsText[p.Data] = true
	}
	if c.Kind == OptionalSequence {
		p.Has = part(Has, dtype.Bool, false)
	}
	// Some exporters declare rank 0 for what they do not know.
	if sh := c.Elem.Shape; sh != nil && sh.Rank() > 0 && !(c.Text && sh.Rank() == 1) {
		p.rank.n, p.rank.known = sh.Rank(), true
	} else {
		c.Elem.Shape, p.rank.mixed = nil, true
	}
	s.Values[in.Name] = &Binding{List: OpenList(p)}
	return nil
}

// param makes a parameter of the program.
func (s *Scope) param(name string, typ op.Type, text bool) *ir.Value {
	v := s.Program.NewValue(ir.Param, name, typ)
	v.Index = len(s.Block.Params)
	s.Block.Params = append(s.Block.Params, v)
	if text {
		s.IsText[v] = true
	}
	s.result.Inputs = append(s.result.Inputs, Value{Name: name, Type: typ, Text: text})
	return v
}

// compositeOutput makes results of an output that is no tensor.
func (s *Scope) compositeOutput(out *wire.Value, b *Binding) error {
	n := &Node{Scope: s, Name: out.Name, Proto: &wire.Node{OpType: "Identity"}}
	c, err := CompositeOf(out)
	if err != nil {
		if c = s.undeclared(out.Name, b); c == nil {
			return fmt.Errorf("%s: %w", out.Type.String(), op.ErrUnsupported)
		}
	}
	var values []*ir.Value
	var suffixes []string
	l := b.List
	switch {
	case l != nil && l.Maps != nil:
		c.Kind = MapSequence
		if l.Maps.One {
			c.Kind = Map
		}
		c.Elem, c.Text = l.Maps.Values.Type, s.IsText[l.Maps.Values]
		if c.Key = l.Maps.Keys.Type.DType; s.IsText[l.Maps.Keys] {
			c.Key = dtype.String
		}
		values, suffixes = []*ir.Value{l.Maps.Keys, l.Maps.Values}, []string{Keys, Values}
	case c.Kind == Map || c.Kind == MapSequence:
		return fmt.Errorf("the nodes give a tensor or sequence, want %s as the file declares: %w", out.Type.String(), dtype.ErrDType)
	case l == nil && c.Kind != Optional:
		return fmt.Errorf("the nodes give %s, want %s as the file declares: %w", b.Value.Type, out.Type.String(), dtype.ErrDType)
	case l == nil:
		values, c.Items = []*ir.Value{b.Value}, 1
	case !l.Open && len(l.Items) > 0:
		values, c.Items = l.Items, len(l.Items)
	default:
		if values, suffixes = n.packedOutput(c, b); n.Err != nil {
			return n.Err
		}
	}
	if c.Items >= 0 {
		c.Elem, c.Text = values[0].Type, s.IsText[values[0]]
		for i, v := range values {
			suffixes = append(suffixes, fmt.Sprintf("[%d]", i))
			if v.Type != c.Elem {
				c.Elem.Shape = nil
			}
		}
	}
	for i, v := range values {
		if v.Type.IsZero() {
			return nil // something unsupported, which is listed
		}
		text := s.IsText[v] && suffixes[i] != Elements
		name := out.Name + suffixes[i]
		same := v
		if v.Name != name { // else an input is an output
			if s.Fresh(name) != name {
				return fmt.Errorf("a part of it is %s, the name of another value: %w", name, op.ErrUnsupported)
			}
			if same = n.Emit("identity", []*ir.Value{v}, nil, []string{name})[0]; n.Err != nil {
				return n.Err
			}
			s.IsText[same] = text
		}
		s.Block.Results = append(s.Block.Results, same)
		s.result.Outputs = append(s.result.Outputs, Value{Name: name, Type: v.Type, Text: text, Of: c})
	}
	return nil
}

// packedOutput returns the parts of an output whose length is not known at
// load, and what follows its name in theirs.
func (n *Node) packedOutput(c *Composite, b *Binding) (values []*ir.Value, suffixes []string) {
	f := map[Kind]form{Sequence: asSequence, Optional: asOptionalTensor, OptionalSequence: asOptionalSequence}[c.Kind]
	if f == asSequence && formOf(b) == asOptionalSequence {
		p := *b.List.Packed // a state of a loop that began as an optional
		p.Has = nil
		b = &Binding{List: OpenList(&p)}
	}
	p := n.as(b, f, c.Elem.DType, c.Text)
	if p == nil {
		return nil, nil
	}
	c.Elem, c.Text = op.Type{DType: p.Data.Type.DType}, n.IsText[p.Data]
	return p.Parts(), []string{Elements, Sizes, Has}
}

// undeclared returns the composite that an output is by itself, nil for a
// tensor.
func (s *Scope) undeclared(name string, b *Binding) *Composite {
	c := &Composite{Name: name, Items: -1}
	switch formOf(b) {
	case asSequence:
		c.Kind = Sequence
	case asOptionalTensor, asAbsent:
		c.Kind = Optional
	case asOptionalSequence:
		c.Kind = OptionalSequence
	default:
		return nil
	}
	return c
}
