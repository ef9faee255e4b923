package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// quantisedBinary is the sum or the product of quantised operands. Its scales
// are operands, which are read in every run.
type quantisedBinary struct {
	quantised.Arithmetic
	nest kernel.Nest // the result, a and b
}

func bindQLinearAdd(*op.Call) (Kernel, error) { return &quantisedBinary{}, nil }

func bindQLinearMul(*op.Call) (Kernel, error) {
	return &quantisedBinary{Arithmetic: quantised.Arithmetic{Product: true}}, nil
}

// twoLaid is for operands and results in any layout, with scales in one piece.
func twoLaid(_ *op.Sig, in, _ []*shape.Layout) bool {
	for i, l := range in {
		if l != nil && !l.IsContiguous() && i != qlinearArgs.a && i != qlinearArgs.b {
			return false
		}
	}
	return true
}

var _ = registerWalkers(twoLaid, "qlinear_add", "qlinear_mul")

func (k *quantisedBinary) takesStrides() bool { return true }

func (k *quantisedBinary) Refill(t *Task) error {
	c, q := t.Call, &qlinearArgs
	sizes := c.Out[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return err
	}
	k.SignedA, k.SignedB, k.SignedY = c.In[q.a].DType == dtype.I8, c.In[q.b].DType == dtype.I8, c.Out[0].DType == dtype.I8
	var a, b [kernel.MaxRank]int
	k.nest.Prepare(sizes, stridesOf(&c.Out[0]), appendBroadcast(a[:0], &c.In[q.a], sizes), appendBroadcast(b[:0], &c.In[q.b], sizes))
	t.Tiles, t.Scratch = k.nest.Tiles(), quantised.ArithmeticScratch
	return nil
}

func (k *quantisedBinary) Start(t *Task) error {
	c, q := t.Call, &qlinearArgs
	k.Set(numbers(c, q.scaleA), numbers(c, q.zeroA), numbers(c, q.scaleB), numbers(c, q.zeroB), numbers(c, q.scaleY), numbers(c, q.zeroY))
	return nil
}

func (k *quantisedBinary) Tile(t *Task, tile int, scratch []byte) {
	c, q := t.Call, &qlinearArgs
	lo, hi := k.nest.Range(tile)
	k.Run(t.variant, &k.nest, lo, hi, c.Out[0].Data, c.In[q.a].Data, c.In[q.b].Data, scratch[:quantised.ArithmeticScratch])
}
