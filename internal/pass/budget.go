package pass

import (
	"math"

	"github.com/tenure-go/tenure/op"
)

const (
	// budgetPerByte is how often the bytes of the weights may be folded into
	// others; leastBudget is the allowance of a program without weights.
	budgetPerByte = 4
	leastBudget   = 16 << 20

	// mostWork is the number of elements and products that folding may go
	// through in all: a few seconds.
	mostWork = 1 << 32
)

// allowance is the work that folding in a context may still do. A small file
// can describe a large computation: x+x, n times over, has 2^n elements. A call
// that exceeds the budget stays in the program, to be computed by a run.
type allowance struct {
	maxFold, maxFill int64 // see Context
	bytes, work      int64 // left for all folding
}

func allowanceOf(ctx *Context) *allowance {
	b := &allowance{maxFold: ctx.MaxFold, maxFill: ctx.MaxFill, bytes: leastBudget, work: mostWork}
	for _, w := range ctx.Program.Weights {
		if n, err := w.Type.Bytes(); err == nil && ctx.isKnown(w) {
			b.bytes += budgetPerByte * int64(n)
		}
	}
	return b
}

// worth reports whether a constant of out bytes, computed by the named operator
// from in bytes, is worth keeping.
func (b *allowance) worth(name string, in, out int64) bool {
	if out <= max(in, b.maxFold) {
		return true
	}
	if name != "constant_of_shape" || out > b.maxFill {
		return false
	}
	b.maxFill -= out
	b.bytes += (1 + budgetPerByte) * out
	return true
}

// take subtracts the needs of the call, if that much is left. The call's types
// are static.
func (b *allowance) take(c *op.Call) bool {
	bytes, work, ok := needs(c)
	return ok && b.spend(bytes, work)
}

// spend subtracts bytes and work, if that much is left.
func (b *allowance) spend(bytes, work int64) bool {
	if bytes > b.bytes || work > b.work {
		return false
	}
	b.bytes -= bytes
	b.work -= work
	return true
}

// needs returns the bytes and the work of the evaluation of a call.
func needs(c *op.Call) (bytes, work int64, ok bool) {
	for _, out := range c.Out {
		if !out.IsZero() {
			n, err := out.Type.Bytes()
			if err != nil {
				return 0, 0, false
			}
			bytes += int64(n)
		}
	}
	return bytes, workOf(c), true
}

// workOf estimates the work of a call: its elements, and the products of what
// multiplies or compares every result's window.
func workOf(c *op.Call) int64 {
	var work float64
	for _, side := range [2][]op.Arg{c.In, c.Out} {
		for _, a := range side {
			if !a.IsZero() {
				work += float64(a.Shape.NumElements())
			}
		}
	}
	return int64(min(work+productsOf(c), math.MaxInt64/2))
}

func productsOf(c *op.Call) float64 {
	if f := products[c.Def.Name]; f != nil {
		return f(c)
	}
	return 0
}

// products are the operators that multiply or compare windows, with how often:
// at most the elements of a result times those of an operand.
var products = map[string]func(c *op.Call) float64{
	"matmul": rowProducts, "gemm": rowProducts, "fused_matmul": rowProducts, "matmul_nbits": rowProducts, "matmul_integer": rowProducts, "qlinear_matmul": rowProducts,
	"conv": weightProducts, "fused_conv": weightProducts, "conv_integer": weightProducts,
	"conv_transpose": windowProducts, "qlinear_conv": windowProducts, "max_pool": windowProducts, "average_pool": windowProducts,
}

func countOf(a op.Arg) float64 { return float64(a.Shape.NumElements()) }

// rowProducts: each result adds up one of the first operand's dimensions.
func rowProducts(c *op.Call) float64 {
	most := 1
	for _, n := range c.In[0].Shape.Sizes()[max(0, c.In[0].Shape.Rank()-2):] {
		most = max(most, n)
	}
	return countOf(c.Out[0]) * float64(most)
}

func weightProducts(c *op.Call) float64 { return countOf(c.Out[0]) * countOf(c.In[1]) }

func windowProducts(c *op.Call) float64 { return countOf(c.Out[0]) * countOf(c.In[0]) }
