package solve

import (
	"context"
	"math"

	"github.com/tenure-go/tenure/plan"
)

// Capacity is the bytes of an arena for the placements of many problems.
type Capacity struct {
	Bytes int64
	Fixed bool // there are no more; otherwise more are taken where a problem needs them
}

// PlaceWithin answers a valid problem as one before, if that takes at most the
// bytes of the capacity. If not it is solved, and the placement remembered;
// none is forgotten. Where the capacity is not fixed, a placement as before
// that takes at most a fiftieth more than the lower bound will do.
//
// A problem that was placed once fits again into a capacity of as many bytes,
// whichever problems came between: the placement is remembered, or made by the
// same search.
func (k *Known) PlaceWithin(ctx context.Context, p *plan.Problem, capacity Capacity, o Options) (plan.Placement, error) {
	bound := k.measure(p)
	best := plan.Placement{Size: math.MaxInt64}
	for n, order := range k.orders {
		if len(order) != len(p.Storages) {
			continue
		}
		if top := k.stack(p, order); top < best.Size {
			best = plan.Placement{Offsets: append(best.Offsets[:0], k.base...), Size: top, Method: "as a placement before"}
		}
		if best.Size <= capacity.Bytes {
			copy(k.orders[1:n+1], k.orders[:n])
			k.orders[0] = order
			k.Repeated++
			return best, nil
		}
	}
	good := bound
	if len(k.orders) > 0 && !capacity.Fixed {
		good += bound / 50
	}
	if best.Size <= good {
		k.Repeated++
		return best, nil
	}
	for _, effort := range []int64{-1, o.Effort} {
		solved, err := Solve(ctx, p, Options{Effort: effort, Deadline: o.Deadline})
		if err != nil {
			return solved, err
		}
		if solved.Size < best.Size {
			best = solved
		}
		if best.Size <= max(capacity.Bytes, good) {
			k.Packed++
			k.add(orderOf(best))
			return best, nil
		}
	}
	k.Searched++
	k.add(orderOf(best))
	return best, nil
}
