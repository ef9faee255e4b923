package pass

import (
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var fusedProductOp = op.Builtin().Lookup("fused_matmul")

// isLinear reports whether a call is a product with one matrix on the right,
// plus at most one number per column: what fused_matmul computes.
func (f *fuser) isLinear(c *ir.Call) bool {
	if c.Op.Name != "matmul" && c.Op.Name != "gemm" {
		return false
	}
	r, a, b := c.Results[0], c.Args[0].Value, c.Args[1].Value
	if !isFused(r.Type.DType) || !isStatic(r) || rank(a) < 2 || rank(b) != 2 {
		return false
	}
	if c.Op.Name == "matmul" {
		return true
	}
	sig := attrsOf(c)
	return sig.Int("transA") == 0 && sig.Float("alpha") == 1 && sig.Float("beta") == 1 &&
		(len(c.Args) < 3 || c.Args[2].Value == nil || f.perColumn(c.Args[2].Value, c))
}

// perColumn reports whether a value is one number per column of a product.
func (f *fuser) perColumn(v *ir.Value, c *ir.Call) bool {
	y := c.Results[0]
	return v.Type.DType == y.Type.DType && isStatic(v) && rank(v) == 1 && f.ctx.is(sameSize, v, y, 0, rank(y)-1)
}

// fusedProduct turns a linear product into a fused_matmul.
func fusedProduct(c *ir.Call) {
	var attrs op.Attrs
	if c.Op.Name == "gemm" {
		attrs = attrs.With("transB", attrsOf(c).Int("transB"))
	}
	args := make([]ir.Operand, 4)
	copy(args, c.Args)
	c.Op, c.Args, c.Attrs = fusedProductOp, args, attrs
}

// afterProduct fuses the calls after a product: a bias per column, a residual,
// an activation.
func (f *fuser) afterProduct(c *ir.Call, local map[*ir.Call]bool) {
	next := f.nextOf(c, local)
	if next != nil && f.fuseBias(c, next) {
		next = f.nextOf(c, local)
	}
	if next != nil && f.fuseResidual(c, next) {
		next = f.nextOf(c, local)
	}
	if next != nil && (f.fuseActivation(c, next) || fuseUnit(c, next)) {
		f.take(c, next)
	}
}

// fuseBias fuses the addition of one number per column that exists before the
// product runs.
func (f *fuser) fuseBias(c, next *ir.Call) bool {
	if next.Op.Name != "add" || len(c.Args) > 2 && c.Args[2].Value != nil || !f.ctx.sameType(next.Results[0], c.Results[0]) {
		return false
	}
	other := f.addend(c, next)
	if other == nil || !f.perColumn(other, c) || f.ctx.sameType(other, c.Results[0]) {
		return false
	}
	fused(c)
	c.Args[argBias] = ir.Operand{Value: other}
	f.users[other] = c
	f.take(c, next)
	return true
}

// mostFewRows is how many rows a product has at most that reads the rows of a
// transposed matrix where they lie: adding up along them is as fast then. With
// more it would copy them into panels, slower than a transpose does it.
const mostFewRows = 4

// beforeProduct fuses a transpose of the last two axes of the right operand.
func (f *fuser) beforeProduct(c *ir.Call, local map[*ir.Call]bool) {
	if c.Op.Name != "matmul" && (c.Op != fusedProductOp || attrsOf(c).Int("transB") != 0) {
		return
	}
	r, a, b := c.Results[0], c.Args[0].Value, c.Args[1].Value
	// A static result says nothing about the axis that is summed over, which
	// may have a size that depends on data.
	if !isFused(r.Type.DType) || !isStatic(r) || !isStatic(a) || rank(a) < 2 || rank(b) < 2 {
		return
	}
	prev := f.onlyFeeds(b, local)
	if prev == nil || !swapsMatrix(prev) || !f.ctx.is(fewRows, a, b, mostFewRows, 0) {
		return
	}
	fused(c)
	c.Args[1] = ir.Operand{Value: prev.Args[0].Value}
	c.Attrs = c.Attrs.With("transB", int64(1))
	f.users[prev.Args[0].Value] = c
	f.gone[prev] = true
}

// swapsMatrix reports whether a call transposes matrices: the last two axes.
func swapsMatrix(c *ir.Call) bool {
	if c.Op.Name != "transpose" {
		return false
	}
	perm, rank := attrsOf(c).Ints("perm"), rank(c.Results[0])
	if len(perm) == 0 {
		return rank == 2
	}
	for i, axis := range perm {
		want := i
		if i >= rank-2 {
			want = 2*rank - 3 - i
		}
		if int(axis) != want {
			return false
		}
	}
	return rank >= 2
}

// fuseUnit fuses the activations of transformers.
func fuseUnit(c, next *ir.Call) bool {
	sig, name := attrsOf(next), ""
	switch next.Op.Name {
	case "gelu":
		name = "gelu"
		if sig.Str("approximate") == "tanh" {
			name = "gelu_tanh"
		}
	case "swish":
		if sig.Float("alpha") != 1 {
			return false
		}
		name = "silu"
	default:
		return false
	}
	fused(c)
	c.Attrs = c.Attrs.With("activation", name)
	return true
}
