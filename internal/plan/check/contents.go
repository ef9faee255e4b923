package check

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// content is a run of bytes of a value that is no view: those from Offset on.
type content struct {
	root   *ir.Value
	offset int64
}

// at returns the content n bytes further on.
func (c content) at(n int64) content { return content{c.root, c.offset + n} }

// interval says what the bytes [lo, hi) of a space hold.
type interval struct {
	lo, hi int64
	content
}

// space names one buffer: Bytes without the range.
type space struct {
	kind plan.Space
	arg  int
}

func (b Bytes) space() space { return space{b.Space, b.Arg} }

// contents is what the bytes of all spaces hold: for each space disjoint
// intervals in order of address. Bytes of no interval hold nothing.
type contents struct {
	inputs, outputs int
	lists           [][]interval // the arena, inputs, outputs, weights and own buffers by ID
}

func newContents(p *ir.Program) contents {
	inputs, outputs := len(p.Body.Params), len(p.Body.Results)
	return contents{inputs, outputs, make([][]interval, 1+inputs+outputs+p.NumIDs())}
}

// clear makes all bytes hold nothing.
func (m contents) clear() {
	for i, list := range m.lists {
		m.lists[i] = list[:0]
	}
}

// of returns what the bytes of a space hold.
func (m contents) of(b Bytes) *[]interval {
	switch b.Space {
	case plan.SpaceArena:
		return &m.lists[0]
	case plan.SpaceInput:
		return &m.lists[1+b.Arg]
	case plan.SpaceOutput:
		return &m.lists[1+m.inputs+b.Arg]
	}
	return &m.lists[1+m.inputs+m.outputs+b.Arg]
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

// set makes the bytes b hold what c begins with.
func (m contents) set(b Bytes, c content) {
	if b.Lo == b.Hi {
		return
	}
	to := m.of(b)
	list := *to
	first := from(list, b.Lo)
	end := first
	var most [3]interval
	written := most[:0]
	for ; end < len(list) && list[end].lo < b.Hi; end++ {
		if h := list[end]; h.lo < b.Lo {
			written = append(written, interval{h.lo, b.Lo, h.content})
		}
	}
	written = append(written, interval{b.Lo, b.Hi, c})
	if end > first {
		if h := list[end-1]; h.hi > b.Hi {
			written = append(written, interval{b.Hi, h.hi, h.content.at(b.Hi - h.lo)})
		}
	}
	*to = slices.Replace(list, first, end, written...)
}

// differ returns the first bytes of b that do not hold what c has there, with
// what they hold: a content without root is nothing.
func (m contents) differ(b Bytes, c content) (bad Bytes, actual content, found bool) {
	list := *m.of(b)
	at := b.Lo
	for i := from(list, b.Lo); at < b.Hi; i++ {
		bad = b
		bad.Lo = at
		if i == len(list) || list[i].lo > at {
			if i < len(list) {
				bad.Hi = min(b.Hi, list[i].lo)
			}
			return bad, content{}, true
		}
		h := list[i]
		if actual := h.content.at(at - h.lo); actual != c.at(at-b.Lo) {
			bad.Hi = min(b.Hi, h.hi)
			return bad, actual, true
		}
		at = h.hi
	}
	return Bytes{}, content{}, false
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
