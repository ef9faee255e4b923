package conv

import "github.com/tenure-go/tenure/internal/kernel"

// MaxSpatial is how many spatial axes convolutions and pools take.
const MaxSpatial = 3

// Window is how a kernel moves over the spatial axes of [N, C, spatial...]: tap
// k of output o reads input o*Stride - PadBegin + k*Dilation, and nothing where
// that lies outside. Stride, Dilation, PadBegin and PadEnd may be nil: 1, 1, 0
// and 0.
type Window struct {
	In, Kernel        []int
	Stride, Dilation  []int
	PadBegin, PadEnd  []int
	Ceil              bool  // round the output size up, as long as the last window starts inside the input or the padding before it
	Out               []int // set by Prepare where nil
	InSteps, OutSteps Steps // how both lie; set by Resolve where zero, but for the distances of samples
	in, kernel, out   [MaxSpatial]int
	stride, dilation  [MaxSpatial]int
	padBegin, padEnd  [MaxSpatial]int
	inArea, outArea   int
	taps              int
}

// Steps says how the elements of [N, C, spatial...] lie: the distances from one
// sample, channel, plane and row to the next, in elements. The elements of a
// row follow each other, and so do rows and planes of one element. Planes and
// rows are those of the form with three spatial axes, of which the missing ones
// have size 1.
type Steps struct{ Batch, Channel, Plane, Row int }

// StepsOf returns the steps of strides, one per axis.
func StepsOf(strides []int) Steps {
	s := Steps{Batch: strides[0], Channel: strides[1], Plane: 1, Row: 1}
	switch len(strides) - 2 {
	case 3:
		s.Plane, s.Row = strides[2], strides[3]
	case 2:
		s.Row = strides[2]
	}
	return s
}

// orElse sets steps that are zero to those of elements that follow each other,
// but for that of samples.
func (s *Steps) orElse(sizes [MaxSpatial]int) {
	if *s == (Steps{}) {
		*s = Steps{Channel: kernel.Product(sizes[:]), Plane: sizes[1] * sizes[2], Row: sizes[2]}
	}
}

// setBatch sets the distance of samples of so many channels if it is zero.
func (s *Steps) setBatch(channels int) {
	if s.Batch == 0 {
		s.Batch = channels * s.Channel
	}
}

// at returns where an element lies in its channel.
func (s *Steps) at(z, y, x int) int { return z*s.Plane + y*s.Row + x }

// dropUnit is for an innermost axis of one element that is dropped.
func (s *Steps) dropUnit() { s.Row, s.Plane = s.Plane, 0 }

// isWhole reports whether each channel lies in one piece.
func (s *Steps) isWhole(sizes [MaxSpatial]int) bool {
	return (sizes[1] == 1 || s.Row == sizes[2]) && (sizes[0] == 1 || s.Plane == sizes[1]*sizes[2])
}

// resolve fills in the defaults, the output size, and the form with exactly
// three axes, of which the missing ones have size 1.
func (w *Window) Resolve() {
	rank := len(w.In)
	if rank > MaxSpatial {
		kernel.Bug("window: %d spatial axes, at most %d", rank, MaxSpatial)
	}
	orElse := func(given []int, v int) []int {
		if given != nil {
			return given
		}
		given = make([]int, rank)
		for i := range given {
			given[i] = v
		}
		return given
	}
	w.Stride, w.Dilation = orElse(w.Stride, 1), orElse(w.Dilation, 1)
	w.PadBegin, w.PadEnd = orElse(w.PadBegin, 0), orElse(w.PadEnd, 0)
	if w.Out == nil {
		w.Out = make([]int, rank)
		for i := range w.Out {
			w.Out[i] = w.outSize(i)
		}
	}
	for i := range MaxSpatial {
		w.in[i], w.kernel[i], w.out[i], w.stride[i], w.dilation[i], w.padBegin[i], w.padEnd[i] = 1, 1, 1, 1, 1, 0, 0
	}
	at := MaxSpatial - rank
	copy(w.in[at:], w.In)
	copy(w.kernel[at:], w.Kernel)
	copy(w.out[at:], w.Out)
	copy(w.stride[at:], w.Stride)
	copy(w.dilation[at:], w.Dilation)
	copy(w.padBegin[at:], w.PadBegin)
	copy(w.padEnd[at:], w.PadEnd)
	w.inArea, w.outArea, w.taps = kernel.Product(w.in[:]), kernel.Product(w.out[:]), kernel.Product(w.kernel[:])
	w.InSteps.orElse(w.in)
	w.OutSteps.orElse(w.out)
}

func (w *Window) outSize(i int) int {
	span := w.In[i] + w.PadBegin[i] + w.PadEnd[i] - ((w.Kernel[i]-1)*w.Dilation[i] + 1)
	if span < 0 {
		return 0
	}
	n := span/w.Stride[i] + 1
	if w.Ceil {
		n = kernel.CeilDiv(span, w.Stride[i]) + 1
		if (n-1)*w.Stride[i] >= w.In[i]+w.PadBegin[i] {
			n--
		}
	}
	return n
}

// span returns the taps of one axis whose input lies inside, for output o: lo
// <= k < hi.
func (w *Window) span(axis, o int) (lo, hi int) {
	start := o*w.stride[axis] - w.padBegin[axis]
	if start < 0 {
		lo = kernel.CeilDiv(-start, w.dilation[axis])
	}
	if last := w.in[axis] - 1 - start; last >= 0 {
		hi = min(w.kernel[axis], last/w.dilation[axis]+1)
	}
	return lo, hi
}

// inside returns the outputs of one axis for which tap k lies inside the input:
// lo <= o < hi.
func (w *Window) inside(axis, k int) (lo, hi int) {
	shift := k*w.dilation[axis] - w.padBegin[axis]
	if shift < 0 {
		lo = kernel.CeilDiv(-shift, w.stride[axis])
	}
	if last := w.in[axis] - 1 - shift; last >= 0 {
		hi = last/w.stride[axis] + 1
	}
	hi = min(hi, w.out[axis])
	return min(lo, hi), hi
}

// overlap is inside for tap k of all axes, with the distance of the input's
// places from those of the outputs times the strides.
func (w *Window) overlap(k int) (lo, hi, shift [MaxSpatial]int) {
	tap := [MaxSpatial]int{k / w.kernel[2] / w.kernel[1], k / w.kernel[2] % w.kernel[1], k % w.kernel[2]}
	for i := range MaxSpatial {
		lo[i], hi[i] = w.inside(i, tap[i])
		shift[i] = tap[i]*w.dilation[i] - w.padBegin[i]
	}
	return lo, hi, shift
}

// reach is how many elements of the input the taps of one output span along an
// axis.
func (w *Window) reach(axis int) int { return (w.kernel[axis]-1)*w.dilation[axis] + 1 }

// staysInside reports whether no tap of any output lies in the padding.
func (w *Window) StaysInside() bool {
	for i := range MaxSpatial {
		if w.padBegin[i] > 0 || (w.out[i]-1)*w.stride[i]+w.reach(i) > w.in[i] {
			return false
		}
	}
	return true
}

// units returns how many inner axes have one element and one tap.
func (w *Window) units() int {
	for n := range MaxSpatial - 1 {
		if i := MaxSpatial - 1 - n; w.in[i] != 1 || w.out[i] != 1 || w.kernel[i] != 1 || w.padBegin[i] != 0 {
			return n
		}
	}
	return MaxSpatial - 1
}

// DropUnits moves axes inwards over inner ones that have one element and one
// tap, so that rows are not that one element.
func (w *Window) DropUnits() {
	for range w.units() {
		for _, axis := range []*[MaxSpatial]int{&w.in, &w.out, &w.kernel, &w.stride, &w.dilation} {
			*axis = [MaxSpatial]int{1, axis[0], axis[1]}
		}
		for _, axis := range []*[MaxSpatial]int{&w.padBegin, &w.padEnd} {
			*axis = [MaxSpatial]int{0, axis[0], axis[1]}
		}
		w.InSteps.dropUnit()
		w.OutSteps.dropUnit()
	}
}
