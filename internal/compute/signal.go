package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/signal"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"dft":               oneFloatType(bindDFT),
	"stft":              oneFloatType(bindSTFT),
	"mel_weight_matrix": bindMel,
})

var _ = needValues(map[string][]int{"dft": {1, 2}, "stft": {1, 3}})

func bindDFT(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newDFT[float32], newDFT[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// dft transforms rows along an axis, whose elements are k.spec.Inner apart.
type dft[T kernel.Float] struct {
	spec  signal.Signal
	parts int // numbers of an element of the result
	rows  groups
}

func newDFT[T kernel.Float]() Kernel { return &dft[T]{} }

func (k *dft[T]) Refill(t *Task) error {
	c := t.Call
	axis, length, known, err := c.DFTAxis()
	if err != nil {
		return err
	}
	if !known {
		if has(c, 2) {
			if _, ok := c.KnownInts(2); !ok {
				return unknown(c, 2)
			}
		}
		return unknown(c, 1)
	}
	sizes := c.In[0].Shape.Sizes()
	last := len(sizes) - 1
	inverse, onesided := c.Int("inverse") != 0, c.Int("onesided") != 0
	k.spec = signal.Signal{
		Fourier: signal.Fourier{Length: length, Inverse: inverse}, In: sizes[axis], Out: c.Out[0].Shape.Size(axis),
		Inner: product(sizes[axis+1 : last]), Parts: sizes[last], OneSided: inverse && onesided,
	}
	if elements(&c.Out[0]) == 0 {
		return nil
	}
	k.spec.Prepare()
	k.parts = c.Out[0].Shape.Size(c.Out[0].Shape.Rank() - 1)
	k.rows = groupsOf(product(sizes[:axis])*k.spec.Inner, 64*k.spec.ScratchNumbers())
	t.Tiles, t.Scratch = k.rows.tiles(), 16*k.spec.ScratchNumbers()
	return nil
}

func (k *dft[T]) Tile(t *Task, tile int, scratch []byte) {
	c, s := t.Call, &k.spec
	x := view[complex128](scratch[:16*s.ScratchNumbers()])
	lo, hi := k.rows.of(tile)
	for row := lo; row < hi; row++ {
		o, i := row/s.Inner, row%s.Inner
		signal.SignalRow(s, out[T](c, 0)[(o*s.Out*s.Inner+i)*k.parts:], in[T](c, 0)[(o*s.In*s.Inner+i)*s.Parts:], nil, x)
	}
}

func bindSTFT(c *op.Call) (Kernel, error) {
	bind, ok := floatOf(c.In[0].DType, newSTFT[float32], newSTFT[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(), nil
}

// stft transforms frames of signals, step elements apart.
type stft[T kernel.Float] struct {
	spec   signal.Signal
	step   int
	frames int // of a signal
	size   int // numbers of a signal
	all    groups
}

func newSTFT[T kernel.Float]() Kernel { return &stft[T]{} }

func (k *stft[T]) Refill(t *Task) error {
	c := t.Call
	step, length, known, err := c.STFTSizes()
	if err != nil {
		return err
	}
	if !known {
		if has(c, 3) {
			if _, ok := c.KnownInts(3); !ok {
				return unknown(c, 3)
			}
		}
		return unknown(c, 1)
	}
	k.spec = signal.Signal{Fourier: signal.Fourier{Length: length}, In: length, Out: c.Out[0].Shape.Size(2), Inner: 1, Parts: c.In[0].Shape.Size(2)}
	k.spec.Prepare()
	k.step, k.frames, k.size = step, c.Out[0].Shape.Size(1), c.In[0].Shape.Size(1)*k.spec.Parts
	k.all = groupsOf(c.Out[0].Shape.Size(0)*k.frames, 64*k.spec.ScratchNumbers())
	t.Tiles, t.Scratch = k.all.tiles(), 16*k.spec.ScratchNumbers()
	return nil
}

func (k *stft[T]) Tile(t *Task, tile int, scratch []byte) {
	c, s := t.Call, &k.spec
	x := view[complex128](scratch[:16*s.ScratchNumbers()])
	lo, hi := k.all.of(tile)
	for i := lo; i < hi; i++ {
		from := i/k.frames*k.size + i%k.frames*k.step*s.Parts
		signal.SignalRow(s, out[T](c, 0)[2*i*s.Out:], in[T](c, 0)[from:], in[T](c, 2), x)
	}
}

// melWeights computes in f64 and casts.
type melWeights struct {
	n      int
	failed error
}

func bindMel(*op.Call) (Kernel, error) { return &melWeights{}, nil }

func (k *melWeights) Refill(t *Task) error {
	k.n = elements(&t.Call.Out[0])
	t.Tiles, t.Scratch = 1, 8*k.n
	return nil
}

func (k *melWeights) Tile(t *Task, _ int, scratch []byte) {
	k.failed = nil
	c := t.Call
	length, rate := intAt(&c.In[1], 0), intAt(&c.In[2], 0)
	low, high := floatAt(&c.In[3], 0), floatAt(&c.In[4], 0)
	weights := view[float64](scratch[:8*k.n])
	if rate < 1 || !(low >= 0 && low <= high) || !signal.MelWeights(weights, c.Out[0].Shape.Size(1), int(length), float64(rate), low, high) {
		k.failed = fmt.Errorf("got frequencies from %v to %v at %d samples per second, want frequencies of a transform of length %d", low, high, rate, length)
		return
	}
	elementwise.Cast(t.variant, c.Out[0].Data, c.Out[0].DType, scratch[:8*k.n], dtype.F64, 0, k.n, elementwise.CastMode{})
}

func (k *melWeights) Finish(*Task) error { return k.failed }
