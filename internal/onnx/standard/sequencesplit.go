package standard

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

// liftSplitToSequence is a split into as many parts as the types tell, and into
// a packed sequence where they do not.
func liftSplitToSequence(n *lift.Node) {
	axis, keep := lift.TakeOr(n, "axis", int64(0)), lift.TakeOr(n, "keepdims", int64(1)) != 0
	n.NoMoreAttrs()
	x := n.Arg(0)
	if x == nil || len(n.Args) > 2 {
		n.Fail("got %d operands, want 1 or 2", len(n.Args))
		return
	}
	if x.Type.IsZero() || n.Arg(1) != nil && n.Args[1].Type.IsZero() {
		n.GiveUp()
		return
	}
	sizes, parts, known := partsOf(n, x, axis)
	if n.Err != nil {
		return
	}
	if !known {
		splitOpen(n, x, axis, keep)
		return
	}
	n.Grow(8 * parts) // calls and values
	names := make([]string, parts)
	for i := range names {
		names[i] = n.Fresh(n.Path + n.Proto.Outputs[0] + ".split")
	}
	items := slices.Clone(n.Emit("split", []*ir.Value{x, sizes}, []op.Attr{lift.IntAttr("axis", axis)}, names))
	if n.Arg(1) == nil && !keep {
		for i := range items {
			items[i] = n.Call("squeeze", []*ir.Value{items[i], n.Ints([]int64{axis})})
		}
	}
	n.BindList(&lift.List{Items: items})
}

// partsOf returns the sizes of the parts as an operand, and how many there are,
// false if that is not known at load.
func partsOf(n *lift.Node, x *ir.Value, axis int64) (list *ir.Value, parts int, known bool) {
	each := int64(1)
	if sizes := n.Arg(1); sizes != nil {
		if sizes.Type.Shape != nil && sizes.Type.Shape.Rank() == 1 {
			parts, known := sizes.Type.Shape.Dim(0).Size()
			switch {
			case !known:
				return nil, 0, false
			case parts < 1 || parts > lift.MaxItems:
				n.Unsupported("a split into %d parts", parts)
			case sizes.Type.DType != dtype.I64:
				sizes = n.Call("cast", []*ir.Value{sizes}, op.Attr{Name: "to", Value: dtype.I64})
			}
			return sizes, parts, true
		}
		number, known := n.KnownInts(1)
		if !known || len(number) != 1 {
			return nil, 0, false
		}
		if each = number[0]; each < 1 {
			n.Fail("split: got %d, want 1 or more", each)
			return nil, 0, false
		}
	}
	size := -1
	if rank, ok := n.Rank(0); ok && axis >= int64(-rank) && axis < int64(rank) {
		size, known = x.Type.Shape.Dim(int((axis + int64(rank)) % int64(rank))).Size()
	}
	if !known || size == 0 {
		return nil, 0, false
	}
	if int64(size) > each*lift.MaxItems {
		n.Unsupported("a split of %d elements into parts of %d", size, each)
		return nil, 0, false
	}
	var sizes []int64
	for rest := int64(size); rest > 0; rest -= each {
		sizes = append(sizes, min(each, rest))
	}
	return n.Ints(sizes), len(sizes), true
}

// splitOpen splits x into a number of parts that is not known at load.
func splitOpen(n *lift.Node, x *ir.Value, axis int64, keep bool) {
	rank, known := n.Rank(0)
	switch {
	case !known:
		n.Unsupported("a split of %s, whose rank is not known at load", x.Type)
		return
	case axis < int64(-rank) || axis >= int64(rank):
		n.Fail("axis: got %d, want %d to %d: %w", axis, -rank, rank-1, shape.ErrShape)
		return
	case axis < 0:
		axis += int64(rank)
	}
	shapeOf := n.ShapeOf(x)
	sizes := chunkSizes(n, shapeOf, axis)
	if n.Err != nil {
		return
	}
	single := n.Arg(1) == nil
	if number, ok := n.KnownInts(1); ok && len(number) == 1 && number[0] == 1 && n.Args[1].Type.Shape.Rank() == 0 {
		single = true
	}
	if axis > 0 && !single {
		splitInLoop(n, x, axis, sizes)
		return
	}
	y := x
	if axis > 0 {
		perm := []int64{axis}
		for i := range int64(rank) {
			if i != axis {
				perm = append(perm, i)
			}
		}
		y = n.Call("transpose", []*ir.Value{x}, op.Attr{Name: "perm", Value: perm})
	}
	if axis == 0 { // fails unless the sizes add up to that of the axis
		total := n.Call("reduce_sum", []*ir.Value{sizes, n.Ints([]int64{0})})
		rest := n.Call("slice", []*ir.Value{shapeOf, n.Ints([]int64{1}), n.Ints([]int64{math.MaxInt64}), n.Ints([]int64{0})})
		y = n.Call("reshape", []*ir.Value{y, n.Call("concat", []*ir.Value{total, rest}, lift.IntAttr("axis", 0))}, lift.IntAttr("allowzero", 1))
	}
	data := n.Call("reshape", []*ir.Value{y, n.Ints([]int64{-1})})
	keep = keep || n.Arg(1) != nil
	table := chunkTable(n, shapeOf, rank, axis, sizes, keep)
	if n.Err != nil {
		return
	}
	if n.IsText[x] {
		n.IsText[data] = true
	}
	if !keep {
		rank--
	}
	n.BindPacked(n.NewPacked(data, table, rank))
}

// chunkSizes returns the sizes of the parts, i64[parts].
func chunkSizes(n *lift.Node, shapeOf *ir.Value, axis int64) *ir.Value {
	each := integer(n, 1)
	if v := n.Arg(1); v != nil {
		if v.Type.DType != dtype.I64 {
			v = n.Call("cast", []*ir.Value{v}, op.Attr{Name: "to", Value: dtype.I64})
		}
		switch {
		case n.Err != nil:
			return nil
		case v.Type.Shape == nil:
			n.Unsupported("a split into parts of sizes %s, whose rank is not known at load", v.Type)
			return nil
		case v.Type.Shape.Rank() == 1:
			return v
		}
		each = v
	}
	size := n.Call("gather", []*ir.Value{shapeOf, integer(n, axis)})
	starts := n.Call("range", []*ir.Value{integer(n, 0), size, each})
	return n.Call("min", []*ir.Value{each, n.Call("sub", []*ir.Value{size, starts})})
}

// chunkTable returns the table of parts of a tensor, which differ in the size
// of an axis alone. Without keep they have that axis no more.
func chunkTable(n *lift.Node, shapeOf *ir.Value, rank int, axis int64, sizes *ir.Value, keep bool) *ir.Value {
	part := func(from, to int64) *ir.Value {
		return n.Call("slice", []*ir.Value{shapeOf, n.Ints([]int64{from}), n.Ints([]int64{to}), n.Ints([]int64{0})})
	}
	if !keep {
		rank--
	}
	if rank > lift.MaxElementRank {
		n.Unsupported("an element of rank %d in a sequence, want at most %d", rank, lift.MaxElementRank)
		return nil
	}
	length := n.Call("shape", []*ir.Value{sizes})
	columns := func(list ...*ir.Value) *ir.Value {
		row := n.Call("concat", list, lift.IntAttr("axis", 0))
		to := n.Call("concat", []*ir.Value{length, n.Call("shape", []*ir.Value{row})}, lift.IntAttr("axis", 0))
		return n.Call("expand", []*ir.Value{row, to})
	}
	ones := make([]int64, 0, lift.MaxElementRank)
	for range lift.MaxElementRank - rank {
		ones = append(ones, 1)
	}
	parts := []*ir.Value{columns(n.Ints([]int64{int64(rank)}), part(0, axis))}
	if keep {
		parts = append(parts, n.Call("unsqueeze", []*ir.Value{sizes, n.Ints([]int64{1})}))
	}
	parts = append(parts, columns(part(axis+1, math.MaxInt64), n.Ints(ones)))
	table := n.Call("concat", parts, lift.IntAttr("axis", 1))
	return n.Call("reshape", []*ir.Value{table, n.Ints([]int64{-1, lift.TableWidth})})
}

// splitInLoop splits x along an axis along which parts do not lie one after the
// other.
func splitInLoop(n *lift.Node, x *ir.Value, axis int64, sizes *ir.Value) {
	ends := n.Call("cum_sum", []*ir.Value{sizes, integer(n, 0)})
	length := n.Call("gather", []*ir.Value{n.Call("shape", []*ir.Value{sizes}), integer(n, 0)})
	list := &lift.List{DType: x.Type.DType, Text: n.IsText[x]}
	collect(n, length, []*lift.List{list}, &wire.Graph{}, func(r *iteration) []*ir.Value {
		at := r.Call("unsqueeze", []*ir.Value{r.block.Params[ir.LoopIteration], r.Ints([]int64{0})})
		end := r.Call("gather", []*ir.Value{ends, at})
		start := r.Call("sub", []*ir.Value{end, r.Call("gather", []*ir.Value{sizes, at})})
		part := r.Call("slice", []*ir.Value{x, start, end, r.Ints([]int64{axis})})
		if part != nil && n.IsText[x] {
			r.IsText[part] = true
		}
		return []*ir.Value{part}
	})
}
