package onnx

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/onnx/internal/wire"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// mlDomain is the domain of ONNX for classical machine learning.
const mlDomain = "ai.onnx.ml"

// mlTable holds the operators of mlDomain that are read: those that make
// numbers of strings, and the other way round.
var mlTable = map[string]operator{
	"LabelEncoder": {from: 1, till: 5, lift: liftLabelEncoder},
}

// liftLabelEncoder looks keys up in a list, and gathers what belongs to each
// from a table, at whose end is what belongs to everything else.
func liftLabelEncoder(n *node) {
	if len(n.args) != 1 || n.args[0] == nil {
		n.fail("got %d operands, want 1", len(n.args))
		return
	}
	if n.args[0].Type.IsZero() {
		n.giveUp()
		return
	}
	var index func() *ir.Value
	var count int
	if n.text[n.args[0]] {
		keys := n.labelKeys()
		count = len(keys)
		index = func() *ir.Value {
			return n.call("string_index", n.args, op.Attr{Name: "keys", Value: keys})
		}
	} else {
		typ, keys := n.numberKeys()
		if n.err != nil {
			return
		}
		count = typ.Shape.NumElements()
		index = func() *ir.Value { return n.numberIndex(typ, keys) }
	}
	table, text := n.labelValues(count)
	if n.noMoreAttrs(); n.err != nil {
		return
	}
	n.finish("gather", []*ir.Value{table, index()})
	if text {
		n.markText()
	}
}

// numberKeys takes the numbers that are looked up, of the operand's type.
func (n *node) numberKeys() (typ op.Type, keys []byte) {
	if t, ok := take[*wire.Tensor](n, "keys_tensor"); ok {
		var text bool
		typ, keys, text = n.attrTensor(t)
		if text && n.err == nil {
			n.fail("got keys that are strings for %s: %w", n.args[0].Type, dtype.ErrDType)
		}
	} else if list, ok := take[[]float32](n, "keys_floats"); ok {
		typ, keys = floatList(list)
	} else if list, ok := take[[]int64](n, "keys_int64s"); ok {
		typ, keys = intList(list)
	} else if list, ok := take[[]string](n, "classes_strings"); ok && n.opset == 1 {
		places := make([]int64, len(list))
		for i := range places {
			places[i] = int64(i)
		}
		typ, keys = intList(places)
		n.attrs = append(n.attrs, wire.Attribute{Name: "values_strings", Value: list}) // as later opsets say it
	} else {
		n.fail("got no keys of %s, want some", n.args[0].Type)
	}
	switch dt := n.args[0].Type.DType; {
	case n.err != nil:
	case typ.DType != dt || dt.Size() == 0:
		n.fail("got keys %s for %s, want one type: %w", typ, n.args[0].Type, dtype.ErrDType)
	case typ.Shape.Rank() != 1 || typ.Shape.NumElements() == 0:
		n.fail("got keys %s, want a list of one or more", typ)
	}
	return typ, keys
}

// numberIndex is the place of each number in a list, the first one where there
// are more, and how long the list is for a number that is not in it: a last key
// meets every number.
func (n *node) numberIndex(typ op.Type, keys []byte) *ir.Value {
	count, size := typ.Shape.NumElements(), typ.DType.Size()
	row := shape.MustOf(count + 1)
	list := n.weight(n.fresh(n.name+".keys"), op.Type{DType: typ.DType, Shape: row}, append(slices.Clone(keys), keys[:size]...))
	always, isNaN := make([]byte, count+1), make([]byte, count+1)
	always[count] = 1
	for i := range count {
		if f, ok := decodeFloat(typ.DType, keys[i*size:]); ok && math.IsNaN(f) && n.opset >= 4 {
			isNaN[i] = 1 // from opset 4 on, NaN is a key like others
		}
	}
	flags := func(what string, list []byte) *ir.Value {
		return n.weight(n.fresh(n.name+"."+what), op.Type{DType: dtype.Bool, Shape: row}, list)
	}
	x := n.call("unsqueeze", []*ir.Value{n.args[0], n.ints([]int64{-1})})
	same := n.call("or", []*ir.Value{n.call("equal", []*ir.Value{x, list}), flags("other", always)})
	if slices.Contains(isNaN, 1) {
		none := n.call("and", []*ir.Value{n.call("is_nan", []*ir.Value{x}), flags("nan", isNaN)})
		same = n.call("or", []*ir.Value{same, none})
	}
	same = n.call("cast", []*ir.Value{same}, op.Attr{Name: "to", Value: dtype.U8})
	return n.call("arg_max", []*ir.Value{same}, intAttr("axis", -1), intAttr("keepdims", 0))
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
	t, ok := take[*wire.Tensor](n, "keys_tensor")
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
func (n *node) attrTensor(t *wire.Tensor) (typ op.Type, data []byte, text bool) {
	d, err := t.Check()
	if err == nil {
		data, err = t.Elements(d)
	}
	if err != nil && n.err == nil {
		n.err = err
	}
	return d.Type, data, d.Text
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
	if t, ok := take[*wire.Tensor](n, "values_tensor"); ok {
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
func (n *node) labelTensor(name string, t *wire.Tensor, count int) (table *ir.Value, text bool) {
	typ, data, text := n.attrTensor(t)
	rest, given := take[*wire.Tensor](n, "default_tensor")
	var last []byte
	switch {
	case n.err != nil:
	case text || typ.DType.Size() == 0:
		n.unsupported("values_tensor of %s", typ.DType)
	case given:
		var other op.Type
		if other, last, text = n.attrTensor(rest); n.err == nil && (text || other.DType != typ.DType || other.Shape.NumElements() != 1) {
			n.fail("default_tensor: got %s, want one element of %s: %w", other, typ.DType, dtype.ErrDType)
		}
	default:
		absent := -1.0
		if typ.DType.IsFloat() {
			absent = math.Copysign(0, -1)
		}
		var err error
		if last, err = encodeNumber(typ.DType, absent); err != nil {
			n.fail("%w", err)
		}
	}
	if n.err != nil {
		return nil, false
	}
	return n.tableOf(name, typ, append(slices.Clone(data), last...), count), false
}
