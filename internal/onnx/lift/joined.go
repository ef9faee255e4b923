package lift

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// form is how a result of an If or a state of a Loop is carried in the program.
type form uint8

const (
	asTensor form = iota
	asSequence
	asOptionalTensor   // a sequence of at most one element
	asOptionalSequence // a sequence and a flag
	asAbsent           // an optional without an element, of a type that is not known yet
)

// formOf returns the form of a value on its own.
func formOf(b *Binding) form {
	l := b.List
	switch {
	case l == nil:
		return asTensor
	case l.Absent:
		return asAbsent
	case l.Open && l.Packed.One:
		return asOptionalTensor
	case l.Open && l.Packed.Has != nil:
		return asOptionalSequence
	}
	return asSequence
}

// declaredForm returns the form that a declared type asks for, asTensor if the
// file does not say.
func declaredForm(t *wire.Type) form {
	switch {
	case t.Kind == "sequence":
		return asSequence
	case t.Kind == "optional" && t.Elem != nil && t.Elem.Kind == "sequence":
		return asOptionalSequence
	case t.Kind == "optional" && t.Elem != nil && t.Elem.Kind == "tensor":
		return asOptionalTensor
	}
	return asTensor
}

// either returns the form that carries values of both forms, false if there is
// none.
func (f form) either(g form) (form, bool) {
	if f > g {
		f, g = g, f
	}
	switch {
	case f == g:
		return f, true
	case f == asTensor && (g == asOptionalTensor || g == asAbsent):
		return asOptionalTensor, true
	case f == asSequence && (g == asOptionalSequence || g == asAbsent):
		return asOptionalSequence, true
	case g == asAbsent:
		return f, true
	}
	return 0, false
}

// pieces is how many values of the program carry a value.
func (f form) pieces() int {
	switch f {
	case asTensor:
		return 1
	case asOptionalSequence:
		return 3
	}
	return 2
}

// elementType returns the element type of a value or of its elements, Invalid
// if it is not known.
func (s *Scope) elementType(b *Binding) (dt dtype.DType, text bool) {
	switch l := b.List; {
	case b.Value != nil:
		return b.Value.Type.DType, s.IsText[b.Value]
	case l == nil:
		return dtype.Invalid, false
	case l.Packed != nil:
		return l.Packed.Data.Type.DType, s.IsText[l.Packed.Data]
	case len(l.Items) > 0:
		return l.Items[0].Type.DType, s.IsText[l.Items[0]]
	default:
		return l.DType, l.Text
	}
}

// as returns a value in a packed form. An empty one has the given element type.
func (n *Node) as(b *Binding, f form, dt dtype.DType, text bool) *Packed {
	if own := formOf(b); n.Err == nil && own != f {
		if got, ok := own.either(f); !ok || got != f {
			n.Fail("got a tensor, sequence or optional where another of them is wanted")
		}
	}
	l := b.List
	switch {
	case n.Err != nil:
		return nil
	case l != nil && l.Maps != nil:
		n.Unsupported("maps as results of a nested graph")
		return nil
	case l == nil:
		l = &List{Items: []*ir.Value{b.Value}}
	case l.Absent || !l.Open && len(l.Items) == 0:
		empty := &List{Absent: l.Absent, DType: l.DType, Text: l.Text}
		if empty.DType == dtype.Invalid || l.Absent {
			empty.DType, empty.Text = dt, text
		}
		l = empty
	}
	p := n.Pack(l)
	if p == nil {
		return nil
	}
	q := *p
	q.One = f == asOptionalTensor
	if f == asOptionalSequence && q.Has == nil {
		q.Has = n.Flag(!l.Absent)
	}
	return &q
}

// Flag returns a constant bool[].
func (n *Node) Flag(v bool) *ir.Value {
	data := []byte{0}
	if v {
		data[0] = 1
	}
	return n.Constant(fmt.Sprintf("bool %t", v), op.Type{DType: dtype.Bool, Shape: shape.Scalar()}, data)
}

// Branches are the regions of an If and what its outputs are in them.
type Branches struct {
	Blocks []*ir.Block
	forms  []form
	sizes  []int     // of outputs that are lists of one length in all branches; -1 for others
	like   []*Packed // of the first branch: the results are of its kind
	text   []bool    // whether elements are strings
}

// ImportBranches imports the branches of an If, with at least as many outputs
// as the node, and yields their values.
func (n *Node) ImportBranches(graphs []*wire.Graph, names []string) *Branches {
	b := &Branches{}
	nodes, bound := make([]*Node, len(graphs)), make([][]*Binding, len(graphs))
	for i, g := range graphs {
		s := n.NestedScope(g, names[i], &ir.Block{})
		nodes[i] = &Node{Scope: s, Name: n.Name, Proto: n.Proto}
		b.Blocks = append(b.Blocks, s.Block)
		if n.Err == nil && len(g.Inputs) > 0 {
			n.Err = fmt.Errorf("%s: %w", names[i], wire.Corruptf("got %d inputs, want none", len(g.Inputs)))
		}
		if n.Err != nil {
			return b
		}
		var err error
		if bound[i], err = s.NestedBindings(g, len(n.Proto.Outputs)); err != nil {
			n.Fail("%s: %w", names[i], err)
			return b
		}
	}
	for j := range n.Proto.Outputs {
		n.joinBranches(b, nodes, []*Binding{bound[0][j], bound[1][j]})
	}
	return b
}

// joinBranches yields the next output of both branches.
func (n *Node) joinBranches(b *Branches, nodes []*Node, values []*Binding) {
	f, ok := formOf(values[0]).either(formOf(values[1]))
	if !ok {
		n.Fail("got a tensor of one branch and a sequence of the other, want one kind")
		return
	}
	size, like := -1, (*Packed)(nil)
	dt, text := n.elementType(values[0])
	switch other, isText := n.elementType(values[1]); {
	case dt == dtype.Invalid:
		dt, text = other, isText
	case other != dtype.Invalid && text != isText:
		n.Fail("got strings of one branch and %s of the other, want one element type: %w", other, dtype.ErrDType)
		return
	}
	fixed := func(l *List) int {
		if l == nil || l.Open || len(l.Items) == 0 {
			return -1
		}
		return len(l.Items)
	}
	if f == asSequence && fixed(values[0].List) == fixed(values[1].List) {
		size = fixed(values[0].List)
	}
	for i, v := range values {
		m := nodes[i]
		switch {
		case f == asTensor:
			m.Block.Results = append(m.Block.Results, v.Value)
		case f == asAbsent:
		case size >= 0:
			m.Block.Results = append(m.Block.Results, v.List.Items...)
		default:
			m.Err = n.Err
			p := m.as(v, f, dt, text)
			if n.Err = m.Err; p == nil {
				return
			}
			if like == nil {
				like = p
			} else {
				like.rank.join(n, p.rank)
			}
			m.Block.Results = append(m.Block.Results, p.Parts()...)
		}
	}
	b.forms, b.sizes, b.like, b.text = append(b.forms, f), append(b.sizes, size), append(b.like, like), append(b.text, text)
}

// BindBranches binds the outputs of an If to the results of a call.
func (n *Node) BindBranches(b *Branches, emit func(names []string) []*ir.Value) {
	if n.Err != nil {
		return
	}
	if len(b.forms) < len(n.Proto.Outputs) { // something in a branch is not supported
		n.GiveUp()
		return
	}
	var names []string
	for j, out := range n.Proto.Outputs {
		names = append(names, n.pieceNames(out, b.forms[j], b.sizes[j])...)
	}
	values := emit(names)
	if n.Err != nil {
		return
	}
	for j, out := range n.Proto.Outputs {
		count := b.forms[j].pieces()
		if b.sizes[j] >= 0 {
			count = b.sizes[j]
		} else if b.forms[j] == asAbsent {
			count = 0
		}
		pieces := values[:count]
		values = values[count:]
		if out == "" {
			continue
		}
		switch {
		case b.forms[j] == asTensor:
			n.markText(pieces[0], b.text[j])
			n.Values[out] = &Binding{Value: pieces[0]}
		case b.forms[j] == asAbsent:
			n.Values[out] = &Binding{List: &List{Absent: true}}
		case b.sizes[j] >= 0:
			for _, v := range pieces {
				n.markText(v, b.text[j])
			}
			n.Values[out] = &Binding{List: &List{Items: pieces, scope: n.Scope}}
		default:
			n.markText(pieces[0], b.text[j])
			p := b.like[j].with(n.Scope, pieces)
			n.Values[out] = &Binding{List: OpenList(p)}
		}
	}
}

func (n *Node) markText(v *ir.Value, text bool) {
	if text && v != nil {
		n.IsText[v] = true
	}
}

// pieceNames names the values that carry an output.
func (n *Node) pieceNames(out string, f form, size int) []string {
	count := f.pieces()
	switch {
	case size >= 0:
		count = size
	case f == asAbsent:
		count = 0
	}
	names := make([]string, count)
	for i := range names {
		switch {
		case out == "":
		case f == asTensor:
			names[i] = n.ValueName(out)
		case size >= 0:
			names[i] = n.Fresh(n.Path + out + fmt.Sprintf(".%d", i))
		default:
			names[i] = n.Fresh(n.Path + out + pieceSuffixes[i])
		}
	}
	return names
}

// pieceSuffixes follow the name of a sequence or optional in the names of the
// values that carry it within the program.
var pieceSuffixes = [...]string{".list", ".table", ".has-value"}

// States are the values that a Loop carries.
type States struct {
	Args   []*ir.Value // operands of the loop
	Names  []string    // of the parameters of its region
	forms  []form
	like   []*Packed // nil for tensors
	text   []bool    // whether a tensor, or the elements of a sequence, are strings
	params []*Packed
}

// NewStates converts operands of a Loop from one on into the values that it
// carries. declared are the body's inputs for them. It returns nil if the node
// has ended.
func (n *Node) NewStates(from int, declared []wire.Value) *States {
	st := &States{}
	for i := from; i < len(n.Args); i++ {
		if !n.addState(st, i, &declared[i-from]) {
			return nil
		}
	}
	return st
}

// addState adds operand i to the states.
func (n *Node) addState(st *States, i int, in *wire.Value) bool {
	b := &Binding{Value: n.Args[i], List: n.List(i)}
	f := formOf(b)
	dt, text := n.elementType(b)
	if want := declaredForm(&in.Type); want != asTensor && (b.List != nil || b.Value != nil && !b.Value.Type.IsZero()) {
		g, ok := f.either(want)
		if !ok {
			n.Fail("operand %d: got another type than %s, which the body declares for %q", i, in.Type.String(), in.Name)
			return false
		}
		if f = g; dt == dtype.Invalid {
			dt, text = ElementOf(&in.Type)
		}
	}
	switch {
	case b.Value == nil && b.List == nil:
		n.Unsupported("operand %d: got no tensor to carry, want one", i)
		return false
	case f == asAbsent:
		n.Unsupported("operand %d: got an optional without an element to carry, of a type that the body does not declare", i)
		return false
	}
	st.forms, st.text = append(st.forms, f), append(st.text, text)
	if f == asTensor {
		st.Args, st.Names, st.like = append(st.Args, b.Value), append(st.Names, in.Name), append(st.like, nil)
		return true
	}
	p := n.as(b, f, dt, text)
	if p == nil {
		return false
	}
	st.Args, st.like = append(st.Args, p.Parts()...), append(st.like, p)
	for k := range p.Parts() {
		st.Names = append(st.Names, in.Name+pieceSuffixes[k])
	}
	return true
}

// ElementOf returns the element type that a declared sequence or optional
// has.
func ElementOf(t *wire.Type) (dt dtype.DType, text bool) {
	for t.Elem != nil {
		t = t.Elem
	}
	dt, err := dtype.FromONNX(t.ElemType)
	if err != nil {
		return dtype.Invalid, false
	}
	if dt == dtype.String {
		return dtype.U8, true
	}
	return dt, false
}

// Params binds inputs of the body, from one on, to parameters of its region.
func (st *States) Params(r *Node, inputs []wire.Value, params []*ir.Value) {
	for j, f := range st.forms {
		pieces := params[:f.pieces()]
		params = params[len(pieces):]
		if f == asTensor {
			r.markText(pieces[0], st.text[j])
			r.Values[inputs[j].Name] = &Binding{Value: pieces[0]}
			st.params = append(st.params, nil)
			continue
		}
		r.markText(pieces[0], r.IsText[st.like[j].Data])
		p := st.like[j].with(r.Scope, pieces)
		p.rank = &rank{}
		p.rank.join(r, st.like[j].rank)
		st.params = append(st.params, p)
		r.Values[inputs[j].Name] = &Binding{List: OpenList(p)}
	}
}

// Results returns the values of the next iteration for what the body yields.
func (st *States) Results(r *Node, yielded []*Binding) []*ir.Value {
	var values []*ir.Value
	for j, f := range st.forms {
		b := yielded[j]
		if f == asTensor {
			if b.Value == nil {
				r.Fail("got a sequence or optional as state %d, which begins as a tensor", j)
				return nil
			}
			if r.IsText[b.Value] != st.text[j] {
				r.Fail("state %d: got %s, want strings in every iteration or in none: %w", j, TypeText(b.Value.Type, r.IsText[b.Value]), dtype.ErrDType)
				return nil
			}
			values = append(values, b.Value)
			continue
		}
		p := r.as(b, f, st.like[j].Data.Type.DType, r.IsText[st.like[j].Data])
		if p == nil {
			return nil
		}
		if p.Data.Type.DType != st.like[j].Data.Type.DType || r.IsText[p.Data] != r.IsText[st.like[j].Data] {
			r.Fail("state %d: got elements of %s in a sequence of %s: %w", j, p.Data.Type.DType, st.like[j].Data.Type.DType, dtype.ErrDType)
			return nil
		}
		st.params[j].rank.join(r, p.rank)
		values = append(values, p.Parts()...)
	}
	return values
}

// OutputNames names the results of the loop for its states: the outputs of the
// node, of which there may be fewer.
func (st *States) OutputNames(n *Node, outputs []string) []string {
	var names []string
	for j, f := range st.forms {
		out := ""
		if j < len(outputs) {
			out = outputs[j]
		}
		names = append(names, n.pieceNames(out, f, -1)...)
	}
	return names
}

// Bind binds the outputs of the node to the results of the loop for its states.
func (st *States) Bind(n *Node, outputs []string, values []*ir.Value) {
	for j, f := range st.forms {
		pieces := values[:f.pieces()]
		values = values[len(pieces):]
		if j >= len(outputs) || outputs[j] == "" {
			continue
		}
		if f == asTensor {
			n.markText(pieces[0], st.text[j])
			n.Values[outputs[j]] = &Binding{Value: pieces[0]}
			continue
		}
		n.markText(pieces[0], n.IsText[st.like[j].Data])
		n.Values[outputs[j]] = &Binding{List: OpenList(st.params[j].with(n.Scope, pieces))}
	}
}
