package solve

import (
	"math"
	"math/rand/v2"
)

// moveToFront spends effort on improving the best order by moves: a storage
// that sticks out of the bound is placed before one of the storages that were
// placed earlier and meet it in time. Moves that make things no worse are kept;
// after a long while without gain the search returns to the best order and
// shakes it.
func (s *search) moveToFront(effort int64) {
	if s.done() || effort <= 0 {
		return
	}
	const maxIdle = 300 // moves without gain before a shake
	end := s.spent + effort
	m := &mover{search: s, random: rand.New(rand.NewPCG(1, uint64(len(s.storages))))}
	m.restart()
	for idle := 0; s.spent < end && !s.done(); {
		switch {
		case m.move():
			idle = 0
		case idle < maxIdle:
			idle++
		default:
			idle = 0
			m.restart()
			for range 1 + m.random.IntN(4) {
				m.shake()
			}
		}
	}
}

// A mover walks through orders. Its packer holds the placement of order.
type mover struct {
	*search
	random *rand.Rand
	order  []int
	top    int64
	excess float64 // above the bound, summed over the storages
	saved  []int64 // the bases of order
	out    []int   // storages that stick out of the bound
}

// restart returns to the best order.
func (m *mover) restart() {
	m.order = append(m.order[:0], m.best.order...)
	top, _ := m.pack(m.order, 0, lowest, math.MaxInt64)
	m.adopt(top)
}

// adopt makes the placement that the packer holds, which ends at top, the
// current one.
func (m *mover) adopt(top int64) {
	if m.top = top; top < m.best.top {
		m.keepOrder(top, m.order, "local search")
	}
	m.out = m.out[:0]
	for i := range m.storages {
		if m.base[i]+m.storages[i].extent > m.bound {
			m.out = append(m.out, i)
		}
	}
	m.excess = m.measure()
	m.saved = append(m.saved[:0], m.base...)
}

func (m *mover) measure() (excess float64) {
	for i := range m.storages {
		excess += float64(max(0, m.base[i]+m.storages[i].extent-m.bound))
	}
	return excess
}

// move tries one move and reports whether it made things better. A move that
// made them worse is taken back.
func (m *mover) move() bool {
	m.spent++
	i := m.out[m.random.IntN(len(m.out))]
	to, from := m.earlier(i), m.rank[i]
	if to < 0 {
		return false
	}
	shift(m.order, from, to)
	top, ok := m.pack(m.order, to, lowest, m.top)
	excess := m.measure()
	if !ok || top == m.top && excess > m.excess {
		shift(m.order, to, from)
		copy(m.base, m.saved)
		for r := to; r <= from; r++ {
			m.rank[m.order[r]] = r
		}
		return false
	}
	better := top < m.top || excess < m.excess
	m.adopt(top)
	return better
}

// shake moves a random storage before another, even if the result is worse.
func (m *mover) shake() {
	i := m.random.IntN(len(m.order))
	if to := m.earlier(i); to >= 0 {
		shift(m.order, m.rank[i], to)
		top, _ := m.pack(m.order, 0, lowest, math.MaxInt64)
		m.adopt(top)
	}
}

// earlier returns the rank of a random storage that meets storage i in time and
// is placed before it, or -1.
func (m *mover) earlier(i int) int {
	const tries = 8
	near := m.storages[i].near
	for range min(tries, len(near)) {
		if r := m.rank[near[m.random.IntN(len(near))].other]; r < m.rank[i] {
			return r
		}
	}
	return -1
}

// shift moves the element at from to to, and those between by one.
func shift(order []int, from, to int) {
	i := order[from]
	if to < from {
		copy(order[to+1:from+1], order[to:from])
	} else {
		copy(order[from:to], order[from+1:to+1])
	}
	order[to] = i
}
