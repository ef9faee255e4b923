package solve

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// An instance is a problem in the form that the searches work on: for every pair of classes that meet in time the distances
// between their bases that are forbidden, so that a class is a point that has to keep out of intervals. Bytes are counted in
// units, the largest number of bytes that every size and offset is a multiple of: no placement that is worth anything has a
// base between them.
type instance struct {
	unit   int64 // in bytes
	bound  int64 // lower bound, in units like all that follows
	bodies []body
	times  []plan.Time // the moments that matter: whatever is live at any moment is live at one of them
	dense  bool        // so many bodies meet that their neighbours are found again whenever they are asked for
}

// body is what the searches know of one class.
type body struct {
	rects    []rect
	extent   int64   // from the base to the end of the class
	area     float64 // units × half-steps that its rects hold
	pressure int64   // the most that is live at some moment of its life
	start    plan.Time
	end      plan.Time
	first    int         // index in times of the first that it lives to see
	moments  int         // how many it lives to see
	near     []neighbour // empty where the instance is dense
	gapped   bool        // it can get below, into or through some neighbour
}

func (b *body) life() int64 { return int64(b.end - b.start) }

// neighbour forbids one open interval of distances: lo < base - base of other < hi.
type neighbour struct {
	other  int
	lo, hi int64
}

// rect is a range of bytes, later units, of a class that is held over a time; the rects of a class do not overlap.
type rect struct {
	lo, hi     int64
	start, end plan.Time
}

func compile(p *plan.Problem) *instance {
	in := &instance{bodies: make([]body, len(p.Classes))}
	for i := range in.bodies {
		b := &in.bodies[i]
		b.rects, b.extent = cut(p, &p.Classes[i]), p.Extent(&p.Classes[i])
		in.unit = gcd(in.unit, b.extent)
		for _, r := range b.rects {
			in.unit = gcd(gcd(in.unit, r.lo), r.hi)
		}
	}
	in.unit = max(in.unit, 1)
	in.bound = p.LowerBound().Bytes / in.unit
	for i := range in.bodies {
		in.bodies[i].measure(in.unit)
	}
	in.press(p.LiveBytes())
	in.findTimes()
	in.meet()
	return in
}

// gapped reports whether any body is.
func (in *instance) gapped() bool {
	return slices.ContainsFunc(in.bodies, func(b body) bool { return b.gapped })
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// measure turns the bytes of b into units.
func (b *body) measure(unit int64) {
	b.extent /= unit
	for k := range b.rects {
		r := &b.rects[k]
		r.lo, r.hi = r.lo/unit, r.hi/unit
		// The conversion of the product keeps it from being fused with the sum, which would round otherwise elsewhere.
		b.area += float64(float64(r.hi-r.lo) * float64(r.end-r.start))
		if k == 0 {
			b.start, b.end = r.start, r.end
		}
		b.start, b.end = min(b.start, r.start), max(b.end, r.end)
	}
}

// press finds for every body how much is live during its life, at most.
func (in *instance) press(levels []plan.LiveStep) {
	for i := range in.bodies {
		b := &in.bodies[i]
		first, exact := slices.BinarySearchFunc(levels, b.start, func(l plan.LiveStep, t plan.Time) int { return cmp.Compare(l.At, t) })
		if !exact {
			first = max(first-1, 0)
		}
		for k := first; k < len(levels) && levels[k].At < b.end; k++ {
			b.pressure = max(b.pressure, levels[k].Bytes/in.unit)
		}
	}
}

// findTimes finds the moments that matter: those at which something starts and after which something ends before anything
// else starts.
func (in *instance) findTimes() {
	type event struct {
		at     plan.Time
		starts int // 1, or 0 for an end
	}
	var events []event
	for i := range in.bodies {
		for _, r := range in.bodies[i].rects {
			events = append(events, event{r.start, 1}, event{r.end, 0})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), a.starts-b.starts) })
	for i, e := range events {
		if e.starts == 1 && events[i+1].starts == 0 {
			in.times = append(in.times, e.at)
		}
	}
	for i := range in.bodies {
		b := &in.bodies[i]
		b.first, _ = slices.BinarySearch(in.times, b.start)
		past, _ := slices.BinarySearch(in.times, b.end)
		b.moments = past - b.first
	}
}

// maxPairs is the most pairs of bodies that meet for which an instance keeps their neighbours: some tens of megabytes.
const maxPairs = 1 << 20

// meet fills the neighbours of every body: bodies are taken in order of their start, and each is compared with those that
// have not ended yet.
func (in *instance) meet() {
	order := make([]int, 0, len(in.bodies))
	for i := range in.bodies {
		if len(in.bodies[i].rects) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.bodies[a].start, in.bodies[b].start), cmp.Compare(a, b))
	})
	var open []int
	var gaps []interval
	pairs := 0
	for _, i := range order {
		b := &in.bodies[i]
		open = slices.DeleteFunc(open, func(j int) bool { return in.bodies[j].end <= b.start })
		if pairs += len(open); pairs > maxPairs {
			in.forget()
			return
		}
		for _, j := range open {
			other := &in.bodies[j]
			gaps = forbidden(gaps, other.rects, b.rects)
			if len(gaps) > 1 || len(gaps) == 1 && (gaps[0].lo >= 0 || gaps[0].hi <= 0) {
				b.gapped, other.gapped = true, true
			}
			for _, gap := range gaps {
				b.near = append(b.near, neighbour{j, gap.lo, gap.hi})
				other.near = append(other.near, neighbour{i, -gap.hi, -gap.lo})
			}
		}
		open = append(open, i)
	}
}

func (in *instance) forget() {
	in.dense = true
	for i := range in.bodies {
		in.bodies[i].near = nil
	}
}

// neighbours returns the neighbours of body i. The result is valid until the next call and uses into.
func (in *instance) neighbours(i int, into []neighbour) []neighbour {
	b := &in.bodies[i]
	if !in.dense {
		return b.near
	}
	into = into[:0]
	var gaps []interval
	for j := range in.bodies {
		other := &in.bodies[j]
		if j == i || other.start >= b.end || b.start >= other.end {
			continue
		}
		gaps = forbidden(gaps, other.rects, b.rects)
		for _, gap := range gaps {
			into = append(into, neighbour{j, gap.lo, gap.hi})
		}
	}
	return into
}

// interval is open: it holds the points strictly between lo and hi.
type interval struct{ lo, hi int64 }

// forbidden returns the distances from the base of a to the base of b at which they would share bytes, as disjoint open
// intervals in order. It writes over into.
func forbidden(into []interval, a, b []rect) []interval {
	gaps := into[:0]
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
	var held []rect
	for _, x := range c.Pieces {
		if lo, hi := p.Blocks(x); lo < hi {
			held = append(held, rect{lo, hi, x.Start, x.End})
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
