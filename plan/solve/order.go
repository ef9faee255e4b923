package solve

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A key is a property of bodies by which they are ordered, the largest first.
type key func(b *body) float64

func size(b *body) float64     { return float64(b.extent) }
func duration(b *body) float64 { return float64(b.life()) }
func area(b *body) float64     { return b.area }
func peak(b *body) float64     { return float64(b.pressure) }
func moments(b *body) float64  { return float64(b.moments) }
func start(b *body) float64    { return -float64(b.start) }
func end(b *body) float64      { return float64(b.end) }

// A ranking is an order of the bodies by several keys, each of which decides among equals of those before.
type ranking struct {
	name string
	keys []key
}

// rankings are the orders in which the portfolio places bodies. None wins everywhere: convolutional networks with dense
// concatenations need the long-lived bodies first, others the large ones.
var rankings = []ranking{
	{"size", []key{size, duration}},
	{"duration", []key{duration, size}},
	{"area", []key{area, size}},
	{"peak, size", []key{peak, size, duration}},
	{"peak, area", []key{peak, area}},
	{"peak, duration", []key{peak, duration}},
	{"start", []key{start, size}},
	{"end", []key{end, size}},
}

// preferences are the orders in which the exact search tries bodies of one base: the long-lived first, or by size times a
// power of how long they live, counted in time or in moments that matter. Which of them leads to a placement differs from
// problem to problem.
var preferences = []ranking{
	{"duration", []key{duration, area, peak}},
	{"moments", []key{moments, area, peak}},
	{"moments × size", []key{weighted(moments, 1)}},
	{"moments^4 × size", []key{weighted(moments, 4)}},
	{"duration^3 × size", []key{weighted(duration, 3)}},
	{"moments^2 × size", []key{weighted(moments, 2)}},
}

func weighted(k key, power int) key {
	return func(b *body) float64 {
		value := size(b)
		for range power {
			value *= k(b)
		}
		return value
	}
}

// order returns the bodies of in by rank; equal ones by their start and their number, so that a result can be repeated.
func (r ranking) order(in *instance) []int { return r.shaken(in, 0, nil) }

// shaken returns the order with every key of every body changed by up to noise per cent.
func (r ranking) shaken(in *instance, noise int, random *rand.Rand) []int {
	values := make([][]float64, len(in.bodies))
	order := make([]int, len(in.bodies))
	for i := range in.bodies {
		order[i] = i
		for _, k := range r.keys {
			value := k(&in.bodies[i])
			if noise > 0 {
				value *= float64(100 - noise + random.IntN(2*noise+1))
			}
			values[i] = append(values[i], value)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(-slices.Compare(values[a], values[b]), cmp.Compare(in.bodies[a].start, in.bodies[b].start), a-b)
	})
	return order
}

// ranks returns the rank of every body in the shaken order.
func (r ranking) ranks(in *instance, noise int, random *rand.Rand) []int {
	ranks := make([]int, len(in.bodies))
	for rank, i := range r.shaken(in, noise, random) {
		ranks[i] = rank
	}
	return ranks
}
