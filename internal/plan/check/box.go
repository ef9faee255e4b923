package check

import "slices"

// A box is a set of bytes with one range per axis: runs of bytes, as many as
// the axes say, from a first byte on. Its axes have two or more runs each, the
// outermost first, and each ends before the next begins, so that a box has one
// form: neighbours that lie as one axis are one, and the innermost axis is not
// one with the run. Boxes without axes are contiguous.
//
// The same form maps the bytes of a box to those of another one: the bytes of a
// place to those of the value that lies there, or those of a value to the bytes
// of the value that they are a copy of. Such a map keeps the order of the
// bytes.
type box struct {
	run  int64 // bytes
	axes []axis
}

// axis is n runs or boxes of runs: each is at bytes behind the one before it,
// and its image from bytes behind that of the one before.
type axis struct{ n, at, from int64 }

// extent returns the bytes from the first to behind the last.
func (b *box) extent() int64 {
	n := b.run
	for _, a := range b.axes {
		n += (a.n - 1) * a.at
	}
	return n
}

// size returns how many bytes are in the box.
func (b *box) size() int64 {
	n := b.run
	for _, a := range b.axes {
		n *= a.n
	}
	return n
}

// isSame reports whether two boxes with the same first byte are the same bytes.
func (b *box) isSame(other *box) bool {
	return b.run == other.run && slices.EqualFunc(b.axes, other.axes, func(x, y axis) bool { return x.n == y.n && x.at == y.at })
}

// piece is a box of bytes from lo on, and its image: bytes of the value root
// from the offset on, in that value's row-major order.
type piece struct {
	lo int64
	content
	box
}

// hi returns the end of the piece.
func (p *piece) hi() int64 {
	if p.axes == nil {
		return p.lo + p.run
	}
	return p.lo + p.extent()
}

// isEqual reports whether two pieces are the same bytes with the same image.
func (p *piece) isEqual(q *piece) bool {
	return p.lo == q.lo && p.content == q.content && p.run == q.run && slices.Equal(p.axes, q.axes)
}

// inverse returns the map of the image to the bytes, in axes that it appends to
// none. Of a piece whose image begins at byte 0.
func (p *piece) inverse(none []axis) piece {
	axes := none
	for _, a := range p.axes {
		axes = append(axes, axis{a.n, a.from, a.at})
	}
	return piece{p.offset, content{p.root, p.lo}, box{p.run, axes}}
}

// builder makes the axes of a box from the innermost to the outermost.
type builder struct {
	run  int64
	axes []axis // the innermost first
}

// add adds an axis around what there is.
func (b *builder) add(n, at, from int64) {
	if n == 1 {
		return
	}
	if k := len(b.axes); k > 0 {
		if last := &b.axes[k-1]; at == last.n*last.at && from == last.n*last.from {
			last.n *= n
			return
		}
	} else if at == b.run && from == b.run {
		b.run *= n
		return
	}
	b.axes = append(b.axes, axis{n, at, from})
}

// workspace is what a checker needs to compute with boxes. Lists that it has
// handed out are not written again before the next proof.
type workspace struct {
	builder
	frame
	axes []axis // handed out
}

// begin starts a box of runs of so many bytes.
func (w *workspace) begin(run int64) { w.builder.run, w.builder.axes = run, w.builder.axes[:0] }

// end returns the box that was built.
func (w *workspace) end() box {
	n := len(w.builder.axes)
	if n == 0 {
		return box{run: w.builder.run}
	}
	if len(w.axes)+n > cap(w.axes) {
		w.axes = make([]axis, 0, max(64, 2*cap(w.axes), n)) // the old list stays with those that have it
	}
	at := len(w.axes)
	w.axes = w.axes[:at+n]
	out := w.axes[at : at+n : at+n]
	for i, a := range w.builder.axes {
		out[n-1-i] = a
	}
	return box{w.builder.run, out}
}

// reset takes back all lists.
func (w *workspace) reset() { w.axes = w.axes[:0] }
