package contrib

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/shape"
)

// liftGatedBias scales a bias of relative positions [1, heads, length, length]
// for each query, by two gates u and r that follow from it: the bias counts
// u * (r * eco - 1) + 2 times. A gate is the sigmoid of the sum of one half of
// a product of the query's part for a head, [size] * [size, columns].
func liftGatedBias(n *lift.Node) {
	heads := lift.TakeOr(n, "num_heads", int64(0))
	n.NoMoreAttrs()
	if !n.Operands(6, 7) {
		return
	}
	query, queryBias, positions, weight, bias, eco := n.Args[0], n.Args[1], n.Args[2], n.Args[3], n.Args[4], n.Args[5]
	if rank, known := n.Rank(0); n.Arg(6) != nil || !known || rank != 3 {
		n.Unsupported("queries of %s, or without their padding (operand 6), want [batch, length, heads * size]", query.Type)
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
	q := n.Call("reshape", []*ir.Value{n.Add(query, queryBias), n.Ints([]int64{0, 0, heads, width / heads})})
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
