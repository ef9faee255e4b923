package compute

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"resize": bindResize})

func bindResize(c *op.Call) (*Task, error) {
	switch dt := c.In[0].DType; {
	case isHalf(dt):
		return halfAsF32(c)
	case dt.IsInt() || dt == dtype.Bool:
		// Integers are sampled as f64, and what is not an integer is cut.
		types := make([]dtype.DType, len(c.In))
		for i := range c.In {
			types[i] = c.In[i].DType
		}
		types[0] = dtype.F64
		return converted(c, types, []dtype.DType{dtype.F64})
	case dt != dtype.F32 && dt != dtype.F64:
		return nil, unsupported(c)
	}
	axes, ok, err := c.ResizeAxes()
	if err != nil {
		return nil, err
	}
	for arg := 1; !ok && arg < len(c.In); arg++ {
		if _, known := c.KnownFloats(arg); has(c, arg) && !known {
			return nil, unknown(c, arg)
		}
	}
	mode := kernel.ResizeMode{
		Linear: c.Str("mode") == "linear", Cubic: c.Str("mode") == "cubic", Nearest: c.Str("nearest_mode"),
		Transform: c.Str("coordinate_transformation_mode"), CubicA: c.Float("cubic_coeff_a"),
		Antialias: c.Int("antialias") != 0, ExcludeOutside: c.Int("exclude_outside") != 0,
	}
	// What keeps its sizes is a copy, whatever scale they are rounded from: ONNX Runtime and PyTorch have it so.
	region := mode.Transform == "tf_crop_and_resize"
	same := !region && slices.Equal(c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes())
	taps := make([]kernel.ResizeTaps, len(axes))
	for i, a := range axes {
		if err := checkTable(i, max(a.In, a.Out)); err != nil {
			return nil, err
		}
		keep := same || a.In == 0 || a.In == a.Out && (a.Scale == 1 && a.Lo == 0 && a.Hi == 1 || mode.Antialias && !region)
		if keep {
			taps[i] = keepTaps(a.Out)
			continue
		}
		taps[i] = mode.Taps(kernel.ResizeSpan{In: a.In, Out: a.Out, Scale: a.Scale, Lo: a.Lo, Hi: a.Hi})
	}
	spec := &kernel.Resize{Extrapolation: c.Float("extrapolation_value")}
	spec.Prepare(c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes(), taps)
	if elements(&c.Out[0]) == 0 {
		return &Task{}, nil
	}
	if c.In[0].DType == dtype.F64 {
		return resizeTask[float64](c, spec), nil
	}
	return resizeTask[float32](c, spec), nil
}

// keepTaps are the taps of an axis that stays as it is.
func keepTaps(n int) kernel.ResizeTaps {
	t := kernel.ResizeTaps{Width: 1, Index: make([]int, n), Weight: make([]float64, n)}
	for i := range n {
		t.Index[i], t.Weight[i] = i, 1
	}
	return t
}

func resizeTask[T kernel.Float](c *op.Call, spec *kernel.Resize) *Task {
	return &Task{Tiles: spec.Tiles(), Scratch: spec.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		kernel.ResizeTile(spec, tile, scratch, out[T](c, 0), in[T](c, 0))
	}}
}
