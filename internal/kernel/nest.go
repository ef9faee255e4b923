package kernel

import "slices"

// MaxRank limits the axes that remain of an iteration space after adjacent axes
// have been merged, and MaxOperands the strided operands of a nest.
const (
	MaxRank     = 16
	MaxOperands = 4
)

// Nest is the loop nest over the elements of up to MaxOperands strided
// operands. Strides and broadcasting (stride 0) are implemented here only. By
// convention operand 0 is the output. Elements are numbered in row-major order
// of the iteration space, and a kernel computes a range [lo, hi) of these
// numbers, so that workers may share 0..Elements() in any ranges.
type Nest struct {
	Axes     []NestAxis // outermost first; the last one is the inner loop
	elements int
	base     [MaxOperands]int
}

// NestAxis is an axis of a nest: its size, and its stride in each operand, in
// elements.
type NestAxis struct {
	Size   int
	Stride [MaxOperands]int
}

// Prepare sets the iteration space size, outermost axis first, and one list of
// strides (in elements) per operand. Axes of size 1 are dropped; adjacent axes
// that have one stride in every operand are merged. A nest may be prepared
// again, with other sizes.
func (n *Nest) Prepare(size []int, strides ...[]int) {
	if len(strides) > MaxOperands {
		Bug("nest: %d operands", len(strides))
	}
	*n = Nest{Axes: slices.Grow(n.Axes[:0], len(size)+1), elements: Product(size)}
	for i, s := range size {
		if s == 1 {
			continue
		}
		ax := NestAxis{Size: s}
		for op, st := range strides {
			ax.Stride[op] = st[i]
		}
		if k := len(n.Axes) - 1; k >= 0 && n.Axes[k].continues(ax) {
			ax.Size *= n.Axes[k].Size
			n.Axes[k] = ax
			continue
		}
		n.Axes = append(n.Axes, ax)
	}
	if len(n.Axes) == 0 {
		n.Axes = append(n.Axes, NestAxis{Size: 1, Stride: [MaxOperands]int{1, 1, 1, 1}})
	}
	if len(n.Axes) > MaxRank {
		Bug("nest: %d axes remain, at most %d can be walked", len(n.Axes), MaxRank)
	}
}

// continues reports whether one loop of outer.size*inner.size steps walks both
// axes.
func (outer NestAxis) continues(inner NestAxis) bool {
	for op := range outer.Stride {
		if outer.Stride[op] != inner.Size*inner.Stride[op] {
			return false
		}
	}
	return true
}

// SetBase sets the index of an operand's first element in its slice. It is 0
// unless strides are negative or the operand is part of a slice.
func (n *Nest) SetBase(operand, offset int) { n.base[operand] = offset }

// Base returns the index of an operand's first element in its slice.
func (n *Nest) Base(operand int) int { return n.base[operand] }

// IsRow reports whether the first three operands are rows without gaps that
// begin at the first elements of their slices.
func (n *Nest) IsRow() bool {
	return len(n.Axes) == 1 && n.base == [MaxOperands]int{} && [3]int(n.Axes[0].Stride[:3]) == [3]int{1, 1, 1}
}

// Elements returns the size of the iteration space.
func (n *Nest) Elements() int { return n.elements }

// Tiles returns the number of ranges that cover the space.
func (n *Nest) Tiles() int { return CeilDiv(n.elements, RangeElements) }

// Range returns the element numbers of tile t.
func (n *Nest) Range(t int) (lo, hi int) {
	return t * RangeElements, min((t+1)*RangeElements, n.elements)
}

// Run is one pass of the inner loop.
type Run struct {
	N    int              // elements
	Off  [MaxOperands]int // where each operand starts
	Step [MaxOperands]int // strides; they may be negative, so operands are indexed from off and not cut there
}

// EvenRun is a run over contiguous operands.
func EvenRun(n int) Run { return Run{N: n, Step: [MaxOperands]int{1, 1, 1, 1}} }

// cursor walks a range of a nest run by run. It stays on the stack of the
// kernel that uses it.
type cursor struct {
	Run

	axes  []NestAxis // all but the inner one
	inner int        // size of the inner loop
	pos   int        // inner index at which the next run starts
	left  int        // elements still to come
	row   [MaxOperands]int
	index [MaxRank]int
	begun bool
}

// Cursor returns a cursor at the start of a range, before its first run.
func (n *Nest) Cursor(lo, hi int) cursor {
	if lo < 0 || hi > n.elements {
		Bug("nest: range [%d,%d) of %d elements", lo, hi, n.elements)
	}
	last := len(n.Axes) - 1
	c := cursor{axes: n.Axes[:last], inner: n.Axes[last].Size, left: hi - lo, row: n.base}
	c.Step = n.Axes[last].Stride
	if c.left <= 0 {
		return c
	}
	c.pos = lo % c.inner
	rest := lo / c.inner
	for i := last - 1; i >= 0; i-- {
		ax := &n.Axes[i]
		at := rest % ax.Size
		rest /= ax.Size
		c.index[i] = at
		for op := range c.row {
			c.row[op] += at * ax.Stride[op]
		}
	}
	return c
}

// Next moves to the next run. It reports false at the end of the range.
func (c *cursor) Next() bool {
	if c.left <= 0 {
		return false
	}
	if c.begun {
		c.carry()
	}
	c.begun = true
	for op := range c.Off {
		c.Off[op] = c.row[op] + c.pos*c.Step[op]
	}
	c.N = min(c.inner-c.pos, c.left)
	c.left -= c.N
	c.pos = 0
	return true
}

// carry steps the outer axes like an odometer.
func (c *cursor) carry() {
	for i := len(c.axes) - 1; i >= 0; i-- {
		ax := &c.axes[i]
		c.index[i]++
		if c.index[i] < ax.Size {
			for op := range c.row {
				c.row[op] += ax.Stride[op]
			}
			return
		}
		c.index[i] = 0
		for op := range c.row {
			c.row[op] -= (ax.Size - 1) * ax.Stride[op]
		}
	}
}

// RowMajor returns the strides of a contiguous tensor.
func RowMajor(shape []int) []int { return RowMajorIn(nil, shape) }

// RowMajorIn is RowMajor in the memory of buf, if that has the capacity.
func RowMajorIn(buf, shape []int) []int {
	s := append(buf[:0], shape...)
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i], n = n, n*shape[i]
	}
	return s
}
