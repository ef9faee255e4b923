package solve

import (
	"cmp"
	"slices"
)

// An exact search builds a placement from the ground up: it puts storages on
// those already placed, each as low as possible, in order of their bases, and
// goes back when the others cannot fit. Four rules keep it small:
//
//   - Bases never fall, and among equal bases the preference rises: every
//     arrangement is built in one order only.
//   - A storage is not put where another would still fit entirely below: that
//     arrangement could be pushed down.
//   - At every section of time, the other storages have to fit between the
//     lowest place that is still free for them and the capacity.
//   - Storages that no longer meet in time, through others that are left, are
//     arranged independently.
//
// For plain buffers it finds a placement within the capacity if there is one.
// Gapped storages can interlock in ways that it does not try.
type exact struct {
	*instance
	*sections
	*budget
	limit    int64 // spent may reach this
	capacity int64
	prefer   []int   // rank of every storage among equals
	base     []int64 // of the placed storages
	placed   []bool
	least    []int64 // the lowest base that an unplaced storage can still get
	sum      []int64 // of the unplaced storages, by section
	floor    []int64 // the lowest unit that they can still get, by section
	stale    []int   // sections whose floor has to be computed again
	isStale  []bool  // by section
	trail    []change
	lists    [][]int // by depth: the storages that may come next, and those that are left then
	closed   []interval
}

// change is an entry of the trail by which a step is taken back: a number that
// was set, or a storage that was placed.
type change struct {
	number  *int64 // nil for a storage
	was     int64
	storage int
}

func newExact(in *instance, c *sections, b *budget) *exact {
	n, m := len(in.storages), len(c.members)
	return &exact{
		instance: in, sections: c, budget: b,
		base: make([]int64, n), placed: make([]bool, n), least: make([]int64, n), lists: make([][]int, 2*n+2),
		sum: make([]int64, m), floor: make([]int64, m), isStale: make([]bool, m),
	}
}

// run looks for a placement that ends at capacity or below and leaves it in
// base. It stops when it has spent effort; whole reports that it did not have
// to, so that another run would find nothing more.
func (x *exact) run(capacity int64, prefer []int, effort int64) (found, whole bool) {
	x.capacity, x.prefer, x.limit = capacity, prefer, x.spent+effort
	clear(x.base)
	clear(x.placed)
	clear(x.least)
	clear(x.sum)
	x.trail = x.trail[:0]
	var left []int
	for i := range x.storages {
		s := &x.span[i]
		if len(s.cells) > 0 {
			left = append(left, i)
		}
		for k, c := range s.cells {
			x.sum[s.first+k] += c.size
		}
	}
	for s := range x.floor {
		x.floor[s] = x.floorOf(s)
		if x.floor[s]+x.sum[s] > capacity {
			return false, true
		}
	}
	slices.SortFunc(left, func(a, b int) int { return cmp.Or(x.span[a].first-x.span[b].first, a-b) })
	found = x.fill(left, 0, -1, 0)
	return found, x.spent < x.limit && !x.over
}

// fill places the storages of left, which are ordered by their first section,
// at low or above. Last is the preference of the storage that was put at low.
// It splits them where no life goes on and arranges the parts one by one.
func (x *exact) fill(left []int, low int64, last, depth int) bool {
	from, end := 0, 0
	for k, i := range left {
		if k > from && x.span[i].first >= end {
			if !x.fillPart(left[from:k], low, last, depth) {
				return false
			}
			from = k
		}
		end = max(end, x.span[i].end())
	}
	return from == len(left) || x.fillPart(left[from:], low, last, depth)
}

// fillPart tries every storage of left that can come next.
func (x *exact) fillPart(left []int, low int64, last, depth int) bool {
	next := x.candidates(x.lists[2*depth][:0], left, low, last)
	x.lists[2*depth] = next
	for _, i := range next {
		if x.spent += int64(2 * len(left)); x.spent >= x.limit || x.ended() {
			return false
		}
		at, mark := max(x.least[i], low), len(x.trail)
		if x.put(i, at) {
			rest := x.lists[2*depth+1][:0]
			for _, j := range left {
				if j != i {
					rest = append(rest, j)
				}
			}
			x.lists[2*depth+1] = rest
			if x.fill(rest, at, x.prefer[i], depth+1) {
				return true
			}
		}
		x.undo(mark)
	}
	return false
}

// candidates appends to next the storages of left that may be placed next, the
// lowest first.
func (x *exact) candidates(next, left []int, low int64, last int) []int {
	first, end := len(x.sum), 0
	ceiling := x.capacity // above it another storage fits below
	for _, i := range left {
		if x.storages[i].gapped && x.least[i] < low {
			x.set(&x.least[i], x.lift(i, low))
		}
		top := max(x.least[i], low) + x.storages[i].extent
		if top > x.capacity {
			return next // none: i has no place left
		}
		first, end = min(first, x.span[i].first), max(end, x.span[i].end())
		ceiling = min(ceiling, top-1)
	}
	// All that is left at a section comes at or above the next base.
	for _, sum := range x.sum[first:end] {
		ceiling = min(ceiling, x.capacity-sum)
	}
	for _, i := range left {
		if at := max(x.least[i], low); at <= ceiling && (at > low || x.prefer[i] > last) {
			next = append(next, i)
		}
	}
	slices.SortFunc(next, func(a, b int) int {
		return cmp.Or(cmp.Compare(max(x.least[a], low), max(x.least[b], low)), x.prefer[a]-x.prefer[b])
	})
	return next
}

// put places storage i and reports whether the others may still fit.
func (x *exact) put(i int, at int64) bool {
	x.base[i], x.placed[i] = at, true
	x.trail = append(x.trail, change{storage: i})
	x.touch(i)
	s := &x.span[i]
	for k, c := range s.cells {
		x.sum[s.first+k] -= c.size
	}
	fits := true
	near := x.storages[i].near
	x.spent += int64(len(near))
	for _, n := range near {
		// The neighbour is forbidden to be between these two, and comes at or
		// above the base of i.
		lo, hi := at-n.hi, at-n.lo
		j := n.other
		if from := max(x.least[j], at); x.placed[j] || from <= lo || hi <= from {
			continue
		}
		if x.storages[j].gapped {
			hi = x.lift(j, hi)
		}
		x.touch(j)
		x.set(&x.least[j], hi)
		if hi+x.storages[j].extent > x.capacity {
			fits = false
			break
		}
	}
	return x.settle(at) && fits
}

// touch marks the sections whose floor storage i determines.
func (x *exact) touch(i int) {
	s := &x.span[i]
	for k, c := range s.cells {
		if n := s.first + k; c.size > 0 && !x.isStale[n] && x.floor[n] >= x.least[i]+c.lo {
			x.isStale[n] = true
			x.stale = append(x.stale, n)
		}
	}
}

// settle computes the stale floors again, until one of them shows that the
// storages left at its section do not fit above at.
func (x *exact) settle(at int64) bool {
	fits := true
	for _, n := range x.stale {
		x.isStale[n] = false
		if fits {
			x.spent += int64(len(x.members[n]))
			x.set(&x.floor[n], x.floorOf(n))
			fits = x.sum[n] == 0 || max(x.floor[n], at)+x.sum[n] <= x.capacity
		}
	}
	x.stale = x.stale[:0]
	return fits
}

// floorOf returns the lowest unit that an unplaced storage can still get at
// section n.
func (x *exact) floorOf(n int) int64 {
	floor := x.capacity
	for _, m := range x.members[n] {
		if !x.placed[m.storage] {
			floor = min(floor, x.least[m.storage]+m.lo)
		}
	}
	return floor
}

// lift returns the lowest base of storage i, from low upward, that no placed
// storage forbids.
func (x *exact) lift(i int, low int64) int64 {
	closed := x.closed[:0]
	for _, n := range x.storages[i].near {
		if x.placed[n.other] {
			at := x.base[n.other]
			closed = append(closed, interval{at + n.lo, at + n.hi})
		}
	}
	x.closed = closed
	x.spent += int64(len(x.storages[i].near) + 8*len(closed))
	slices.SortFunc(closed, byLow)
	for _, c := range closed {
		if c.lo < low && low < c.hi {
			low = c.hi
		}
	}
	return low
}

func (x *exact) set(number *int64, to int64) {
	x.trail = append(x.trail, change{number: number, was: *number})
	*number = to
}

// undo takes back every change since the trail had length mark.
func (x *exact) undo(mark int) {
	for n := len(x.trail) - 1; n >= mark; n-- {
		c := &x.trail[n]
		if c.number != nil {
			*c.number = c.was
			continue
		}
		x.placed[c.storage] = false
		s := &x.span[c.storage]
		for k, cell := range s.cells {
			x.sum[s.first+k] += cell.size
		}
	}
	x.trail = x.trail[:mark]
}
