package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{
	"quantize_linear":         bindQuantize,
	"dequantize_linear":       bindDequantize,
	"dynamic_quantize_linear": bindDynamicQuantize,
	"lookup":                  bindLookup,
	"matmul_integer":          bindMatMulInteger,
	"qlinear_matmul":          bindQLinearMatMul,
	"qlinear_add":             bindQLinearAdd,
	"qlinear_mul":             bindQLinearMul,
	"conv_integer":            bindConvInteger,
	"qlinear_conv":            bindQLinearConv,
})

var _ = registerPackers(map[string]packer{
	"matmul_integer": packedBytes(integerArgs),
	"qlinear_matmul": packedBytes(qlinearArgs),
	"conv_integer":   packedFilters(integerArgs),
	"qlinear_conv":   packedFilters(qlinearArgs),
})

// numbers returns an operand as it stands now; an absent one has no bytes.
func numbers(c *op.Call, i int) quantised.Numbers {
	if !has(c, i) {
		return quantised.Numbers{}
	}
	return quantised.Numbers{DType: c.In[i].DType, Data: c.In[i].Data}
}

func result(c *op.Call) quantised.Numbers {
	return quantised.Numbers{DType: c.Out[0].DType, Data: c.Out[0].Data}
}

// quantized is what kernels know whose elements share scales.
type quantized struct {
	flat
	scales quantised.Quant
}

func (k *quantized) Refill(t *Task) error {
	c := t.Call
	s, err := c.Scales()
	if err != nil {
		return err
	}
	sizes := c.In[0].Shape.Sizes()
	k.scales = quantised.Quant{Axis: 1, Inner: max(1, product(sizes)), Block: 1}
	if s.Groups != 0 && (s.Groups != 1 || s.Blocked) {
		k.scales = quantised.Quant{Axis: sizes[s.Axis], Inner: product(sizes[s.Axis+1:]), Block: s.Block, Blocked: s.Blocked}
	}
	return k.flat.Refill(t)
}

type quantize struct {
	quantized
	saturate  bool
	precision dtype.DType
}

func bindQuantize(c *op.Call) (Kernel, error) {
	k := &quantize{saturate: c.Int("saturate") != 0, precision: c.DType("precision")}
	if k.precision == dtype.Invalid {
		k.precision = dtype.F32
	}
	return k, nil
}

func (k *quantize) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := span(tile, k.n)
	quantised.Quantize(t.variant, &k.scales, lo, hi, result(c), numbers(c, 0), numbers(c, 1), numbers(c, 2), k.precision, k.saturate)
}

type dequantize struct{ quantized }

func bindDequantize(*op.Call) (Kernel, error) { return &dequantize{}, nil }

func (k *dequantize) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := span(tile, k.n)
	quantised.Dequantize(t.variant, &k.scales, lo, hi, result(c), numbers(c, 0), numbers(c, 1), numbers(c, 2))
}

// dynamicQuantize works out the scale before the tiles, which all need it.
type dynamicQuantize struct {
	n           int
	quant       quantised.Quant
	scale, zero []byte
}

func bindDynamicQuantize(*op.Call) (Kernel, error) {
	return &dynamicQuantize{scale: make([]byte, 4), zero: make([]byte, 1)}, nil
}

func (k *dynamicQuantize) Refill(t *Task) error {
	k.n = elements(&t.Call.In[0])
	k.quant = quantised.Quant{Axis: 1, Inner: max(1, k.n), Block: 1}
	t.Tiles = spans(k.n)
	return nil
}

func (k *dynamicQuantize) Start(t *Task) error {
	view[float32](k.scale)[0], k.zero[0] = quantised.DynamicScale(t.variant, in[float32](t.Call, 0))
	return nil
}

func (k *dynamicQuantize) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	if !wanted(c, 0) {
		return
	}
	lo, hi := span(tile, k.n)
	scales, zeros := quantised.Numbers{DType: dtype.F32, Data: k.scale}, quantised.Numbers{DType: dtype.U8, Data: k.zero}
	quantised.Quantize(t.variant, &k.quant, lo, hi, result(c), numbers(c, 0), scales, zeros, dtype.F32, true)
}

func (k *dynamicQuantize) Finish(t *Task) error {
	if wanted(t.Call, 1) {
		copy(t.Call.Out[1].Data, k.scale)
	}
	if wanted(t.Call, 2) {
		copy(t.Call.Out[2].Data, k.zero)
	}
	return nil
}

// lookup may have gaps between its rows.
type lookup struct{ rows }

func bindLookup(*op.Call) (Kernel, error) { return &lookup{}, nil }

// bytesFollow is rowsFollow for bytes of operand 0, and a table beside it.
func bytesFollow(_ *op.Sig, in, out []*shape.Layout) bool {
	return len(out) == 1 && inRows(in[:1]) && inRows(out) && noGaps(in[1:])
}

var _ = registerWalkers(bytesFollow, "lookup")

func (k *lookup) Tile(t *Task, tile int, scratch []byte) { k.each(k, t, tile, scratch) }

func (k *lookup) row(t *Task, to, from, n int, _ []byte) {
	quantised.Lookup(t.variant, out[byte](t.Call, 0)[to:to+n], in[byte](t.Call, 0)[from:from+n], in[byte](t.Call, 1))
}

// bytesOp picks the instance for two operands, each of i8 or u8.
func bytesOp[F any](a, b dtype.DType, ii, iu, ui, uu F) F {
	switch {
	case a == dtype.I8 && b == dtype.I8:
		return ii
	case a == dtype.I8:
		return iu
	case b == dtype.I8:
		return ui
	}
	return uu
}

// quantArgs says which operands of a product of bytes are which; -1: none.
type quantArgs struct {
	a, b, zeroA, zeroB, bias int
	scaleA, scaleB, scaleY   int
	zeroY                    int
}

var (
	integerArgs = quantArgs{a: 0, b: 1, zeroA: 2, zeroB: 3, bias: -1, zeroY: -1}
	qlinearArgs = quantArgs{a: 0, scaleA: 1, zeroA: 2, b: 3, scaleB: 4, zeroB: 5, scaleY: 6, zeroY: 7, bias: 8}
)

// requant fills r with the operands as they stand now.
func (q *quantArgs) requant(c *op.Call, r *quantised.Requant) *quantised.Requant {
	if q.zeroY < 0 {
		return nil
	}
	*r = quantised.Requant{A: numbers(c, q.scaleA), B: numbers(c, q.scaleB), Y: numbers(c, q.scaleY), Zero: numbers(c, q.zeroY)}
	if has(c, q.bias) {
		r.Bias = in[int32](c, q.bias)
	}
	return r
}

func bindMatMulInteger(c *op.Call) (Kernel, error) { return newIntGemm(c, integerArgs), nil }
func bindQLinearMatMul(c *op.Call) (Kernel, error) { return newIntGemm(c, qlinearArgs), nil }

// intGemm is a product of matrices of bytes.
type intGemm struct {
	quantised.IntGemm
	args    quantArgs
	problem product2
	scratch int
	weights *shape.Shape // of the right matrix where it is read in panels
}

type intGemmOf[A, B quantised.Byte] struct{ intGemm }

func newIntGemm(c *op.Call, q quantArgs) Kernel { return intGemmFor(c, intGemm{args: q}) }

func intGemmFor(c *op.Call, k intGemm) Kernel {
	bind := bytesOp(c.In[k.args.a].DType, c.In[k.args.b].DType,
		newIntGemmOf[int8, int8], newIntGemmOf[int8, uint8], newIntGemmOf[uint8, int8], newIntGemmOf[uint8, uint8])
	return bind(k)
}

func newIntGemmOf[A, B quantised.Byte](k intGemm) Kernel { return &intGemmOf[A, B]{k} }

// packedBytes reads a constant right matrix in panels, where there are kernels
// for them.
func packedBytes(q quantArgs) packer {
	return func(v *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
		k := intGemm{args: q}
		p := &k.problem
		p.fill(c, q.a, q.b, false)
		if quantised.BytePanels(v) && constants.Is(q.b) && elements(&c.In[q.b]) == p.k*p.n && p.k*p.n > 0 {
			k.weights = c.In[q.b].Shape
		}
		return intGemmFor(c, k), nil
	}
}

func (k *intGemm) Refill(t *Task) error {
	c, p := t.Call, &k.problem
	p.fill(c, k.args.a, k.args.b, false)
	k.IntGemm = quantised.IntGemm{M: p.m, N: p.n, K: p.k, Batch: p.batch, BatchA: p.batchA, BatchB: p.batchB,
		SignedA: c.In[k.args.a].DType == dtype.I8, SignedB: c.In[k.args.b].DType == dtype.I8, PackedB: k.weights != nil}
	if k.weights != nil && c.In[k.args.b].Shape != k.weights {
		return ErrRebind
	}
	if k.weights != nil && t.Forms == nil {
		v, pack := t.variant, &quantised.IntGemm{N: k.N, K: k.K, SignedB: k.SignedB}
		t.setForm(k.args.b, Form{
			Name:   fmt.Sprintf("panels of %s of %s", c.In[k.args.b].DType, pack.PackedLayout(v)),
			Bytes:  pack.PackedBBytes(v),
			Pack:   func(dst, src []byte) { pack.PackB(v, dst, src) },
			Unpack: func(dst, src []byte) { pack.UnpackB(v, dst, src) },
		})
	}
	k.Prepare(t.variant)
	k.scratch = k.ScratchBytes()
	t.Tiles, t.Scratch = k.Tiles(), k.scratch
	return nil
}

func (k *intGemmOf[A, B]) Tile(t *Task, tile int, scratch []byte) {
	c, q := t.Call, &k.args
	var r quantised.Requant
	quantised.IntGemmTile(&k.IntGemm, tile, c.Out[0].Data, in[A](c, q.a), in[B](c, q.b), numbers(c, q.zeroA), numbers(c, q.zeroB),
		q.requant(c, &r), view[int32](scratch[:k.scratch]))
}

func bindConvInteger(c *op.Call) (Kernel, error) {
	return newIntConv(c, intConv{args: integerArgs}), nil
}
func bindQLinearConv(c *op.Call) (Kernel, error) {
	return newIntConv(c, intConv{args: qlinearArgs}), nil
}

// packedFilters reads constant weights in panels, where there are kernels for
// them.
func packedFilters(q quantArgs) packer {
	return func(_ *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
		k := intConv{args: q}
		if constants.Is(q.b) {
			k.weights = c.In[q.b].Shape
		}
		return newIntConv(c, k), nil
	}
}

// intConv is a convolution of bytes.
type intConv struct {
	quantised.IntConv
	slide   slide
	args    quantArgs
	scratch int
	weights *shape.Shape // constant ones
}

type intConvOf[X, W quantised.Byte] struct{ intConv }

func newIntConv(c *op.Call, k intConv) Kernel {
	bind := bytesOp(c.In[k.args.a].DType, c.In[k.args.b].DType,
		newIntConvOf[int8, int8], newIntConvOf[int8, uint8], newIntConvOf[uint8, int8], newIntConvOf[uint8, uint8])
	return bind(k)
}

func newIntConvOf[X, W quantised.Byte](k intConv) Kernel { return &intConvOf[X, W]{k} }

func (k *intConv) Refill(t *Task) error {
	c, q := t.Call, &k.args
	axes, err := k.slide.over(c, (*op.Sig).ConvSlide, c.In[q.a].Shape.Sizes(), c.In[q.b].Shape)
	if err != nil {
		return err
	}
	x, w, group := c.In[q.a].Shape.Sizes(), c.In[q.b].Shape.Sizes(), int(c.Int("group"))
	next := quantised.IntConv{Batch: x[0], Group: group, Channels: w[1], Filters: w[0] / group, In: x[2:],
		SignedX: c.In[q.a].DType == dtype.I8, SignedW: c.In[q.b].DType == dtype.I8,
		Out: k.Out[:0], Kernel: k.IntConv.Kernel[:0], Stride: k.Stride[:0], Dilation: k.Dilation[:0], Pad: k.Pad[:0]}
	next.KeepSpace(&k.IntConv)
	k.IntConv = next
	for _, a := range axes {
		k.Out, k.IntConv.Kernel = append(k.Out, a.Out), append(k.IntConv.Kernel, a.Kernel)
		k.Stride, k.Dilation, k.Pad = append(k.Stride, a.Stride), append(k.Dilation, a.Dilation), append(k.Pad, a.Begin)
	}
	if k.weights != nil {
		if c.In[q.b].Shape != k.weights {
			return ErrRebind
		}
		k.setForm(t)
	}
	k.Prepare(t.variant)
	k.scratch = k.ScratchBytes()
	t.Tiles, t.Scratch = k.Tiles(), k.scratch
	return nil
}

// setForm sets the form of constant weights, which depends on their shape only.
func (k *intConv) setForm(t *Task) {
	panels, ok := k.FilterPanels(t.variant)
	if k.PackedW = ok; !ok || t.Forms != nil {
		return
	}
	t.setForm(k.args.b, Form{
		Name:   fmt.Sprintf("panels of %s of %s", t.Call.In[k.args.b].DType, panels),
		Bytes:  panels.Bytes(),
		Pack:   func(dst, src []byte) { panels.Pack(dst, src) },
		Unpack: func(dst, src []byte) { panels.Unpack(dst, src) },
	})
}

func (k *intConvOf[X, W]) Tile(t *Task, tile int, scratch []byte) {
	c, q := t.Call, &k.args
	var r quantised.Requant
	var bias []int32
	if q.bias >= 0 && has(c, q.bias) {
		bias = in[int32](c, q.bias)
	}
	quantised.IntConvTile(&k.IntConv, tile, c.Out[0].Data, in[X](c, q.a), in[W](c, q.b), numbers(c, q.zeroA), numbers(c, q.zeroB),
		bias, q.requant(c, &r), view[int32](scratch[:k.scratch]))
}
