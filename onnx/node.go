package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
)

// maxAttrs and maxOutputs bound what is compared each with each.
const (
	maxAttrs   = 1 << 8
	maxOutputs = 1 << 12
)

// node is one node while it is lifted. Its methods keep the first error in
// err; after that they do nothing, so that a lift function reads straight on.
//
// A value of the zero type stands for the result of something that is not
// supported. Calls that read one are checked as far as they can be without
// its type, and give such values themselves: the import goes on, and finds
// everything that is missing.
type node struct {
	*scope
	proto  *wire.Node
	name   string
	opName string // the operator with its domain, for reports
	opset  int64  // version of the operator's domain
	args   []*ir.Value
	lists  []*list          // operands that are sequences or empty optionals: nil in args; empty if none is
	attrs  []wire.Attribute // those that no lift function has taken yet
	err    error
	narrow dtype.DType // what finish casts the result to; Invalid for nothing
}

// node imports node i of the scope.
func (s *scope) node(i int) error {
	p := &s.nodes[i]
	n := &node{scope: s, proto: p, name: s.nodeName(i), opName: operatorName(p)}
	for j, name := range p.Inputs {
		b := &binding{}
		if name != "" {
			var err error
			if b, err = s.find(name); err != nil {
				return fmt.Errorf("node %q reads %q: %w", n.name, name, err)
			}
		}
		n.args = append(n.args, b.value)
		if b.list != nil {
			if n.lists == nil {
				n.lists = make([]*list, len(p.Inputs))
			}
			n.lists[j] = b.list
		}
	}
	if err := s.checkOutputs(p); err != nil {
		return fmt.Errorf("node %q: %w", n.name, err)
	}
	n.readAttrs()
	n.lift()
	switch {
	case errors.Is(n.err, op.ErrUnsupported):
		s.missing.add(n.opName, n.opset, reason(n.err), n.name)
		n.giveUp()
	case n.err != nil:
		return fmt.Errorf("node %q: %w", n.name, n.err)
	}
	for _, name := range p.Outputs {
		if name != "" && s.values[name] == nil { // not asked for, because nobody reads it
			s.values[name] = &binding{}
		}
	}
	return nil
}

// checkOutputs looks for names that are taken.
func (s *scope) checkOutputs(p *wire.Node) error {
	if len(p.Outputs) == 0 {
		return wire.Corruptf("got no outputs, want one or more")
	}
	for j, name := range p.Outputs {
		if name == "" {
			continue
		}
		if s.values[name] != nil {
			return wire.Corruptf("output %q: got a second value of that name", name)
		}
		if j >= maxOutputs {
			return wire.Corruptf("got %d outputs, want at most %d", len(p.Outputs), maxOutputs)
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

// giveUp gives outputs that have no value yet one of the zero type.
func (n *node) giveUp() {
	for _, name := range n.proto.Outputs {
		if name != "" && n.values[name] == nil {
			n.values[name] = &binding{value: n.prog.NewValue(ir.Result, name, op.Type{})}
		}
	}
}

// operatorName returns "Relu" or "domain::Type".
func operatorName(p *wire.Node) string {
	if d := domainOf(p.Domain); d != "" {
		return d + "::" + p.OpType
	}
	return p.OpType
}

// printable returns text from the file as errors may show it: quoted unless it
// is all plain characters.
func printable(s string) string {
	if q := strconv.Quote(s); q[1:len(q)-1] != s {
		return q
	}
	return s
}

func (n *node) fail(format string, args ...any) {
	if n.err == nil {
		n.err = fmt.Errorf(format, args...)
	}
}

// unsupported ends the node as something that is not supported.
func (n *node) unsupported(format string, args ...any) {
	n.fail("%s: %w", fmt.Sprintf(format, args...), op.ErrUnsupported)
}

// arg returns operand i, nil when it is absent.
func (n *node) arg(i int) *ir.Value {
	if i < len(n.args) {
		return n.args[i]
	}
	return nil
}

// rank returns the rank of an operand, false when it is not known.
func (n *node) rank(i int) (int, bool) {
	if v := n.arg(i); v != nil && v.Type.Shape != nil {
		return v.Type.Shape.Rank(), true
	}
	return 0, false
}

// wanted reports whether somebody reads output i.
func (n *node) wanted(i int) bool {
	return i < len(n.proto.Outputs) && n.proto.Outputs[i] != "" && n.used[n.proto.Outputs[i]]
}

// call emits an intermediate call and returns its result, which is named
// after the node's first output.
func (n *node) call(name string, args []*ir.Value, attrs ...op.Attr) *ir.Value {
	if n.err != nil {
		return nil
	}
	base := n.name
	if len(n.proto.Outputs) > 0 {
		base = n.path + n.proto.Outputs[0]
	}
	return n.emit(name, args, attrs, []string{n.fresh(base + "." + name)})[0]
}

// finish emits the call that gives the outputs of the node. Of optional
// results only those are asked for that somebody reads.
func (n *node) finish(name string, args []*ir.Value, attrs ...op.Attr) {
	if to := n.narrow; to != dtype.Invalid {
		n.narrow = dtype.Invalid
		name, args, attrs = "cast", []*ir.Value{n.call(name, args, attrs...)}, []op.Attr{{Name: "to", Value: to}}
	}
	def := n.def(name)
	if n.err != nil {
		return
	}
	outputs := slices.Clone(n.proto.Outputs)
	if def.MaxResults != op.Variadic {
		for i := max(def.MinResults, 1); i < len(outputs); i++ {
			if !n.wanted(i) {
				outputs[i] = ""
			}
		}
		for len(outputs) > 1 && outputs[len(outputs)-1] == "" {
			outputs = outputs[:len(outputs)-1]
		}
		if limit := max(def.MaxResults, 1); len(outputs) > limit {
			n.unsupported("output %d", limit)
			return
		}
	}
	n.bind(outputs, func(names []string) []*ir.Value { return n.emit(name, args, attrs, names) })
}

// bind gives the outputs the values that emit makes under the names of the
// program. An absent output has no name.
func (n *node) bind(outputs []string, emit func(names []string) []*ir.Value) {
	if n.err != nil {
		return
	}
	names := make([]string, len(outputs))
	for i, out := range outputs {
		if out != "" {
			names[i] = n.valueName(out)
		}
	}
	for i, v := range emit(names) {
		if v != nil && n.err == nil {
			n.values[outputs[i]] = &binding{value: v}
		}
	}
}

// def returns the operator of that name in the registry.
func (n *node) def(name string) *op.Def {
	def := n.reg.Lookup(name)
	if def == nil {
		n.unsupported("operator %s", name)
	}
	return def
}

// emit appends a call and returns its results, under the given names; an
// empty name is a result that is not wanted.
func (n *node) emit(name string, args []*ir.Value, attrs []op.Attr, names []string, regions ...*ir.Block) []*ir.Value {
	results := make([]*ir.Value, len(names))
	def := n.def(name)
	if n.err != nil {
		return results
	}
	for len(args) > def.MinArgs && args[len(args)-1] == nil {
		args = args[:len(args)-1]
	}
	sorted, err := op.NewAttrs(withoutDefaults(def, attrs)...)
	if err != nil {
		n.fail("%s: %w", name, err)
		return results
	}
	c := &ir.Call{Op: def, Attrs: sorted, Regions: regions, Node: n.name, Args: make([]ir.Operand, len(args)), Results: results}
	for i, v := range args {
		c.Args[i].Value = v
	}
	for i, result := range names {
		if result != "" {
			results[i] = n.prog.NewValue(ir.Result, result, op.Type{})
			results[i].Def, results[i].Index = c, i
		}
	}
	n.infer(c)
	if n.err == nil {
		n.block.Calls = append(n.block.Calls, c)
	}
	return results
}

// withoutDefaults leaves out attributes that say what holds without them: equal
// calls shall look equal.
func withoutDefaults(def *op.Def, attrs []op.Attr) []op.Attr {
	return slices.DeleteFunc(slices.Clone(attrs), func(a op.Attr) bool {
		for i := range def.Attrs {
			if d := &def.Attrs[i]; d.Name == a.Name && d.Default != nil {
				return op.Attrs{a}.Equal(op.Attrs{{Name: d.Name, Value: d.Default}})
			}
		}
		return false
	})
}

// infer sets the types of a call's results, unless something it reads is not
// supported.
func (n *node) infer(c *ir.Call) {
	for i, a := range c.Args {
		if a.Value != nil && a.Value.Type.IsZero() {
			if err := errors.Join(c.Op.Arity(len(c.Args), len(c.Results)), c.Op.CheckAttrs(c.Attrs)); err != nil {
				n.fail("%s: %w", c.Op.Name, err)
			}
			return
		}
		if a.Value == nil && i < c.Op.MinArgs {
			n.fail("%s: operand %d is absent, want a value", c.Op.Name, i)
			return
		}
	}
	for _, b := range c.Regions {
		for _, r := range b.Results {
			if r.Type.IsZero() {
				return
			}
		}
	}
	sig := c.Sig(ir.Known(n.model.Weights))
	if err := op.InferTypes(sig); err != nil {
		n.fail("%w", err)
		return
	}
	for i, v := range c.Results {
		if v != nil {
			v.Type = sig.Results[i]
		}
	}
}

// plain lifts a node whose form is that of the newest opset.
func plain(n *node) { n.finishNewest(n.args) }

// finishNewest is finish with the operator that has the node's own name, and
// with all attributes that are left.
func (n *node) finishNewest(args []*ir.Value, attrs ...op.Attr) { n.finishAs(n.opName, args, attrs...) }

// finishAs is finishNewest under another name of ONNX.
func (n *node) finishAs(opName string, args []*ir.Value, attrs ...op.Attr) {
	def := n.reg.LookupONNX(opName)
	if def == nil {
		n.unsupported("no such operator")
		return
	}
	n.finish(def.Name, args, append(attrs, n.restOf(def)...)...)
}

// restOf converts the attributes that are left into those of an operator.
func (n *node) restOf(def *op.Def) []op.Attr {
	var out []op.Attr
	for i := range def.Attrs {
		d := &def.Attrs[i]
		v, ok := n.takeAny(d.Name)
		if !ok {
			continue
		}
		value, err := convertAttr(v, d.Kind)
		if err != nil {
			n.fail("attribute %q: %w", d.Name, err)
			return nil
		}
		out = append(out, op.Attr{Name: d.Name, Value: value})
	}
	n.noMoreAttrs()
	return out
}

// noMoreAttrs ends the node if it has attributes that nobody has taken.
func (n *node) noMoreAttrs() {
	if len(n.attrs) == 0 {
		return
	}
	names := make([]string, len(n.attrs))
	for i := range n.attrs {
		names[i] = strconv.Quote(n.attrs[i].Name)
	}
	n.unsupported("attribute %s", strings.Join(names, " and "))
}

// convertAttr returns an attribute of a file as the operator table has it.
func convertAttr(v any, kind op.AttrKind) (any, error) {
	switch v := v.(type) {
	case int64:
		if kind == op.DTypeKind {
			dt, err := dtype.FromONNX(int32(min(max(v, 0), 1<<20)))
			if err == nil && dt == dtype.String {
				err = fmt.Errorf("element type %s: %w", dt, op.ErrUnsupported)
			}
			return dt, err
		}
		if kind == op.Int {
			return v, nil
		}
	case float32:
		if kind == op.Float {
			return float64(v), nil
		}
	case string:
		if kind == op.String {
			return v, nil
		}
	case []int64:
		if kind == op.Ints {
			return v, nil
		}
	case []string:
		if kind == op.Strings {
			return v, nil
		}
	case []float32:
		if kind == op.Floats {
			out := make([]float64, len(v))
			for i, x := range v {
				out[i] = float64(x)
			}
			return out, nil
		}
	}
	return nil, fmt.Errorf("got %s, want %s", kindName(v), kind)
}

func kindName(v any) string {
	switch v := v.(type) {
	case int64:
		return "int"
	case float32:
		return "float"
	case string:
		return "string"
	case []int64:
		return "ints"
	case []float32:
		return "floats"
	case []string:
		return "strings"
	case *wire.Tensor:
		return "tensor"
	case *wire.Graph:
		return "graph"
	case wire.OtherKind:
		return string(v)
	}
	return "nothing"
}
