package pass

import (
	"slices"

	"github.com/tenure-go/tenure/internal/symbolic"
)

// slide is a window that slides along the spatial axes of an operand.
type slide struct {
	kernel, strides, dilations, pads []int64
	auto                             string
	ceil                             bool
}

// perAxis returns a list attribute, or one number for each axis.
func (c *formulaCall) perAxis(name string, n int, otherwise int64) []int64 {
	if list := c.sig.Ints(name); len(list) == n {
		return list
	}
	list := make([]int64, n)
	for i := range list {
		list[i] = otherwise
	}
	return list
}

// slideOf reads the attributes of a call over n spatial axes.
func (c *formulaCall) slideOf(n int, kernel []int64) slide {
	return slide{kernel: kernel, strides: c.perAxis("strides", n, 1), dilations: c.perAxis("dilations", n, 1),
		pads: c.perAxis("pads", 2*n, 0), auto: c.sig.Str("auto_pad")}
}

func (w slide) same() bool { return w.auto == "SAME_UPPER" || w.auto == "SAME_LOWER" }

func (w slide) span(i int) int64 { return (w.kernel[i]-1)*w.dilations[i] + 1 }

// along returns the number of windows along axis i of the given size.
func (w slide) along(f *Formulas, i int, size *symbolic.Expr) *symbolic.Expr {
	stride, n := w.strides[i], len(w.strides)
	if w.same() {
		return size.Ceil(stride)
	}
	begin, end := w.pads[i], w.pads[n+i]
	reach := size.Add(symbolic.Const(begin + end - w.span(i)))
	count := reach.Floor(stride).Add(symbolic.Const(1))
	if !w.ceil || w.auto != "" && w.auto != "NOTSET" {
		return count
	}
	// One window more where the last one does not reach the end, if it starts
	// before the pads at the end.
	starts := size.Add(symbolic.Const(begin)).Ceil(stride)
	more := reach.Ceil(stride).Add(symbolic.Const(1))
	return f.larger(count, f.smaller(more, starts))
}

func (w slide) all(f *Formulas, first, spatial []*symbolic.Expr) []*symbolic.Expr {
	dims := append([]*symbolic.Expr{}, first...)
	for i, size := range spatial {
		dims = append(dims, w.along(f, i, size))
	}
	return dims
}

// kernelOf returns the spatial sizes of weights.
func kernelOf(w []*symbolic.Expr) ([]int64, bool) {
	var kernel []int64
	for _, d := range w[2:] {
		n, ok := d.Value()
		if !ok {
			return nil, false
		}
		kernel = append(kernel, n)
	}
	return kernel, true
}

func convSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, w := c.arg(0), c.arg(1)
	if c.sig.Def.Name == "qlinear_conv" {
		w = c.arg(3)
	}
	if len(x) < 3 || len(w) != len(x) {
		return nil
	}
	kernel, ok := kernelOf(w)
	if !ok {
		return nil
	}
	n := len(kernel)
	dims := c.slideOf(n, kernel).all(c.Formulas, []*symbolic.Expr{x[0], w[0]}, x[2:])
	if c.sig.Def.Name == "fused_conv" && c.sig.Str("pool") != "" {
		pool := slide{kernel: c.sig.Ints("pool_kernel"), strides: c.perAxis("pool_strides", n, 1), dilations: slices.Repeat([]int64{1}, n),
			pads: c.perAxis("pool_pads", 2*n, 0), ceil: c.sig.Int("pool_ceil") == 1}
		if len(pool.kernel) != n {
			return nil
		}
		dims = pool.all(c.Formulas, dims[:2], dims[2:])
	}
	return dims
}

func poolSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, kernel := c.arg(0), c.sig.Ints("kernel_shape")
	if len(x) != len(kernel)+2 {
		return nil
	}
	w := c.slideOf(len(kernel), kernel)
	w.ceil = c.sig.Int("ceil_mode") == 1
	return w.all(c.Formulas, x[:2], x[2:])
}

func convTransposeSizes(c *formulaCall, _ int) []*symbolic.Expr {
	x, w := c.arg(0), c.arg(1)
	if len(x) < 3 || len(w) != len(x) {
		return nil
	}
	kernel, ok := kernelOf(w)
	if !ok {
		return nil
	}
	n := len(kernel)
	s := c.slideOf(n, kernel)
	extra, given := c.perAxis("output_padding", n, 0), c.sig.Ints("output_shape")
	dims := []*symbolic.Expr{x[0], w[1].Mul(symbolic.Const(c.sig.Int("group")))}
	for i, size := range x[2:] {
		stride := symbolic.Const(s.strides[i])
		switch {
		case len(given) == n:
			dims = append(dims, symbolic.Const(given[i]))
		case s.same():
			dims = append(dims, size.Mul(stride))
		default:
			rest := s.span(i) + extra[i] - s.pads[i] - s.pads[n+i]
			dims = append(dims, size.Sub(symbolic.Const(1)).Mul(stride).Add(symbolic.Const(rest)))
		}
	}
	return dims
}
