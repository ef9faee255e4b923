package lift

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// maxAttrs and maxOutputs bound the numbers of attributes and outputs that are
// compared pairwise.
const (
	maxAttrs   = 1 << 8
	maxOutputs = 1 << 12
)

// Node is one node while it is lifted. Its methods keep the first error in
// Err; after that they do nothing, so that a lift function reads straight on.
//
// A value of the zero type stands for the result of something that is not
// supported. Calls that read one are checked as far as they can be without
// its type, and their results are such values too: the import goes on, and
// finds everything that is not supported.
type Node struct {
	*Scope
	Proto  *wire.Node
	Name   string
	OpName string           // the operator with its domain, for reports
	Opset  int64            // version of the operator's domain
	Entry  Operator         // how it is lifted
	Args   []*ir.Value      // operands, nil for absent ones
	Lists  []*List          // operands that are sequences or empty optionals: nil in Args; empty if none is
	Attrs  []wire.Attribute // those that no lift function has taken yet
	Err    error
	narrow dtype.DType // what Finish casts the result to; Invalid for nothing
}

// node imports node i of the scope.
func (s *Scope) node(i int) error {
	p := &s.nodes[i]
	n := &Node{Scope: s, Proto: p, Name: s.nodeName(i), OpName: OperatorName(p)}
	for j, name := range p.Inputs {
		b := &Binding{}
		if name != "" {
			var err error
			if b, err = s.find(name); err != nil {
				return fmt.Errorf("%s reads %q: %w", n.title(), name, err)
			}
		}
		n.Args = append(n.Args, b.Value)
		if b.List != nil {
			if n.Lists == nil {
				n.Lists = make([]*List, len(p.Inputs))
			}
			n.Lists[j] = b.List
		}
	}
	if err := s.checkOutputs(p); err != nil {
		return fmt.Errorf("%s: %w", n.title(), err)
	}
	n.readAttrs()
	n.lift()
	switch {
	case errors.Is(n.Err, op.ErrUnsupported):
		s.missing.add(n.OpName, n.Opset, reason(n.Err), n.Name)
		n.GiveUp()
	case n.Err != nil:
		return fmt.Errorf("%s: %w", n.title(), n.Err)
	}
	for _, name := range p.Outputs {
		if name != "" && s.Values[name] == nil { // not emitted, because it is not read
			s.Values[name] = &Binding{}
		}
	}
	return nil
}

// title names the node and its operator in an error; the name of a node
// without one of its own begins with the operator.
func (n *Node) title() string {
	if n.Proto.Name == "" {
		return fmt.Sprintf("node %q", n.Name)
	}
	return fmt.Sprintf("node %q (%s)", n.Name, Printable(n.OpName))
}

// checkOutputs looks for names that are taken.
func (s *Scope) checkOutputs(p *wire.Node) error {
	if len(p.Outputs) == 0 {
		return wire.Corruptf("got no outputs, want one or more")
	}
	for j, name := range p.Outputs {
		if name == "" {
			continue
		}
		if s.Values[name] != nil {
			return wire.Corruptf("output %q: got a second value of that name", name)
		}
		if j >= maxOutputs {
			return tooMuchf("got %d outputs, want at most %d", len(p.Outputs), maxOutputs)
		}
		if slices.Contains(p.Outputs[:j], name) {
			return wire.Corruptf("output %q: got a second value of that name", name)
		}
	}
	return nil
}

// reason is the text of an error of kind ErrUnsupported without the kind.
func reason(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+op.ErrUnsupported.Error())
}

// GiveUp binds outputs that have no value yet to one of the zero type.
func (n *Node) GiveUp() {
	for _, name := range n.Proto.Outputs {
		if name != "" && n.Values[name] == nil {
			n.Values[name] = &Binding{Value: n.Program.NewValue(ir.Result, name, op.Type{})}
		}
	}
}

// OperatorName returns "Relu" or "domain::Type".
func OperatorName(p *wire.Node) string {
	if d := DomainOf(p.Domain); d != "" {
		return d + "::" + p.OpType
	}
	return p.OpType
}

// Printable returns text from the file as errors may show it: quoted unless it
// is all plain characters.
func Printable(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}

// Fail ends the node with an error, unless it has one.
func (n *Node) Fail(format string, args ...any) {
	if n.Err == nil {
		n.Err = fmt.Errorf(format, args...)
	}
}

// Remark adds a remark on the node to the notes of the model.
func (n *Node) Remark(text string) { n.Note(n.title() + ": " + text) }

// Unsupported ends the node as something that is not supported.
func (n *Node) Unsupported(format string, args ...any) {
	n.Fail("%s: %w", fmt.Sprintf(format, args...), op.ErrUnsupported)
}

// Arg returns operand i, nil when it is absent.
func (n *Node) Arg(i int) *ir.Value {
	if i < len(n.Args) {
		return n.Args[i]
	}
	return nil
}

// Rank returns the rank of an operand, false when it is not known.
func (n *Node) Rank(i int) (int, bool) {
	if v := n.Arg(i); v != nil && v.Type.Shape != nil {
		return v.Type.Shape.Rank(), true
	}
	return 0, false
}

// Wanted reports whether output i is read.
func (n *Node) Wanted(i int) bool {
	return i < len(n.Proto.Outputs) && n.Proto.Outputs[i] != "" && n.used[n.Proto.Outputs[i]]
}
