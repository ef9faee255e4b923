package contrib

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// liftRelativeBias is the bias of T5 for the distance from a query to a key,
// [1, heads, queries, keys]: short distances have a bucket each, longer ones
// share buckets by their logarithm. The table's bytes are [heads, buckets],
// though its shape is [buckets, heads].
func liftRelativeBias(n *lift.Node) {
	both := lift.TakeOr(n, "is_bidirectional", int64(0)) != 0
	farthest := lift.TakeOr(n, "max_distance", int64(0))
	n.NoMoreAttrs()
	if !n.Operands(3, 3) {
		return
	}
	table := n.Args[0].Type
	if !table.IsStatic() || table.Shape.Rank() != 2 {
		n.Unsupported("a table of %s, want [buckets,heads] that are known at load", table)
		return
	}
	buckets, heads := int64(table.Shape.Size(0)), int64(table.Shape.Size(1))
	half := buckets // of one direction
	if both {
		half /= 2
	}
	exact := half / 2
	if exact < 1 || farthest <= exact {
		n.Fail("got max_distance %d for %d buckets, want more than the %d distances that have a bucket each", farthest, buckets, exact)
		return
	}
	places := func(length *ir.Value) *ir.Value {
		length = n.Call("reshape", []*ir.Value{length, n.Ints([]int64{})})
		return n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), length, n.Scalar(dtype.I64, 1)})
	}
	queries := n.Call("unsqueeze", []*ir.Value{places(n.Args[1]), n.Ints([]int64{1})})
	distance := n.Call("sub", []*ir.Value{places(n.Args[2]), queries}) // keys after the query are above zero
	var bucket *ir.Value
	if both {
		after := n.Call("cast", []*ir.Value{n.WithNumber("greater", distance, 0, dtype.I64)}, op.Attr{Name: "to", Value: dtype.I64})
		bucket = n.Add(n.WithNumber("mul", after, float64(half), dtype.I64), bucketOf(n, n.Call("abs", []*ir.Value{distance}), half, farthest))
	} else {
		before := n.Call("neg", []*ir.Value{n.WithNumber("min", distance, 0, dtype.I64)})
		bucket = bucketOf(n, before, half, farthest)
	}
	rows := n.Call("reshape", []*ir.Value{n.Args[0], n.Ints([]int64{heads, buckets})})
	y := n.Call("gather", []*ir.Value{rows, bucket}, lift.IntAttr("axis", 1))
	n.Finish("unsqueeze", []*ir.Value{y, n.Ints([]int64{0})})
}

// bucketOf is the bucket of distances of 0 and more, of so many buckets.
func bucketOf(n *lift.Node, distance *ir.Value, buckets, farthest int64) *ir.Value {
	exact := buckets / 2
	single, whole := op.Attr{Name: "to", Value: dtype.F32}, op.Attr{Name: "to", Value: dtype.I64}
	x := n.Call("cast", []*ir.Value{n.WithNumber("max", distance, 1, dtype.I64)}, single)
	x = n.Call("log", []*ir.Value{n.WithNumber("div", x, float64(exact), dtype.F32)})
	x = n.WithNumber("div", x, math.Log(float64(farthest)/float64(exact)), dtype.F32)
	x = n.Call("cast", []*ir.Value{n.WithNumber("mul", x, float64(buckets-exact), dtype.F32)}, whole)
	far := n.WithNumber("min", n.WithNumber("add", x, float64(exact), dtype.I64), float64(buckets-1), dtype.I64)
	return n.Call("where", []*ir.Value{n.WithNumber("less", distance, float64(exact), dtype.I64), distance, far})
}

// liftGatedBias scales a bias of relative positions [1, heads, length, length]
// for each query, by two gates u and r that follow from it: the bias counts
// u * (r * eco - 1) + 2 times. A gate is the sigmoid of the sum of one half of
// a product of the query's part for a head, [size] * [size, columns]. Queries
// without their padding have an operand that says where they are.
func liftGatedBias(n *lift.Node) {
	heads := lift.TakeOr(n, "num_heads", int64(0))
	n.NoMoreAttrs()
	if !n.Operands(6, 7) {
		return
	}
	query, queryBias, positions, weight, bias, eco := n.Args[0], n.Args[1], n.Args[2], n.Args[3], n.Args[4], n.Args[5]
	want := 3
	if n.Arg(6) != nil {
		want = 2
	}
	if rank, known := n.Rank(0); !known || rank != want {
		n.Unsupported("queries of %s, want %d dimensions", query.Type, want)
		return
	}
	width, ok := n.LastSize(query)
	columns, known := n.LastSize(bias)
	if !ok || !known || !n.WantDivides("last size of the queries", width, heads) || !n.WantDivides("size of the bias", columns, 2) {
		return
	}
	if rank, _ := n.Rank(3); rank != 2 {
		n.Fail("operand 3: got %s, want a matrix: %w", weight.Type, shape.ErrShape)
		return
	}
	q := n.Add(query, queryBias)
	if offsets := n.Arg(6); offsets != nil {
		q = newPacking(n, offsets, query).padded(q)
	}
	q = n.Call("reshape", []*ir.Value{q, n.Ints([]int64{0, 0, heads, width / heads})})
	q = n.Call("transpose", []*ir.Value{q}, lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
	product := n.Add(n.Call("matmul", []*ir.Value{q, weight}), bias)
	halves := split(n, product, -1, columns/2, columns/2)
	gate := func(x *ir.Value) *ir.Value {
		return n.Call("sigmoid", []*ir.Value{n.Call("reduce_sum", []*ir.Value{x, n.Ints([]int64{-1})})})
	}
	u, r := gate(halves[0]), gate(halves[1])
	if n.Err != nil {
		return
	}
	dt := query.Type.DType
	times := n.Call("mul", []*ir.Value{u, n.WithNumber("sub", n.Call("mul", []*ir.Value{r, eco}), 1, dt)})
	n.Finish("mul", []*ir.Value{n.WithNumber("add", times, 2, dt), positions})
}
