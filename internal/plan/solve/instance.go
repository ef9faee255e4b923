package solve

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// An instance is a problem in the form that the searches work on: for every
// pair of storages that meet in time the distances between their bases that are
// forbidden, so that a storage is a point that has to keep out of intervals.
// Bytes are counted in units, the largest number of bytes that every size and
// offset is a multiple of: no placement that is worth anything has a base
// between them.
type instance struct {
	unit     int64 // in bytes
	bound    int64 // lower bound, in units like all that follows
	storages []storage
	times    []plan.Time // the moments that matter: the storages live at any moment are all live at one of these
	dense    bool        // so many storages meet that their neighbours are found anew each time
}

// storage is the searches' form of one plan.Storage.
type storage struct {
	rects    []rect
	extent   int64   // from the base to the end of the storage
	area     float64 // units × half-steps of its rects
	pressure int64   // the most that is live at some moment of its life
	start    plan.Time
	end      plan.Time
	first    int         // index in times of the first that it lives to see
	moments  int         // how many it lives to see
	near     []neighbour // empty where the instance is dense
	gapped   bool        // it can get below, into or through some neighbour
}

func (s *storage) life() int64 { return int64(s.end - s.start) }

// neighbour forbids one open interval of distances: lo < base - base of other <
// hi.
type neighbour struct {
	other  int
	lo, hi int64
}

// rect is a range of bytes, later units, of a storage that is live over a time;
// the rects of a storage do not overlap.
type rect struct {
	lo, hi     int64
	start, end plan.Time
}

func compile(p *plan.Problem) *instance {
	in := &instance{storages: make([]storage, len(p.Storages))}
	var c cutter
	for i := range in.storages {
		s := &in.storages[i]
		s.rects, s.extent = c.cut(nil, p, &p.Storages[i]), p.Extent(&p.Storages[i])
		in.unit = gcd(in.unit, s.extent)
		for _, r := range s.rects {
			in.unit = gcd(gcd(in.unit, r.lo), r.hi)
		}
	}
	in.unit = max(in.unit, 1)
	in.bound = p.LowerBound().Bytes / in.unit
	for i := range in.storages {
		in.storages[i].measure(in.unit)
	}
	in.press(p.LiveBytes())
	in.findTimes()
	in.meet()
	return in
}

// gapped reports whether any storage is.
func (in *instance) gapped() bool {
	return slices.ContainsFunc(in.storages, func(s storage) bool { return s.gapped })
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// measure turns the bytes of b into units.
func (s *storage) measure(unit int64) {
	s.extent /= unit
	for k := range s.rects {
		r := &s.rects[k]
		r.lo, r.hi = r.lo/unit, r.hi/unit
		// The conversion of the product keeps it from being fused with the sum,
		// which would round otherwise elsewhere.
		s.area += float64(float64(r.hi-r.lo) * float64(r.end-r.start))
		if k == 0 {
			s.start, s.end = r.start, r.end
		}
		s.start, s.end = min(s.start, r.start), max(s.end, r.end)
	}
}

// press finds for every storage how much is live during its life, at most.
func (in *instance) press(levels []plan.LiveStep) {
	for i := range in.storages {
		s := &in.storages[i]
		first, exact := slices.BinarySearchFunc(levels, s.start, func(l plan.LiveStep, t plan.Time) int { return cmp.Compare(l.At, t) })
		if !exact {
			first = max(first-1, 0)
		}
		for k := first; k < len(levels) && levels[k].At < s.end; k++ {
			s.pressure = max(s.pressure, levels[k].Bytes/in.unit)
		}
	}
}

// findTimes finds the moments that matter: those at which something starts and
// after which something ends before anything else starts.
func (in *instance) findTimes() {
	type event struct {
		at     plan.Time
		starts int // 1, or 0 for an end
	}
	var events []event
	for i := range in.storages {
		for _, r := range in.storages[i].rects {
			events = append(events, event{r.start, 1}, event{r.end, 0})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(cmp.Compare(a.at, b.at), a.starts-b.starts) })
	for i, e := range events {
		if e.starts == 1 && events[i+1].starts == 0 {
			in.times = append(in.times, e.at)
		}
	}
	for i := range in.storages {
		s := &in.storages[i]
		s.first, _ = slices.BinarySearch(in.times, s.start)
		past, _ := slices.BinarySearch(in.times, s.end)
		s.moments = past - s.first
	}
}

// maxPairs is the most pairs of storages that meet for which an instance keeps
// their neighbours: some tens of megabytes.
const maxPairs = 1 << 20

// meet fills the neighbours of every storage: storages are taken in order of
// their start, and each is compared with those that have not ended yet.
func (in *instance) meet() {
	order := make([]int, 0, len(in.storages))
	for i := range in.storages {
		if len(in.storages[i].rects) > 0 {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(in.storages[a].start, in.storages[b].start), cmp.Compare(a, b))
	})
	var open []int
	var gaps []interval
	pairs := 0
	for _, i := range order {
		s := &in.storages[i]
		open = slices.DeleteFunc(open, func(j int) bool { return in.storages[j].end <= s.start })
		if pairs += len(open); pairs > maxPairs {
			in.forget()
			return
		}
		for _, j := range open {
			other := &in.storages[j]
			gaps = forbidden(gaps, other.rects, s.rects)
			if len(gaps) > 1 || len(gaps) == 1 && (gaps[0].lo >= 0 || gaps[0].hi <= 0) {
				s.gapped, other.gapped = true, true
			}
			for _, gap := range gaps {
				s.near = append(s.near, neighbour{j, gap.lo, gap.hi})
				other.near = append(other.near, neighbour{i, -gap.hi, -gap.lo})
			}
		}
		open = append(open, i)
	}
}

func (in *instance) forget() {
	in.dense = true
	for i := range in.storages {
		in.storages[i].near = nil
	}
}

// neighbours returns the neighbours of storage i. The result is valid until the
// next call and uses into.
func (in *instance) neighbours(i int, into []neighbour) []neighbour {
	s := &in.storages[i]
	if !in.dense {
		return s.near
	}
	into = into[:0]
	var gaps []interval
	for j := range in.storages {
		other := &in.storages[j]
		if j == i || other.start >= s.end || s.start >= other.end {
			continue
		}
		gaps = forbidden(gaps, other.rects, s.rects)
		for _, gap := range gaps {
			into = append(into, neighbour{j, gap.lo, gap.hi})
		}
	}
	return into
}

// interval is open: it holds the points strictly between lo and hi.
type interval struct{ lo, hi int64 }

// forbidden returns the distances from the base of a to the base of b at which
// they would share bytes, as disjoint open intervals in order. It writes over
// into.
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
		// Intervals that only touch stay apart: the point between them is
		// legal.
		if last := &merged[len(merged)-1]; g.lo < last.hi {
			last.hi = max(last.hi, g.hi)
		} else {
			merged = append(merged, g)
		}
	}
	return merged
}

func byLow(a, b interval) int { return cmp.Compare(a.lo, b.lo) }

// A cutter finds the live bytes of storages. It keeps its lists for the next
// one.
type cutter struct {
	live, below, cell []rect
	edges             []int64
}

// cut appends to rects the live bytes of storage s as rects that do not
// overlap: pieces over the same bytes become one.
func (c *cutter) cut(rects []rect, p *plan.Problem, s *plan.Storage) []rect {
	live := c.live[:0]
	for _, x := range s.Pieces {
		if lo, hi := p.Blocks(x); lo < hi {
			live = append(live, rect{lo, hi, x.Start, x.End})
		}
	}
	c.live = live
	if isOne(live) {
		return append(rects, whole(live))
	}
	edges := c.edges[:0]
	for _, r := range live {
		edges = append(edges, r.lo, r.hi)
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	c.edges = edges
	slices.SortFunc(live, func(a, b rect) int { return cmp.Compare(a.start, b.start) })
	below, cell := c.below[:0], c.cell // below: those that end at the lower edge of the cell
	for k := 0; k+1 < len(edges); k++ {
		lo, hi := edges[k], edges[k+1]
		cell = cell[:0]
		for _, r := range live {
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
		below, cell = cell, below
	}
	c.below, c.cell = below, cell
	return append(rects, below...)
}

// isOne reports whether the rects are over the same bytes, and none of them
// begins after those before it have ended, or ends before they begin.
func isOne(live []rect) bool {
	if len(live) == 0 {
		return false
	}
	all := live[0]
	for _, r := range live[1:] {
		if r.lo != all.lo || r.hi != all.hi || r.start > all.end || r.end < all.start {
			return false
		}
		all.start, all.end = min(all.start, r.start), max(all.end, r.end)
	}
	return true
}

// whole returns the rect that all of them are together.
func whole(live []rect) rect {
	all := live[0]
	for _, r := range live[1:] {
		all.start, all.end = min(all.start, r.start), max(all.end, r.end)
	}
	return all
}
