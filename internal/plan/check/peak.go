package check

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// level is how many bytes live from a moment on until the next level.
type level struct {
	at    plan.Time
	bytes int64
}

// levels returns the bytes of the blocks of the arena in which one of the
// values lives, over time.
func levels(values []*value) []level {
	type event struct {
		at     plan.Time
		add    int
		lo, hi int64
	}
	var events []event
	var edges []int64
	for _, x := range values {
		if x.place.kind == arena && x.size > 0 {
			lo, hi := blocks(x.place)
			events = append(events, event{x.start, 1, lo, hi}, event{x.end, -1, lo, hi})
			edges = append(edges, lo, hi)
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	slices.Sort(edges)
	edges = slices.Compact(edges)
	cover := make([]int, len(edges)) // values that live in the bytes from each edge to the next
	var out []level
	var bytes int64
	for i, e := range events {
		first, _ := slices.BinarySearch(edges, e.lo)
		for n := first; edges[n] < e.hi; n++ {
			before := cover[n] > 0
			cover[n] += e.add
			if after := cover[n] > 0; after && !before {
				bytes += edges[n+1] - edges[n]
			} else if before && !after {
				bytes -= edges[n+1] - edges[n]
			}
		}
		if i+1 == len(events) || events[i+1].at != e.at {
			out = append(out, level{e.at, bytes})
		}
	}
	return out
}

// peak proves the lower bound, and that the peak is the first moment at which
// the most bytes live, with all values that live there.
func (c *checker) peak() *Violation {
	c.step = -1
	var most level
	for _, l := range levels(c.ordered) {
		if l.bytes > most.bytes {
			most = l
		}
	}
	peak := &c.plan.Peak
	if fault := c.figure("peak bytes", peak.Bytes, most.bytes); fault != nil {
		return fault
	}
	if fault := c.figure("lower_bound_bytes", c.plan.LowerBoundBytes, most.bytes); fault != nil {
		return fault
	}
	if fault := c.figure("peak step", int64(peak.Step), int64(most.at/2)); fault != nil {
		return fault
	}
	var live []int
	for _, x := range c.ordered {
		if x.place.kind == arena && x.size > 0 && x.start <= most.at && most.at < x.end {
			live = append(live, x.ID)
		}
	}
	if !slices.Equal(peak.Live, live) {
		return c.fault(Figure, nil, fmt.Sprintf("values %v live at the peak", peak.Live), fmt.Sprint(live))
	}
	return nil
}
