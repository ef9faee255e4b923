package move

import (
	"slices"

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

// Pad surrounds a contiguous tensor by padding, or crops it where a pad is
// negative. Per axis a table holds the source index of each output index, so
// that all modes, on any axes, are one copy.
type Pad struct {
	elem   int // bytes of the element of the innermost axis kept: trailing axes without padding are part of it
	axes   []padAxis
	outer  int // output rows: all axes but the last
	inner  []padRun
	group  int // rows per tile
	rowLen int // elements of an output row
}

type padAxis struct {
	from   []int // source index by output index; -1 is the constant
	stride int   // of src, in elements
}

// padRun is a piece of an output row: n elements from source index from on,
// each equal (step 0) or following the last (step 1); constant if from is -1.
type padRun struct{ at, from, n, step int }

// Prepare takes the source's shape and, per axis, how many elements to put
// before and after.
func (p *Pad) Prepare(elemBytes int, shape, before, after []int, mode PadMode) {
	*p = Pad{elem: elemBytes, outer: 1, axes: p.axes[:0], inner: p.inner[:0]}
	rank := len(shape)
	for rank > 1 && before[rank-1] == 0 && after[rank-1] == 0 {
		rank--
		p.elem *= shape[rank]
	}
	shape = shape[:rank]
	for i, n := range shape {
		ax := p.nextAxis()
		ax.from, ax.stride = padTable(ax.from[:0], n, before[i], after[i], mode), kernel.Product(shape[i+1:])
	}
	if rank == 0 {
		ax := p.nextAxis()
		ax.from, ax.stride = append(ax.from[:0], 0), 1
	}
	last := len(p.axes) - 1
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
func (p *Pad) Tile(t int, dst, src, constant []byte) {
	for row := t * p.group; row < min((t+1)*p.group, p.outer); row++ {
		d := dst[row*p.rowLen*p.elem:][:p.rowLen*p.elem]
		if at := p.source(row); at >= 0 {
			p.copyRow(d, src[at*p.elem:], constant)
		} else {
			fillBytes(d, constant)
		}
	}
}

// source is the first element of the row of src that goes to an output row; -1
// if that row is constant.
func (p *Pad) source(row int) int {
	at := 0
	for i := len(p.axes) - 2; i >= 0; i-- {
		ax := &p.axes[i]
		f := ax.from[row%len(ax.from)]
		row /= len(ax.from)
		if f < 0 {
			return -1
		}
		at += f * ax.stride
	}
	return at
}

func (p *Pad) copyRow(dst, src, constant []byte) {
	e := p.elem
	for _, r := range p.inner {
		d := dst[r.at*e : (r.at+r.n)*e]
		switch {
		case r.from < 0:
			fillBytes(d, constant)
		case r.step == 1:
			copy(d, src[r.from*e:])
		default:
			fillBytes(d, src[r.from*e:(r.from+1)*e])
		}
	}
}
