package op

import (
	"fmt"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

var convAttrs = []AttrDef{
	stringAttr("auto_pad", "NOTSET"), intsAttr("dilations"), intAttr("group", 1),
	intsAttr("kernel_shape"), intsAttr("pads"), intsAttr("strides"),
}

var convOps = []*Def{
	{
		Name: "conv", ONNX: "Conv", Doc: "convolves x [N,C,...] with w [M,C/group,...] and adds a bias [M]",
		MinArgs: 2, MaxArgs: 3, Attrs: convAttrs, Infer: inferConv, Alias: Fresh(),
	},
	{
		Name: "conv_transpose", ONNX: "ConvTranspose", Doc: "computes the transposed convolution of x [N,C,...] with w [C,M/group,...] and adds a bias [M]",
		MinArgs: 2, MaxArgs: 3,
		Attrs: append([]AttrDef{intsAttr("output_padding"), intsAttr("output_shape")}, convAttrs...),
		Infer: inferConvTranspose, Alias: Fresh(),
	},
}

// wantConvTypes checks the element types of a convolution of floats. Scales and
// shifts before one of 16-bit floats are f32.
func (s *Sig) wantConvTypes() error {
	for i := range s.Args {
		if err := s.want(i, floats); err != nil {
			return err
		}
		if half := s.Args[0].DType; i >= 4 && (half == dtype.F16 || half == dtype.BF16) { // of a prologue
			if err := s.want(i, setOf(dtype.F32)); err != nil {
				return err
			}
			continue
		}
		if err := s.wantLike(i, 0); err != nil {
			return err
		}
	}
	return nil
}

// convOperands returns which operands x, w and the bias are.
func (s *Sig) convOperands() (x, w, bias int) {
	switch s.Def.Name {
	case "qlinear_conv":
		return 0, 3, 8
	case "conv_integer":
		return 0, 1, len(s.Args) // none
	}
	return 0, 1, 2
}

// convDims checks x and w of a convolution and returns their dimensions; nil
// when the ranks of both are unknown.
func (s *Sig) convDims() (x, w []shape.Dim, err error) {
	xArg, wArg, _ := s.convOperands()
	rank := 0
	for _, i := range [2]int{xArg, wArg} {
		if err := s.wantRank(i, 3, -1); err != nil {
			return nil, nil, err
		}
		if sh := s.Args[i].Shape; sh != nil && rank == 0 {
			rank = sh.Rank()
		}
	}
	if rank == 0 {
		return nil, nil, nil
	}
	if x, err = s.dimsOf(xArg, rank); err != nil {
		return nil, nil, err
	}
	w, err = s.dimsOf(wArg, rank)
	return x, w, err
}

// groupOf checks the number of groups.
func (s *Sig) groupOf() (int, error) {
	g := s.Int("group")
	if g < 1 || g > maxSize {
		return 0, badShape("group: got %d, want 1 or more", g)
	}
	return int(g), nil
}

// times is a dimension n times; it fails only on overflow.
func times(d shape.Dim, n int) (shape.Dim, error) {
	return product([]shape.Dim{d, shape.N(n)})
}

func inferConv(s *Sig) error {
	if err := s.wantConvTypes(); err != nil {
		return err
	}
	return s.giveConv(s.Args[0].DType)
}

// conv checks a convolution and returns its axes and the result's dimensions.
func (s *Sig) conv() ([]WindowAxis, []shape.Dim, error) {
	win, x, w, err := s.convWindow()
	if err != nil || x == nil {
		return nil, nil, err
	}
	return win.slide(x[2:], []shape.Dim{x[0], w[0]})
}

// convWindow checks a convolution and returns its window and the dimensions of
// x and w, nil when their ranks are unknown.
func (s *Sig) convWindow() (win window, x, w []shape.Dim, err error) {
	x, w, err = s.convDims()
	if err != nil || x == nil {
		return win, nil, nil, err
	}
	group, err := s.groupOf()
	if err != nil {
		return win, nil, nil, err
	}
	channels, err := times(w[1], group)
	if err != nil {
		return win, nil, nil, err
	}
	xArg, wArg, bias := s.convOperands()
	if _, ok := unify(x[1], channels); !ok {
		return win, nil, nil, badShape("got x %s and w %s with group %d, want %s channels in x", s.Args[xArg], s.Args[wArg], group, channels)
	}
	if m, ok := w[0].Size(); ok && m%group != 0 {
		return win, nil, nil, badShape("got w %s with group %d, want a multiple of the group in its first dimension", s.Args[wArg], group)
	}
	if err := s.wantVector(bias, w[0], "output channel"); err != nil {
		return win, nil, nil, err
	}
	win, err = s.windowOf(len(x)-2, w[2:])
	return win, x, w, err
}

// ConvAxes returns the spatial axes of a call of a convolution, fused or
// quantised too, with static operands.
func (s *Sig) ConvAxes() ([]WindowAxis, error) {
	x, w, _ := s.convOperands()
	if err := s.wantStatic(x, w); err != nil {
		return nil, err
	}
	axes, _, err := s.conv()
	return axes, err
}

// ConvSlide is ConvAxes for operands x of any spatial sizes.
func (s *Sig) ConvSlide() (Slide, error) {
	x, w, _ := s.convOperands()
	if err := s.wantStatic(x, w); err != nil {
		return Slide{}, err
	}
	win, _, _, err := s.convWindow()
	return Slide{win}, err
}

func inferConvTranspose(s *Sig) error {
	if err := s.wantConvTypes(); err != nil {
		return err
	}
	_, dims, err := s.convTranspose()
	if err != nil {
		return err
	}
	return s.giveKnown(s.Args[0].DType, dims)
}

// convTranspose is conv for the transposed convolution.
func (s *Sig) convTranspose() ([]WindowAxis, []shape.Dim, error) {
	x, w, err := s.convDims()
	if err != nil || x == nil {
		return nil, nil, err
	}
	group, err := s.groupOf()
	if err != nil {
		return nil, nil, err
	}
	channels, ok := unify(x[1], w[0])
	if !ok {
		return nil, nil, badShape("got x %s and w %s, want %s channels in x", s.Args[0], s.Args[1], w[0])
	}
	if c, ok := channels.Size(); ok && c%group != 0 {
		return nil, nil, badShape("got x %s with group %d, want a multiple of the group in its channels", s.Args[0], group)
	}
	maps, err := times(w[1], group)
	if err != nil {
		return nil, nil, err
	}
	if err := s.wantVector(2, maps, "output channel"); err != nil {
		return nil, nil, err
	}
	win, err := s.windowOf(len(x)-2, w[2:])
	if err != nil {
		return nil, nil, err
	}
	return s.spread(&win, x[2:], []shape.Dim{x[0], maps})
}

// spread is slide for the transposed convolution: every element of the operand
// goes to a window of the result.
func (s *Sig) spread(win *window, in, dims []shape.Dim) ([]WindowAxis, []shape.Dim, error) {
	n := len(in)
	extra, err := s.perAxis("output_padding", n, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	given := len(s.Ints("output_shape")) > 0
	wanted, err := s.perAxis("output_shape", n, 0, 0)
	if err != nil {
		return nil, nil, err
	}
	axes := make([]WindowAxis, n)
	for i, d := range in {
		a := WindowAxis{Stride: win.strides[i], Dilation: win.dilations[i], Begin: win.pads[i], End: win.pads[n+i]}
		out := shape.Unknown
		if given {
			out = shape.N(wanted[i])
		}
		size, sized := d.Size()
		k, known := win.kernel[i].Size()
		if sized && known {
			a.In, a.Kernel, a.Out = size, k, -1
			if given {
				a.Out = wanted[i]
			}
			if err := a.spread(win.auto, extra[i]); err != nil {
				return nil, nil, fmt.Errorf("spatial axis %d: %w", i, err)
			}
			out = shape.N(a.Out)
		}
		axes[i] = a
		dims = append(dims, out)
	}
	return axes, dims, nil
}

// spread sets Out, unless it is given, and the pads of one axis.
func (a *WindowAxis) spread(auto string, extra int) error {
	span, err := a.span()
	if err != nil {
		return err
	}
	if a.In == 0 {
		return badShape("got size 0, want an element to spread")
	}
	reach, ok := mulSize(a.In-1, a.Stride)
	if !ok {
		return badShape("got size %d with stride %d, want at most 2^58 together", a.In, a.Stride)
	}
	full := reach + span + extra // at most 3 * 2^58
	switch {
	case a.Out >= 0:
	case auto == "SAME_UPPER" || auto == "SAME_LOWER":
		if a.Out, ok = mulSize(a.In, a.Stride); !ok {
			return badShape("got size %d with stride %d, want at most 2^58 together", a.In, a.Stride)
		}
	default:
		a.Out = full - a.Begin - a.End
		if a.Out < 0 {
			return badShape("got pads %d and %d for a result of size %d, want no more than there is", a.Begin, a.End, full)
		}
		return nil
	}
	total := max(0, full-a.Out)
	a.Begin, a.End = total-total/2, total/2
	if auto == "SAME_UPPER" {
		a.Begin, a.End = a.End, a.Begin
	}
	return nil
}

// ConvTransposeAxes returns the spatial axes of a call of conv_transpose with
// static operands. In is then the size of the operand that is spread and Out
// that of the result; element i of the operand is added to the elements
// i*Stride - Begin + k*Dilation of the result that exist.
func (s *Sig) ConvTransposeAxes() ([]WindowAxis, error) {
	if err := s.wantStatic(0, 1); err != nil {
		return nil, err
	}
	axes, _, err := s.convTranspose()
	return axes, err
}
