package check

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/ir"
)

// content is a run of bytes of a value that is no view: those from the offset
// on of the value with the ID root, nothing for ID 0.
type content struct {
	root   int
	offset int64
}

// at returns the content n bytes further on.
func (c content) at(n int64) content { return content{c.root, c.offset + n} }

// interval is the content of the bytes [lo, hi) of a space, or of a value.
type interval struct {
	lo, hi int64
	content
}

// contents are those of the bytes of all spaces: for each space disjoint
// intervals in order of address, and boxes with gaps between their runs, which
// share no byte with each other or with an interval. Bytes of neither hold
// nothing. Weights have no contents: each holds itself, because no step may
// write it.
type contents struct {
	inputs, outputs int
	stacks          []int        // IDs of the values that have slots
	lists           [][]interval // the arena, inputs, outputs, slots, and own buffers by ID
	boxes           [][]piece    // of the arena, inputs, outputs and slots, in no order
	work            *workspace
}

func newContents(p *ir.Program, stacks []int) contents {
	inputs, outputs := len(p.Body.Params), len(p.Body.Results)
	n := 1 + inputs + outputs + len(stacks)
	return contents{inputs, outputs, stacks, make([][]interval, n+p.NumIDs()), make([][]piece, n), &workspace{}}
}

// clear makes all bytes but the weights' hold nothing.
func (m *contents) clear() {
	for i, list := range m.lists {
		if len(list) > 0 {
			m.lists[i] = list[:0]
		}
	}
	for i, list := range m.boxes {
		m.boxes[i] = list[:0]
	}
	m.work.reset()
}

// of returns the number of a space, which is not a weight.
func (m *contents) of(s space) int {
	switch s.kind {
	case arena:
		return 0
	case input:
		return 1 + s.arg
	case output:
		return 1 + m.inputs + s.arg
	case slot:
		return 1 + m.inputs + m.outputs + slices.Index(m.stacks, s.arg)
	}
	return 1 + m.inputs + m.outputs + len(m.stacks) + s.arg
}

// forget makes all bytes of a space hold nothing.
func (m *contents) forget(s space) {
	n := m.of(s)
	m.lists[n], m.boxes[n] = m.lists[n][:0], m.boxes[n][:0]
}

// boxesOf returns the boxes of a space: buffers of values' own have none.
func (m *contents) boxesOf(s int) []piece {
	if s >= len(m.boxes) {
		return nil
	}
	return m.boxes[s]
}

// from returns the index of the first interval that ends after lo.
func from(list []interval, lo int64) int {
	first, end := 0, len(list)
	for first < end {
		if mid := int(uint(first+end) / 2); list[mid].hi > lo {
			end = mid
		} else {
			first = mid + 1
		}
	}
	return first
}

// set makes the bytes [lo, hi) of a space hold what c begins with; nothing
// without a root.
func (m *contents) set(s int, lo, hi int64, c content) {
	if lo == hi {
		return
	}
	list := m.lists[s]
	first := from(list, lo)
	end := first
	for end < len(list) && list[end].lo < hi {
		end++
	}
	var most [3]interval
	written := most[:0]
	if end > first && list[first].lo < lo {
		h := list[first]
		written = append(written, interval{h.lo, lo, h.content})
	}
	if c.root != 0 {
		written = append(written, interval{lo, hi, c})
	}
	if end > first && list[end-1].hi > hi {
		h := list[end-1]
		written = append(written, interval{hi, h.hi, h.content.at(hi - h.lo)})
	}
	if len(written) == end-first {
		copy(list[first:], written)
	} else {
		m.lists[s] = slices.Replace(list, first, end, written...)
	}
	if len(m.boxesOf(s)) > 0 {
		m.cut(s, &piece{lo: lo, box: box{run: hi - lo}})
	}
}

// cut makes the bytes of p hold nothing where boxes hold something, and where
// intervals do if p has gaps. What has no frame in common with p holds nothing
// any more from the first to the last byte of p.
func (m *contents) cut(s int, p *piece) {
	hi := p.hi()
	var left []piece
	if p.axes != nil {
		first := from(m.lists[s], p.lo)
		end := first
		for ; end < len(m.lists[s]) && m.lists[s][end].lo < hi; end++ {
			whole := m.lists[s][end].piece()
			left, _ = m.work.without(left, &whole, p)
		}
		m.lists[s] = slices.Delete(m.lists[s], first, end)
	}
	kept := m.boxes[s][:0]
	for i := range m.boxes[s] {
		b := &m.boxes[s][i]
		if hi <= b.lo || b.hi() <= p.lo {
			kept = append(kept, *b)
			continue
		}
		var framed bool
		if left, framed = m.work.without(left, b, p); !framed {
			left, _ = m.work.without(left, b, &piece{lo: p.lo, box: box{run: hi - p.lo}})
		}
	}
	m.boxes[s] = kept
	for i := range left {
		m.insert(s, &left[i])
	}
}

// mostBoxes is the most boxes of a space: of more, some hold nothing.
const mostBoxes = 1 << 14

// insert makes the bytes of p, which hold nothing, hold its image.
func (m *contents) insert(s int, p *piece) {
	if p.axes != nil {
		if len(m.boxes[s]) < mostBoxes {
			m.boxes[s] = append(m.boxes[s], *p)
		}
		return
	}
	at := from(m.lists[s], p.lo)
	m.lists[s] = slices.Insert(m.lists[s], at, interval{p.lo, p.lo + p.run, p.content})
}

// piece returns the interval as a piece.
func (h interval) piece() piece { return piece{h.lo, h.content, box{run: h.hi - h.lo}} }

// put makes the bytes of a value's place hold it.
func (m *contents) put(x *value) {
	p := x.place
	if p.lo == p.hi {
		return
	}
	s := m.of(p.space)
	if p.box == nil && x.parts == nil {
		m.set(s, p.lo, p.hi, x.content)
		return
	}
	if p.box == nil {
		m.set(s, p.lo, p.hi, content{})
	} else {
		m.cut(s, &piece{p.lo, content{}, *p.box})
	}
	for i := range x.numLaid() {
		part := x.laidAt(i)
		m.insert(s, &part)
	}
}

// missing are bytes that do not hold what they should: a content without root
// is nothing.
type missing struct {
	place
	got, want content
}

// lacks returns the first bytes of a value's place that do not hold it.
func (m *contents) lacks(x *value) (bad missing, found bool) {
	if x.place.box == nil && x.parts == nil && x.place.kind != weight && m.has(m.of(x.place.space), x.place.lo, x.place.hi, x.content) {
		return missing{}, false
	}
	return m.lacksFirst(x, x.place)
}

// has reports whether one interval holds the bytes [lo, hi) of a space: the
// most frequent form of a value.
func (m *contents) has(s int, lo, hi int64, c content) bool {
	list := m.lists[s]
	i := from(list, lo)
	return i < len(list) && list[i].lo <= lo && hi <= list[i].hi && list[i].content.at(lo-list[i].lo) == c
}

// lacksFirst is lacks for a value that lies in p, or for its first bytes. Those
// are places without gaps if they are not that of the value.
func (m *contents) lacksFirst(x *value, p place) (bad missing, found bool) {
	if p.box == nil && x.parts == nil {
		return m.differ(p.space, &piece{p.lo, x.content, box{run: p.hi - p.lo}})
	}
	if p.isSame(x.place) {
		for i := range x.numLaid() {
			part := x.laidAt(i)
			if bad, found := m.differ(p.space, &part); found {
				return bad, true
			}
		}
		return missing{}, false
	}
	for _, part := range x.parts {
		part.lo += p.lo
		if part.hi() > p.hi {
			if part.lo >= p.hi {
				continue
			}
			end := piece{lo: p.hi, box: box{run: part.hi() - p.hi}}
			heads, _ := m.work.without(nil, &part, &end)
			for i := range heads {
				if bad, found := m.differ(p.space, &heads[i]); found {
					return bad, true
				}
			}
			continue
		}
		if bad, found := m.differ(p.space, &part); found {
			return bad, true
		}
	}
	return missing{}, false
}

// differ returns the first bytes of a piece that do not hold its image.
func (m *contents) differ(s space, p *piece) (bad missing, found bool) {
	if p.axes == nil && p.run == 0 {
		return missing{}, false
	}
	if s.kind == weight {
		actual := content{s.arg, p.lo}
		whole := slices.IndexFunc(p.axes, func(a axis) bool { return a.at != a.from }) < 0
		return p.missing(s, actual), actual != p.content || !whole
	}
	n := m.of(s)
	if p.axes == nil {
		bad, found := m.differInterval(s, n, p)
		if !found || len(m.boxesOf(n)) == 0 {
			return bad, found
		}
	}
	for i := range m.boxes[n] {
		if m.boxes[n][i].isEqual(p) {
			return missing{}, false
		}
	}
	return m.differBox(s, n, p)
}

// missing returns the first run of the piece, as bytes that hold something
// else.
func (p *piece) missing(s space, got content) missing {
	return missing{place{space: s, lo: p.lo, hi: p.lo + p.run}, got, p.content}
}

// differInterval is differ for a contiguous piece, by the intervals alone.
func (m *contents) differInterval(s space, n int, p *piece) (bad missing, found bool) {
	list, hi := m.lists[n], p.lo+p.run
	at := p.lo
	for i := from(list, p.lo); at < hi; i++ {
		if i == len(list) || list[i].lo > at {
			if i < len(list) {
				hi = min(hi, list[i].lo)
			}
			return missing{place{space: s, lo: at, hi: hi}, content{}, p.content.at(at - p.lo)}, true
		}
		h := &list[i]
		if actual, want := h.content.at(at-h.lo), p.content.at(at-p.lo); actual != want {
			return missing{place{space: s, lo: at, hi: min(hi, h.hi)}, actual, want}, true
		}
		at = h.hi
	}
	return missing{}, false
}

// differBox is differ for a piece that boxes or, where it has gaps, intervals
// may hold in part. Nothing else is in bytes that hold what they should, so
// that only they are looked for.
func (m *contents) differBox(s space, n int, p *piece) (bad missing, found bool) {
	left, next := []piece{*p}, []piece(nil)
	compare := func(held *piece) bool {
		next = next[:0]
		for i := range left {
			want := &left[i]
			if held.hi() <= want.lo || want.hi() <= held.lo || !m.work.align(want, held) {
				next = append(next, *want)
				continue
			}
			m.work.common(func(a, b *cell) bool {
				if want.root != held.root || !m.work.isSame(a, b) {
					first := m.work.pieceOf(a, want.root)
					bad, found = first.missing(s, content{held.root, b.from}), true
				}
				return !found
			})
			if found {
				return false
			}
			for _, c := range m.work.frame.rest() {
				next = append(next, m.work.pieceOf(&c, want.root))
			}
		}
		left, next = next, left
		return len(left) > 0
	}
	list, hi := m.lists[n], p.hi()
	for i := from(list, p.lo); i < len(list) && list[i].lo < hi; i++ {
		if held := list[i].piece(); !compare(&held) {
			return bad, found
		}
	}
	for i := range m.boxesOf(n) {
		if !compare(&m.boxes[n][i]) {
			return bad, found
		}
	}
	first := slices.MinFunc(left, func(a, b piece) int { return cmp.Compare(a.lo, b.lo) })
	return first.missing(s, content{}), true
}

func (m *contents) clone() contents {
	out := *m
	out.lists, out.boxes = make([][]interval, len(m.lists)), make([][]piece, len(m.boxes))
	for i, list := range m.lists {
		if len(list) > 0 {
			out.lists[i] = slices.Clone(list)
		}
	}
	for i, list := range m.boxes {
		if len(list) > 0 {
			out.boxes[i] = slices.Clone(list)
		}
	}
	return out
}

// join keeps of m what other holds too.
func (m *contents) join(other *contents) {
	for s, a := range m.lists {
		b := other.lists[s]
		both := m.joinBoxes(other, s)
		var list []interval
		for i, j := 0, 0; i < len(a) && j < len(b); {
			lo, hi := max(a[i].lo, b[j].lo), min(a[i].hi, b[j].hi)
			if lo < hi {
				if c := a[i].content.at(lo - a[i].lo); c == b[j].content.at(lo-b[j].lo) {
					list = append(list, interval{lo, hi, c})
				}
			}
			if a[i].hi <= b[j].hi {
				i++
			} else {
				j++
			}
		}
		m.lists[s] = list
		if s < len(m.boxes) {
			m.boxes[s] = nil
		}
		for i := range both {
			m.insert(s, &both[i])
		}
	}
}

// joinBoxes returns what m and other hold in a space, where one of them holds
// it in a box.
func (m *contents) joinBoxes(other *contents, s int) (both []piece) {
	for i := range m.boxesOf(s) {
		a := &m.boxes[s][i]
		for j := range other.boxes[s] {
			both = m.work.shared(both, a, &other.boxes[s][j])
		}
		both = other.sharedIntervals(both, s, a)
	}
	for j := range other.boxesOf(s) {
		both = m.sharedIntervals(both, s, &other.boxes[s][j])
	}
	return both
}

// sharedIntervals returns what intervals of a space hold as p does.
func (m *contents) sharedIntervals(both []piece, s int, p *piece) []piece {
	list := m.lists[s]
	for i := from(list, p.lo); i < len(list) && list[i].lo < p.hi(); i++ {
		h := list[i].piece()
		both = m.work.shared(both, &h, p)
	}
	return both
}
