package solve

import (
	"math"
	"math/rand/v2"
)

// moveToFront improves the best order by moves: a body that sticks out of the bound is placed before one of the bodies that
// were placed earlier and meet it in time. Moves that make things no worse are kept; after a long while without gain the
// search returns to the best order and shakes it.
func (s *search) moveToFront() {
	if s.done() || s.effort == 0 {
		return
	}
	const patience = 300 // moves without gain before a shake
	limit := s.spent + s.effort
	m := &mover{search: s, random: rand.New(rand.NewPCG(1, uint64(len(s.bodies))))}
	m.restart()
	for idle := 0; s.spent < limit && !s.done(); {
		switch {
		case m.move():
			idle = 0
		case idle < patience:
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
	excess int64 // blocks above the bound, summed over the bodies
	saved  []int64
	out    []int // bodies that stick out
}

// restart returns to the best order.
func (m *mover) restart() {
	m.order = append(m.order[:0], m.best.order...)
	m.top, _ = m.pack(m.order, 0, lowest, math.MaxInt64)
	m.measure()
}

func (m *mover) measure() {
	m.excess, m.out = 0, m.out[:0]
	for i := range m.bodies {
		if over := m.base[i] + m.bodies[i].extent - m.bound; over > 0 {
			m.excess += over
			m.out = append(m.out, i)
		}
	}
	m.saved = append(m.saved[:0], m.base...)
}

// move tries one move and reports whether it made things better. A move that made them worse is taken back.
func (m *mover) move() bool {
	if len(m.out) == 0 {
		return false
	}
	i := m.out[m.random.IntN(len(m.out))]
	to := m.earlier(i)
	from := m.rank[i]
	if to < 0 {
		return false
	}
	shift(m.order, from, to)
	top, ok := m.pack(m.order, to, lowest, m.top)
	if ok {
		before := m.excess
		if m.measureBelow(before, top) {
			if better := top < m.top || m.excess < before; better {
				m.top = top
				if top < m.best.top {
					m.keep(top, m.order, "local search")
				}
				return true
			}
			return false
		}
	}
	shift(m.order, to, from)
	copy(m.base, m.saved)
	for r := to; r <= from; r++ {
		m.rank[m.order[r]] = r
	}
	return false
}

// measureBelow measures the placement and reports whether it is no worse than an excess of before at the same top.
func (m *mover) measureBelow(before, top int64) bool {
	var excess int64
	for i := range m.bodies {
		excess += max(0, m.base[i]+m.bodies[i].extent-m.bound)
	}
	if top == m.top && excess > before {
		return false
	}
	m.measure()
	return true
}

// shake moves a random body before another, whatever comes of it.
func (m *mover) shake() {
	i := m.random.IntN(len(m.order))
	if to := m.earlier(i); to >= 0 {
		shift(m.order, m.rank[i], to)
		m.top, _ = m.pack(m.order, 0, lowest, math.MaxInt64)
		m.measure()
	}
}

// earlier returns the rank of a random body that meets body i in time and is placed before it, or -1.
func (m *mover) earlier(i int) int {
	near := m.bodies[i].near
	for range 8 {
		if len(near) == 0 {
			break
		}
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
