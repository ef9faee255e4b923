package onnx

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// mlDomain is the domain of ONNX for classical machine learning.
const mlDomain = "ai.onnx.ml"

// mlTable holds the operators of mlDomain that are read: those that make
// numbers of strings.
var mlTable = map[string]operator{
	"LabelEncoder": {from: 1, till: 5, lift: liftLabelEncoder},
}

// liftLabelEncoder looks strings up in a list, and gathers what belongs to
// each from a table, at whose end is what belongs to every other string.
func liftLabelEncoder(n *node) {
	if len(n.args) != 1 || !n.text[n.args[0]] {
		if x := n.arg(0); x != nil && x.Type.IsZero() {
			n.giveUp()
			return
		}
		n.unsupported("operands that are no strings")
		return
	}
	keys := n.labelKeys()
	table, text := n.labelValues(len(keys))
	if n.noMoreAttrs(); n.err != nil {
		return
	}
	index := n.call("string_index", n.args, op.Attr{Name: "keys", Value: keys})
	n.finish("gather", []*ir.Value{table, index})
	if text {
		n.markText()
	}
}

// labelKeys takes the strings that are looked up.
func (n *node) labelKeys() []string {
	if n.opset == 1 {
		keys, _ := take[[]string](n, "classes_strings")
		return keys
	}
	if keys, ok := take[[]string](n, "keys_strings"); ok {
		return keys
	}
	t, ok := take[*tensorProto](n, "keys_tensor")
	if !ok {
		n.unsupported("keys that are no strings")
		return nil
	}
	typ, data, text := n.attrTensor(t)
	if n.err == nil && !text {
		n.unsupported("keys that are no strings")
	}
	if n.err != nil {
		return nil
	}
	var keys []string
	for row := range slices.Chunk(data, typ.Shape.Size(typ.Shape.Rank()-1)) {
		keys = append(keys, withoutZeros(row))
	}
	return keys
}

// withoutZeros is the string that a row of bytes holds.
func withoutZeros(row []byte) string {
	for len(row) > 0 && row[len(row)-1] == 0 {
		row = row[:len(row)-1]
	}
	return string(row)
}

// attrTensor reads a tensor in an attribute.
func (n *node) attrTensor(t *tensorProto) (typ op.Type, data []byte, text bool) {
	d, err := t.check()
	if err == nil {
		data, err = t.elements(d)
	}
	if err != nil && n.err == nil {
		n.err = err
	}
	return d.typ, data, d.text
}

// labelValues takes the values of so many keys, and the one of everything
// else, as one table.
func (n *node) labelValues(count int) (table *ir.Value, text bool) {
	name := n.fresh(n.name + ".values")
	if list, ok := take[[]string](n, "values_strings"); ok {
		list = append(slices.Clone(list), takeOr(n, "default_string", "_Unused"))
		n.ignore("default_int64", "default_float")
		return n.labels(name, list, count), true
	}
	var typ op.Type
	var data, rest []byte
	if t, ok := take[*tensorProto](n, "values_tensor"); ok {
		return n.labelTensor(name, t, count)
	} else if list, ok := take[[]float32](n, "values_floats"); ok {
		typ, data = floatList(list)
		_, rest = floatList([]float32{takeOr(n, "default_float", float32(math.Copysign(0, -1)))})
		n.ignore("default_int64", "default_string")
	} else {
		list, ok := take[[]int64](n, "values_int64s")
		for i := 0; n.opset == 1 && i < count; i++ {
			list, ok = append(list, int64(i)), true
		}
		if !ok {
			n.fail("got no values, want one for each key")
		}
		typ, data = intList(list)
		_, rest = intList([]int64{takeOr(n, "default_int64", int64(-1))})
		n.ignore("default_float", "default_string")
	}
	return n.tableOf(name, typ, append(data, rest...), count), false
}

// tableOf makes the table, of values of a type for so many keys and one more.
func (n *node) tableOf(name string, typ op.Type, data []byte, count int) *ir.Value {
	if n.err == nil && (typ.Shape.Rank() != 1 || typ.Shape.NumElements() != count) {
		n.fail("got values %s, want one for each of %d keys", typ, count)
	}
	if n.err != nil {
		return nil
	}
	return n.weight(name, op.Type{DType: typ.DType, Shape: shape.MustOf(count + 1)}, data)
}

// labels makes a table of strings.
func (n *node) labels(name string, list []string, count int) *ir.Value {
	if n.err == nil && len(list) != count+1 {
		n.fail("got %d values, want one for each of %d keys", len(list)-1, count)
	}
	return n.textWeight(name, list, len(list))
}

// labelTensor makes a table of a tensor and its default.
func (n *node) labelTensor(name string, t *tensorProto, count int) (table *ir.Value, text bool) {
	rest, given := take[*tensorProto](n, "default_tensor")
	if !given {
		n.unsupported("values_tensor without default_tensor")
	}
	if n.err != nil {
		return nil, false
	}
	typ, data, text := n.attrTensor(t)
	other, last, same := n.attrTensor(rest)
	switch {
	case n.err != nil:
	case text || same || typ.DType.Size() == 0:
		n.unsupported("values_tensor of %s", typ.DType)
	case other.DType != typ.DType || other.Shape.NumElements() != 1:
		n.fail("default_tensor: got %s, want one element of %s: %w", other, typ.DType, dtype.ErrDType)
	}
	return n.tableOf(name, typ, append(slices.Clone(data), last...), count), false
}
