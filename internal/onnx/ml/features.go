package ml

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// featureOps compute features from features.
var featureOps = map[string]lift.Operator{
	"ArrayFeatureExtractor": onText(liftArrayFeatureExtractor),
	"Binarizer":             lifted(liftBinarizer),
	"FeatureVectorizer":     lifted(liftFeatureVectorizer),
	"Imputer":               lifted(liftImputer),
	"Normalizer":            lifted(liftNormalizer),
	"OneHotEncoder":         onText(liftOneHotEncoder),
	"Scaler":                lifted(liftScaler),
}

// as returns v cast to an element type.
func as(n *lift.Node, v *ir.Value, dt dtype.DType) *ir.Value {
	if n.Err != nil || v.Type.DType == dt {
		return v
	}
	return n.Call("cast", []*ir.Value{v}, op.Attr{Name: "to", Value: dt})
}

// numbersOf returns x in the type in which ONNX Runtime computes with it: f64
// as it is, f32 for anything else.
func numbersOf(n *lift.Node, x *ir.Value) *ir.Value {
	if x.Type.DType == dtype.F64 {
		return x
	}
	return as(n, x, dtype.F32)
}

// finishAs ends the node with a call whose result is cast to an element type.
func finishAs(n *lift.Node, dt dtype.DType, name string, args []*ir.Value, attrs ...op.Attr) {
	if n.Err == nil && args[0].Type.DType == dt {
		n.Finish(name, args, attrs...)
		return
	}
	n.Finish("cast", []*ir.Value{n.Call(name, args, attrs...)}, op.Attr{Name: "to", Value: dt})
}

// listOf makes a constant list of the numbers in an element type.
func listOf(n *lift.Node, name string, dt dtype.DType, list []float64) *ir.Value {
	return arrayOf(n, name, dt, list, len(list))
}

// arrayOf makes a constant of the numbers with the given sizes.
func arrayOf(n *lift.Node, name string, dt dtype.DType, list []float64, sizes ...int) *ir.Value {
	var data []byte
	for _, v := range list {
		b, err := lift.EncodeNumber(dt, v)
		if err != nil {
			n.Fail("%w", err)
			return nil
		}
		data = append(data, b...)
	}
	if n.Err != nil {
		return nil
	}
	sh, err := shape.Of(sizes...)
	if err != nil {
		n.Fail("%s: %w", name, err)
		return nil
	}
	return n.Weight(n.Fresh(n.Name+"."+name), op.Type{DType: dt, Shape: sh}, data)
}

// wide returns a list of numbers as floats of 64 bits.
func wide[T float32 | int64](list []T) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = float64(v)
	}
	return out
}

// wantPerFeature ends the node unless an attribute has one number, or one for
// each feature of x.
func wantPerFeature(n *lift.Node, what string, count int, x *ir.Value) {
	if count == 1 || n.Err != nil {
		return
	}
	if sh := x.Type.Shape; count > 1 && (sh == nil || sh.Rank() > 0) {
		if sh == nil {
			return
		}
		if size, known := sh.Dim(sh.Rank() - 1).Size(); !known || size == count {
			return
		}
	}
	n.Fail("%s: got %d numbers for %s, want one, or one for each feature: %w", what, count, x.Type, shape.ErrShape)
}

// liftScaler computes (x - offset) * scale.
func liftScaler(n *lift.Node) {
	x := n.Operand(1)
	offset, _ := lift.Take[[]float32](n, "offset")
	scale, _ := lift.Take[[]float32](n, "scale")
	if n.NoMoreAttrs(); x == nil || n.Err != nil {
		return
	}
	if len(offset) == 0 {
		offset = []float32{0}
	}
	if len(scale) == 0 {
		scale = []float32{1}
	}
	wantPerFeature(n, "offset", len(offset), x)
	wantPerFeature(n, "scale", len(scale), x)
	if n.Err != nil {
		return
	}
	x = numbersOf(n, x)
	dt := x.Type.DType
	y := n.Call("sub", []*ir.Value{x, listOf(n, "offset", dt, wide(offset))})
	finishAs(n, dtype.F32, "mul", []*ir.Value{y, listOf(n, "scale", dt, wide(scale))})
}

// liftNormalizer divides each row by its maximum, by the sum of its absolute
// values, or by the root of the sum of its squares, unless that is zero.
func liftNormalizer(n *lift.Node) {
	x := n.Operand(1)
	norm := lift.TakeOr(n, "norm", "MAX")
	if n.NoMoreAttrs(); x == nil || n.Err != nil {
		return
	}
	x = as(n, x, dtype.F32)
	last := n.Ints([]int64{-1})
	zero := n.Scalar(dtype.F32, 0)
	var total, y *ir.Value
	switch norm {
	case "MAX":
		total = n.Call("reduce_max", []*ir.Value{x, last})
		y = n.Call("div", []*ir.Value{x, total})
	case "L1":
		total = n.Call("reduce_l1", []*ir.Value{x, last})
		y = n.Call("div", []*ir.Value{x, total})
	case "L2":
		square := n.Call("mul", []*ir.Value{x, x})
		total = n.Call("reduce_sum", []*ir.Value{square, last})
		root := n.Call("sqrt", []*ir.Value{n.Call("div", []*ir.Value{square, total})})
		y = n.Call("where", []*ir.Value{n.Call("less", []*ir.Value{x, zero}), n.Call("neg", []*ir.Value{root}), root})
	default:
		n.Fail("attribute \"norm\": got %.80q, want MAX, L1 or L2", norm)
	}
	n.Finish("where", []*ir.Value{n.Call("equal", []*ir.Value{total, zero}), x, y})
}

// liftImputer replaces a value, which may be NaN, by that of the feature.
func liftImputer(n *lift.Node) {
	x := n.Operand(1)
	floats, hasFloats := lift.Take[[]float32](n, "imputed_value_floats")
	ints, hasInts := lift.Take[[]int64](n, "imputed_value_int64s")
	float := lift.TakeOr(n, "replaced_value_float", float32(0))
	integer := lift.TakeOr(n, "replaced_value_int64", int64(0))
	if n.NoMoreAttrs(); x == nil || n.Err != nil {
		return
	}
	dt := x.Type.DType
	var data []byte
	replaced, count := float64(float), len(floats)
	if dt.IsFloat() && hasFloats {
		_, data = lift.FloatList(floats)
	} else if dt.IsInt() && hasInts {
		replaced, count = float64(integer), len(ints)
		_, data = lift.IntList(ints)
	} else {
		n.Fail("got no imputed values of %s, want some: %w", dt, dtype.ErrDType)
		return
	}
	if wantPerFeature(n, "imputed values", count, x); n.Err != nil {
		return
	}
	from, sh := dtype.F32, shape.MustOf(count)
	if dt.IsInt() {
		from = dtype.I64
	}
	imputed := as(n, n.Weight(n.Fresh(n.Name+".imputed"), op.Type{DType: from, Shape: sh}, data), dt)
	var found *ir.Value
	switch {
	case dt.IsInt():
		_, bits := lift.IntList([]int64{integer})
		what := n.Weight(n.Fresh(n.Name+".replaced"), op.Type{DType: dtype.I64, Shape: shape.MustOf(1)}, bits)
		found = n.Call("equal", []*ir.Value{x, as(n, what, dt)})
	case math.IsNaN(replaced):
		found = n.Call("is_nan", []*ir.Value{x})
	default:
		found = n.Call("equal", []*ir.Value{x, n.Scalar(dt, replaced)})
	}
	n.Finish("where", []*ir.Value{found, imputed, x})
}

// liftBinarizer returns 1 where x is above a threshold, and 0 elsewhere.
func liftBinarizer(n *lift.Node) {
	x := n.Operand(1)
	threshold := lift.TakeOr(n, "threshold", float32(0))
	if n.NoMoreAttrs(); x == nil || n.Err != nil {
		return
	}
	number := numbersOf(n, x)
	above := n.WithNumber("greater", number, float64(threshold), number.Type.DType)
	n.Finish("cast", []*ir.Value{above}, op.Attr{Name: "to", Value: x.Type.DType})
}

// liftArrayFeatureExtractor returns the features of x that a list of indices
// names; [1,count] for one row without a batch.
func liftArrayFeatureExtractor(n *lift.Node) {
	x := n.Operand(2)
	if n.NoMoreAttrs(); x == nil || n.Err != nil {
		return
	}
	text := n.IsText[x]
	rank, ok := n.Rank(0)
	if text {
		rank-- // the last axis holds the bytes of a string
	}
	if !ok || rank < 1 {
		n.Unsupported("an operand of %s, want one or more axes, whose number is known at load", x.Type)
		return
	}
	indices := n.Call("reshape", []*ir.Value{n.Args[1], n.Ints([]int64{-1})})
	if rank > 1 {
		n.Finish("gather", []*ir.Value{x, indices}, lift.IntAttr("axis", int64(rank-1)))
	} else {
		y := n.Call("gather", []*ir.Value{x, indices})
		n.Finish("unsqueeze", []*ir.Value{y, n.Ints([]int64{0})})
	}
	if text {
		n.MarkText()
	}
}

// liftFeatureVectorizer joins the features of its operands, of each as many as
// an attribute says: others are dropped, missing ones are 0.
func liftFeatureVectorizer(n *lift.Node) {
	sizes, _ := lift.Take[[]int64](n, "inputdimensions")
	n.NoMoreAttrs()
	if n.Err == nil && (len(sizes) != len(n.Args) || len(sizes) == 0) {
		n.Fail("inputdimensions: got %d, want one for each of %d operands", len(sizes), len(n.Args))
	}
	if !n.Operands(len(n.Args), len(n.Args)) {
		return
	}
	parts := make([]*ir.Value, len(sizes))
	for i, size := range sizes {
		x := as(n, rowsOf(n, i), dtype.F32)
		if n.Err != nil {
			return
		}
		have, ok := n.LastSize(x)
		switch {
		case !ok:
			return
		case size < 0 || size > 1<<31:
			n.Fail("inputdimensions: got %d, want 0 to 2^31", size)
		case have > size:
			x = n.Call("slice", []*ir.Value{x, n.Ints([]int64{0}), n.Ints([]int64{size}), n.Ints([]int64{1})})
		case have < size:
			x = n.Call("pad", []*ir.Value{x, n.Ints([]int64{0, 0, 0, size - have})})
		}
		parts[i] = x
	}
	n.Finish("concat", parts, lift.IntAttr("axis", 1))
}

// rowsOf returns operand i as a matrix of one row per sample: a list is one
// row, and axes beyond the second are joined with it.
func rowsOf(n *lift.Node, i int) *ir.Value {
	x := n.Args[i]
	rank, ok := n.Rank(i)
	switch {
	case n.Err != nil:
	case !ok || rank == 0:
		n.Unsupported("an operand of %s, want one or more axes, whose number is known at load", x.Type)
	case rank == 1:
		return n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{0})})
	case rank > 2:
		return n.Call("flatten", []*ir.Value{x}, lift.IntAttr("axis", 1))
	}
	return x
}

// liftOneHotEncoder appends an axis with 1 at the category of each element and
// 0 elsewhere. An unknown category is all 0 or, with zeros = 0, an error.
func liftOneHotEncoder(n *lift.Node) {
	x := n.Operand(1)
	numbers, hasNumbers := lift.Take[[]int64](n, "cats_int64s")
	words, hasWords := lift.Take[[]string](n, "cats_strings")
	zeros := lift.TakeOr(n, "zeros", int64(1))
	if n.NoMoreAttrs(); x == nil || n.Err != nil {
		return
	}
	var index *ir.Value
	count := len(numbers)
	switch text := n.IsText[x]; {
	case text && hasWords && len(words) > 0:
		count = len(words)
		index = textIndex(n, x, words)
	case text || !hasNumbers || count == 0:
		n.Fail("got no categories for %s, want one or more of its type: %w", x.Type, dtype.ErrDType)
		return
	default:
		typ, keys := lift.IntList(numbers)
		index = numberIndex(n, as(n, x, dtype.I64), typ, keys)
	}
	places := n.Ints(upTo(count))
	if zeros == 0 {
		index = n.Call("gather", []*ir.Value{places, index}) // fails where the index is count
	}
	same := n.Call("equal", []*ir.Value{n.Call("unsqueeze", []*ir.Value{index, n.Ints([]int64{-1})}), places})
	n.Finish("cast", []*ir.Value{same}, op.Attr{Name: "to", Value: dtype.F32})
}

// upTo returns 0 to count-1.
func upTo(count int) []int64 {
	list := make([]int64, count)
	for i := range list {
		list[i] = int64(i)
	}
	return list
}
