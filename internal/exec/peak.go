package exec

import (
	"cmp"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// peakOf finds the step at which the most bytes of the arena are live, the
// first of several. Bytes that several values share count once.
func peakOf(d *plan.Plan) plan.Peak {
	var s sweep
	for i := range d.Values {
		if v := &d.Values[i]; inArenaAt(v, v.Start) {
			lo, hi := blocks(v)
			s.edges = append(s.edges, lo, hi)
			s.events = append(s.events, event{v.Start, i, 1}, event{v.End, i, -1})
		}
	}
	slices.Sort(s.edges)
	s.edges = slices.Compact(s.edges)
	s.cover = make([]int32, len(s.edges))
	slices.SortFunc(s.events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.change, b.change)) // ends first
	})

	best := plan.Peak{}
	at, ends := plan.Time(0), plan.Time(2*len(d.Steps))
	for i := 0; i < len(s.events) && s.events[i].time < ends; {
		now := s.events[i].time
		for ; i < len(s.events) && s.events[i].time == now; i++ {
			s.apply(d, s.events[i])
		}
		if s.bytes > best.Bytes {
			best, at = plan.Peak{Step: int(now / 2), Bytes: s.bytes}, now
		}
	}
	for i := range d.Values {
		if v := &d.Values[i]; inArenaAt(v, at) {
			best.Live = append(best.Live, v.ID)
		}
	}
	return best
}

func inArenaAt(v *plan.Value, t plan.Time) bool {
	return v.Space == plan.SpaceArena && v.Size > 0 && v.Start <= t && t < v.End
}

// blocks returns the whole blocks that a value takes.
func blocks(v *plan.Value) (lo, hi int64) {
	const mask = plan.DefaultAlign - 1
	return v.Offset &^ mask, (v.Offset + v.Extent() + mask) &^ mask
}

// sweep goes through time with the number of values over each stretch of the
// arena. The stretches lie between the places where any value begins or ends.
type sweep struct {
	edges  []int64
	cover  []int32 // of the stretch that starts at the edge of the same index
	events []event
	bytes  int64 // covered now
}

// event is the begin (+1) or end (-1) of a value's life.
type event struct {
	time   plan.Time
	value  int
	change int32
}

func (s *sweep) apply(d *plan.Plan, e event) {
	lo, hi := blocks(&d.Values[e.value])
	i, _ := slices.BinarySearch(s.edges, lo)
	for ; s.edges[i] < hi; i++ {
		size := s.edges[i+1] - s.edges[i]
		if s.cover[i] == 0 {
			s.bytes += size
		}
		if s.cover[i] += e.change; s.cover[i] == 0 {
			s.bytes -= size
		}
	}
}
