package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"quantize_linear":         bindQuantize,
	"dequantize_linear":       bindDequantize,
	"dynamic_quantize_linear": bindDynamicQuantize,
	"matmul_integer":          bindMatMulInteger,
	"qlinear_matmul":          bindQLinearMatMul,
	"conv_integer":            bindConvInteger,
	"qlinear_conv":            bindQLinearConv,
})

var _ = registerPackers(map[string]packer{
	"matmul_integer": packedBytes(integerArgs),
	"qlinear_matmul": packedBytes(qlinearArgs),
})

// numbers returns an operand as it stands now; an absent one has no bytes.
func numbers(c *op.Call, i int) kernel.Numbers {
	if !has(c, i) {
		return kernel.Numbers{}
	}
	return kernel.Numbers{DType: c.In[i].DType, Data: c.In[i].Data}
}

func result(c *op.Call) kernel.Numbers {
	return kernel.Numbers{DType: c.Out[0].DType, Data: c.Out[0].Data}
}

// quantOf returns how the elements of operand 0 share the scales.
func quantOf(c *op.Call) (*kernel.Quant, error) {
	s, err := c.Scales()
	if err != nil {
		return nil, err
	}
	sizes := c.In[0].Shape.Sizes()
	if s.Groups == 0 || s.Groups == 1 && !s.Blocked {
		return &kernel.Quant{Axis: 1, Inner: max(1, product(sizes)), Block: 1}, nil
	}
	return &kernel.Quant{Axis: sizes[s.Axis], Inner: product(sizes[s.Axis+1:]), Block: s.Block, Blocked: s.Blocked}, nil
}

func bindQuantize(c *op.Call) (*Task, error) {
	q, err := quantOf(c)
	if err != nil {
		return nil, err
	}
	n, saturate, precision := elements(&c.Out[0]), c.Int("saturate") != 0, c.DType("precision")
	if precision == dtype.Invalid {
		precision = dtype.F32
	}
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.Quantize(machine.Best(), q, lo, hi, result(c), numbers(c, 0), numbers(c, 1), numbers(c, 2), precision, saturate)
	}}, nil
}

func bindDequantize(c *op.Call) (*Task, error) {
	q, err := quantOf(c)
	if err != nil {
		return nil, err
	}
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.Dequantize(machine.Best(), q, lo, hi, result(c), numbers(c, 0), numbers(c, 1), numbers(c, 2))
	}}, nil
}

// bindDynamicQuantize works out the scale before the tiles, which all need it.
func bindDynamicQuantize(c *op.Call) (*Task, error) {
	n := elements(&c.In[0])
	q := &kernel.Quant{Axis: 1, Inner: max(1, n), Block: 1}
	scale, zero := make([]byte, 4), make([]byte, 1)
	scales, zeros := kernel.Numbers{DType: dtype.F32, Data: scale}, kernel.Numbers{DType: dtype.U8, Data: zero}
	return &Task{
		Tiles: spans(n),
		Start: func() error {
			view[float32](scale)[0], zero[0] = kernel.DynamicScale(machine.Best(), in[float32](c, 0))
			return nil
		},
		Tile: func(tile int, _ []byte) {
			lo, hi := span(tile, n)
			if wanted(c, 0) {
				kernel.Quantize(machine.Best(), q, lo, hi, result(c), numbers(c, 0), scales, zeros, dtype.F32, true)
			}
		},
		Finish: func() error {
			if wanted(c, 1) {
				copy(c.Out[1].Data, scale)
			}
			if wanted(c, 2) {
				copy(c.Out[2].Data, zero)
			}
			return nil
		},
	}, nil
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
func (q *quantArgs) requant(c *op.Call, r *kernel.Requant) *kernel.Requant {
	if q.zeroY < 0 {
		return nil
	}
	*r = kernel.Requant{A: numbers(c, q.scaleA), B: numbers(c, q.scaleB), Y: numbers(c, q.scaleY), Zero: numbers(c, q.zeroY)}
	return r
}

func bindMatMulInteger(c *op.Call) (*Task, error) { return bytesProduct(c, integerArgs) }
func bindQLinearMatMul(c *op.Call) (*Task, error) { return bytesProduct(c, qlinearArgs) }

func bytesProduct(c *op.Call, q quantArgs) (*Task, error) {
	g := intGemmOf(c, q)
	return preparedBytes(c, g, q), nil
}

func intGemmOf(c *op.Call, q quantArgs) *kernel.IntGemm {
	p := productSizes(c, q.a, q.b, false)
	return &kernel.IntGemm{M: p.m, N: p.n, K: p.k, Batch: p.batch, BatchA: p.batchA, BatchB: p.batchB,
		SignedA: c.In[q.a].DType == dtype.I8, SignedB: c.In[q.b].DType == dtype.I8}
}

// packedBytes reads a constant right matrix in panels, where there are kernels
// for them.
func packedBytes(q quantArgs) packer {
	return func(c *op.Call, constants Constants) (*Task, error) {
		g := intGemmOf(c, q)
		if !kernel.BytePanels(machine.Best()) || !constants.Is(q.b) || elements(&c.In[q.b]) != g.K*g.N || g.K*g.N == 0 {
			return bytesProduct(c, q)
		}
		g.PackedB = true
		pack := &kernel.IntGemm{N: g.N, K: g.K, SignedB: g.SignedB}
		t := preparedBytes(c, g, q)
		t.setForm(q.b, Form{
			Name:   fmt.Sprintf("panels of %s of %s", c.In[q.b].DType, pack.PackedLayout(machine.Best())),
			Bytes:  pack.PackedBBytes(machine.Best()),
			Pack:   func(dst, src []byte) { pack.PackB(machine.Best(), dst, src) },
			Unpack: func(dst, src []byte) { pack.UnpackB(machine.Best(), dst, src) },
		})
		return t, nil
	}
}

func preparedBytes(c *op.Call, g *kernel.IntGemm, q quantArgs) *Task {
	g.Prepare(machine.Best())
	bind := bytesOp(c.In[q.a].DType, c.In[q.b].DType, intGemmTask[int8, int8], intGemmTask[int8, uint8], intGemmTask[uint8, int8], intGemmTask[uint8, uint8])
	return bind(c, g, q)
}

func intGemmTask[A, B kernel.Byte](c *op.Call, g *kernel.IntGemm, q quantArgs) *Task {
	n := g.ScratchBytes()
	return &Task{Tiles: g.Tiles(), Scratch: n, Tile: func(tile int, scratch []byte) {
		var r kernel.Requant
		kernel.IntGemmTile(g, tile, c.Out[0].Data, in[A](c, q.a), in[B](c, q.b), numbers(c, q.zeroA), numbers(c, q.zeroB),
			q.requant(c, &r), view[int32](scratch[:n]))
	}}
}

func bindConvInteger(c *op.Call) (*Task, error) { return bytesConv(c, integerArgs) }
func bindQLinearConv(c *op.Call) (*Task, error) { return bytesConv(c, qlinearArgs) }

func bytesConv(c *op.Call, q quantArgs) (*Task, error) {
	axes, err := c.ConvAxes()
	if err != nil {
		return nil, err
	}
	x, w, group := c.In[q.a].Shape.Sizes(), c.In[q.b].Shape.Sizes(), int(c.Int("group"))
	spec := &kernel.IntConv{Batch: x[0], Group: group, Channels: w[1], Filters: w[0] / group, In: x[2:],
		SignedX: c.In[q.a].DType == dtype.I8, SignedW: c.In[q.b].DType == dtype.I8}
	for _, a := range axes {
		spec.Out, spec.Kernel = append(spec.Out, a.Out), append(spec.Kernel, a.Kernel)
		spec.Stride, spec.Dilation, spec.Pad = append(spec.Stride, a.Stride), append(spec.Dilation, a.Dilation), append(spec.Pad, a.Begin)
	}
	spec.Prepare(machine.Best())
	bind := bytesOp(c.In[q.a].DType, c.In[q.b].DType, intConvTask[int8, int8], intConvTask[int8, uint8], intConvTask[uint8, int8], intConvTask[uint8, uint8])
	return bind(c, spec, q), nil
}

func intConvTask[X, W kernel.Byte](c *op.Call, spec *kernel.IntConv, q quantArgs) *Task {
	n := spec.ScratchBytes()
	return &Task{Tiles: spec.Tiles(), Scratch: n, Tile: func(tile int, scratch []byte) {
		var r kernel.Requant
		var bias []int32
		if q.bias >= 0 && has(c, q.bias) {
			bias = in[int32](c, q.bias)
		}
		kernel.IntConvTile(spec, tile, c.Out[0].Data, in[X](c, q.a), in[W](c, q.b), numbers(c, q.zeroA), numbers(c, q.zeroB),
			bias, q.requant(c, &r), view[int32](scratch[:n]))
	}}
}
