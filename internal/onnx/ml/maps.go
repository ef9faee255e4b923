package ml

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// mapOps are the operators that make maps and read them.
var mapOps = map[string]lift.Operator{
	"ZipMap":         lifted(liftZipMap),
	"CastMap":        {From: 1, Till: last, Lift: liftCastMap, Text: liftCastMap, Lists: true},
	"DictVectorizer": {From: 1, Till: last, Lift: liftDictVectorizer, Text: liftDictVectorizer, Lists: true},
}

// liftZipMap makes a map of each row of a tensor: the keys are constants, and
// the values stay where they are.
func liftZipMap(n *lift.Node) {
	keys, count := vocabulary(n, "classlabels_int64s", "classlabels_strings")
	x := n.Operand(1)
	if n.Err != nil || x == nil {
		return
	}
	rank, known := n.Rank(0)
	switch {
	case !known:
		n.Unsupported("a tensor of a rank that is not known at load")
		return
	case rank == 1:
		x = n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{0})})
	case rank != 2:
		n.Fail("got %s, want a matrix with a column for each of %d keys: %w", x.Type, count, shape.ErrShape)
		return
	}
	if n.Err != nil {
		return
	}
	if size, known := x.Type.Shape.Dim(1).Size(); known && size != count {
		n.Fail("got %s, want a column for each of %d keys: %w", x.Type, count, shape.ErrShape)
		return
	}
	n.BindList(&lift.List{Maps: &lift.Maps{Keys: keys, Values: x}})
}

// vocabulary takes a list of keys, integers or strings.
func vocabulary(n *lift.Node, ints, texts string) (keys *ir.Value, count int) {
	numbers, isInts := lift.Take[[]int64](n, ints)
	words, isText := lift.Take[[]string](n, texts)
	n.NoMoreAttrs()
	isInts, isText = isInts && (len(numbers) > 0 || !isText), isText && (len(words) > 0 || !isInts)
	switch {
	case n.Err != nil:
	case isInts == isText:
		n.Fail("got %d keys in %s and %d in %s, want one of the lists", len(numbers), ints, len(words), texts)
	case isText:
		return n.TextWeight(n.Fresh(n.Name+".keys"), words, len(words)), len(words)
	default:
		typ, data := lift.IntList(numbers)
		return n.Weight(n.Fresh(n.Name+".keys"), typ, data), len(numbers)
	}
	return nil, 0
}

// liftDictVectorizer returns the values of a map in the order of a vocabulary:
// 0 where the map has no such key.
func liftDictVectorizer(n *lift.Node) {
	m := oneMap(n)
	if m == nil {
		return
	}
	words, _ := lift.Take[[]string](n, "string_vocabulary")
	if len(words) > 0 {
		n.Ignore("int64_vocabulary")
	}
	numbers, _ := lift.Take[[]int64](n, "int64_vocabulary")
	n.NoMoreAttrs()
	keys := m.Keys
	switch {
	case n.Err != nil:
		return
	case len(words) == 0 && len(numbers) == 0:
		n.Fail("got no vocabulary, want string_vocabulary or int64_vocabulary")
		return
	case (len(words) > 0) != n.IsText[keys]:
		n.Fail("got keys %s and a vocabulary of another type: %w", keys.Type, dtype.ErrDType)
		return
	case len(words) > 0: // places in the vocabulary instead of keys
		numbers = make([]int64, len(words))
		for i := range numbers {
			numbers[i] = int64(i)
		}
		keys = n.Lookup(keys, words)
	}
	finishRow(n, valuesOf(n, keys, m.Values, numbers), n.IsText[m.Values])
}

// oneMap returns the map that the only operand is. The node has ended where it
// is none.
func oneMap(n *lift.Node) *lift.Maps {
	l := n.List(0)
	switch {
	case len(n.Args) != 1:
		n.Fail("got %d operands, want 1", len(n.Args))
	case n.Args[0] != nil && n.Args[0].Type.IsZero():
		n.GiveUp()
	case l == nil || l.Maps == nil || !l.Maps.One:
		n.Fail("got an operand of another type, want a map: %w", dtype.ErrDType)
	default:
		return l.Maps
	}
	return nil
}

// finishRow ends the node with a list as the only row of a matrix.
func finishRow(n *lift.Node, list *ir.Value, text bool) {
	n.Finish("unsqueeze", []*ir.Value{list, n.Ints([]int64{0})})
	if text {
		n.MarkText()
	}
}

// valuesOf returns the values, V[n], that belong to some of the keys, i64[n]: 0
// or an empty string for one that is not there.
func valuesOf(n *lift.Node, keys, values *ir.Value, wanted []int64) *ir.Value {
	column := n.Call("unsqueeze", []*ir.Value{n.Ints(wanted), n.Ints([]int64{1})})
	same := n.Call("equal", []*ir.Value{column, keys})
	if !n.IsText[values] {
		each := n.Call("where", []*ir.Value{same, values, n.Scalar(values.Type.DType, 0)})
		return n.Call("reduce_sum", []*ir.Value{each, n.Ints([]int64{1})}, lift.IntAttr("keepdims", 0))
	}
	// A last key equals every number, and has an empty string.
	all := make([]byte, len(wanted))
	for i := range all {
		all[i] = 1
	}
	other := n.Weight(n.Fresh(n.Name+".other"), op.Type{DType: dtype.U8, Shape: shape.MustOf(len(all), 1)}, all)
	same = n.Call("cast", []*ir.Value{same}, op.Attr{Name: "to", Value: dtype.U8})
	same = n.Call("concat", []*ir.Value{same, other}, lift.IntAttr("axis", 1))
	index := n.Call("arg_max", []*ir.Value{same}, lift.IntAttr("axis", 1), lift.IntAttr("keepdims", 0))
	return n.Call("gather", []*ir.Value{n.Call("pad", []*ir.Value{values, n.Ints([]int64{0, 1}), nil, n.Ints([]int64{0})}), index})
}

// maxMap is the largest number of columns of a CastMap.
const maxMap = 1 << 20

// liftCastMap returns the values of a map in the order of its keys or, for a
// sparse one, of the keys from 0 on.
func liftCastMap(n *lift.Node) {
	m := oneMap(n)
	if m == nil {
		return
	}
	to := lift.TakeOr(n, "cast_to", "TO_FLOAT")
	form := lift.TakeOr(n, "map_form", "DENSE")
	count := lift.TakeOr(n, "max_map", int64(1))
	switch n.NoMoreAttrs(); {
	case n.Err != nil:
	case n.IsText[m.Keys]:
		n.Fail("got keys that are strings, want integers: %w", dtype.ErrDType)
	case form != "DENSE" && form != "SPARSE":
		n.Fail("map_form: got %q, want DENSE or SPARSE", form)
	case form == "SPARSE" && (count < 1 || count > maxMap):
		n.Fail("max_map: got %d, want 1 to 2^20", count)
	}
	if n.Err != nil {
		return
	}
	values := castValues(n, m.Values, to)
	if n.Err != nil {
		return
	}
	if form == "SPARSE" {
		wanted := make([]int64, count)
		for i := range wanted {
			wanted[i] = int64(i)
		}
		finishRow(n, valuesOf(n, m.Keys, values, wanted), n.IsText[values])
		return
	}
	order := n.Emit("top_k", []*ir.Value{m.Keys, n.Call("shape", []*ir.Value{m.Keys})}, []op.Attr{lift.IntAttr("largest", 0)},
		[]string{n.Fresh(n.Name + ".sorted"), n.Fresh(n.Name + ".order")})
	if n.Err == nil {
		finishRow(n, n.Call("gather", []*ir.Value{values, order[1]}), n.IsText[values])
	}
}

// castValues returns the values of a map in the type that a CastMap names.
func castValues(n *lift.Node, values *ir.Value, to string) *ir.Value {
	text := n.IsText[values]
	var dt dtype.DType
	switch to {
	case "TO_STRING":
		if !text {
			n.Unsupported("cast_to TO_STRING of numbers, whose form is not specified (a Cast writes numbers)")
		}
		return values
	case "TO_FLOAT":
		dt = dtype.F32
	case "TO_INT64":
		dt = dtype.I64
	default:
		n.Fail("cast_to: got %q, want TO_FLOAT, TO_STRING or TO_INT64", to)
		return nil
	}
	if !text {
		return as(n, values, dt)
	}
	wide := dtype.I64
	if dt == dtype.F32 {
		wide = dtype.F64
	}
	return as(n, n.Call("string_to_number", []*ir.Value{values}, op.Attr{Name: "to", Value: wide}), dt)
}
