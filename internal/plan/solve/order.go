package solve

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// A key is a property of storages by which they are ordered, the largest first.
type key func(s *storage) float64

func size(s *storage) float64     { return float64(s.extent) }
func duration(s *storage) float64 { return float64(s.life()) }
func area(s *storage) float64     { return s.area }
func peak(s *storage) float64     { return float64(s.pressure) }
func moments(s *storage) float64  { return float64(s.moments) }
func start(s *storage) float64    { return -float64(s.start) }
func end(s *storage) float64      { return float64(s.end) }

// A ranking is an order of the storages by several keys, each of which decides
// among equals of those before.
type ranking struct {
	name string
	keys []key
}

// rankings are the orders in which the portfolio places storages. None wins
// everywhere: convolutional networks with dense concatenations need the
// long-lived storages first, others the large ones.
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

// preferences are the orders in which the exact search tries storages of one
// base: the long-lived first, or by size times a power of how long they live,
// counted in time or in moments that matter. Which of them leads to a placement
// differs from problem to problem.
var preferences = []ranking{
	{"duration", []key{duration, area, peak}},
	{"moments", []key{moments, area, peak}},
	{"moments × size", []key{weighted(moments, 1)}},
	{"moments^4 × size", []key{weighted(moments, 4)}},
	{"duration^3 × size", []key{weighted(duration, 3)}},
	{"moments^2 × size", []key{weighted(moments, 2)}},
}

func weighted(k key, power int) key {
	return func(s *storage) float64 {
		value := size(s)
		for range power {
			value *= k(s)
		}
		return value
	}
}

// order returns the storages of in by rank; equal ones by their start and their
// number, so that a result can be repeated.
func (r ranking) order(in *instance) []int { return r.shaken(in, 0, nil) }

// shaken returns the order with every key of every storage changed by up to
// noise per cent.
func (r ranking) shaken(in *instance, noise int, random *rand.Rand) []int {
	values := make([][]float64, len(in.storages))
	order := make([]int, len(in.storages))
	for i := range in.storages {
		order[i] = i
		for _, k := range r.keys {
			value := k(&in.storages[i])
			if noise > 0 {
				value *= float64(100 - noise + random.IntN(2*noise+1))
			}
			values[i] = append(values[i], value)
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(-slices.Compare(values[a], values[b]), cmp.Compare(in.storages[a].start, in.storages[b].start), a-b)
	})
	return order
}

// ranks returns the rank of every storage in the shaken order.
func (r ranking) ranks(in *instance, noise int, random *rand.Rand) []int {
	ranks := make([]int, len(in.storages))
	for rank, i := range r.shaken(in, noise, random) {
		ranks[i] = rank
	}
	return ranks
}
