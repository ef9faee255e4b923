package check

// A frame is a mixed radix in which the bytes of two pieces are digits: its
// units are the steps of their axes, each a multiple of the next, down to the
// byte. In it both pieces are disjoint cells, which have one range of digits
// per unit, so that intersections and differences are those of ranges. A piece
// that does not lie within a row of a larger unit is cut at the rows' ends. The
// rows begin where the fewest cells are cut.
type frame struct {
	levels int
	unit   [mostLevels]int64 // the largest first, the last is 1
	a, b   []cell
	next   []cell // of a list that is being cut
	pair   [2]cell
}

// mostLevels bounds the units of a frame: pieces of more have none.
const mostLevels = 16

// cell is a piece with one range of digits per unit, [d, d+n), and a step of
// the image per digit.
type cell struct {
	at, from int64 // the first byte and its image
	q        int64 // the first byte, in units of the level that is being cut
	d, n, f  [mostLevels]int64
}

// align finds a frame of two pieces and their cells in it. It is false where
// there is none.
func (f *frame) align(a, b *piece) bool {
	f.levels = 0
	i, j := 0, 0
	for i < len(a.axes) || j < len(b.axes) {
		unit := int64(0)
		if i < len(a.axes) {
			unit = a.axes[i].at
		}
		if j < len(b.axes) {
			unit = max(unit, b.axes[j].at)
		}
		if i < len(a.axes) && a.axes[i].at == unit {
			i++
		}
		if j < len(b.axes) && b.axes[j].at == unit {
			j++
		}
		if unit > 1 && !f.addUnit(unit) {
			return false
		}
	}
	if !f.addUnit(1) {
		return false
	}
	f.a, f.b = append(f.a[:0], f.cellOf(a)), append(f.b[:0], f.cellOf(b))
	for l := f.levels - 1; l > 0; l-- {
		cut := f.cutAt(l)
		if !f.cut(&f.a, l, cut) || !f.cut(&f.b, l, cut) {
			return false
		}
	}
	for _, list := range [][]cell{f.a, f.b} {
		for i := range list {
			list[i].d[0] = list[i].q
		}
	}
	return true
}

// addUnit adds a unit that divides the ones before it.
func (f *frame) addUnit(unit int64) bool {
	if f.levels == mostLevels || f.levels > 0 && f.unit[f.levels-1]%unit != 0 {
		return false
	}
	f.unit[f.levels] = unit
	f.levels++
	return true
}

// cellOf returns a piece as a cell whose digits are not known yet.
func (f *frame) cellOf(p *piece) cell {
	c := cell{at: p.lo, from: p.offset, q: p.lo}
	for l := range f.levels {
		c.n[l] = 1
	}
	c.n[f.levels-1], c.f[f.levels-1] = p.run, 1
	l := 0
	for _, a := range p.axes {
		for f.unit[l] != a.at {
			l++
		}
		c.n[l], c.f[l] = a.n, a.from // runs of one byte may have the step 1
	}
	return c
}

// row divides a number by the size of a row, of which cut is the first digit.
func row(q, cut, size int64) (row, digit int64) {
	row, digit = (q-cut)/size, (q-cut)%size
	if digit < 0 {
		row, digit = row-1, digit+size
	}
	return row, digit
}

// cutAt chooses the first digit of rows of level l.
func (f *frame) cutAt(l int) int64 {
	size := f.unit[l-1] / f.unit[l]
	best, fewest := int64(0), len(f.a)+len(f.b)+1
	for _, first := range [2]*cell{&f.a[0], &f.b[0]} {
		_, at := row(first.q, 0, size)
		wraps := 0
		for _, list := range [2][]cell{f.a, f.b} {
			for i := range list {
				if _, digit := row(list[i].q, at, size); digit+list[i].n[l] > size {
					wraps++
				}
			}
		}
		if wraps < fewest {
			best, fewest = at, wraps
		}
	}
	return best
}

// cut finds the digits of level l, and cuts cells where rows end. It is false
// where a piece is no box.
func (f *frame) cut(list *[]cell, l int, cut int64) bool {
	size, unit := f.unit[l-1]/f.unit[l], f.unit[l]
	f.next = f.next[:0]
	for i := range *list {
		c := (*list)[i]
		top, digit := row(c.q, cut, size)
		left := c.n[l]
		take := func(n int64) { // the next n, which are in one row
			part := c
			part.d[l], part.n[l], part.q = digit, n, top
			f.next = append(f.next, part)
		}
		skip := func(n int64) {
			c.at, c.from, left = c.at+n*unit, c.from+n*c.f[l], left-n
		}
		if digit+left <= size {
			take(left)
			continue
		}
		if digit > 0 {
			take(size - digit)
			skip(size - digit)
			top, digit = top+1, 0
		}
		if rows := left / size; rows > 0 {
			full := c
			full.d[l], full.n[l], full.q = 0, size, top
			if rows > 1 {
				if c.n[l-1] > 1 {
					return false
				}
				full.n[l-1], full.f[l-1] = rows, c.f[l]*size
			}
			f.next = append(f.next, full)
			skip(rows * size)
			top += rows
		}
		if left > 0 {
			take(left)
		}
	}
	*list, f.next = f.next, *list
	return true
}

// shrink makes c its digits [lo, hi) of level l.
func (f *frame) shrink(c *cell, l int, lo, hi int64) {
	skip := lo - c.d[l]
	c.at, c.from = c.at+skip*f.unit[l], c.from+skip*c.f[l]
	c.d[l], c.n[l] = lo, hi-lo
}

// meet reports whether two cells share bytes.
func (f *frame) meet(a, b *cell) bool {
	for l := range f.levels {
		if max(a.d[l], b.d[l]) >= min(a.d[l]+a.n[l], b.d[l]+b.n[l]) {
			return false
		}
	}
	return true
}

// overlaps reports whether the pieces that were aligned share bytes.
func (f *frame) overlaps() bool {
	for i := range f.a {
		for j := range f.b {
			if f.meet(&f.a[i], &f.b[j]) {
				return true
			}
		}
	}
	return false
}

// common calls yield for each cell of the bytes that both pieces have, as a
// cell of either, until it returns false. The cells are the frame's: they hold
// until yield returns, and it must not call common.
func (f *frame) common(yield func(a, b *cell) bool) {
	for i := range f.a {
		for j := range f.b {
			if !f.meet(&f.a[i], &f.b[j]) {
				continue
			}
			a, b := &f.pair[0], &f.pair[1]
			*a, *b = f.a[i], f.b[j]
			for l := range f.levels {
				lo, hi := max(a.d[l], b.d[l]), min(a.d[l]+a.n[l], b.d[l]+b.n[l])
				f.shrink(a, l, lo, hi)
				f.shrink(b, l, lo, hi)
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

// isSame reports whether two cells of the same bytes have the same image.
func (f *frame) isSame(a, b *cell) bool {
	if a.from != b.from {
		return false
	}
	for l := range f.levels {
		if a.n[l] > 1 && a.f[l] != b.f[l] {
			return false
		}
	}
	return true
}

// rest makes the list a the bytes of the first piece that the second has not.
func (f *frame) rest() []cell {
	for j := range f.b {
		b := &f.b[j]
		f.next = f.next[:0]
		for i := range f.a {
			c := f.a[i]
			if !f.meet(&c, b) {
				f.next = append(f.next, c)
				continue
			}
			for l := range f.levels {
				lo, hi := max(c.d[l], b.d[l]), min(c.d[l]+c.n[l], b.d[l]+b.n[l])
				for _, side := range [2][2]int64{{c.d[l], lo}, {hi, c.d[l] + c.n[l]}} {
					if side[0] < side[1] {
						part := c
						f.shrink(&part, l, side[0], side[1])
						f.next = append(f.next, part)
					}
				}
				f.shrink(&c, l, lo, hi)
			}
		}
		f.a, f.next = f.next, f.a
	}
	return f.a
}

// pieceOf returns a cell of a piece whose image is bytes of the value root.
func (w *workspace) pieceOf(c *cell, root int) piece {
	w.begin(1)
	for l := w.levels - 1; l >= 0; l-- {
		w.add(c.n[l], w.unit[l], c.f[l])
	}
	return piece{c.at, content{root, c.from}, w.end()}
}

// without returns the bytes of p that are not in q, in a list that it appends
// to none. It is false where the pieces have no frame.
func (w *workspace) without(none []piece, p, q *piece) ([]piece, bool) {
	if p.hi() <= q.lo || q.hi() <= p.lo {
		return append(none, *p), true
	}
	if p.lo == q.lo && p.isSame(&q.box) {
		return none, true
	}
	if p.axes == nil && q.axes == nil {
		for _, side := range [2][2]int64{{p.lo, q.lo}, {q.lo + q.run, p.lo + p.run}} {
			if side[0] < side[1] {
				none = append(none, piece{side[0], p.content.at(side[0] - p.lo), box{run: side[1] - side[0]}})
			}
		}
		return none, true
	}
	if !w.align(p, q) {
		return none, false
	}
	if !w.overlaps() {
		return append(none, *p), true
	}
	for _, c := range w.frame.rest() {
		none = append(none, w.pieceOf(&c, p.root))
	}
	return none, true
}

// through returns the bytes of p that are in q, at q's image of them and with
// the image of p: what lies in p where q says that the bytes go. The list is
// appended to none. It is false where the pieces have no frame.
func (w *workspace) through(none []piece, p, q *piece) ([]piece, bool) {
	if p.hi() <= q.lo || q.hi() <= p.lo {
		return none, true
	}
	if p.axes == nil && q.axes == nil {
		lo := max(p.lo, q.lo)
		return append(none, piece{q.offset + lo - q.lo, p.content.at(lo - p.lo), box{run: min(p.lo+p.run, q.lo+q.run) - lo}}), true
	}
	if !w.align(p, q) {
		return none, false
	}
	w.common(func(a, b *cell) bool {
		w.begin(1)
		for l := w.levels - 1; l >= 0; l-- {
			w.add(a.n[l], b.f[l], a.f[l])
		}
		none = append(none, piece{b.from, content{p.root, a.from}, w.end()})
		return true
	})
	return none, true
}

// shared returns the bytes that p and q have with the same image, in a list
// that it appends to none. Of pieces without a frame these are none.
func (w *workspace) shared(none []piece, p, q *piece) []piece {
	if p.hi() <= q.lo || q.hi() <= p.lo || p.root != q.root {
		return none
	}
	if p.isEqual(q) {
		return append(none, *p)
	}
	if !w.align(p, q) {
		return none
	}
	w.common(func(a, b *cell) bool {
		if w.frame.isSame(a, b) {
			none = append(none, w.pieceOf(a, p.root))
		}
		return true
	})
	return none
}

// overlap reports whether two places of one space, whose extents overlap, may
// share bytes. Boxes without a frame may.
func (w *workspace) overlap(a, b place) bool {
	p, q := a.piece(content{}), b.piece(content{})
	return !w.align(&p, &q) || w.overlaps()
}
