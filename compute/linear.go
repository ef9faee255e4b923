package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"matmul": bindMatMul,
	"gemm":   bindGemm,

	"fused_matmul": func(c *op.Call) (*Task, error) {
		p, err := fusedSizes(c)
		if err != nil {
			return nil, err
		}
		return productTask(c, p)
	},
})

var _ = registerPackers(map[string]packer{
	"matmul": func(c *op.Call, constants Constants) (*Task, error) {
		return packedProduct(c, productSizes(c, 0, 1, false), constants)
	},
	"gemm": func(c *op.Call, constants Constants) (*Task, error) {
		return packedProduct(c, gemmSizes(c), constants)
	},
	"fused_matmul": func(c *op.Call, constants Constants) (*Task, error) {
		p, err := fusedSizes(c)
		if err != nil {
			return nil, err
		}
		return packedProduct(c, p, constants)
	},
})

// product2 is a product of two matrices, or of batches of them, and what is
// added to it: the problem that all element types share.
type product2 struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	bias           kernel.BiasKind
	batch          []int
	batchA, batchB []int // strides along the batch axes, in elements

	residual bool // operand 3
	act      kernel.Activation
}

func bindMatMul(c *op.Call) (*Task, error) { return productTask(c, productSizes(c, 0, 1, false)) }

// productSizes returns the matrix product of two operands, the right one with
// its last two axes swapped first if swap.
func productSizes(c *op.Call, left, right int, swap bool) product2 {
	a, b := c.In[left].Shape.Sizes(), c.In[right].Shape.Sizes()
	if len(a) == 1 {
		a = []int{1, a[0]}
	}
	if len(b) == 1 {
		b = []int{b[0], 1}
	}
	p := product2{m: a[len(a)-2], k: a[len(a)-1], n: b[len(b)-1], transB: swap, alpha: 1, beta: 1}
	if swap {
		p.n = b[len(b)-2]
	}
	outerA, outerB := a[:len(a)-2], b[:len(b)-2]
	p.batch = c.Out[0].Shape.Sizes()[:max(len(outerA), len(outerB))]
	p.batchA, p.batchB = broadcastStrides(outerA, p.batch), broadcastStrides(outerB, p.batch)
	for i := range p.batch {
		p.batchA[i] *= p.m * p.k
		p.batchB[i] *= p.k * p.n
	}
	return p
}

func bindGemm(c *op.Call) (*Task, error) { return productTask(c, gemmSizes(c)) }

// gemmSizes returns the matrix product of a gemm and what is added to it.
func gemmSizes(c *op.Call) product2 {
	y, a := c.Out[0].Shape, c.In[0].Shape
	p := product2{
		m: y.Size(0), n: y.Size(1), k: a.Size(1), alpha: c.Float("alpha"), beta: c.Float("beta"),
		transA: c.Int("transA") != 0, transB: c.Int("transB") != 0,
	}
	if p.transA {
		p.k = a.Size(0)
	}
	if has(c, 2) {
		sizes := c.In[2].Shape.Sizes()
		switch rows := len(sizes) == 2 && sizes[0] > 1; {
		case c.In[2].Shape == y: // before all others: the result may lie in these bytes
			p.bias = kernel.BiasFull
		case elements(&c.In[2]) == 1:
			p.bias = kernel.BiasScalar
		case rows:
			p.bias = kernel.BiasRow
		default:
			p.bias = kernel.BiasCol
		}
	}
	return p
}

// fusedSizes returns the matrix product of a fused_matmul and what is fused
// into it.
func fusedSizes(c *op.Call) (product2, error) {
	if c.In[0].DType != dtype.F32 {
		return product2{}, unsupported(c)
	}
	p := productSizes(c, 0, 1, c.Int("transB") != 0)
	p.residual, p.act = has(c, 3), activationOf(c)
	if has(c, 2) {
		p.bias = kernel.BiasCol
	}
	return p, nil
}

func productTask(c *op.Call, p product2) (*Task, error) {
	switch dt := c.In[0].DType; {
	case isHalf(dt):
		return halfAsF32(c)
	case dt == dtype.F32:
		return gemmTask(c, p), nil
	case dt == dtype.F64:
		return productOf[float64](c, p), nil
	default:
		bind, ok := intOf(dt, productOf[int8], productOf[int16], productOf[int32], productOf[int64],
			productOf[uint8], productOf[uint16], productOf[uint32], productOf[uint64])
		if !ok {
			return nil, unsupported(c)
		}
		if p.alpha != math.Trunc(p.alpha) || p.beta != math.Trunc(p.beta) {
			return nil, fmt.Errorf("got alpha %v and beta %v for %s, want whole numbers: %w", p.alpha, p.beta, dt, op.ErrUnsupported)
		}
		return bind(c, p), nil
	}
}

func gemmTask(c *op.Call, p product2) *Task {
	g := p.gemm()
	g.Prepare(machine.Best())
	return runGemm(c, g)
}

func (p *product2) gemm() *kernel.Gemm {
	return &kernel.Gemm{
		M: p.m, N: p.n, K: p.k, TransA: p.transA, TransB: p.transB, Alpha: float32(p.alpha), Beta: float32(p.beta),
		Batch: p.batch, BatchA: p.batchA, BatchB: p.batchB, Epilogue: kernel.Epilogue{Bias: p.bias, Residual: p.residual, Act: p.act},
	}
}

func runGemm(c *op.Call, g *kernel.Gemm) *Task {
	return &Task{Tiles: g.Tiles(), Scratch: g.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		args := kernel.GemmArgs{C: out[float32](c, 0), A: in[float32](c, 0), B: in[float32](c, 1), Bias: in[float32](c, 2), Residual: in[float32](c, 3)}
		g.Tile(tile, view[float32](scratch), &args)
	}}
}

// packedProduct reads a constant right matrix in panels.
func packedProduct(c *op.Call, p product2, constants Constants) (*Task, error) {
	// Panels of a few columns are mostly zeros, and take more room than they save time.
	if c.In[0].DType != dtype.F32 || !constants.Is(1) || elements(&c.In[1]) != p.k*p.n || p.k == 0 || 2*p.n < kernel.PanelWidth(machine.Best()) {
		return productTask(c, p)
	}
	g := p.gemm()
	g.PackedB = true
	form := panelsForm(*g)
	if constants.Compressed && form.Bytes >= leastCompressed {
		g.CompressedB = true
		form = compressedForm(*g)
	}
	g.Prepare(machine.Best())
	t := runGemm(c, g)
	t.setForm(1, form)
	return t, nil
}

// panelsForm is what the panels of a product's right matrix are. The sizes of
// the rest have no part in it.
func panelsForm(g kernel.Gemm) Form {
	g = kernel.Gemm{N: g.N, K: g.K, TransB: g.TransB, Alpha: g.Alpha, PackedB: true}
	f := Form{
		Name:  fmt.Sprintf("panels of %dx%d", g.K, g.N),
		Bytes: 4 * g.PackedBFloats(machine.Best()),
		Pack: func(dst, src []byte) {
			pack := g
			pack.PackB(machine.Best(), view[float32](dst), view[float32](src))
		},
	}
	f.Name += sourceOf(g)
	if g.Alpha == 1 {
		f.Unpack = func(dst, src []byte) { g.UnpackB(machine.Best(), view[float32](dst), view[float32](src)) }
	}
	return f
}

// sourceOf says of a form how it is made of a product's right matrix.
func sourceOf(g kernel.Gemm) (name string) {
	if g.TransB {
		name = ", transposed"
	}
	if g.Alpha != 1 {
		name += fmt.Sprintf(", times %g", g.Alpha)
	}
	return name
}

// productOf serves the element types that have no fast kernels.
func productOf[T kernel.Number](c *op.Call, p product2) *Task {
	spec := &kernel.PlainGemm{
		M: p.m, N: p.n, K: p.k, TransA: p.transA, TransB: p.transB, Alpha: p.alpha, Beta: p.beta, Bias: p.bias,
		Batch: p.batch, BatchA: p.batchA, BatchB: p.batchB,
	}
	spec.Prepare()
	return &Task{Tiles: spec.Tiles(), Tile: func(tile int, _ []byte) {
		kernel.PlainGemmTile(spec, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2))
	}}
}
