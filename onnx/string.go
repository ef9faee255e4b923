package onnx

import (
	"maps"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Strings exist in files and not in programs: a tensor of strings [d1,...,dr]
// is one of bytes u8[d1,...,dr,width], in which each string is filled up with
// zeros. The importer knows which values are such text, and what to do with
// the dimension that the file does not know of.

// stringTable are the operators that work on strings and on nothing else.
var stringTable = map[string]operator{
	"StringNormalizer": lifted(10, liftStringsToStrings),
	"StringConcat":     lifted(20, liftStringsToStrings),
	"StringSplit":      lifted(20, liftStringsToStrings),
	"RegexFullMatch":   lifted(20, liftStrings),
}

// stringLifts lift the nodes that read strings, by operator: every other
// operator refuses them.
var stringLifts = map[string]func(*node){"Equal": liftEqualText}

func init() {
	for name, o := range stringTable {
		stringLifts[name] = o.lift
	}
	maps.Copy(stringLifts, textMoves)
}

// readsText reports whether an operand of the node, or a value of one that is
// a sequence, holds strings.
func (n *node) readsText() bool {
	for _, v := range n.args {
		if n.text[v] {
			return true
		}
	}
	for _, l := range n.lists {
		for i := 0; l != nil && i < len(l.items); i++ {
			if n.text[l.items[i]] {
				return true
			}
		}
	}
	return false
}

// liftText lifts a node that reads strings.
func (n *node) liftText() {
	lift := stringLifts[n.proto.OpType]
	if domain := domainOf(n.proto.Domain); domain == mlDomain && n.reg.LookupONNX(n.opName) == nil {
		lift = mlTable[n.proto.OpType].lift
	} else if domain != "" {
		lift = nil
	}
	switch {
	case lift == nil:
		n.unsupported("strings as an operand")
	case slices.ContainsFunc(n.args, func(v *ir.Value) bool { return v != nil && v.Type.IsZero() }):
		n.giveUp()
	default:
		lift(n)
	}
}

// wantText reports whether operands hold strings: the given ones, else all. The
// node has ended where one does not.
func (n *node) wantText(operands ...int) bool {
	for i, v := range n.args {
		switch {
		case n.err != nil:
			return false
		case n.text[v] || len(operands) > 0 && !slices.Contains(operands, i):
		case v == nil:
			n.fail("operand %d is absent, want strings", i)
		case v.Type.IsZero():
			n.giveUp()
			return false
		default:
			n.fail("operand %d: got %s, want strings: %w", i, v.Type, tensor.ErrDType)
		}
	}
	return n.err == nil
}

// markText says that the outputs of the node hold strings: so many, or all.
func (n *node) markText(first ...int) {
	outputs := n.proto.Outputs
	if len(first) > 0 {
		outputs = outputs[:min(first[0], len(outputs))]
	}
	for _, out := range outputs {
		if b := n.values[out]; b != nil && b.value != nil && n.err == nil {
			n.text[b.value] = true
		}
	}
}

// liftStrings lifts an operator that takes strings and gives none.
func liftStrings(n *node) {
	if n.wantText() {
		plain(n)
	}
}

// liftStringsToStrings lifts an operator whose first output holds strings, as
// its operands do.
func liftStringsToStrings(n *node) {
	if n.wantText() {
		plain(n)
		n.markText(1)
	}
}

// liftEqualText compares strings, whose widths may differ.
func liftEqualText(n *node) {
	n.noMoreAttrs()
	if n.wantText() {
		n.finish("string_equal", n.args)
	}
}

// textWidthOf names the width of an input's strings, by a symbol that no
// input declares.
func textWidthOf(name string, inputs []wire.Value) shape.Dim {
	symbol := name + ".width"
	for taken := true; taken; {
		taken = false
		for i := range inputs {
			for _, d := range inputs[i].Type.Dims {
				taken = taken || d.Symbol == symbol
			}
		}
		if taken {
			symbol += "#"
		}
	}
	return shape.Sym(symbol)
}

// textConstant binds an output to a weight of strings.
func (n *node) textConstant(out string, list []string, dims ...int) {
	n.noMoreAttrs()
	if v := n.textWeight(n.valueName(out), list, dims...); v != nil {
		n.values[out] = &binding{value: v}
	}
}

// textWeight makes a weight of strings.
func (n *node) textWeight(name string, list []string, dims ...int) *ir.Value {
	width := 1
	for _, s := range list {
		width = max(width, len(s))
		if strings.IndexByte(s, 0) >= 0 {
			n.unsupported("a string with a NUL, which ends strings here")
		}
	}
	if n.grow(len(list) * width / 64); n.err != nil {
		return nil
	}
	data := make([]byte, len(list)*width)
	for i, s := range list {
		copy(data[i*width:], s)
	}
	v := n.weight(name, op.Type{DType: dtype.U8, Shape: shape.MustOf(append(dims, width)...)}, data)
	if v != nil {
		n.text[v] = true
	}
	return v
}
