package compute

import (
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"matmul":       productOp(matMulSizes),
	"gemm":         productOp(gemmSizes),
	"fused_matmul": productOp(fusedSizes),
})

var _ = registerWalkers(rowsLaid, "matmul", "gemm", "fused_matmul")

var _ = registerPackers(map[string]packer{
	"matmul":       packedProductOp(matMulSizes),
	"gemm":         packedProductOp(gemmSizes),
	"fused_matmul": packedProductOp(fusedSizes),
})

// product2 is a product of two matrices, or of batches of them, and its addend:
// the problem that all element types share.
type product2 struct {
	m, n, k        int
	transA, transB bool
	alpha, beta    float64
	bias           gemm.BiasKind
	batch          []int
	batchA, batchB []int // strides along the batch axes, in elements

	residual bool // operand 3
	act      gemm.Activation
}

// A sizing sets the problem of a call, in slices that it reuses.
type sizing func(c *op.Call, p *product2) error

func matMulSizes(c *op.Call, p *product2) error {
	p.fill(c, 0, 1, false)
	return nil
}

// fill sets the matrix product of two operands, the right one with its last
// two axes swapped first if swap.
func (p *product2) fill(c *op.Call, left, right int, swap bool) {
	a, b := c.In[left].Shape.Sizes(), c.In[right].Shape.Sizes()
	var row, column [2]int
	if len(a) == 1 {
		row = [2]int{1, a[0]}
		a = row[:]
	}
	if len(b) == 1 {
		column = [2]int{b[0], 1}
		b = column[:]
	}
	batchA, batchB := p.batchA[:0], p.batchB[:0]
	*p = product2{m: a[len(a)-2], k: a[len(a)-1], n: b[len(b)-1], transB: swap, alpha: 1, beta: 1}
	if swap {
		p.n = b[len(b)-2]
	}
	outerA, outerB := a[:len(a)-2], b[:len(b)-2]
	p.batch = c.Out[0].Shape.Sizes()[:max(len(outerA), len(outerB))]
	p.batchA, p.batchB = broadcastStrides(batchA, outerA, p.batch), broadcastStrides(batchB, outerB, p.batch)
	for i := range p.batch {
		p.batchA[i] *= p.m * p.k
		p.batchB[i] *= p.k * p.n
	}
}

// gemmSizes sets the matrix product of a gemm and its addend.
func gemmSizes(c *op.Call, p *product2) error {
	y, a := c.Out[0].Shape, c.In[0].Shape
	*p = product2{
		m: y.Size(0), n: y.Size(1), k: a.Size(1), alpha: c.Float("alpha"), beta: c.Float("beta"),
		transA: c.Int("transA") != 0, transB: c.Int("transB") != 0,
	}
	if p.transA {
		p.k = a.Size(0)
	}
	if has(c, 2) && p.beta != 0 { // an addend that does not count is not read: NaN times 0 would be NaN
		sizes := c.In[2].Shape.Sizes()
		switch rows := len(sizes) == 2 && sizes[0] > 1; {
		case c.In[2].Shape == y: // before all others: the result may lie in these bytes
			p.bias = gemm.BiasFull
		case elements(&c.In[2]) == 1:
			p.bias = gemm.BiasScalar
		case rows:
			p.bias = gemm.BiasRow
		default:
			p.bias = gemm.BiasCol
		}
	}
	return nil
}

// fusedSizes sets the matrix product of a fused_matmul and the operations fused
// into it.
func fusedSizes(c *op.Call, p *product2) error {
	if dt := c.In[0].DType; dt != dtype.F32 && !isHalf(dt) {
		return unsupported(c)
	}
	p.fill(c, 0, 1, c.Int("transB") != 0)
	p.residual, p.act = has(c, 3), activationOf(c)
	if has(c, 2) {
		p.bias = gemm.BiasCol
	}
	return nil
}

func productOp(sizes sizing) binder {
	return func(c *op.Call) (Kernel, error) { return productOn(c, sizes) }
}

// productOn returns the kernel of a product for the type of operand 0.
func productOn(c *op.Call, sizes sizing) (Kernel, error) {
	switch dt := c.In[0].DType; {
	case isHalf(dt):
		return &halfGemm{problem: floatGemm{sizes: sizes}, half: gemm.Half{Type: dt}}, nil
	case dt == dtype.F32:
		return &floatGemm{sizes: sizes}, nil
	case dt == dtype.F64:
		return newPlainGemm[float64](sizes), nil
	default:
		bind, ok := intOf(dt, newPlainGemm[int8], newPlainGemm[int16], newPlainGemm[int32], newPlainGemm[int64],
			newPlainGemm[uint8], newPlainGemm[uint16], newPlainGemm[uint32], newPlainGemm[uint64])
		if !ok {
			return nil, unsupported(c)
		}
		return bind(sizes), nil
	}
}

// floatGemm is a product of f32 matrices.
type floatGemm struct {
	gemm.Gemm
	sizes   sizing
	problem product2
	strides [4][]int // of the matrices of A, B, C and the residual along the batch axes

	weights    *shape.Shape // of operand 1 where it is read in a form
	compressed bool
}

func (p *product2) floatGemm() gemm.Gemm {
	return gemm.Gemm{
		M: p.m, N: p.n, K: p.k, TransA: p.transA, TransB: p.transB, Alpha: float32(p.alpha), Beta: float32(p.beta),
		Batch: p.batch, BatchA: p.batchA, BatchB: p.batchB, Epilogue: gemm.Epilogue{Bias: p.bias, Residual: p.residual, Act: p.act},
	}
}

func (k *floatGemm) Refill(t *Task) error {
	if err := k.fill(t.Call); err != nil {
		return err
	}
	if k.weights != nil {
		if t.Call.In[1].Shape != k.weights {
			return ErrRebind
		}
		k.PackedB = true
		k.setForms(t)
		k.CompressedB = k.compressed
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchBytes()
	return nil
}

// fill sets the problem of a call, which is not prepared.
func (k *floatGemm) fill(c *op.Call) error {
	if err := k.sizes(c, &k.problem); err != nil {
		return err
	}
	k.Gemm = k.problem.floatGemm()
	if anyGaps(c) {
		k.lay(c)
	}
	return nil
}

func (k *floatGemm) takesStrides() bool { return true }

// lay sets the distances of rows and of matrices that lie with strides.
func (k *floatGemm) lay(c *op.Call) {
	k.LDA, k.strides[0] = matricesOf(k.strides[0], &c.In[0], len(k.Batch))
	k.LDC, k.strides[2] = matricesOf(k.strides[2], &c.Out[0], len(k.Batch))
	k.BatchA, k.BatchC = k.strides[0], k.strides[2]
	if hasGaps(&c.In[1]) {
		k.LDB, k.strides[1] = matricesOf(k.strides[1], &c.In[1], len(k.Batch))
		k.BatchB = k.strides[1]
	}
	if k.Residual {
		k.LDRes, k.strides[3] = matricesOf(k.strides[3], &c.In[3], len(k.Batch))
		k.BatchRes = k.strides[3]
	}
}

// matricesOf returns the distance of the rows of an operand's or a result's
// matrices, 0 if it has one row, and their strides along so many batch axes, to
// which it is broadcast, in the memory of none. Matrices of one row are rows
// themselves.
func matricesOf(none []int, a *op.Arg, batch int) (rows int, strides []int) {
	sizes, own := a.Shape.Sizes(), stridesOf(a)
	none = none[:0]
	for i := range batch {
		at, step := i+len(sizes)-2-batch, 0
		if at >= 0 && sizes[at] != 1 {
			step = own[at]
		}
		none = append(none, step)
	}
	switch n := len(sizes); {
	case n >= 2 && sizes[n-2] > 1:
		rows = own[n-2]
	case n >= 3 && sizes[n-3] > 1:
		rows = own[n-3]
	}
	return rows, none
}

// rowsLaid is for products of f32 and of 16-bit floats: the elements of a row
// follow each other. A result of one column is computed as a row. Where all
// matrices of A meet one B they are computed as one matrix, whose rows must
// have one distance: sums depend on how many rows there are.
func rowsLaid(s *op.Sig, in, out []*shape.Layout) bool {
	y := s.Results[0].Shape
	if dt := s.Args[0].DType; dt != dtype.F32 && !isHalf(dt) || len(in) > 2 && in[2] != nil && !in[2].IsContiguous() {
		return false
	}
	folds := foldsBatch(s)
	oneColumn := y.Rank() < 2 || y.Size(y.Rank()-1) == 1 || s.Args[0].Shape.Rank() < 2 || s.Args[1].Shape.Rank() < 2
	takes := func(l *shape.Layout, rows bool) bool {
		if l == nil || l.IsContiguous() {
			return true
		}
		last := l.Shape().Rank() - 1
		return !oneColumn && last > 0 && (l.Shape().Size(last) == 1 || l.Strides()[last] == 1) && (!folds || !rows || isEven(l, 0, last))
	}
	for i, l := range in {
		if !takes(l, i != 1) {
			return false
		}
	}
	return len(out) == 0 || takes(out[0], true)
}

// foldsBatch reports whether the batches of A become rows.
func foldsBatch(s *op.Sig) bool {
	a, b, y := s.Args[0].Shape, s.Args[1].Shape, s.Results[0].Shape
	if y.Rank() < 3 || a.Rank() != y.Rank() {
		return false
	}
	for i := range y.Rank() - 2 {
		if at := i + b.Rank() - y.Rank(); a.Size(i) != y.Size(i) || a.Size(i) == 1 || at >= 0 && b.Size(at) != 1 {
			return false
		}
	}
	return true
}

func (k *floatGemm) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := gemm.Args{C: out[float32](c, 0), A: in[float32](c, 0), B: in[float32](c, 1), Bias: in[float32](c, 2), Residual: in[float32](c, 3)}
	k.Gemm.Tile(tile, view[float32](scratch), &args)
}

func packedProductOp(sizes sizing) packer {
	return func(v *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
		return packedProduct(v, c, sizes, constants)
	}
}

// packedProduct reads a constant right matrix in panels.
func packedProduct(v *kernel.Variant, c *op.Call, sizes sizing, constants Constants) (Kernel, error) {
	k, err := productOn(c, sizes)
	if err != nil || !constants.Is(1) {
		return k, err
	}
	var g *floatGemm
	switch k := k.(type) {
	case *floatGemm:
		g = k
	case *halfGemm:
		g = &k.problem
	default:
		return k, nil
	}
	if err := sizes(c, &g.problem); err != nil {
		return nil, err
	}
	// Panels of a few columns are mostly zeros, and take more memory than they
	// save time.
	if p := &g.problem; elements(&c.In[1]) == p.k*p.n && p.k > 0 && 2*p.n >= gemm.PanelWidth(v) {
		g.weights, g.compressed = c.In[1].Shape, constants.Compressed
	}
	return k, nil
}

// setForms decides the form of the right matrix when the task is bound.
func (k *floatGemm) setForms(t *Task) {
	if t.Forms != nil {
		return
	}
	form := panelsForm(t.variant, k.Gemm)
	if k.compressed = k.compressed && form.Bytes >= leastCompressed; k.compressed {
		form = compressedForm(t.variant, k.Gemm)
	}
	t.setForm(1, form)
}

// panelsForm is the form of the panels of a product's right matrix. It does not
// depend on the sizes of the left matrix.
func panelsForm(v *kernel.Variant, g gemm.Gemm) Form {
	g = gemm.Gemm{N: g.N, K: g.K, TransB: g.TransB, Alpha: g.Alpha, PackedB: true}
	f := Form{
		Name:  fmt.Sprintf("panels of %dx%d", g.K, g.N),
		Bytes: 4 * g.PackedBFloats(v),
		Pack: func(dst, src []byte) {
			pack := g
			pack.PackB(v, view[float32](dst), view[float32](src))
		},
	}
	f.Name += sourceOf(g)
	if g.Alpha == 1 {
		f.Unpack = func(dst, src []byte) { g.UnpackB(v, view[float32](dst), view[float32](src)) }
	}
	return f
}

// sourceOf says of a form how it is made of a product's right matrix.
func sourceOf(g gemm.Gemm) (name string) {
	if g.TransB {
		name = ", transposed"
	}
	if g.Alpha != 1 {
		name += fmt.Sprintf(", times %g", g.Alpha)
	}
	return name
}

// plainGemm serves the element types that have no fast kernels.
type plainGemm[T kernel.Number] struct {
	gemm.Plain
	sizes   sizing
	problem product2
}

func newPlainGemm[T kernel.Number](sizes sizing) Kernel { return &plainGemm[T]{sizes: sizes} }

func (k *plainGemm[T]) Refill(t *Task) error {
	if err := k.sizes(t.Call, &k.problem); err != nil {
		return err
	}
	p := &k.problem
	if dt := t.Call.In[0].DType; dt.IsInt() && (p.alpha != math.Trunc(p.alpha) || p.beta != math.Trunc(p.beta)) {
		return fmt.Errorf("got alpha %v and beta %v for %s, want whole numbers: %w", p.alpha, p.beta, dt, op.ErrUnsupported)
	}
	k.Plain = gemm.Plain{
		M: p.m, N: p.n, K: p.k, TransA: p.transA, TransB: p.transB, Alpha: p.alpha, Beta: p.beta, Bias: p.bias,
		Batch: p.batch, BatchA: p.batchA, BatchB: p.batchB,
	}
	k.Prepare()
	t.Tiles = k.Tiles()
	return nil
}

func (k *plainGemm[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	gemm.PlainTile(&k.Plain, tile, out[T](c, 0), in[T](c, 0), in[T](c, 1), in[T](c, 2))
}
