package compute

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
	"github.com/tenure-go/tenure/internal/kernel/nbits"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{"matmul_nbits": bindMatMulNBits})

var _ = registerPackers(map[string]packer{"matmul_nbits": packedMatMulNBits})

// matMulNBits is a product with weights of few bits.
type matMulNBits struct {
	nbits.Product
	weights *shape.Shape // of operand 1 where that, scales and zeros are read in panels
}

func bindMatMulNBits(c *op.Call) (Kernel, error) { return &matMulNBits{}, nil }

// packedMatMulNBits reads weights in panels where all of their operands are
// constants.
func packedMatMulNBits(_ *kernel.Variant, c *op.Call, constants Constants) (Kernel, error) {
	k := &matMulNBits{}
	if constants.Is(1) && constants.Is(2) && (!has(c, 3) || constants.Is(3)) && elements(&c.In[1]) > 0 {
		k.weights = c.In[1].Shape
	}
	return k, nil
}

// fill sets the problem of a call.
func (k *matMulNBits) fill(c *op.Call) {
	x, w := c.In[0].Shape, c.In[1]
	axis, last := int(c.Int("axis")), x.Rank()-1
	rows := 1
	for i := range last {
		rows *= x.Size(i)
	}
	p := nbits.Product{M: rows, N: w.Shape.Size(1 - axis), K: x.Size(last), Bits: w.DType.Bits(), Block: int(c.Int("block_size")),
		Middle: int(c.Int("zero_point")), Packed: k.weights != nil, Epilogue: gemm.Epilogue{Residual: has(c, 5), Act: activationOf(c)}}
	p.Source = nbits.Source{Rows: axis == 1, Depth: w.Shape.Size(axis), Signed: w.DType.IsSigned(), Scale: c.In[2].DType}
	if p.Source.Signed {
		p.Middle += 1 << (p.Bits - 1)
	}
	if has(c, 3) {
		p.Zeros, p.Source.Zero = nbits.ByteZeros, c.In[3].DType
		if p.Source.Zero.IsFloat() {
			p.Zeros = nbits.FloatZeros
		}
	}
	p.Ints = c.Int("accuracy_level") == 4 && p.Zeros != nbits.FloatZeros
	if has(c, 4) {
		p.Bias = gemm.BiasCol
	}
	k.Product = p
}

func (k *matMulNBits) Refill(t *Task) error {
	if k.weights != nil && t.Call.In[1].Shape != k.weights {
		return ErrRebind
	}
	k.fill(t.Call)
	if k.weights != nil && t.Forms == nil {
		k.setForms(t)
	}
	k.Prepare(t.variant)
	t.Tiles, t.Scratch = k.Tiles(), k.ScratchBytes()
	return nil
}

// setForms decides the forms of weights, scales and zeros. They depend neither
// on the rows nor on whether these are quantised.
func (k *matMulNBits) setForms(t *Task) {
	v, p := t.variant, k.Product
	p.M, p.K, p.Ints = 0, p.Source.Depth, false
	name := func(of dtype.DType, what string) string {
		text := fmt.Sprintf("panels of %d columns of %s of %s, %dx%d in blocks of %d", v.Nbits.Lanes, what, of, p.K, p.N, p.Block)
		if p.Source.Rows {
			text += ", transposed"
		}
		return text
	}
	c := t.Call
	t.setForm(1, Form{Name: name(c.In[1].DType, "weights"), Bytes: p.BBytes(v), Pack: func(dst, src []byte) {
		q := p
		q.Prepare(v)
		inPanels(q.Panels(), func(panel int) { q.PackB(panel, dst, src) })
	}})
	t.setForm(2, Form{Name: name(c.In[2].DType, "scales"), Bytes: p.ScaleBytes(v), Pack: func(dst, src []byte) {
		q := p
		q.Prepare(v)
		q.PackScales(dst, src)
	}})
	if has(c, 3) {
		t.setForm(3, Form{Name: name(c.In[3].DType, "zeros"), Bytes: p.ZeroBytes(v), Pack: func(dst, src []byte) {
			q := p
			q.Prepare(v)
			q.PackZeros(dst, src)
		}})
	}
}

// inPanels runs f for all panels, on every processor: the caller waits for it,
// and no run is under way that it would disturb.
func inPanels(panels int, f func(panel int)) {
	const together = 16 // panels that are taken at a time
	var next atomic.Int64
	work := func() {
		for {
			from := int(next.Add(together)) - together
			if from >= panels {
				return
			}
			for panel := from; panel < min(from+together, panels); panel++ {
				f(panel)
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), panels/together) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

func (k *matMulNBits) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	args := nbits.Args{C: out[float32](c, 0), A: in[float32](c, 0), B: c.In[1].Data, Scale: c.In[2].Data, Bias: in[float32](c, 4), Residual: in[float32](c, 5)}
	if has(c, 3) {
		args.Zero = c.In[3].Data
	}
	k.Product.Tile(tile, scratch, &args)
}

// mostScratch: the weights have one size.
func (k *matMulNBits) mostScratch(t *Task, _ Fixed) int { return k.MostScratchBytes(t.variant) }
