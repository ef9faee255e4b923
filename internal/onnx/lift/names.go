package lift

import (
	"strconv"

	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// find returns the binding of a name.
func (s *Scope) find(name string) (*Binding, error) {
	for in := s; in != nil; in = in.parent {
		b := in.Values[name]
		switch {
		case b == nil:
		case b.Value == nil && b.init != nil:
			return b, in.load(name, b)
		default:
			return b, nil
		}
	}
	return nil, wire.Corruptf("no input, initializer or node gives that")
}

// load makes a weight of an initializer at its first use: what no node reads
// takes no memory.
func (s *Scope) load(name string, b *Binding) error {
	b.Value = s.Program.NewValue(ir.Weight, s.ValueName(name), op.Type{})
	if b.init.err != nil {
		s.missing.add("", 0, reason(b.init.err), name)
		return nil
	}
	b.Value.Type = b.init.typ()
	if b.init.data.Text {
		s.IsText[b.Value] = true
		if s.inlined += b.init.data.Bytes; s.inlined > s.maxInlined {
			return tooMuchf("the strings and functions of the model expand to more than %d bytes", s.maxInlined)
		}
	}
	s.Program.Weights = append(s.Program.Weights, b.Value)
	return s.weights.add(b.Value, b.init)
}

// ValueName returns the name in the program of a value of this scope. Names of
// the main graph are their own.
func (s *Scope) ValueName(name string) string {
	if s.fn == nil && s.parent == nil {
		return name
	}
	if s.fn == nil {
		return s.Fresh(name)
	}
	if outside, ok := s.fn.outputs[name]; ok && s.parent == nil {
		return outside
	}
	return s.Fresh(s.Path + name)
}

// Fresh returns the name or, if it is taken, the name with a number.
func (im *importer) Fresh(name string) string {
	for n, base := 2, name; im.taken[name]; n++ {
		name = base + "#" + strconv.Itoa(n)
	}
	im.taken[name] = true
	return name
}

// nodeName returns what errors and calls name node i.
func (s *Scope) nodeName(i int) string {
	n := &s.nodes[i]
	switch {
	case n.Name == "":
		return s.Path + n.OpType + "#" + strconv.Itoa(i)
	case s.fn != nil:
		return s.Path + n.Name
	}
	return n.Name
}
