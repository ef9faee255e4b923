package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/standard"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// tensorTable has operators that ONNX did not have, or had otherwise.
var tensorTable = map[string]lift.Operator{
	"GridSample":      lift.Lifted(1, standard.LiftGridSample),
	"Inverse":         lift.Lifted(1, liftInverse),
	"MatMulInteger16": lift.Lifted(1, liftMatMulInteger16),
	"SampleOp":        lift.Lifted(1, liftIdentity),
	"UnfoldTensor":    lift.Lifted(1, liftUnfold),
	"Unique":          lift.Lifted(1, liftUnique),
}

func liftIdentity(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(1, 1) {
		n.Finish("identity", n.Args)
	}
}

func liftInverse(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(1, 1) {
		n.Finish("inverse", n.Args)
	}
}

// liftMatMulInteger16 multiplies integers of 16 bits in 32 bits.
func liftMatMulInteger16(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(2, 2) {
		return
	}
	to := dtype.I32
	if !n.Args[0].Type.DType.IsSigned() && !n.Args[1].Type.DType.IsSigned() {
		to = dtype.U32
	}
	n.Finish("matmul", []*ir.Value{as(n, n.Args[0], to), as(n, n.Args[1], to)})
}

// liftUnique are the distinct elements in the order in which they come first,
// where each element is among them, and how often each is there.
func liftUnique(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(1, 1) {
		return
	}
	base := n.Path + n.Proto.Outputs[0]
	names := []string{n.Fresh(base + ".distinct"), "", n.Fresh(base + ".inverse"), n.Fresh(base + ".counts")}
	list := n.Emit("unique", n.Args, []op.Attr{lift.IntAttr("sorted", 0)}, names)
	for i, from := range []int{0, 2, 3} {
		n.Output(i, "identity", []*ir.Value{list[from]})
	}
}

// liftUnfold are all slices of a size along an axis, a step apart. Their
// elements are a last axis.
func liftUnfold(n *lift.Node) {
	axis, step := lift.TakeOr(n, "dim", int64(-1)), lift.TakeOr(n, "step", int64(1))
	size := lift.TakeOr(n, "size", int64(0))
	n.NoMoreAttrs()
	if !n.Operands(1, 1) {
		return
	}
	rank, known := n.Rank(0)
	if !known {
		n.Unsupported("an operand of unknown rank")
		return
	}
	if axis < 0 {
		axis += int64(rank)
	}
	if axis < 0 || axis >= int64(rank) || size < 1 || size > 1<<20 || step < 1 {
		n.Fail("got dim %d, size %d and step %d for %s, want one of its axes, and 1 or more: %w", axis, size, step, n.Args[0].Type, shape.ErrShape)
		return
	}
	one, zero := n.Scalar(dtype.I64, 1), n.Scalar(dtype.I64, 0)
	end := n.WithNumber("sub", sizeOf(n, n.Args[0], int(axis)), float64(size-1), dtype.I64)
	starts := n.Call("range", []*ir.Value{zero, end, n.Scalar(dtype.I64, float64(step))})
	starts = n.Call("unsqueeze", []*ir.Value{starts, n.Ints([]int64{1})})
	y := n.Call("gather", []*ir.Value{n.Args[0], n.Add(starts, n.Call("range", []*ir.Value{zero, n.Scalar(dtype.I64, float64(size)), one}))}, lift.IntAttr("axis", axis))
	perm := make([]int64, 0, rank+1)
	for i := range int64(rank) + 1 {
		if i != axis+1 {
			perm = append(perm, i)
		}
	}
	n.Finish("transpose", []*ir.Value{y}, lift.IntsAttr("perm", append(perm, axis+1)))
}
