package op

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var poolAttrs = []AttrDef{
	stringAttr("auto_pad", "NOTSET"), intAttr("ceil_mode", 0), intsAttr("dilations"),
	needed("kernel_shape", Ints), intsAttr("pads"), intsAttr("strides"),
}

var poolingOps = []*Def{
	{
		Name: "max_pool", ONNX: "MaxPool", Doc: "returns the maximum of each window, and optionally its index",
		MinArgs: 1, MaxArgs: 1, MinResults: 1, MaxResults: 2,
		Attrs: append([]AttrDef{intAttr("storage_order", 0)}, poolAttrs...), Infer: inferMaxPool, Alias: Fresh(),
	},
	{
		Name: "average_pool", ONNX: "AveragePool", Doc: "computes the mean of each window",
		MinArgs: 1, MaxArgs: 1,
		Attrs: append([]AttrDef{intAttr("count_include_pad", 0)}, poolAttrs...), Infer: inferAveragePool, Alias: Fresh(),
	},
	{
		Name: "global_max_pool", ONNX: "GlobalMaxPool", Doc: "returns the maximum of each channel of x [N,C,...], as [N,C,1,...]",
		MinArgs: 1, MaxArgs: 1, Infer: inferGlobalPool, Alias: Fresh(),
	},
	{
		Name: "global_average_pool", ONNX: "GlobalAveragePool", Doc: "computes the mean of each channel of x [N,C,...], as [N,C,1,...]",
		MinArgs: 1, MaxArgs: 1, Infer: inferGlobalPool, Alias: Fresh(),
	},
}

// pool checks a pooling over x [N,C,...] and returns its axes and the
// result's dimensions, nil when the rank is unknown.
func (s *Sig) pool() ([]WindowAxis, []shape.Dim, error) {
	win, x, err := s.poolWindow()
	if err != nil {
		return nil, nil, err
	}
	return win.slide(x[2:], []shape.Dim{x[0], x[1]})
}

// poolWindow checks a pooling and returns its window and the dimensions of x.
func (s *Sig) poolWindow() (win window, x []shape.Dim, err error) {
	n := len(s.Ints("kernel_shape"))
	if n == 0 || n > MaxRank-2 {
		return win, nil, badShape("kernel_shape: got %d numbers, want one for each of 1 to %d spatial axes", n, MaxRank-2)
	}
	ceil, err := s.wantFlag("ceil_mode")
	if err != nil {
		return win, nil, err
	}
	if x, err = s.dimsOf(0, n+2); err != nil {
		return win, nil, err
	}
	if win, err = s.windowOf(n, nil); err != nil {
		return win, nil, err
	}
	win.ceil, win.pooling = ceil, true
	return win, x, nil
}

// PoolAxes returns the spatial axes of a call of max_pool or average_pool with
// a static operand.
func (s *Sig) PoolAxes() ([]WindowAxis, error) {
	if err := s.wantStatic(0); err != nil {
		return nil, err
	}
	axes, _, err := s.pool()
	return axes, err
}

// PoolSlide is PoolAxes for operands of any spatial sizes.
func (s *Sig) PoolSlide() (Slide, error) {
	if err := s.wantStatic(0); err != nil {
		return Slide{}, err
	}
	win, _, err := s.poolWindow()
	return Slide{win}, err
}

func inferMaxPool(s *Sig) error {
	if err := s.want(0, floats|setOf(dtype.I8, dtype.U8)); err != nil {
		return err
	}
	if _, err := s.wantFlag("storage_order"); err != nil {
		return err
	}
	_, dims, err := s.pool()
	if err != nil {
		return err
	}
	for i, dt := range []dtype.DType{s.Args[0].DType, dtype.I64}[:len(s.Results)] {
		if err := s.give(i, dt, dims...); err != nil {
			return err
		}
	}
	return nil
}

func inferAveragePool(s *Sig) error {
	if err := s.want(0, floats); err != nil {
		return err
	}
	if _, err := s.wantFlag("count_include_pad"); err != nil {
		return err
	}
	_, dims, err := s.pool()
	if err != nil {
		return err
	}
	return s.give(0, s.Args[0].DType, dims...)
}

func inferGlobalPool(s *Sig) error {
	x := s.Args[0]
	if err := s.want(0, floats); err != nil {
		return err
	}
	if err := s.wantRank(0, 3, -1); err != nil {
		return err
	}
	if x.Shape == nil {
		return s.giveAny(0, x.DType)
	}
	dims := x.Shape.Dims()
	batch, sized := dims[0].Size()
	channels, counted := dims[1].Size()
	for i := 2; i < len(dims); i++ {
		if isSize(dims[i], 0) && sized && counted && batch*channels > 0 {
			return badShape("got %s, want an element to pool", x)
		}
		dims[i] = shape.N(1)
	}
	return s.give(0, x.DType, dims...)
}
