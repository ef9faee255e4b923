package compute

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"dft":               oneFloatType(bindDFT),
	"stft":              oneFloatType(bindSTFT),
	"mel_weight_matrix": bindMel,
})

func bindDFT(c *op.Call) (*Task, error) {
	axis, length, known, err := c.DFTAxis()
	if err != nil {
		return nil, err
	}
	if !known {
		if has(c, 2) {
			if _, ok := c.KnownInts(2); !ok {
				return nil, unknown(c, 2)
			}
		}
		return nil, unknown(c, 1)
	}
	sizes := c.In[0].Shape.Sizes()
	last := len(sizes) - 1
	inverse, onesided := c.Int("inverse") != 0, c.Int("onesided") != 0
	spec := &kernel.Signal{
		Fourier: kernel.Fourier{Length: length, Inverse: inverse}, In: sizes[axis], Out: c.Out[0].Shape.Size(axis),
		Inner: product(sizes[axis+1 : last]), Parts: sizes[last], OneSided: inverse && onesided,
	}
	bind, ok := floatOf(c.In[0].DType, dftTask[float32], dftTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec, product(sizes[:axis])), nil
}

func dftTask[T kernel.Float](c *op.Call, s *kernel.Signal, outer int) *Task {
	if elements(&c.Out[0]) == 0 {
		return &Task{}
	}
	s.Prepare()
	parts := c.Out[0].Shape.Size(c.Out[0].Shape.Rank() - 1)
	tiles, units := groups(outer*s.Inner, 64*s.ScratchNumbers())
	return &Task{Tiles: tiles, Scratch: 16 * s.ScratchNumbers(), Tile: func(tile int, scratch []byte) {
		x := view[complex128](scratch[:16*s.ScratchNumbers()])
		lo, hi := units(tile)
		for row := lo; row < hi; row++ {
			o, i := row/s.Inner, row%s.Inner
			kernel.SignalRow(s, out[T](c, 0)[(o*s.Out*s.Inner+i)*parts:], in[T](c, 0)[(o*s.In*s.Inner+i)*s.Parts:], nil, x)
		}
	}}
}

func bindSTFT(c *op.Call) (*Task, error) {
	step, length, known, err := c.STFTSizes()
	if err != nil {
		return nil, err
	}
	if !known {
		if has(c, 3) {
			if _, ok := c.KnownInts(3); !ok {
				return nil, unknown(c, 3)
			}
		}
		return nil, unknown(c, 1)
	}
	sizes := c.In[0].Shape.Sizes()
	spec := &kernel.Signal{Fourier: kernel.Fourier{Length: length}, In: length, Out: c.Out[0].Shape.Size(2), Inner: 1, Parts: sizes[2]}
	bind, ok := floatOf(c.In[0].DType, stftTask[float32], stftTask[float64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, spec, step), nil
}

func stftTask[T kernel.Float](c *op.Call, s *kernel.Signal, step int) *Task {
	s.Prepare()
	frames, size := c.Out[0].Shape.Size(1), c.In[0].Shape.Size(1)*s.Parts
	tiles, units := groups(c.Out[0].Shape.Size(0)*frames, 64*s.ScratchNumbers())
	return &Task{Tiles: tiles, Scratch: 16 * s.ScratchNumbers(), Tile: func(tile int, scratch []byte) {
		x := view[complex128](scratch[:16*s.ScratchNumbers()])
		lo, hi := units(tile)
		for i := lo; i < hi; i++ {
			from := i/frames*size + i%frames*step*s.Parts
			kernel.SignalRow(s, out[T](c, 0)[2*i*s.Out:], in[T](c, 0)[from:], in[T](c, 2), x)
		}
	}}
}

// bindMel computes in f64 and casts.
func bindMel(c *op.Call) (*Task, error) {
	n := elements(&c.Out[0])
	dt := c.Out[0].DType
	var failed error
	return &Task{
		Tiles: 1, Scratch: 8 * n,
		Tile: func(_ int, scratch []byte) {
			failed = nil
			length, rate := intAt(&c.In[1], 0), intAt(&c.In[2], 0)
			low, high := floatAt(&c.In[3], 0), floatAt(&c.In[4], 0)
			weights := view[float64](scratch[:8*n])
			if rate < 1 || !(low >= 0 && low <= high) || !kernel.MelWeights(weights, c.Out[0].Shape.Size(1), int(length), float64(rate), low, high) {
				failed = fmt.Errorf("got frequencies from %v to %v at %d samples per second, want frequencies of a transform of length %d", low, high, rate, length)
				return
			}
			kernel.Cast(machine.Best(), c.Out[0].Data, dt, scratch[:8*n], dtype.F64, 0, n, kernel.CastMode{})
		},
		Finish: func() error { return failed },
	}, nil
}
