package solve

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/tenure-go/tenure/plan"
)

// Known remembers placements of problems that differ in the sizes of their
// storages, not in their number: from the bottom up, which storage lies on
// which. The zero Known remembers none. It belongs to one goroutine at a time.
type Known struct {
	orders [][]int // the storages by their bases, the order used last first

	cutter
	rects []rect
	ends  []int   // where the rects of each storage end
	sky   []int64 // by moment: the lowest byte that nothing lies above
	base  []int64

	// Figures of all problems: how many were placed as one before, by the
	// portfolio alone, and by a search.
	Repeated, Packed, Searched int
}

// maxOrders is how many placements are remembered.
const maxOrders = 4

// Remember takes over the placement of a problem that Solve found.
func (k *Known) Remember(p *plan.Problem, a plan.Placement) {
	if k.add(orderOf(a)); len(k.orders) > maxOrders {
		k.orders = k.orders[:maxOrders]
	}
}

// orderOf returns the storages of a placement by their bases.
func orderOf(a plan.Placement) []int {
	order := make([]int, len(a.Offsets))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(a.Offsets[i], a.Offsets[j]) })
	return order
}

// add remembers an order, unless it is known.
func (k *Known) add(order []int) {
	if !slices.ContainsFunc(k.orders, func(known []int) bool { return slices.Equal(known, order) }) {
		k.orders = slices.Insert(k.orders, 0, order)
	}
}

// Place answers a valid problem as one before, if the arena is then at most a
// fiftieth above the lower bound. If not it is solved: without a search, if the
// arena is at most a twentieth above the bound, and else as [Solve] does.
func (k *Known) Place(ctx context.Context, p *plan.Problem, o Options) (plan.Placement, error) {
	bound := k.measure(p)
	best := plan.Placement{Size: math.MaxInt64}
	for n, order := range k.orders {
		if len(order) != len(p.Storages) {
			continue
		}
		if top := k.stack(p, order); top < best.Size {
			best = plan.Placement{Offsets: append(best.Offsets[:0], k.base...), Size: top, Method: "as a placement before"}
		}
		if best.Size <= bound+bound/50 {
			copy(k.orders[1:n+1], k.orders[:n])
			k.orders[0] = order
			k.Repeated++
			return best, nil
		}
	}
	packed, err := Solve(ctx, p, Options{Effort: -1, Deadline: o.Deadline})
	if err != nil {
		return packed, err
	}
	if packed.Size < best.Size {
		best = packed
	}
	if best.Size <= bound+bound/20 {
		k.Packed++
		k.Remember(p, best)
		return best, nil
	}
	k.Searched++
	searched, err := Solve(ctx, p, o)
	if err == nil && searched.Size < best.Size {
		best = searched
	}
	k.Remember(p, best)
	return best, err
}

// measure finds the rects of the storages and returns the lower bound.
func (k *Known) measure(p *plan.Problem) (bound int64) {
	k.rects, k.ends = k.rects[:0], k.ends[:0]
	last := plan.Time(0)
	for i := range p.Storages {
		s := &p.Storages[i]
		k.rects = k.cut(k.rects, p, s)
		k.ends = append(k.ends, len(k.rects))
		bound = max(bound, p.Extent(s))
	}
	for _, r := range k.rects {
		last = max(last, r.end)
	}
	k.clearSky(int(last) + 1)
	for _, r := range k.rects {
		k.sky[r.start] += r.hi - r.lo
		k.sky[r.end] -= r.hi - r.lo
	}
	live := int64(0)
	for _, change := range k.sky {
		live += change
		bound = max(bound, live)
	}
	return bound
}

func (k *Known) clearSky(n int) {
	k.sky = slices.Grow(k.sky[:0], n)[:n]
	clear(k.sky)
}

// stack puts each storage of an order on all that lies below it, and returns
// the end of the highest one. The storages' bases are left in base.
func (k *Known) stack(p *plan.Problem, order []int) (top int64) {
	k.base = slices.Grow(k.base[:0], len(order))[:len(order)]
	k.clearSky(len(k.sky))
	for _, i := range order {
		first := 0
		if i > 0 {
			first = k.ends[i-1]
		}
		rects := k.rects[first:k.ends[i]]
		base := int64(0)
		for _, r := range rects {
			for _, high := range k.sky[r.start:r.end] {
				base = max(base, high-r.lo)
			}
		}
		for _, r := range rects {
			for t := r.start; t < r.end; t++ {
				k.sky[t] = max(k.sky[t], base+r.hi)
			}
		}
		k.base[i] = base
		top = max(top, base+p.Extent(&p.Storages[i]))
	}
	return top
}
