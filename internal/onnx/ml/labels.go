package ml

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// liftLabelEncoder looks keys up in a list, and gathers what belongs to each
// from a table, at whose end is what belongs to everything else.
func liftLabelEncoder(n *lift.Node) {
	if len(n.Args) != 1 || n.Args[0] == nil {
		n.Fail("got %d operands, want 1", len(n.Args))
		return
	}
	if n.Args[0].Type.IsZero() {
		n.GiveUp()
		return
	}
	var index func() *ir.Value
	var count int
	if n.IsText[n.Args[0]] {
		keys := labelKeys(n)
		count = len(keys)
		index = func() *ir.Value { return textIndex(n, n.Args[0], keys) }
	} else {
		typ, keys := numberKeys(n)
		if n.Err != nil {
			return
		}
		count = typ.Shape.NumElements()
		index = func() *ir.Value { return numberIndex(n, n.Args[0], typ, keys) }
	}
	table, text := labelValues(n, count)
	if n.NoMoreAttrs(); n.Err != nil {
		return
	}
	n.Finish("gather", []*ir.Value{table, index()})
	if text {
		n.MarkText()
	}
}

// labelOps convert between strings, numbers and their indices.
var labelOps = map[string]lift.Operator{
	"LabelEncoder":   onText(liftLabelEncoder),
	"CategoryMapper": onText(liftCategoryMapper),
}

// liftCategoryMapper returns the integer of each string, or the string of each
// integer.
func liftCategoryMapper(n *lift.Node) {
	x := n.Operand(1)
	ints, _ := lift.Take[[]int64](n, "cats_int64s")
	words, _ := lift.Take[[]string](n, "cats_strings")
	integer := lift.TakeOr(n, "default_int64", int64(-1))
	word := lift.TakeOr(n, "default_string", "_Unused")
	n.NoMoreAttrs()
	if n.Err == nil && (len(ints) != len(words) || len(ints) == 0) {
		n.Fail("got %d cats_int64s and %d cats_strings, want as many of both", len(ints), len(words))
	}
	if x == nil || n.Err != nil {
		return
	}
	if n.IsText[x] {
		n.Finish("gather", []*ir.Value{n.Ints(append(slices.Clone(ints), integer)), textIndex(n, x, words)})
		return
	}
	typ, keys := lift.IntList(ints)
	table := labels(n, n.Fresh(n.Name+".words"), append(slices.Clone(words), word), len(words))
	n.Finish("gather", []*ir.Value{table, numberIndex(n, as(n, x, dtype.I64), typ, keys)})
	n.MarkText()
}

// finishLabels binds output 0 to the labels of classes that index, i64[N],
// names: strings if there are some, or integers.
func finishLabels(n *lift.Node, words []string, ints []int64, index *ir.Value) {
	if len(words) > 0 {
		n.Output(0, "gather", []*ir.Value{n.TextWeight(n.Fresh(n.Name+".labels"), words, len(words)), index})
		n.MarkText(1)
		return
	}
	n.Output(0, "gather", []*ir.Value{n.Ints(ints), index})
}

// numberKeys takes the numbers that are looked up, of the operand's type.
func numberKeys(n *lift.Node) (typ op.Type, keys []byte) {
	if t, ok := lift.Take[*wire.Tensor](n, "keys_tensor"); ok {
		var text bool
		typ, keys, text = attrTensor(n, t)
		if text && n.Err == nil {
			n.Fail("got keys that are strings for %s: %w", n.Args[0].Type, dtype.ErrDType)
		}
	} else if list, ok := lift.Take[[]float32](n, "keys_floats"); ok {
		typ, keys = lift.FloatList(list)
	} else if list, ok := lift.Take[[]int64](n, "keys_int64s"); ok {
		typ, keys = lift.IntList(list)
	} else if list, ok := lift.Take[[]string](n, "classes_strings"); ok && n.Opset == 1 {
		places := make([]int64, len(list))
		for i := range places {
			places[i] = int64(i)
		}
		typ, keys = lift.IntList(places)
		n.Attrs = append(n.Attrs, wire.Attribute{Name: "values_strings", Value: list}) // as later opsets say it
	} else {
		n.Fail("got no keys of %s, want some", n.Args[0].Type)
	}
	switch dt := n.Args[0].Type.DType; {
	case n.Err != nil:
	case typ.DType != dt || dt.Size() == 0:
		n.Fail("got keys %s for %s, want one type: %w", typ, n.Args[0].Type, dtype.ErrDType)
	case typ.Shape.Rank() != 1 || typ.Shape.NumElements() == 0:
		n.Fail("got keys %s, want a list of one or more", typ)
	}
	return typ, keys
}

// textIndex returns the index of each string of x in a list, the first one
// where there are several, and the length of the list for a string that is not
// in it.
func textIndex(n *lift.Node, x *ir.Value, keys []string) *ir.Value {
	first := map[string]int64{}
	var distinct []string
	var places []int64
	for i, key := range keys {
		if _, ok := first[key]; !ok {
			first[key] = int64(i)
			distinct, places = append(distinct, key), append(places, int64(i))
		}
	}
	index := n.Lookup(x, distinct)
	if len(distinct) == len(keys) {
		return index
	}
	return n.Call("gather", []*ir.Value{n.Ints(append(places, int64(len(keys)))), index})
}

// numberIndex returns the index of each number of x in a list, the first one
// where there are several, and the length of the list for a number that is not
// in it: a last key equals every number.
func numberIndex(n *lift.Node, x *ir.Value, typ op.Type, keys []byte) *ir.Value {
	if n.Err != nil {
		return nil
	}
	count, size := typ.Shape.NumElements(), typ.DType.Size()
	row := shape.MustOf(count + 1)
	list := n.Weight(n.Fresh(n.Name+".keys"), op.Type{DType: typ.DType, Shape: row}, append(slices.Clone(keys), keys[:size]...))
	always, isNaN := make([]byte, count+1), make([]byte, count+1)
	always[count] = 1
	for i := range count {
		if f, ok := lift.DecodeFloat(typ.DType, keys[i*size:]); ok && math.IsNaN(f) && n.Opset >= 4 {
			isNaN[i] = 1 // from opset 4 on, NaN is a key like others
		}
	}
	flags := func(what string, list []byte) *ir.Value {
		return n.Weight(n.Fresh(n.Name+"."+what), op.Type{DType: dtype.Bool, Shape: row}, list)
	}
	x = n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{-1})})
	same := n.Call("or", []*ir.Value{n.Call("equal", []*ir.Value{x, list}), flags("other", always)})
	if slices.Contains(isNaN, 1) {
		none := n.Call("and", []*ir.Value{n.Call("is_nan", []*ir.Value{x}), flags("nan", isNaN)})
		same = n.Call("or", []*ir.Value{same, none})
	}
	same = n.Call("cast", []*ir.Value{same}, op.Attr{Name: "to", Value: dtype.U8})
	return n.Call("arg_max", []*ir.Value{same}, lift.IntAttr("axis", -1), lift.IntAttr("keepdims", 0))
}

// labelKeys takes the strings that are looked up.
func labelKeys(n *lift.Node) []string {
	if n.Opset == 1 {
		keys, _ := lift.Take[[]string](n, "classes_strings")
		return keys
	}
	if keys, ok := lift.Take[[]string](n, "keys_strings"); ok {
		return keys
	}
	t, ok := lift.Take[*wire.Tensor](n, "keys_tensor")
	if !ok {
		n.Unsupported("keys that are no strings")
		return nil
	}
	typ, data, text := attrTensor(n, t)
	if n.Err == nil && !text {
		n.Unsupported("keys that are no strings")
	}
	if n.Err != nil {
		return nil
	}
	return stringsOf(typ, data)
}

// stringsOf returns the strings of a tensor of text.
func stringsOf(typ op.Type, data []byte) []string {
	var list []string
	for row := range slices.Chunk(data, typ.Shape.Size(typ.Shape.Rank()-1)) {
		list = append(list, withoutZeros(row))
	}
	return list
}

// withoutZeros returns the string that a row of bytes holds.
func withoutZeros(row []byte) string {
	for len(row) > 0 && row[len(row)-1] == 0 {
		row = row[:len(row)-1]
	}
	return string(row)
}

// attrTensor reads a tensor in an attribute.
func attrTensor(n *lift.Node, t *wire.Tensor) (typ op.Type, data []byte, text bool) {
	d, err := t.Check()
	if err == nil {
		data, err = t.Elements(d)
	}
	if err != nil && n.Err == nil {
		n.Err = err
	}
	return d.Type, data, d.Text
}

// labelValues takes the values of so many keys, and the one of everything
// else, as one table.
func labelValues(n *lift.Node, count int) (table *ir.Value, text bool) {
	name := n.Fresh(n.Name + ".values")
	if list, ok := lift.Take[[]string](n, "values_strings"); ok {
		list = append(slices.Clone(list), lift.TakeOr(n, "default_string", "_Unused"))
		n.Ignore("default_int64", "default_float")
		return labels(n, name, list, count), true
	}
	var typ op.Type
	var data, rest []byte
	if t, ok := lift.Take[*wire.Tensor](n, "values_tensor"); ok {
		return labelTensor(n, name, t, count)
	} else if list, ok := lift.Take[[]float32](n, "values_floats"); ok {
		typ, data = lift.FloatList(list)
		_, rest = lift.FloatList([]float32{lift.TakeOr(n, "default_float", float32(math.Copysign(0, -1)))})
		n.Ignore("default_int64", "default_string")
	} else {
		list, ok := lift.Take[[]int64](n, "values_int64s")
		for i := 0; n.Opset == 1 && i < count; i++ {
			list, ok = append(list, int64(i)), true
		}
		if !ok {
			n.Fail("got no values, want one for each key")
		}
		typ, data = lift.IntList(list)
		_, rest = lift.IntList([]int64{lift.TakeOr(n, "default_int64", int64(-1))})
		n.Ignore("default_float", "default_string")
	}
	return tableOf(n, name, typ, append(data, rest...), count), false
}

// tableOf makes the table, of values of a type for so many keys and one more.
func tableOf(n *lift.Node, name string, typ op.Type, data []byte, count int) *ir.Value {
	if n.Err == nil && (typ.Shape.Rank() != 1 || typ.Shape.NumElements() != count) {
		n.Fail("got values %s, want one for each of %d keys", typ, count)
	}
	if n.Err != nil {
		return nil
	}
	return n.Weight(name, op.Type{DType: typ.DType, Shape: shape.MustOf(count + 1)}, data)
}

// labels makes a table of strings.
func labels(n *lift.Node, name string, list []string, count int) *ir.Value {
	if n.Err == nil && len(list) != count+1 {
		n.Fail("got %d values, want one for each of %d keys", len(list)-1, count)
	}
	return n.TextWeight(name, list, len(list))
}

// labelTensor makes a table of a tensor and its default.
func labelTensor(n *lift.Node, name string, t *wire.Tensor, count int) (table *ir.Value, text bool) {
	typ, data, text := attrTensor(n, t)
	rest, given := lift.Take[*wire.Tensor](n, "default_tensor")
	// ONNX Runtime writes the defaults of all types beside, and reads that of
	// the type of the values.
	word, integer := lift.TakeOr(n, "default_string", "_Unused"), lift.TakeOr(n, "default_int64", int64(-1))
	float := lift.TakeOr(n, "default_float", float32(math.Copysign(0, -1)))
	var last []byte
	switch {
	case n.Err != nil:
	case text:
		list := append(stringsOf(typ, data), word)
		if given {
			other, bytes, isText := attrTensor(n, rest)
			if n.Err == nil && (!isText || other.Shape.Rank() != 2 && other.Shape.Rank() != 1 || other.Shape.NumElements() != other.Shape.Size(other.Shape.Rank()-1)) {
				n.Fail("default_tensor: got %s, want one string: %w", other, dtype.ErrDType)
			}
			if n.Err == nil {
				list[len(list)-1] = withoutZeros(bytes)
			}
		}
		return labels(n, name, list, count), true
	case typ.DType.Size() == 0:
		n.Unsupported("values_tensor of %s", typ.DType)
	case given:
		var other op.Type
		if other, last, text = attrTensor(n, rest); n.Err == nil && (text || other.DType != typ.DType || other.Shape.NumElements() != 1) {
			n.Fail("default_tensor: got %s, want one element of %s: %w", other, typ.DType, dtype.ErrDType)
		}
	case typ.DType == dtype.I64:
		_, last = lift.IntList([]int64{integer})
	case typ.DType == dtype.F32:
		_, last = lift.FloatList([]float32{float})
	default:
		absent := -1.0
		if typ.DType.IsFloat() {
			absent = math.Copysign(0, -1)
		}
		var err error
		if last, err = lift.EncodeNumber(typ.DType, absent); err != nil {
			n.Fail("%w", err)
		}
	}
	if n.Err != nil {
		return nil, false
	}
	return tableOf(n, name, typ, append(slices.Clone(data), last...), count), false
}
