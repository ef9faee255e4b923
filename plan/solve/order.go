package solve

import (
	"cmp"
	"slices"
)

// A ranking is one of the orders in which the portfolio places bodies. None wins everywhere: convolutional networks with
// dense concatenations need the long-lived bodies first, others the large ones.
type ranking struct {
	name    string
	compare func(a, b *body) int
}

var rankings = []ranking{
	{"size", func(a, b *body) int {
		return cmp.Or(-cmp.Compare(a.extent, b.extent), -cmp.Compare(a.life(), b.life()))
	}},
	{"duration", func(a, b *body) int {
		return cmp.Or(-cmp.Compare(a.life(), b.life()), -cmp.Compare(a.extent, b.extent))
	}},
	{"area", func(a, b *body) int { return cmp.Or(-cmp.Compare(a.area, b.area), -cmp.Compare(a.extent, b.extent)) }},
	{"peak", func(a, b *body) int {
		return cmp.Or(-cmp.Compare(a.pressure, b.pressure), -cmp.Compare(a.extent, b.extent), -cmp.Compare(a.life(), b.life()))
	}},
	{"peak, area", func(a, b *body) int {
		return cmp.Or(-cmp.Compare(a.pressure, b.pressure), -cmp.Compare(a.area, b.area))
	}},
	{"peak, duration", func(a, b *body) int {
		return cmp.Or(-cmp.Compare(a.pressure, b.pressure), -cmp.Compare(a.life(), b.life()))
	}},
	{"start", func(a, b *body) int { return cmp.Or(cmp.Compare(a.start, b.start), -cmp.Compare(a.extent, b.extent)) }},
	{"end", func(a, b *body) int { return cmp.Or(-cmp.Compare(a.end, b.end), -cmp.Compare(a.extent, b.extent)) }},
}

// order returns the bodies of in by rank; equal ones in the order of the problem, so that a result can be repeated.
func (r ranking) order(in *instance) []int {
	order := make([]int, len(in.bodies))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(r.compare(&in.bodies[a], &in.bodies[b]), cmp.Compare(in.bodies[a].start, in.bodies[b].start))
	})
	return order
}
