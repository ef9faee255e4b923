package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// The numbers that 4 bits stand for, by the attribute quant_type: floats with
// a sign, two bits of exponent and one of the fraction, of which the largest is
// 1; and quantiles of the normal distribution.
var bnbNumbers = [2][]float32{
	{0, 0.0052083333, 0.6666667, 1, 0.33333334, 0.5, 0.16666667, 0.25, 0, -0.0052083333, -0.6666667, -1, -0.33333334, -0.5, -0.16666667, -0.25},
	{-1, -0.6961928, -0.52507305, -0.3949175, -0.28444138, -0.18477343, -0.09105004, 0, 0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.562617, 0.72295684, 1},
}

// liftMatMulBnb4 multiplies by weights [N, K] of 4 bits, which are numbers of a
// table times the scale of their block. Rows follow each other without
// padding, the upper half of a byte first; a block may reach over rows.
func liftMatMulBnb4(n *lift.Node) {
	k, rows := lift.TakeOr(n, "K", int64(0)), lift.TakeOr(n, "N", int64(0))
	block, table := lift.TakeOr(n, "block_size", int64(0)), lift.TakeOr(n, "quant_type", int64(-1))
	transposed := lift.TakeOr(n, "transB", int64(1)) != 0
	n.Ignore("training_mode")
	n.NoMoreAttrs()
	if !n.Operands(3, 3) {
		return
	}
	const most = 1 << 30
	if k < 1 || rows < 1 || block < 1 || k > most || rows > most || block > most || table != 0 && table != 1 {
		n.Fail("got K %d, N %d, block_size %d and quant_type %d, want 1 or more, and FP4 (0) or NF4 (1)", k, rows, block, table)
		return
	}
	count := k * rows
	blocks := (count + block - 1) / block
	bytes := n.Call("reshape", []*ir.Value{n.Args[1], n.Ints([]int64{(count + 1) / 2, 1})})
	upper := n.Call("bit_shift", []*ir.Value{bytes, n.Scalar(dtype.U8, 4)}, op.Attr{Name: "direction", Value: "RIGHT"})
	both := n.Call("concat", []*ir.Value{upper, n.Call("bitwise_and", []*ir.Value{bytes, n.Scalar(dtype.U8, 15)})}, lift.IntAttr("axis", 1))
	codes := n.Call("reshape", []*ir.Value{both, n.Ints([]int64{-1})})
	one, zero := n.Ints([]int64{1}), n.Ints([]int64{0})
	if rest := blocks*block - (count+1)/2*2; rest > 0 {
		codes = n.Call("pad", []*ir.Value{codes, n.Ints([]int64{0, rest})})
	}
	numbers := as(n, n.Floats(bnbNumbers[table]), n.Args[2].Type.DType)
	codes = n.Call("reshape", []*ir.Value{codes, n.Ints([]int64{blocks, block})})
	w := n.Call("gather", []*ir.Value{numbers, n.Call("cast", []*ir.Value{codes}, op.Attr{Name: "to", Value: dtype.I32})})
	w = n.Call("mul", []*ir.Value{w, n.Call("reshape", []*ir.Value{n.Args[2], n.Ints([]int64{blocks, 1})})})
	w = n.Call("reshape", []*ir.Value{w, n.Ints([]int64{-1})})
	if blocks*block != count {
		w = n.Call("slice", []*ir.Value{w, zero, n.Ints([]int64{count}), zero, one})
	}
	w = n.Call("reshape", []*ir.Value{w, n.Ints([]int64{rows, k})})
	if transposed {
		w = n.Call("transpose", []*ir.Value{w})
	}
	n.Finish("matmul", []*ir.Value{n.Args[0], w})
}
