package pass

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var fusedProductOp = op.Builtin().Lookup("fused_matmul")

// isLinear reports whether a call is a product with one matrix on the right,
// plus at most one number per column: what fused_matmul computes.
func (f *fuser) isLinear(c *ir.Call) bool {
	if c.Op.Name != "matmul" && c.Op.Name != "gemm" {
		return false
	}
	r, a, b := c.Results[0].Type, c.Args[0].Value.Type, c.Args[1].Value.Type
	if r.DType != dtype.F32 || !r.IsStatic() || a.Shape.Rank() < 2 || b.Shape.Rank() != 2 {
		return false
	}
	if c.Op.Name == "matmul" {
		return true
	}
	sig := c.Sig(nil)
	return sig.Int("transA") == 0 && sig.Float("alpha") == 1 && sig.Float("beta") == 1 &&
		(len(c.Args) < 3 || c.Args[2].Value == nil || perColumn(c.Args[2].Value, c))
}

// perColumn reports whether a value is one number per column of a product.
func perColumn(v *ir.Value, c *ir.Call) bool {
	s, y := v.Type.Shape, c.Results[0].Type.Shape
	return v.Type.DType == dtype.F32 && s.IsStatic() && s.Rank() == 1 && s.Size(0) == y.Size(y.Rank()-1)
}

// fusedProduct turns a linear product into a fused_matmul.
func fusedProduct(c *ir.Call) {
	var attrs op.Attrs
	if c.Op.Name == "gemm" {
		attrs = attrs.With("transB", c.Sig(nil).Int("transB"))
	}
	args := make([]ir.Operand, 4)
	copy(args, c.Args)
	c.Op, c.Args, c.Attrs = fusedProductOp, args, attrs
}

// afterProduct fuses what follows a product: a bias per column, a residual, an
// activation.
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
	if next.Op.Name != "add" || len(c.Args) > 2 && c.Args[2].Value != nil || next.Results[0].Type != c.Results[0].Type {
		return false
	}
	other := f.addend(c, next)
	if other == nil || !perColumn(other, c) || other.Type == c.Results[0].Type {
		return false
	}
	fused(c)
	c.Args[argBias] = ir.Operand{Value: other}
	f.users[other] = c
	f.take(c, next)
	return true
}

// fewRows is how many rows a product has at most that reads the rows of a
// transposed matrix where they lie: adding up along them is as fast then. With
// more it would copy them into panels, slower than a transpose does it.
const fewRows = 4

// beforeProduct fuses a transpose of the last two axes of the right operand.
func (f *fuser) beforeProduct(c *ir.Call, local map[*ir.Call]bool) {
	if c.Op.Name != "matmul" && (c.Op != fusedProductOp || c.Sig(nil).Int("transB") != 0) {
		return
	}
	r, a, b := c.Results[0].Type, c.Args[0].Value.Type, c.Args[1].Value
	// A static result says nothing about the axis that is summed over, which may have a size that depends on data.
	if r.DType != dtype.F32 || !r.IsStatic() || !a.IsStatic() || a.Shape.Rank() < 2 || b.Type.Shape.Rank() < 2 {
		return
	}
	prev := f.onlyFeeds(b, local)
	if prev == nil || !swapsMatrix(prev) || rowsOf(a.Shape, b.Type.Shape.Rank()) > fewRows {
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
	perm, rank := c.Sig(nil).Ints("perm"), c.Results[0].Type.Shape.Rank()
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

// rowsOf is how many rows of a matrix or of several meet one matrix on the
// right, of which there are several if they have more than two axes.
func rowsOf(left *shape.Shape, rightRank int) int {
	sizes := left.Sizes()
	if rightRank > 2 {
		sizes = sizes[len(sizes)-2:]
	}
	rows := 1
	for _, n := range sizes[:len(sizes)-1] {
		rows *= n
	}
	return rows
}

// fuseUnit fuses the activations of transformers.
func fuseUnit(c, next *ir.Call) bool {
	sig, name := next.Sig(nil), ""
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
