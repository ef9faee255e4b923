package solve

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// An instance is a problem in the form that the searches work on: blocks instead of bytes, and for every pair of classes
// that meet in time the distances between their bases that are forbidden. Lifetimes and pieces are compiled away: from here
// on a class is a point that has to keep out of intervals.
type instance struct {
	bodies []body
	bound  int64 // lower bound in blocks
}

// body is what the searches know of one class.
type body struct {
	extent   int64 // blocks from the base to the end of the class
	area     int64 // blocks × half-steps that its pieces hold
	pressure int64 // the most blocks that are live at some moment of its life
	start    plan.Time
	end      plan.Time
	near     []neighbour // ordered by other, then lo
}

func (b *body) life() int64 { return int64(b.end - b.start) }

// neighbour forbids one open interval of distances: lo < base - base of other < hi.
type neighbour struct {
	other  int
	lo, hi int64
}

// rect is a range of blocks of a class that is held over a time; the rects of a class do not overlap.
type rect struct {
	lo, hi     int64
	start, end plan.Time
}

func compile(p *plan.Problem) *instance {
	align := p.BlockSize()
	in := &instance{bodies: make([]body, len(p.Classes)), bound: p.LowerBound().Bytes / align}
	rects := make([][]rect, len(p.Classes))
	for i := range p.Classes {
		rects[i] = cut(p, &p.Classes[i])
		b := &in.bodies[i]
		b.extent = p.Extent(&p.Classes[i]) / align
		for k, r := range rects[i] {
			b.area += (r.hi - r.lo) * int64(r.end-r.start)
			if k == 0 {
				b.start, b.end = r.start, r.end
			}
			b.start, b.end = min(b.start, r.start), max(b.end, r.end)
		}
	}
	in.press(p.LiveBytes(), align)
	in.meet(rects)
	return in
}

// press finds for every body the most blocks that are live during its life.
func (in *instance) press(levels []plan.LiveStep, align int64) {
	for i := range in.bodies {
		b := &in.bodies[i]
		first, exact := slices.BinarySearchFunc(levels, b.start, func(l plan.LiveStep, t plan.Time) int { return cmp.Compare(l.At, t) })
		if !exact {
			first = max(first-1, 0)
		}
		for k := first; k < len(levels) && levels[k].At < b.end; k++ {
			b.pressure = max(b.pressure, levels[k].Bytes/align)
		}
	}
}

// meet fills the neighbours of every body: classes are taken in order of their start, and each is compared with those that
// have not ended yet.
func (in *instance) meet(rects [][]rect) {
	order := make([]int, 0, len(rects))
	for i := range rects {
		if len(rects[i]) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.bodies[a].start, in.bodies[b].start), cmp.Compare(a, b))
	})
	var open []int
	for _, i := range order {
		open = slices.DeleteFunc(open, func(j int) bool { return in.bodies[j].end <= in.bodies[i].start })
		for _, j := range open {
			for _, gap := range forbidden(rects[j], rects[i]) {
				in.bodies[i].near = append(in.bodies[i].near, neighbour{j, gap.lo, gap.hi})
				in.bodies[j].near = append(in.bodies[j].near, neighbour{i, -gap.hi, -gap.lo})
			}
		}
		open = append(open, i)
	}
	for i := range in.bodies {
		slices.SortFunc(in.bodies[i].near, func(a, b neighbour) int { return cmp.Or(a.other-b.other, cmp.Compare(a.lo, b.lo)) })
	}
}

// interval is open: it holds the points strictly between lo and hi.
type interval struct{ lo, hi int64 }

// forbidden returns the distances from the base of a to the base of b at which they would share bytes, as disjoint open
// intervals.
func forbidden(a, b []rect) []interval {
	var gaps []interval
	for _, x := range a {
		for _, y := range b {
			if x.start < y.end && y.start < x.end {
				gaps = append(gaps, interval{x.lo - y.hi, x.hi - y.lo})
			}
		}
	}
	if len(gaps) < 2 {
		return gaps
	}
	slices.SortFunc(gaps, byLow)
	merged := gaps[:1]
	for _, g := range gaps[1:] {
		// Intervals that only touch stay apart: the point between them is legal.
		if last := &merged[len(merged)-1]; g.lo < last.hi {
			last.hi = max(last.hi, g.hi)
		} else {
			merged = append(merged, g)
		}
	}
	return merged
}

func byLow(a, b interval) int { return cmp.Compare(a.lo, b.lo) }

// cut returns what class c holds as rects that do not overlap: pieces over the same bytes become one.
func cut(p *plan.Problem, c *plan.Class) []rect {
	align := p.BlockSize()
	var held []rect
	for _, x := range c.Pieces {
		if lo, hi := p.Blocks(x); lo < hi {
			held = append(held, rect{lo / align, hi / align, x.Start, x.End})
		}
	}
	if len(held) < 2 {
		return held
	}
	edges := make([]int64, 0, 2*len(held))
	for _, r := range held {
		edges = append(edges, r.lo, r.hi)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	slices.SortFunc(held, func(a, b rect) int { return cmp.Compare(a.start, b.start) })
	var rects, below []rect // below: those that end at the lower edge of the cell
	for k := range edges[1:] {
		lo, hi := edges[k], edges[k+1]
		var cell []rect
		for _, r := range held {
			if r.lo > lo || r.hi < hi {
				continue
			}
			if n := len(cell); n > 0 && r.start <= cell[n-1].end {
				cell[n-1].end = max(cell[n-1].end, r.end)
			} else {
				cell = append(cell, rect{lo, hi, r.start, r.end})
			}
		}
		for i := range cell {
			same := slices.IndexFunc(below, func(r rect) bool { return r.start == cell[i].start && r.end == cell[i].end })
			if same >= 0 {
				cell[i].lo = below[same].lo
				below = slices.Delete(below, same, same+1)
			}
		}
		rects = append(rects, below...)
		below = cell
	}
	return append(rects, below...)
}
