package move

import (
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// PadMode selects the elements outside the data.
type PadMode uint8

const (
	PadConstant PadMode = iota
	PadReflect          // mirrored at the edge element, which is not repeated
	PadEdge             // the edge element
	PadWrap             // the data again, from its other end
	numPad
)

var padNames = [numPad]string{"constant", "reflect", "edge", "wrap"}

func (m PadMode) String() string { return padNames[m] }

// Pad surrounds a tensor by padding, or crops it where a pad is
// negative. Per axis a table holds the source index of each output index, so
// that all modes, on any axes, are one copy.
type Pad struct {
	elem   int // bytes of the element of the innermost axis kept: trailing axes without padding or gaps are part of it
	axes   []padAxis
	outer  int // output rows: all axes but the last
	inner  []padRun
	group  int  // rows per tile
	rowLen int  // elements of an output row
	even   bool // the elements of a row follow each other, on both sides

	alike  bool // where src lies in dst, it may be a box of it
	inside int  // where in dst that begins, in bytes
}

type padAxis struct {
	from     []int // source index by output index; -1 is the constant
	dst, src int   // strides in bytes
}

// padRun is a piece of an output row: n elements from source index from on,
// each equal (step 0) or following the last (step 1); constant if from is -1.
type padRun struct{ at, from, n, step int }

// Prepare takes the source's shape and, per axis, how many elements to put
// before and after, and the strides of both sides in elements, nil for none
// with gaps.
func (p *Pad) Prepare(elemBytes int, shape, before, after []int, mode PadMode, dstStride, srcStride []int) {
	*p = Pad{elem: elemBytes, outer: 1, axes: p.axes[:0], inner: p.inner[:0], alike: mode == PadConstant}
	var buf [3][kernel.MaxRank]int
	padded := append(buf[0][:0], shape...)
	for i, n := range shape {
		padded[i] = max(0, before[i]+n+after[i])
	}
	dstStride, srcStride = orRowMajor(dstStride, buf[1][:], padded), orRowMajor(srcStride, buf[2][:], shape)
	rank, step := len(shape), 1
	for rank > 1 && before[rank-1] == 0 && after[rank-1] == 0 && (shape[rank-1] == 1 || dstStride[rank-1] == step && srcStride[rank-1] == step) {
		rank--
		step *= shape[rank]
	}
	p.elem *= step
	for i, n := range shape[:rank] {
		ax := p.nextAxis()
		ax.from = padTable(ax.from[:0], n, before[i], after[i], mode)
		ax.dst, ax.src = elemBytes*dstStride[i], elemBytes*srcStride[i]
		p.inside += before[i] * ax.dst
		p.alike = p.alike && before[i] >= 0 && after[i] >= 0 && n > 0 && (n == 1 || ax.dst == ax.src)
	}
	if rank == 0 {
		ax := p.nextAxis()
		ax.from, ax.dst, ax.src = append(ax.from[:0], 0), p.elem, p.elem
	}
	last := len(p.axes) - 1
	p.even = p.axes[last].dst == p.elem && p.axes[last].src == p.elem
	for _, ax := range p.axes[:last] {
		p.outer *= len(ax.from)
	}
	p.inner = padRuns(p.inner, p.axes[last].from)
	p.rowLen = len(p.axes[last].from)
	p.group = max(1, 4*kernel.RangeElements/max(1, p.rowLen*p.elem))
}

// nextAxis is one more axis, with the table that it had when p was prepared
// before.
func (p *Pad) nextAxis() *padAxis {
	n := len(p.axes)
	p.axes = slices.Grow(p.axes, 1)[:n+1]
	return &p.axes[n]
}

// padTable appends the source index of each output index to from, which is
// empty. Elements that negative pads remove do not exist for the mode either:
// it repeats the rest.
func padTable(from []int, n, before, after int, mode PadMode) []int {
	size := max(0, before+n+after)
	from = slices.Grow(from, size)[:size]
	first := max(0, -before)
	left := n - first - max(0, -after)
	for i := range from {
		from[i] = padSource(i-max(0, before), left, mode)
		if from[i] >= 0 {
			from[i] += first
		}
	}
	return from
}

// padSource maps a position outside [0, n) into it, as often as it takes.
func padSource(i, n int, mode PadMode) int {
	if i >= 0 && i < n {
		return i
	}
	if mode == PadConstant {
		return -1
	}
	if n == 0 {
		kernel.Bug("pad: mode %s has nothing to repeat on an axis of size 0", mode)
	}
	switch mode {
	case PadEdge:
		return min(max(i, 0), n-1)
	case PadWrap:
		return ((i % n) + n) % n
	case PadReflect:
		if n == 1 {
			return 0
		}
		period := 2 * (n - 1)
		i = ((i % period) + period) % period
		return min(i, period-i)
	}
	kernel.Bug("pad mode %d", mode)
	return 0
}

// padRuns appends the runs of a table.
func padRuns(runs []padRun, from []int) []padRun {
	for i, f := range from {
		if k := len(runs) - 1; k >= 0 {
			r := &runs[k]
			if r.from < 0 && f < 0 {
				r.n++
				continue
			}
			if step := f - (r.from + (r.n-1)*r.step); r.from >= 0 && f >= 0 && (r.n == 1 && (step == 0 || step == 1) || r.n > 1 && step == r.step) {
				r.step = step
				r.n++
				continue
			}
		}
		runs = append(runs, padRun{at: i, from: f, n: 1, step: 1})
	}
	return runs
}

// Tiles returns the number of tiles.
func (p *Pad) Tiles() int {
	if p.rowLen*p.elem == 0 {
		return 0
	}
	return kernel.CeilDiv(p.outer, p.group)
}

// Tile writes part t. constant is one element of the tensor; it is not looked
// at in other modes.
// Where src lies in dst, only what is around it is written.
func (p *Pad) Tile(t int, dst, src, constant []byte) {
	there := p.alike && unsafe.SliceData(dst[p.inside:]) == unsafe.SliceData(src)
	for row := t * p.group; row < min((t+1)*p.group, p.outer); row++ {
		to, from := p.places(row)
		if p.even {
			p.copyRow(dst[to:][:p.rowLen*p.elem], src, from, constant, there)
		} else {
			p.copyApart(dst[to:], src, from, constant, there)
		}
	}
}

// places returns where an output row begins in dst and in src; -1 if it is
// constant.
func (p *Pad) places(row int) (to, from int) {
	constant := false
	for i := len(p.axes) - 2; i >= 0; i-- {
		ax := &p.axes[i]
		at := row % len(ax.from)
		row /= len(ax.from)
		f := ax.from[at]
		constant = constant || f < 0
		to, from = to+at*ax.dst, from+f*ax.src
	}
	if constant {
		return to, -1
	}
	return to, from
}

func (p *Pad) copyRow(dst, src []byte, from int, constant []byte, there bool) {
	if from < 0 {
		fillBytes(dst, constant)
		return
	}
	e := p.elem
	for _, r := range p.inner {
		d := dst[r.at*e : (r.at+r.n)*e]
		switch {
		case r.from < 0:
			fillBytes(d, constant)
		case there:
		case r.step == 1:
			copy(d, src[from+r.from*e:])
		default:
			at := from + r.from*e
			fillBytes(d, src[at:at+e])
		}
	}
}

// copyApart is copyRow for elements with gaps between them.
func (p *Pad) copyApart(dst, src []byte, from int, constant []byte, there bool) {
	ax := &p.axes[len(p.axes)-1]
	for i, f := range ax.from {
		d := dst[i*ax.dst:][:p.elem]
		switch {
		case from < 0 || f < 0:
			fillBytes(d, constant)
		case !there:
			copy(d, src[from+f*ax.src:])
		}
	}
}
