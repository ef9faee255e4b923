package op

import "github.com/tenure-go/tenure/shape"

// WindowAxis describes a convolution or a pooling along one spatial axis,
// with automatic pads resolved. Element o of the result is computed from the
// elements o*Stride - Begin + k*Dilation of the operand, for k below Kernel,
// as far as they exist; a transposed convolution does the reverse.
type WindowAxis struct {
	In, Out          int // sizes of the operand and of the result
	Kernel           int
	Stride, Dilation int
	Begin, End       int // pads; in ceil mode the last window may reach past End
}

// window holds the attributes of a sliding window over n spatial axes.
type window struct {
	kernel                   []shape.Dim
	strides, dilations, pads []int // pads: all begins, then all ends
	auto                     string
	ceil                     bool
	pooling                  bool
}

// perAxis returns a list attribute with one number per axis, after checking
// it; an absent one is def for every axis.
func (s *Sig) perAxis(attr string, n int, lo, def int64) ([]int, error) {
	list := s.Ints(attr)
	out := make([]int, n)
	if len(list) == 0 {
		for i := range out {
			out[i] = int(def)
		}
		return out, nil
	}
	if len(list) != n {
		return nil, badShape("%s: got %v, want %d numbers", attr, list, n)
	}
	for i, v := range list {
		if v < lo || v > maxSize {
			return nil, badShape("%s: got %v, want numbers from %d to 2^58", attr, list, lo)
		}
		out[i] = int(v)
	}
	return out, nil
}

// windowOf reads the attributes that convolutions and poolings share. kernel
// has the sizes of the weights, nil for a pooling.
func (s *Sig) windowOf(n int, kernel []shape.Dim) (window, error) {
	w := window{kernel: kernel}
	var err error
	if w.strides, err = s.perAxis("strides", n, 1, 1); err != nil {
		return w, err
	}
	if w.dilations, err = s.perAxis("dilations", n, 1, 1); err != nil {
		return w, err
	}
	if w.pads, err = s.perAxis("pads", 2*n, 0, 0); err != nil {
		return w, err
	}
	if w.auto, err = s.wantOneOf("auto_pad", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""); err != nil {
		return w, err
	}
	if w.auto == "NOTSET" {
		w.auto = ""
	}
	for _, p := range w.pads {
		if p != 0 && w.auto != "" {
			return w, badShape("pads: got %v with auto_pad %q, want one of them", w.pads, w.auto)
		}
	}
	return w, w.takeKernel(s)
}

// takeKernel holds the attribute kernel_shape against the weights.
func (w *window) takeKernel(s *Sig) error {
	n := len(w.strides)
	if w.kernel == nil {
		w.kernel = make([]shape.Dim, n)
	}
	if len(s.Ints("kernel_shape")) > 0 {
		sizes, err := s.perAxis("kernel_shape", n, 1, 1)
		if err != nil {
			return err
		}
		for i, k := range sizes {
			d, ok := unify(w.kernel[i], shape.N(k))
			if !ok {
				return badShape("kernel_shape: got %v, want the sizes of the weights, %v", sizes, w.kernel)
			}
			w.kernel[i] = d
		}
	}
	for _, k := range w.kernel {
		if isSize(k, 0) {
			return badShape("kernel: got %v, want sizes of 1 or more", w.kernel)
		}
	}
	return nil
}

// axis works out spatial axis i. The dimension is that of the result; the
// WindowAxis is complete where in and the kernel have sizes.
func (w *window) axis(i int, in shape.Dim) (WindowAxis, shape.Dim, error) {
	n := len(w.strides)
	a := WindowAxis{Stride: w.strides[i], Dilation: w.dilations[i], Begin: w.pads[i], End: w.pads[n+i]}
	k, ok := w.kernel[i].Size()
	if !ok {
		return a, shape.Unknown, nil
	}
	a.Kernel = k
	span, err := a.span()
	if err != nil {
		return a, in, err
	}
	if w.pooling && (a.Begin >= span || a.End >= span) {
		return a, in, badShape("pads: got %d and %d on spatial axis %d, want less than the window of %d", a.Begin, a.End, i, span)
	}
	size, sized := in.Size()
	if !sized {
		if a.Stride == 1 && (a.Begin+a.End == span-1 || w.same()) {
			return a, in, nil
		}
		return a, shape.Unknown, nil
	}
	a.In = size
	if w.pooling && size == 0 {
		return a, in, badShape("got size 0 on spatial axis %d, want an element to pool", i)
	}
	if w.same() {
		a.Out = (size + a.Stride - 1) / a.Stride
		total := max(0, max(0, a.Out-1)*a.Stride+span-size)
		a.Begin, a.End = total/2, total-total/2
		if w.auto == "SAME_LOWER" {
			a.Begin, a.End = a.End, a.Begin
		}
		return a, shape.N(a.Out), nil
	}
	padded := size + a.Begin + a.End
	ceil := w.ceil && w.auto == ""
	if ceil && padded < span && span-padded < a.Stride {
		a.Out = 1 // rounded up, the window that begins inside
		return a, shape.N(a.Out), nil
	}
	if span > padded {
		return a, in, badShape("got size %d with pads on spatial axis %d, want at least the window of %d", padded, i, span)
	}
	a.Out = (padded-span)/a.Stride + 1
	if ceil && (padded-span)%a.Stride != 0 && a.Out*a.Stride < size+a.Begin {
		// One window more, unless it would start in the pads at the end.
		a.Out++
	}
	return a, shape.N(a.Out), nil
}

func (w *window) same() bool { return w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER" }

// span is how many elements the window reaches over.
func (a WindowAxis) span() (int, error) {
	reach, ok := mulSize(a.Kernel-1, a.Dilation)
	if !ok || reach == maxSize {
		return 0, badShape("got kernel size %d with dilation %d, want less than 2^58 together", a.Kernel, a.Dilation)
	}
	return reach + 1, nil
}

// Slide describes a convolution or a pooling along its spatial axes, for
// operands of any size there.
type Slide struct{ window window }

// Axes appends to dst the descriptions of the window along axes of the given
// sizes, as many as the call has spatial ones.
func (s *Slide) Axes(dst []WindowAxis, sizes []int) ([]WindowAxis, error) {
	for i, n := range sizes {
		a, _, err := s.window.axis(i, shape.N(n))
		if err != nil {
			return nil, err
		}
		dst = append(dst, a)
	}
	return dst, nil
}

// slide works out all axes and appends the result's dimensions to dims.
func (w *window) slide(in, dims []shape.Dim) ([]WindowAxis, []shape.Dim, error) {
	axes := make([]WindowAxis, len(in))
	for i, d := range in {
		a, out, err := w.axis(i, d)
		if err != nil {
			return nil, nil, err
		}
		axes[i] = a
		dims = append(dims, out)
	}
	return axes, dims, nil
}

// dimsOf returns the dimensions of an operand, of the given rank if its own
// is unknown.
func (s *Sig) dimsOf(arg, rank int) ([]shape.Dim, error) {
	return s.dimsIn(make([]shape.Dim, rank), arg)
}

// dimsIn is dimsOf into dims, as long as the rank and all unknown.
func (s *Sig) dimsIn(dims []shape.Dim, arg int) ([]shape.Dim, error) {
	sh := s.Args[arg].Shape
	if sh == nil {
		return dims, nil
	}
	if sh.Rank() != len(dims) {
		return nil, badShape("operand %d: got %s, want %d dimensions", arg, s.Args[arg], len(dims))
	}
	for i := range dims {
		dims[i] = sh.Dim(i)
	}
	return dims, nil
}

func (s *Sig) wantStatic(args ...int) error {
	for _, a := range args {
		if !s.Args[a].IsStatic() {
			return badShape("operand %d: got %s, want a static shape", a, s.Args[a])
		}
	}
	return nil
}
