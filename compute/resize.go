package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"resize": bindResize})

func bindResize(c *op.Call) (*Task, error) {
	switch c.In[0].DType {
	case dtype.F32:
		return bindResizeOf[float32](c)
	case dtype.F64:
		return bindResizeOf[float64](c)
	case dtype.F16, dtype.BF16:
		return halfAsF32(c)
	case dtype.I8, dtype.U8, dtype.I32, dtype.I64:
		return converted(c, retyped(c.In, c.In[0].DType, dtype.F64), []dtype.DType{dtype.F64})
	}
	return nil, unsupported(c)
}

// retyped returns the operands' types with one of them replaced.
func retyped(args []op.Arg, from, to dtype.DType) []dtype.DType {
	types := make([]dtype.DType, len(args))
	for i := range args {
		if types[i] = args[i].DType; types[i] == from && i == 0 {
			types[i] = to
		}
	}
	return types
}

func bindResizeOf[T kernel.Float](c *op.Call) (*Task, error) {
	axes, known, err := c.ResizeAxes()
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, unknownOperand(c, 2)
	}
	mode := kernel.ResizeMode{
		Linear: c.Str("mode") == "linear", Cubic: c.Str("mode") == "cubic",
		Nearest: c.Str("nearest_mode"), Transform: c.Str("coordinate_transformation_mode"), CubicA: c.Float("cubic_coeff_a"),
		Antialias: c.Int("antialias") != 0, ExcludeOutside: c.Int("exclude_outside") != 0,
	}
	asIs := kernel.ResizeMode{Transform: "asymmetric"}
	taps := make([]kernel.ResizeTaps, len(axes))
	for i, a := range axes {
		span := kernel.ResizeSpan{In: a.In, Out: a.Out, Scale: a.Scale, Lo: a.Lo, Hi: a.Hi}
		if a.Resizing {
			taps[i] = mode.Taps(span)
		} else {
			span.Scale = 1
			taps[i] = asIs.Taps(span)
		}
	}
	r := &kernel.Resize{Extrapolation: c.Float("extrapolation_value")}
	r.Prepare(c.In[0].Shape.Sizes(), c.Out[0].Shape.Sizes(), taps)
	return &Task{Tiles: r.Tiles(), Scratch: r.ScratchBytes(), Tile: func(tile int, scratch []byte) {
		kernel.ResizeTile(r, tile, scratch, view[T](c.Out[0].Data), view[T](c.In[0].Data))
	}}, nil
}
