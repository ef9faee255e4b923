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

// Call emits an intermediate call and returns its result, which is named
// after the node's first output.
func (n *Node) Call(name string, args []*ir.Value, attrs ...op.Attr) *ir.Value {
	if n.Err != nil {
		return nil
	}
	base := n.Name
	if len(n.Proto.Outputs) > 0 {
		base = n.Path + n.Proto.Outputs[0]
	}
	return n.Emit(name, args, attrs, []string{n.Fresh(base + "." + name)})[0]
}

// Finish emits the call whose results are the outputs of the node. Of optional
// results it has only those that are read.
func (n *Node) Finish(name string, args []*ir.Value, attrs ...op.Attr) {
	if to := n.narrow; to != dtype.Invalid {
		n.narrow = dtype.Invalid
		name, args, attrs = "cast", []*ir.Value{n.Call(name, args, attrs...)}, []op.Attr{{Name: "to", Value: to}}
	}
	def := n.Def(name)
	if n.Err != nil {
		return
	}
	outputs := slices.Clone(n.Proto.Outputs)
	if def.MaxResults != op.Variadic {
		for i := max(def.MinResults, 1); i < len(outputs); i++ {
			if !n.Wanted(i) {
				outputs[i] = ""
			}
		}
		for len(outputs) > 1 && outputs[len(outputs)-1] == "" {
			outputs = outputs[:len(outputs)-1]
		}
		if limit := max(def.MaxResults, 1); len(outputs) > limit {
			n.Unsupported("output %d", limit)
			return
		}
	}
	n.Bind(outputs, func(names []string) []*ir.Value { return n.Emit(name, args, attrs, names) })
}

// Bind binds outputs to the values that emit makes, under the names of the
// program that it is passed: "" for an absent output.
func (n *Node) Bind(outputs []string, emit func(names []string) []*ir.Value) {
	if n.Err != nil {
		return
	}
	names := make([]string, len(outputs))
	for i, out := range outputs {
		if out != "" {
			names[i] = n.ValueName(out)
		}
	}
	for i, v := range emit(names) {
		if v != nil && n.Err == nil {
			n.Values[outputs[i]] = &Binding{Value: v}
		}
	}
}

// Def returns the operator of that name in the registry.
func (n *Node) Def(name string) *op.Def {
	def := n.Registry.Lookup(name)
	if def == nil {
		n.Unsupported("operator %s", name)
	}
	return def
}

// Emit appends a call and returns its results, under the given names; an
// empty name is a result that is not wanted.
func (n *Node) Emit(name string, args []*ir.Value, attrs []op.Attr, names []string, regions ...*ir.Block) []*ir.Value {
	results := make([]*ir.Value, len(names))
	def := n.Def(name)
	if n.Err != nil {
		return results
	}
	for len(args) > def.MinArgs && args[len(args)-1] == nil {
		args = args[:len(args)-1]
	}
	sorted, err := op.NewAttrs(withoutDefaults(def, attrs)...)
	if err != nil {
		n.Fail("%s: %w", name, err)
		return results
	}
	c := &ir.Call{Op: def, Attrs: sorted, Regions: regions, Node: n.Name, Args: make([]ir.Operand, len(args)), Results: results}
	for i, v := range args {
		c.Args[i].Value = v
	}
	for i, result := range names {
		if result != "" {
			results[i] = n.Program.NewValue(ir.Result, result, op.Type{})
			results[i].Def, results[i].Index = c, i
		}
	}
	n.infer(c)
	if n.Err == nil {
		n.Block.Calls = append(n.Block.Calls, c)
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
func (n *Node) infer(c *ir.Call) {
	for i, a := range c.Args {
		if a.Value != nil && a.Value.Type.IsZero() {
			if err := errors.Join(c.Op.Arity(len(c.Args), len(c.Results)), c.Op.CheckAttrs(c.Attrs)); err != nil {
				n.Fail("%s: %w", c.Op.Name, err)
			}
			return
		}
		if a.Value == nil && i < c.Op.MinArgs {
			n.Fail("%s: operand %d is absent, want a value", c.Op.Name, i)
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
	sig := c.Sig(ir.Known(n.Store))
	if err := op.InferTypes(sig); err != nil {
		n.Fail("%w", err)
		return
	}
	for i, v := range c.Results {
		if v != nil {
			v.Type = sig.Results[i]
		}
	}
}

// Plain lifts a node whose form is that of the newest opset.
func Plain(n *Node) { n.FinishNewest(n.Args) }

// FinishNewest is finish with the operator that has the node's own name, and
// with all attributes that are left.
func (n *Node) FinishNewest(args []*ir.Value, attrs ...op.Attr) { n.FinishAs(n.OpName, args, attrs...) }

// FinishAs is finishNewest under another name of ONNX.
func (n *Node) FinishAs(opName string, args []*ir.Value, attrs ...op.Attr) {
	def := n.Registry.LookupONNX(opName)
	if def == nil {
		n.Unsupported("no such operator")
		return
	}
	n.Finish(def.Name, args, append(attrs, n.restOf(def)...)...)
}

// restOf converts the attributes that are left into those of an operator.
func (n *Node) restOf(def *op.Def) []op.Attr {
	var out []op.Attr
	for i := range def.Attrs {
		d := &def.Attrs[i]
		v, ok := n.TakeAny(d.Name)
		if !ok {
			continue
		}
		value, err := ConvertAttr(v, d.Kind)
		if err != nil {
			n.Fail("attribute %q: %w", d.Name, err)
			return nil
		}
		out = append(out, op.Attr{Name: d.Name, Value: value})
	}
	n.NoMoreAttrs()
	return out
}

// NoMoreAttrs ends the node if it has attributes that no lift function has
// taken. Names that begin with two underscores are those of tools, and say
// nothing to others.
func (n *Node) NoMoreAttrs() {
	var names []string
	for i := range n.Attrs {
		if !strings.HasPrefix(n.Attrs[i].Name, "__") {
			names = append(names, strconv.Quote(n.Attrs[i].Name))
		}
	}
	if len(names) > 0 {
		n.Unsupported("attribute %s", strings.Join(names, " and "))
	}
}

// ConvertAttr returns an attribute of a file as the operator table has it.
func ConvertAttr(v any, kind op.AttrKind) (any, error) {
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
	case *wire.Sparse:
		return "sparse tensor"
	case *wire.Graph:
		return "graph"
	case *wire.Type:
		return "type"
	case wire.OtherKind:
		return string(v)
	}
	return "nothing"
}
