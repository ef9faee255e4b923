package pass

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// ranges is where values lie in the bytes of others, for programs in which some
// view is a part of its operand. Whether two values share a byte, and whether
// one range holds another, follows from the order in which the ranges in one
// value begin and end. Where the order is the same, donations are decided
// alike.
type ranges struct {
	roots []int // values that others are parts of
	parts []part
	ends  []end // root by root, in ascending order

	low, high []int64 // by ID, for the sizes of now

	// again says that values may lie in more than one place, so that the pass
	// Donate runs again instead.
	again bool
}

// part is a value that lies in the bytes of another one, from its start on or
// where the rules of a pair say.
type part struct {
	id, of     int
	call, pair int // in aliases; call is -1 for the start
}

// end is where the range of a value begins or ends, in relation to the end
// before it in the list.
type end struct {
	id    int
	high  bool
	first bool // of a root
	same  bool // as the one before
}

// rangesOf finds the ranges of the structure's program, whose alias rules have
// been evaluated for the sizes of now.
func (s *Structure) rangesOf(a *aliases) ranges {
	r := ranges{again: a.open, low: make([]int64, len(s.types)), high: make([]int64, len(s.types))}
	at := map[*ir.Call]int{}
	for i := range a.calls {
		at[a.calls[i].of] = i
	}
	s.program.Walk(func(_ *ir.Block, c *ir.Call) {
		r.again = r.again || len(c.Regions) > 0
		i, ruled := at[c]
		if !ruled {
			return
		}
		for result, v := range c.Results {
			if v != nil && !isEmpty(s.types[v.ID]) {
				r.add(a, i, result, v)
			}
		}
	})
	root := make([]int, len(s.types)) // by ID, of parts
	for _, p := range r.parts {
		if root[p.id] = root[p.of]; root[p.id] == 0 {
			root[p.id] = p.of
		}
		if of := root[p.id]; !slices.Contains(r.roots, of) {
			r.roots = append(r.roots, of)
		}
	}
	r.place(s, a)
	for _, id := range r.roots {
		r.order(id, root)
	}
	return r
}

// add notes in whose bytes result v of call i lies.
func (r *ranges) add(a *aliases, i, result int, v *ir.Value) {
	c := &a.calls[i]
	found, maybe := 0, false
	for j, p := range c.pairs {
		if p.result != result {
			continue
		}
		r.again = r.again || p.unsure || p.unsureKind
		to := part{id: v.ID, of: c.args[p.arg], call: i, pair: j}
		switch {
		case p.kind == op.View:
		case p.view:
			maybe = true // a view of no contiguous part: some of the operand's bytes
			continue
		case p.kind != 0 && c.of.Args[p.arg].Donate:
			to.call = -1
		default:
			continue
		}
		found++
		r.parts = append(r.parts, to)
	}
	r.again = r.again || found > 1 || found > 0 && maybe
}

// place computes the ranges for the sizes of now.
func (r *ranges) place(s *Structure, a *aliases) {
	for _, id := range r.roots {
		r.low[id], r.high[id] = 0, bytesOf(s.types[id])
	}
	for _, p := range r.parts {
		r.low[p.id] = r.low[p.of]
		if p.call >= 0 {
			r.low[p.id] += a.calls[p.call].offsets[p.pair]
		}
		r.high[p.id] = r.low[p.id] + bytesOf(s.types[p.id])
	}
}

func (r *ranges) at(e end) int64 {
	if e.high {
		return r.high[e.id]
	}
	return r.low[e.id]
}

// order lists the ends of the ranges in one root.
func (r *ranges) order(of int, root []int) {
	list := []end{{id: of}, {id: of, high: true}}
	for _, p := range r.parts {
		if root[p.id] == of {
			list = append(list, end{id: p.id}, end{id: p.id, high: true})
		}
	}
	slices.SortStableFunc(list, func(x, y end) int { return cmp.Compare(r.at(x), r.at(y)) })
	for i := range list {
		list[i].first = i == 0
		list[i].same = i > 0 && r.at(list[i]) == r.at(list[i-1])
	}
	r.ends = append(r.ends, list...)
}

// fit reports whether the order is the same for the sizes of now.
func (r *ranges) fit(s *Structure, a *aliases) bool {
	r.place(s, a)
	before := int64(0)
	for _, e := range r.ends {
		now := r.at(e)
		if !e.first && (now < before || (now == before) != e.same) {
			return false
		}
		before = now
	}
	return true
}
