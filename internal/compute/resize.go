package compute

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/sample"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{"resize": bindResize})

var _ = needValues(map[string][]int{"resize": {1, 2, 3}})

var _ = registerWalkers(resizesRows, "resize")

// resizesRows: maps and results whose rows lie in one piece, at any distance.
// Other element types go through conversions.
func resizesRows(s *op.Sig, in, out []*shape.Layout) bool {
	return isWideFloat(s.Args[0].DType) && noGaps(in[1:]) && inRows(in[:1]) && inRows(out)
}

// isWideFloat reports whether kernels compute with elements of a type as they
// are.
func isWideFloat(dt dtype.DType) bool { return dt == dtype.F32 || dt == dtype.F64 }

func bindResize(c *op.Call) (Kernel, error) {
	switch dt := c.In[0].DType; {
	case isHalf(dt):
		return halfAsF32(c)
	case dt.IsInt() || dt == dtype.Bool:
		// Integers are sampled as f64, and fractions are truncated.
		types := make([]dtype.DType, len(c.In))
		for i := range c.In {
			types[i] = c.In[i].DType
		}
		types[0] = dtype.F64
		return converted(c, types, []dtype.DType{dtype.F64})
	case dt == dtype.F64:
		return newResize[float64](c), nil
	case dt == dtype.F32:
		return newResize[float32](c), nil
	}
	return nil, unsupported(c)
}

// resize samples operand 0 by tables of the elements that each result is
// computed from along each axis.
type resize[T kernel.Float] struct {
	mode sample.ResizeMode
	spec sample.Resize
	taps []sample.ResizeTaps
}

func newResize[T kernel.Float](c *op.Call) Kernel {
	k := &resize[T]{mode: sample.ResizeMode{
		Linear: c.Str("mode") == "linear", Cubic: c.Str("mode") == "cubic", Nearest: c.Str("nearest_mode"),
		Transform: c.Str("coordinate_transformation_mode"), CubicA: c.Float("cubic_coeff_a"),
		Antialias: c.Int("antialias") != 0, ExcludeOutside: c.Int("exclude_outside") != 0,
	}}
	k.spec.Extrapolation = c.Float("extrapolation_value")
	return k
}

func (k *resize[T]) Refill(t *Task) error {
	c := t.Call
	axes, ok, err := c.ResizeAxes()
	if err != nil {
		return err
	}
	for arg := 1; !ok && arg < len(c.In); arg++ {
		if _, known := c.KnownFloats(arg); has(c, arg) && !known {
			return unknown(c, arg)
		}
	}
	// A result with the sizes of the operand is a copy, for any scale that they
	// are rounded from, as in ONNX Runtime and PyTorch.
	region := k.mode.Transform == "tf_crop_and_resize"
	same := !region && slices.Equal(c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes())
	k.taps = k.taps[:0]
	for i, a := range axes {
		if err := checkTable(i, max(a.In, a.Out)); err != nil {
			return err
		}
		keep := same || a.In == 0 || a.In == a.Out && (a.Scale == 1 && a.Lo == 0 && a.Hi == 1 || k.mode.Antialias && !region)
		if keep {
			k.taps = append(k.taps, keepTaps(a.Out))
			continue
		}
		k.taps = append(k.taps, k.mode.Taps(sample.ResizeSpan{In: a.In, Out: a.Out, Scale: a.Scale, Lo: a.Lo, Hi: a.Hi}))
	}
	k.spec.Prepare(t.variant, c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes(), k.taps, gapStrides(&c.In[0]), gapStrides(&c.Out[0]))
	if elements(&c.Out[0]) > 0 {
		t.Tiles, t.Scratch = k.spec.Tiles(), k.spec.ScratchBytes()
	}
	return nil
}

func (k *resize[T]) takesStrides() bool { return true }

func (k *resize[T]) Tile(t *Task, tile int, scratch []byte) {
	sample.ResizeTile(&k.spec, tile, scratch, out[T](t.Call, 0), in[T](t.Call, 0))
}

// keepTaps are the taps of an axis that stays as it is.
func keepTaps(n int) sample.ResizeTaps {
	t := sample.ResizeTaps{Width: 1, Index: make([]int, n), Weight: make([]float64, n)}
	for i := range n {
		t.Index[i], t.Weight[i] = i, 1
	}
	return t
}
