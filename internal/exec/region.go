package exec

import (
	"slices"

	"github.com/tenure-go/tenure/shape"
)

// region is the bytes of a place, relative to its storage: those from lo on, at
// every multiple of the steps up to their counts. Steps rise; the first is 1,
// of the bytes that follow one another.
type region struct {
	lo   int64
	n    int // of few
	few  [6]counted
	many []counted // in place of few, if these are not enough
}

// axes returns the steps and counts.
func (r *region) axes() []counted {
	if r.many != nil {
		return r.many
	}
	return r.few[:r.n]
}

// counted is n pieces, step bytes from one to the next.
type counted struct{ n, step int64 }

// setTo makes r the bytes of a place that is not empty.
func (r *region) setTo(p place) {
	r.lo, r.n, r.many = p.offset, 1, nil
	r.few[0] = counted{p.size, 1}
	if p.layout == nil {
		return
	}
	elem := p.elem()
	r.few[0].n = elem
	strides := p.layout.Strides()
	for d, n := range slices.Backward(p.layout.Shape().Sizes()) {
		list := r.axes()
		last := &list[len(list)-1]
		switch step := int64(strides[d]) * elem; {
		case n == 1:
		case step == last.n*last.step:
			last.n *= int64(n)
		default:
			r.add(counted{int64(n), step})
		}
	}
}

// add adds an axis. Lists of few are part of the region, so that one on the
// stack stays there.
func (r *region) add(c counted) {
	switch {
	case r.many != nil:
		r.many = append(r.many, c)
	case r.n < len(r.few):
		r.few[r.n] = c
		r.n++
	default:
		r.many = make([]counted, r.n, 2*r.n)
		copy(r.many, r.few[:])
		r.many = append(r.many, c)
	}
}

// elem returns the bytes of an element of a place with a layout.
func (p place) elem() int64 { return p.size / int64(p.layout.Shape().NumElements()) }

// extent returns the bytes from the first element of the place to the end of
// the last one.
func (p place) extent() int64 {
	if p.layout == nil {
		return p.size
	}
	_, high := p.layout.Span()
	return (int64(high) + 1) * p.elem()
}

// overlaps reports whether two places share a byte. It is true where that can't
// be told from their strides.
func (p place) overlaps(q place) bool {
	if p.storage != q.storage || max(p.offset, q.offset) >= min(p.offset+p.extent(), q.offset+q.extent()) {
		return false
	}
	if p.layout == nil && q.layout == nil {
		return true
	}
	var a, b region
	a.setTo(p)
	b.setTo(q)
	return a.meets(&b)
}

// covers reports whether all bytes of q are some of p's, as far as that can be
// told from their strides.
func (p place) covers(q place) bool {
	if p.storage != q.storage || q.offset < p.offset || q.offset+q.extent() > p.offset+p.extent() {
		return false
	}
	var a, b region
	a.setTo(p)
	b.setTo(q)
	return b.isWithin(&a)
}

// meets reports whether two regions share a byte, or may do so. It looks for an
// axis of a common grid along which they are apart; the grid begins where the
// storage does, or one of them.
func (r *region) meets(o *region) bool {
	var buf [12]int64
	steps, ok := gridOf(buf[:0], r, o)
	if !ok {
		return true
	}
	for _, origin := range [...]int64{0, r.lo, o.lo} {
		var bufs [2][12]cells
		a, _ := r.on(bufs[0][:0], steps, origin)
		b, _ := o.on(bufs[1][:0], steps, origin)
		for i := range a {
			if a[i].last < b[i].first || b[i].last < a[i].first {
				return false
			}
		}
	}
	return true
}

// isWithin reports whether all bytes of a region are some of o's, as far as a
// common grid can tell.
func (r *region) isWithin(o *region) bool {
	var buf [12]int64
	steps, ok := gridOf(buf[:0], r, o)
	if !ok {
		return false
	}
	for _, origin := range [...]int64{0, o.lo} {
		var bufs [2][12]cells
		a, _ := r.on(bufs[0][:0], steps, origin)
		b, exact := o.on(bufs[1][:0], steps, origin)
		for i := range a {
			exact = exact && b[i].first <= a[i].first && a[i].last <= b[i].last
		}
		if exact {
			return true
		}
	}
	return false
}

// isInGrid reports whether each step of a place is a multiple of the one before
// it.
func (p place) isInGrid() bool {
	var r region
	r.setTo(p)
	var buf [12]int64
	_, ok := gridOf(buf[:0], &r, &r)
	return ok
}

// gridOf appends the steps of two regions to none, in rising order. It reports
// whether each is a multiple of the one before it.
func gridOf(none []int64, a, b *region) (steps []int64, ok bool) {
	steps = none
	for _, r := range [...]*region{a, b} {
		for _, x := range r.axes() {
			steps = append(steps, x.step)
		}
	}
	slices.Sort(steps)
	steps = slices.Compact(steps)
	for i := 1; i < len(steps); i++ {
		if steps[i]%steps[i-1] != 0 {
			return nil, false
		}
	}
	return steps, true
}

// cells is a range along an axis of a grid, the last one included.
type cells struct{ first, last int64 }

// on returns the ranges of cells that the region touches, of a grid with the
// given steps and origin, and whether it has all bytes of all of them.
func (r *region) on(none []cells, steps []int64, origin int64) (list []cells, exact bool) {
	list, exact = none, true
	rest, carry, axis, axes := r.lo-origin, int64(0), 0, r.axes()
	for i, step := range steps {
		n := int64(1)
		if axis < len(axes) && axes[axis].step == step {
			n = axes[axis].n
			axis++
		}
		at := rest / step // the digits below are taken away already: rest is a multiple of step
		if i == len(steps)-1 {
			return append(list, cells{at, at + n - 1 + carry}), exact
		}
		ratio := steps[i+1] / step
		digit := ((at % ratio) + ratio) % ratio
		rest -= digit * step
		last := digit + n - 1 + carry
		carry = last / ratio
		if carry == 0 {
			list = append(list, cells{digit, last})
			continue
		}
		exact = exact && digit == 0 && (last+1)%ratio == 0
		list = append(list, cells{0, ratio - 1})
	}
	return list, exact
}

// rebase returns the strides and the offset, in elements, that a part of u has
// when u, which was contiguous, gets the given layout. The part has the shape
// of and had the strides from, and began at element at of u. It is false where
// an axis of the part would need two strides.
func rebase(u *shape.Layout, of *shape.Shape, from []int, at int) (to []int, offset int, ok bool) {
	to = make([]int, of.Rank())
	left := slices.Clone(from)
	// A run is axes of u that are one, the innermost first.
	for d := u.Shape().Rank() - 1; d >= 0; {
		size, step := u.Shape().Size(d), u.Strides()[d]
		for d--; d >= 0 && (size == 1 || u.Shape().Size(d) == 1 || u.Strides()[d] == size*step); d-- {
			if size == 1 {
				step = u.Strides()[d]
			}
			size *= u.Shape().Size(d)
		}
		reach := at % size
		offset += reach * step
		at /= size
		for i, n := range of.Sizes() {
			if n > 1 {
				digit := left[i] % size
				to[i] += digit * step
				reach += (n - 1) * digit
			}
			left[i] /= size
		}
		if reach >= size {
			return nil, 0, false
		}
	}
	for i, n := range slices.Backward(of.Sizes()) {
		if n == 1 {
			to[i] = 1
			if i+1 < len(to) {
				to[i] = to[i+1] * of.Size(i+1)
			}
		}
	}
	return to, offset, true
}
