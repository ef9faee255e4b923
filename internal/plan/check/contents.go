package check

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
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

// kind is a [plan.Space] as a number.
type kind uint8

const (
	nowhere kind = iota
	arena
	input
	output
	weight
	constant
	own
)

var spaces = [...]plan.Space{arena: plan.SpaceArena, input: plan.SpaceInput, output: plan.SpaceOutput,
	weight: plan.SpaceWeight, constant: plan.SpaceConstant, own: plan.SpaceOwn}

// kindOf returns nowhere for a space that does not exist.
func kindOf(s plan.Space) kind {
	switch s {
	case plan.SpaceArena:
		return arena
	case plan.SpaceInput:
		return input
	case plan.SpaceOutput:
		return output
	case plan.SpaceWeight:
		return weight
	case plan.SpaceConstant:
		return constant
	case plan.SpaceOwn:
		return own
	}
	return nowhere
}

// space names one buffer.
type space struct {
	kind kind
	arg  int // as in [Bytes]
}

// place is a range of bytes of one space: [Bytes] that are compared fast.
type place struct {
	space
	lo, hi int64
}

func (p place) bytes() Bytes { return Bytes{spaces[p.kind], p.arg, p.lo, p.hi} }

// String is that of [Bytes].
func (p place) String() string { return p.bytes().String() }

// contents are those of the bytes of all spaces: for each space disjoint
// intervals in order of address. Bytes of no interval hold nothing. Weights
// have no intervals: each holds itself, because no step may write it.
type contents struct {
	inputs, outputs int
	lists           [][]interval // the arena, inputs, outputs, and own buffers by ID
}

func newContents(p *ir.Program) contents {
	inputs, outputs := len(p.Body.Params), len(p.Body.Results)
	return contents{inputs, outputs, make([][]interval, 1+inputs+outputs+p.NumIDs())}
}

// clear makes all bytes but the weights' hold nothing.
func (m contents) clear() {
	for i, list := range m.lists {
		if len(list) > 0 {
			m.lists[i] = list[:0]
		}
	}
}

// of returns the contents of the bytes of a space, which is not a weight.
func (m contents) of(s space) *[]interval {
	switch s.kind {
	case arena:
		return &m.lists[0]
	case input:
		return &m.lists[1+s.arg]
	case output:
		return &m.lists[1+m.inputs+s.arg]
	}
	return &m.lists[1+m.inputs+m.outputs+s.arg]
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

// set makes the bytes p, which are not a weight's, hold what c begins with.
func (m contents) set(p place, c content) {
	if p.lo == p.hi {
		return
	}
	to := m.of(p.space)
	list := *to
	first := from(list, p.lo)
	end := first
	for end < len(list) && list[end].lo < p.hi {
		end++
	}
	var most [3]interval
	written := most[:0]
	if end > first && list[first].lo < p.lo {
		h := list[first]
		written = append(written, interval{h.lo, p.lo, h.content})
	}
	written = append(written, interval{p.lo, p.hi, c})
	if end > first && list[end-1].hi > p.hi {
		h := list[end-1]
		written = append(written, interval{p.hi, h.hi, h.content.at(p.hi - h.lo)})
	}
	if len(written) == end-first {
		copy(list[first:], written)
		return
	}
	*to = slices.Replace(list, first, end, written...)
}

// put makes the bytes of a value's place hold it.
func (m contents) put(x *value) {
	if x.parts == nil {
		m.set(x.place, x.content)
		return
	}
	for _, part := range x.parts {
		m.set(place{x.place.space, x.place.lo + part.lo, x.place.lo + part.hi}, part.content)
	}
}

// lacks returns the first bytes of p that do not hold what x begins with, and
// their content.
func (m contents) lacks(p place, x *value) (bad place, actual content, found bool) {
	if x.parts == nil {
		return m.differ(p, x.content)
	}
	for _, part := range x.parts {
		at := place{p.space, p.lo + part.lo, min(p.hi, p.lo+part.hi)}
		if at.lo >= at.hi {
			break
		}
		if bad, actual, found := m.differ(at, part.content); found {
			return bad, actual, true
		}
	}
	return place{}, content{}, false
}

// differ returns the first bytes of p that do not hold c, and their content: a
// content without root is nothing.
func (m contents) differ(p place, c content) (bad place, actual content, found bool) {
	if p.kind == weight {
		actual = content{p.arg, p.lo}
		return p, actual, actual != c && p.lo < p.hi
	}
	list := *m.of(p.space)
	at := p.lo
	for i := from(list, p.lo); at < p.hi; i++ {
		bad = p
		bad.lo = at
		if i == len(list) || list[i].lo > at {
			if i < len(list) {
				bad.hi = min(p.hi, list[i].lo)
			}
			return bad, content{}, true
		}
		h := list[i]
		if actual := h.content.at(at - h.lo); actual != c.at(at-p.lo) {
			bad.hi = min(p.hi, h.hi)
			return bad, actual, true
		}
		at = h.hi
	}
	return place{}, content{}, false
}

func (m contents) clone() contents {
	out := contents{m.inputs, m.outputs, make([][]interval, len(m.lists))}
	for i, list := range m.lists {
		if len(list) > 0 {
			out.lists[i] = slices.Clone(list)
		}
	}
	return out
}

// join keeps of m what other holds too.
func (m contents) join(other contents) {
	for s, a := range m.lists {
		b := other.lists[s]
		var both []interval
		for i, j := 0, 0; i < len(a) && j < len(b); {
			lo, hi := max(a[i].lo, b[j].lo), min(a[i].hi, b[j].hi)
			if lo < hi {
				if c := a[i].content.at(lo - a[i].lo); c == b[j].content.at(lo-b[j].lo) {
					both = append(both, interval{lo, hi, c})
				}
			}
			if a[i].hi <= b[j].hi {
				i++
			} else {
				j++
			}
		}
		m.lists[s] = both
	}
}
