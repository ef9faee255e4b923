package fake

import (
	"slices"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// The order of operations is that of vector clocks: an operation is after
// another if its stream, an event, the default stream, a graph, or the host,
// which saw the other complete, say so. Two operations that touch the same
// bytes, one of them writing, without such an order are reported, in whatever
// order they ran.

// lanes number the chains of operations. An operation that is after another is
// after every earlier one of its lane.
type lanes struct {
	last  []uint64  // the number of the last operation of each lane
	owner []*stream // nil: any operation that is after the last one may continue it
	seen  []uint64  // the clock of what the host has seen complete
}

// join makes clock no less than other.
func join(clock *[]uint64, other []uint64) {
	for len(*clock) < len(other) {
		*clock = append(*clock, 0)
	}
	for i, v := range other {
		(*clock)[i] = max((*clock)[i], v)
	}
}

// stamp gives an operation its clock: it is after all of before and what the
// host has seen.
func (l *lanes) stamp(o *op, before ...*op) {
	clock := slices.Clone(l.seen)
	for _, b := range before {
		join(&clock, b.clock)
	}
	o.lane = l.pick(o.stream, clock)
	l.last[o.lane]++
	for len(clock) <= o.lane {
		clock = append(clock, 0)
	}
	clock[o.lane] = l.last[o.lane]
	o.clock = clock
}

// pick returns the lane of the stream, or one whose last operation is in clock.
func (l *lanes) pick(s *stream, clock []uint64) int {
	free := -1
	for i, owner := range l.owner {
		switch {
		case s != nil && owner == s:
			return i
		case owner == nil && i < len(clock) && clock[i] == l.last[i]:
			free = i
		}
	}
	if free < 0 {
		free = len(l.last)
		l.last, l.owner = append(l.last, 0), append(l.owner, nil)
	}
	l.owner[free] = s
	return free
}

// leave frees the lane of a stream that has ended.
func (l *lanes) leave(s *stream) {
	for i, owner := range l.owner {
		if owner == s {
			l.owner[i] = nil
		}
	}
}

// observe says that the host knows that o is done.
func (l *lanes) observe(o *op) { join(&l.seen, o.clock) }

// isAfter reports whether o is after p.
func (o *op) isAfter(p *op) bool {
	return o == p || p.lane < len(o.clock) && o.clock[p.lane] >= p.clock[p.lane]
}

// access is what an operation did with bytes of a physical allocation.
type access struct {
	from, to uint64
	write    bool
	op       *op
}

// maxAccesses bounds what is remembered of an allocation; the oldest are
// forgotten.
const maxAccesses = 4096

// touch checks an access against those before, and remembers it.
func (m *Machine) touch(o *op, p *physical, a access) {
	if m.cfg.NoOrder {
		return
	}
	a.op = o
	keep, reported := p.accesses[:0], false
	for _, e := range p.accesses {
		covered := a.from <= e.from && e.to <= a.to
		switch {
		case e.to <= a.from || a.to <= e.from || e.op == o && !covered:
		case (e.write || a.write) && !o.isAfter(e.op):
			if !reported {
				m.reportOrder(e, a)
				reported = true
			}
			continue
		case covered && (a.write || !e.write && o.isAfter(e.op)):
			continue
		}
		keep = append(keep, e)
	}
	if len(keep) >= maxAccesses {
		keep = slices.Delete(keep, 0, len(keep)/2)
	}
	clear(p.accesses[len(keep):])
	p.accesses = append(keep, a)
}

func (m *Machine) reportOrder(e, a access) {
	verb := func(a access) string {
		if a.write {
			return "writes"
		}
		return "reads"
	}
	m.report(Unordered, "%s%s %s bytes %d to %d of an allocation, and %s%s %s bytes %d to %d: nothing orders them",
		e.op.what, e.op.site, verb(e), e.from, e.to, a.op.what, a.op.site, verb(a), a.from, a.to)
}

// touchHost is touch of n bytes from the one at of a copy's host memory.
func (m *Machine) touchHost(o *op, h host, at, n uint64, write bool) {
	if h.area != nil {
		at += uint64(h.address) - uint64(h.area.base)
		m.touch(o, h.area.mem, access{from: at, to: at + n, write: write})
	}
}

// touchArea is touch of a whole area, which an operation makes or frees.
func (m *Machine) touchArea(o *op, a *area) {
	m.touch(o, a.mem, access{from: a.offset, to: a.offset + a.size, write: true})
}

// touches collects the accesses of a kernel, which come in small pieces.
type touches struct {
	byMem map[*physical]*[2][]span // reads and writes; the base is an offset
}

// maxSpans is how many pieces are collected before they are merged.
const maxSpans = 1 << 16

func (t *touches) add(p *physical, at, n uint64, write bool) {
	both := t.byMem[p]
	if both == nil {
		if t.byMem == nil {
			t.byMem = map[*physical]*[2][]span{}
		}
		both = new([2][]span)
		t.byMem[p] = both
	}
	list := &both[0]
	if write {
		list = &both[1]
	}
	if k := len(*list); k > 0 {
		l := &(*list)[k-1]
		if end := uint64(l.base) + l.size; at >= uint64(l.base) && at <= end {
			l.size = max(end, at+n) - uint64(l.base)
			return
		}
	}
	*list = append(*list, span{driver.Pointer(at), n})
	if len(*list) >= maxSpans {
		*list = merge(*list)
	}
}

// merge joins spans that meet.
func merge(all []span) []span {
	slices.SortFunc(all, func(a, b span) int {
		switch {
		case a.base < b.base:
			return -1
		case a.base > b.base:
			return 1
		}
		return 0
	})
	out := all[:0]
	for _, s := range all {
		if k := len(out); k > 0 && s.base <= out[k-1].base+driver.Pointer(out[k-1].size) {
			l := &out[k-1]
			l.size = max(l.size, uint64(s.base-l.base)+s.size)
			continue
		}
		out = append(out, s)
	}
	return out
}

// flush touches what was collected.
func (t *touches) flush(m *Machine, o *op) {
	for p, both := range t.byMem {
		for i, list := range both {
			for _, s := range merge(list) {
				m.touch(o, p, access{from: uint64(s.base), to: uint64(s.base) + s.size, write: i == 1})
			}
		}
	}
}
