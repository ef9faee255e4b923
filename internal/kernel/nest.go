package kernel

import "slices"

// MaxRank is how many axes may remain of an iteration space after adjacent axes have been merged, and MaxOperands how many strided
// operands walk it together.
const (
	MaxRank     = 16
	MaxOperands = 4
)

// rangeElements is the work that one tile of a light kernel should carry: enough to hide what claiming a tile costs, little enough to
// keep a goroutine from running long without a chance to be stopped.
const rangeElements = 32 << 10

// Nest is the loop nest over the elements of up to MaxOperands strided operands: the one place that knows broadcasting (stride 0) and
// strides. By convention operand 0 is the output. Elements are numbered in row-major order of the iteration space, and a kernel works on
// a range [lo, hi) of those numbers, so any cut of 0..Elements() into ranges is a valid split over workers.
type Nest struct {
	axes     []nestAxis // outermost first; the last one is the inner loop
	elements int
	base     [MaxOperands]int
}

type nestAxis struct {
	size   int
	stride [MaxOperands]int
}

// Prepare sets the iteration space size, outermost axis first, and one list of strides (in elements) per operand. Axes of size 1 are
// dropped, adjacent axes that every operand walks evenly are merged. A nest may be prepared again, with other sizes.
func (n *Nest) Prepare(size []int, strides ...[]int) {
	if len(strides) > MaxOperands {
		bug("nest: %d operands", len(strides))
	}
	*n = Nest{axes: slices.Grow(n.axes[:0], len(size)+1), elements: product(size)}
	for i, s := range size {
		if s == 1 {
			continue
		}
		ax := nestAxis{size: s}
		for op, st := range strides {
			ax.stride[op] = st[i]
		}
		if k := len(n.axes) - 1; k >= 0 && n.axes[k].continues(ax) {
			ax.size *= n.axes[k].size
			n.axes[k] = ax
			continue
		}
		n.axes = append(n.axes, ax)
	}
	if len(n.axes) == 0 {
		n.axes = append(n.axes, nestAxis{size: 1, stride: [MaxOperands]int{1, 1, 1, 1}})
	}
	if len(n.axes) > MaxRank {
		bug("nest: %d axes remain, at most %d can be walked", len(n.axes), MaxRank)
	}
}

// continues tells whether one loop of outer.size*inner.size steps walks both axes.
func (outer nestAxis) continues(inner nestAxis) bool {
	for op := range outer.stride {
		if outer.stride[op] != inner.size*inner.stride[op] {
			return false
		}
	}
	return true
}

// SetBase sets where in its slice an operand's first element lies; 0 unless strides are negative or the operand is a part.
func (n *Nest) SetBase(operand, offset int) { n.base[operand] = offset }

// Elements is the size of the iteration space.
func (n *Nest) Elements() int { return n.elements }

// Tiles is how many ranges of Range cover the space.
func (n *Nest) Tiles() int { return ceilDiv(n.elements, rangeElements) }

// Range gives the element numbers of tile t.
func (n *Nest) Range(t int) (lo, hi int) {
	return t * rangeElements, min((t+1)*rangeElements, n.elements)
}

// run is one pass of the inner loop.
type run struct {
	n    int              // elements
	off  [MaxOperands]int // where each operand starts
	step [MaxOperands]int // strides; they may be negative, so operands are indexed from off and not cut there
}

// evenRun is a run over contiguous operands.
func evenRun(n int) run { return run{n: n, step: [MaxOperands]int{1, 1, 1, 1}} }

// cursor walks a range of a nest run by run. It lives on the stack of the kernel that uses it.
type cursor struct {
	run

	axes  []nestAxis // all but the inner one
	inner int        // size of the inner loop
	pos   int        // inner index at which the next run starts
	left  int        // elements still to come
	row   [MaxOperands]int
	index [MaxRank]int
	begun bool
}

func (n *Nest) cursor(lo, hi int) cursor {
	if lo < 0 || hi > n.elements {
		bug("nest: range [%d,%d) of %d elements", lo, hi, n.elements)
	}
	last := len(n.axes) - 1
	c := cursor{axes: n.axes[:last], inner: n.axes[last].size, left: hi - lo, row: n.base}
	c.step = n.axes[last].stride
	if c.left <= 0 {
		return c
	}
	c.pos = lo % c.inner
	rest := lo / c.inner
	for i := last - 1; i >= 0; i-- {
		ax := &n.axes[i]
		at := rest % ax.size
		rest /= ax.size
		c.index[i] = at
		for op := range c.row {
			c.row[op] += at * ax.stride[op]
		}
	}
	return c
}

// next moves to the next run; false at the end of the range.
func (c *cursor) next() bool {
	if c.left <= 0 {
		return false
	}
	if c.begun {
		c.carry()
	}
	c.begun = true
	for op := range c.off {
		c.off[op] = c.row[op] + c.pos*c.step[op]
	}
	c.n = min(c.inner-c.pos, c.left)
	c.left -= c.n
	c.pos = 0
	return true
}

// carry steps the outer axes like an odometer.
func (c *cursor) carry() {
	for i := len(c.axes) - 1; i >= 0; i-- {
		ax := &c.axes[i]
		c.index[i]++
		if c.index[i] < ax.size {
			for op := range c.row {
				c.row[op] += ax.stride[op]
			}
			return
		}
		c.index[i] = 0
		for op := range c.row {
			c.row[op] -= (ax.size - 1) * ax.stride[op]
		}
	}
}
