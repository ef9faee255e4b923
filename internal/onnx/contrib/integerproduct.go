package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// integerProductTable has the operators that multiply matrices of integers.
var integerProductTable = map[string]lift.Operator{
	"DynamicQuantizeMatMul": lift.Lifted(1, liftDynamicQuantizeMatMul),
	"MatMulIntegerToFloat":  lift.Lifted(1, liftMatMulIntegerToFloat),
	"QGemm":                 lift.Lifted(1, liftQGemm),
	"QAttention":            lift.Lifted(1, liftQAttention),
}

// liftDynamicQuantizeMatMul quantises a by its range, and multiplies integers.
func liftDynamicQuantizeMatMul(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(3, 5) {
		return
	}
	names := make([]string, 3)
	for i := range names {
		names[i] = n.Fresh(n.Path + n.Proto.Outputs[0] + ".dynamic_quantize_linear")
	}
	a := n.Emit("dynamic_quantize_linear", n.Args[:1], nil, names)
	finishProduct(n, a[0], n.Args[1], a[1], n.Args[2], a[2], n.Arg(3), n.Arg(4))
}

// liftMatMulIntegerToFloat multiplies integers and scales the result.
func liftMatMulIntegerToFloat(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(4, 7) {
		finishProduct(n, n.Args[0], n.Args[1], n.Args[2], n.Args[3], n.Arg(4), n.Arg(5), n.Arg(6))
	}
}

// finishProduct ends the node with an integer product and a bias.
func finishProduct(n *lift.Node, a, b, aScale, bScale, aZero, bZero, bias *ir.Value) {
	product, scale := integerProduct(n, a, b, aScale, bScale, aZero, bZero)
	if bias == nil {
		n.Finish("mul", []*ir.Value{product, scale})
		return
	}
	n.Finish("add", []*ir.Value{n.Call("mul", []*ir.Value{product, scale}), bias})
}

// integerProduct returns (a - aZero) * (b - bZero) as floats, and their scale.
func integerProduct(n *lift.Node, a, b, aScale, bScale, aZero, bZero *ir.Value) (product, scale *ir.Value) {
	product = n.Call("matmul_integer", []*ir.Value{a, b, aZero, bZero})
	if n.Err != nil {
		return nil, nil
	}
	product = n.Call("cast", []*ir.Value{product}, op.Attr{Name: "to", Value: aScale.Type.DType})
	return product, n.Call("mul", []*ir.Value{aScale, bScale})
}

// liftQGemm is alpha * a * b + c of quantised a and b, where c has the scale of
// the product, in i32. The result is quantised if it has a zero.
func liftQGemm(n *lift.Node) {
	alpha := float64(lift.TakeOr(n, "alpha", float32(1)))
	transpose := []bool{lift.TakeOr(n, "transA", int64(0)) != 0, lift.TakeOr(n, "transB", int64(0)) != 0}
	n.NoMoreAttrs()
	if !n.Operands(6, 9) {
		return
	}
	const scaleOf, zeroOf = 7, 8 // the result's
	if n.Arg(scaleOf) != nil && n.Arg(zeroOf) == nil || n.Arg(scaleOf) == nil && n.Arg(zeroOf) != nil {
		n.Fail("got one of operands %d and %d, want scale and zero of the result, or neither", scaleOf, zeroOf)
		return
	}
	var args [2]*ir.Value
	for i := range args {
		if rank, known := n.Rank(3 * i); known && rank != 2 {
			n.Fail("operand %d: got %s, want a matrix: %w", 3*i, n.Args[3*i].Type, shape.ErrShape)
			return
		}
		if args[i] = n.Args[3*i]; transpose[i] {
			args[i] = n.Call("transpose", []*ir.Value{args[i]}, lift.IntsAttr("perm", []int64{1, 0}))
		}
	}
	product := n.Add(n.Call("matmul_integer", []*ir.Value{args[0], args[1], n.Arg(2), n.Arg(5)}), n.Arg(6))
	product = n.Call("cast", []*ir.Value{product}, op.Attr{Name: "to", Value: dtype.F32})
	scale := n.Args[1]
	if alpha != 1 {
		scale = n.WithNumber("mul", scale, alpha, dtype.F32)
	}
	scale = n.Call("mul", []*ir.Value{scale, n.Args[4]})
	if n.Arg(scaleOf) == nil {
		n.Finish("mul", []*ir.Value{product, scale})
		return
	}
	// ONNX Runtime divides the scales, not the product.
	scale = n.Call("div", []*ir.Value{scale, n.Args[scaleOf]})
	quantized(n, n.Call("mul", []*ir.Value{product, scale}), n.Scalar(dtype.F32, 1), n.Args[zeroOf], n.Args[0].Type.DType)
}

// liftQAttention is an Attention whose product is that of integers.
func liftQAttention(n *lift.Node) {
	a := readAttention(n)
	refuseSharedPast(n)
	n.NoMoreAttrs()
	if !n.Operands(5, 9) {
		return
	}
	for i, want := range []int{3, 2} {
		if rank, known := n.Rank(i); !known || rank != want {
			n.Unsupported("operand %d of %s, want %d dimensions", i, n.Args[i].Type, want)
			return
		}
	}
	all, ok := n.LastSize(n.Args[1])
	if !ok || !n.WantDivides("last size of the weights", all, 3) {
		return
	}
	// Scales of unknown rank are a number, and one or a vector.
	one := n.Call("reshape", []*ir.Value{n.Args[3], n.Ints([]int64{})})
	each := n.Call("reshape", []*ir.Value{n.Args[4], n.Ints([]int64{-1})})
	product, scale := integerProduct(n, n.Args[0], n.Args[1], one, each, n.Arg(6), n.Arg(7))
	product = n.Add(n.Call("mul", []*ir.Value{product, scale}), n.Args[2])
	a.mask = n.Arg(5)
	attendPacked(n, a, product, []int64{all / 3, all / 3, all / 3}, n.Arg(8))
}
