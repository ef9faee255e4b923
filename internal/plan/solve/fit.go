package solve

import "slices"

// A packer places storages one after another, each as the fit rule says among
// those placed before it.
type packer struct {
	*instance
	*budget
	rank   []int   // position of a storage in the order
	base   []int64 // where it was put
	closed []interval
	near   []neighbour
}

func newPacker(in *instance, b *budget) *packer {
	return &packer{instance: in, budget: b, rank: make([]int, len(in.storages)), base: make([]int64, len(in.storages))}
}

// fit is the rule by which a storage chooses among the places that are free.
type fit int

const (
	lowest   fit = iota // the lowest place
	tightest            // the place that leaves the least over, the lowest of equals
)

func (f fit) String() string {
	if f == tightest {
		return "tightest"
	}
	return "lowest"
}

// pack places order[from:] after order[:from], which has to be in place
// already, and returns the end of the highest storage. It stops and returns
// false when a storage would end above limit.
func (k *packer) pack(order []int, from int, rule fit, limit int64) (top int64, ok bool) {
	for r, i := range order {
		k.rank[i] = r
	}
	for _, i := range order[:from] {
		top = max(top, k.base[i]+k.storages[i].extent)
	}
	for r, i := range order[from:] {
		base := k.place(i, from+r, rule)
		k.base[i] = base
		if end := base + k.storages[i].extent; end > top {
			if top = end; top > limit {
				return top, false
			}
		}
	}
	return top, true
}

// place returns the base for storage i among the storages of a lower rank.
func (k *packer) place(i, rank int, rule fit) int64 {
	k.near = k.neighbours(i, k.near)
	k.spent += 8 * int64(len(k.near)+1)
	closed := k.closed[:0]
	for _, n := range k.near {
		if k.rank[n.other] < rank {
			at := k.base[n.other]
			if hi := at + n.hi; hi > 0 {
				closed = append(closed, interval{at + n.lo, hi})
			}
		}
	}
	k.closed = closed
	slices.SortFunc(closed, byLow)
	best, spare := int64(-1), int64(0)
	free := int64(0) // the lowest base that no interval up to here forbids
	for _, c := range closed {
		if c.lo >= free {
			if rule == lowest {
				return free
			}
			if over := c.lo - free; best < 0 || over < spare {
				best, spare = free, over
			}
		}
		free = max(free, c.hi)
	}
	if best >= 0 {
		return best
	}
	return free
}
