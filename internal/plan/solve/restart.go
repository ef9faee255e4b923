package solve

import (
	"math"
	"math/bits"
	"math/rand/v2"
)

// fillUp spends effort on exact searches for less than the best answer: at the
// bound, and a quarter of the way from the best to it. Whether one search
// succeeds is a matter of luck with long tails, so many short ones are made,
// under all preferences and with ever new noise in them.
func (s *search) fillUp(effort int64) {
	if s.done() || effort <= 0 {
		return
	}
	c, ok := newSections(s.instance)
	if !ok {
		return
	}
	const slice = 1_000_000 // effort of one search; every 2^k-th gets 2^k times as much, to a limit
	x := newExact(s.instance, c, s.budget)
	random := rand.New(rand.NewPCG(1, uint64(len(s.storages))))
	low := s.bound // the least for which a search may succeed
	end := s.spent + effort
	if end < s.spent {
		end = math.MaxInt64
	}
	open := func() bool { return low < s.best.top && s.spent < end && !s.done() }
	for round := 0; open(); round++ {
		kind, lap := round%len(preferences), round/len(preferences)
		noise := 0
		if lap > 0 {
			noise = []int{3, 30, 10}[(lap-1)%3]
		}
		prefer := preferences[kind].ranks(s.instance, noise, random)
		length := int64(slice) << min(bits.TrailingZeros(uint(round+1)), 5)
		for _, part := range []int64{1, 4} {
			if !open() {
				break
			}
			capacity := s.best.top - max(1, (s.best.top-low)/part)
			switch found, whole := x.run(capacity, prefer, min(length, end-s.spent)); {
			case found:
				s.keep(x.top(), x.base, "branch and bound")
			case whole:
				low = max(low, capacity+1)
			}
		}
	}
	if s.bound < s.best.top && s.best.top <= low && !s.gapped() {
		s.best.method += ", nothing smaller exists"
	}
}

func (x *exact) top() (top int64) {
	for i := range x.storages {
		top = max(top, x.base[i]+x.storages[i].extent)
	}
	return top
}
