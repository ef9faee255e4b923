package ml

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/shape"
)

// mapOps are the operators that make maps and read them.
var mapOps = map[string]lift.Operator{
	"ZipMap":         lifted(liftZipMap),
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
	l := n.List(0)
	switch {
	case len(n.Args) != 1:
		n.Fail("got %d operands, want 1", len(n.Args))
	case n.Args[0] != nil && n.Args[0].Type.IsZero():
		n.GiveUp()
		return
	case l == nil || l.Maps == nil || !l.Maps.One:
		n.Fail("got an operand of another type, want a map: %w", dtype.ErrDType)
	case n.IsText[l.Maps.Values]:
		n.Unsupported("a map to strings")
	}
	if n.Err != nil {
		return
	}
	words, _ := lift.Take[[]string](n, "string_vocabulary")
	if len(words) > 0 {
		n.Ignore("int64_vocabulary")
	}
	numbers, _ := lift.Take[[]int64](n, "int64_vocabulary")
	n.NoMoreAttrs()
	keys := l.Maps.Keys
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
	column := n.Call("unsqueeze", []*ir.Value{n.Ints(numbers), n.Ints([]int64{1})})
	same := n.Call("equal", []*ir.Value{column, keys})
	zero := n.Scalar(l.Maps.Values.Type.DType, 0)
	each := n.Call("where", []*ir.Value{same, l.Maps.Values, zero})
	row := n.Call("reduce_sum", []*ir.Value{each, n.Ints([]int64{1})}, lift.IntAttr("keepdims", 0))
	n.Finish("unsqueeze", []*ir.Value{row, n.Ints([]int64{0})})
}
