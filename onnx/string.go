package onnx

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
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
	lift := stringLifts[n.proto.opType]
	if domain := domainOf(n.proto.domain); domain == mlDomain && n.reg.LookupONNX(n.opName) == nil {
		lift = mlTable[n.proto.opType].lift
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
	outputs := n.proto.outputs
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
func textWidthOf(name string, inputs []valueProto) shape.Dim {
	symbol := name + ".width"
	for taken := true; taken; {
		taken = false
		for i := range inputs {
			for _, d := range inputs[i].typ.dims {
				taken = taken || d.symbol == symbol
			}
		}
		if taken {
			symbol += "#"
		}
	}
	return shape.Sym(symbol)
}

// eachString calls visit with every string of a tensor's data.
func (t *tensorProto) eachString(visit func(s []byte) error) error {
	m := t.message()
	for f := (field{}); m.next(&f); {
		if f.num == stringData {
			m.fault(&f, visit(f.body))
		}
	}
	return m.err
}

// textType returns the type of a tensor of strings of the given sizes: as wide
// as the longest of them.
func (t *tensorProto) textType(sizes []int) (op.Type, error) {
	width := 1
	err := t.eachString(func(s []byte) error {
		width = max(width, len(s))
		if bytes.IndexByte(s, 0) >= 0 {
			return fmt.Errorf("got a string with a NUL, which ends strings here: %w", op.ErrUnsupported)
		}
		return nil
	})
	if err != nil {
		return op.Type{}, err
	}
	s, err := shape.Of(append(sizes, width)...)
	return op.Type{DType: dtype.U8, Shape: s}, err
}

// checkText compares a head with strings, in the place of other data.
func (t *tensorProto) checkText(d *tensorData, l numberLists) error {
	if t.external != nil || t.raw != nil {
		return corruptf("got strings outside of string_data")
	}
	// One long string makes all of them long.
	if limit := minExpansion + maxExpansion*len(t.body); d.bytes > limit {
		return fmt.Errorf("got %s, which take %d bytes at the width of the longest, want at most %d: %w", d.typ.AsText(), d.bytes, limit, op.ErrUnsupported)
	}
	count := d.bytes / d.typ.Shape.Size(d.typ.Shape.Rank()-1)
	if l.field != 0 && l.field != stringData || l.count != count {
		return corruptf("got %d elements of data, want %d strings in string_data", l.count, count)
	}
	return nil
}

// putStrings writes the strings to dst, each filled up with zeros.
func (t *tensorProto) putStrings(d tensorData, dst []byte) error {
	clear(dst)
	width := d.typ.Shape.Size(d.typ.Shape.Rank() - 1)
	return t.eachString(func(s []byte) error {
		copy(dst, s)
		dst = dst[width:]
		return nil
	})
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
