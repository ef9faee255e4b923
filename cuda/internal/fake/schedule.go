package fake

import (
	"slices"
	"time"
)

// next returns an operation that must run before target is done, or target; nil
// if all of them wait for something outside of the machine.
func (m *Machine) next(target *op) *op {
	o := target
	for {
		if o.state == opRunning {
			return nil
		}
		if o.stream != nil && o.stream.queue[0] != o {
			o = o.stream.queue[0]
			continue
		}
		i := slices.IndexFunc(o.after, func(a *op) bool { return a.state != opDone })
		if i < 0 {
			break
		}
		o = o.after[i]
	}
	if o.ready != nil && !o.ready() {
		return nil
	}
	return o
}

// candidates returns every operation that may run now.
func (m *Machine) candidates() []*op {
	var all []*op
	for _, s := range m.streams {
		if len(s.queue) > 0 && s.queue[0].runnable() {
			all = append(all, s.queue[0])
		}
	}
	for _, o := range m.loose {
		if o.runnable() {
			all = append(all, o)
		}
	}
	return all
}

// step lets the scheduler run work, at the begin and the end of a call.
func (m *Machine) step() {
	switch m.cfg.Mode {
	case Eager:
		m.drain()
	case Random:
		m.mix()
		n := 0
		switch m.pace {
		case paceFast:
			if m.choose(4) == 0 {
				m.drain()
			}
			n = m.choose(3)
		case paceMedium:
			n = m.choose(6) - 3
		}
		for range n {
			if !m.runAny() {
				return
			}
		}
	}
}

// pace is how much work the random scheduler runs.
type pace int

const (
	paceFast   pace = iota
	paceMedium      // less than programs submit
	paceStill       // only what somebody waits for
	paces
)

// mix sometimes changes the pace, or makes a stream much slower or faster than
// others: independent choices would keep all streams at the same pace, and hide
// what only happens when one falls far behind.
func (m *Machine) mix() {
	if m.choose(32) == 1 {
		m.pace = pace(m.choose(int(paces)))
	}
	if len(m.streams) == 0 || m.choose(16) != 1 {
		return
	}
	m.streams[m.choose(len(m.streams))].weight = m.drawWeight()
}

// drawWeight returns how likely an operation of a stream is the next.
func (m *Machine) drawWeight() int { return [...]int{1, 0, 10, 1, 100}[m.choose(5)] }

// drain runs everything that may run.
func (m *Machine) drain() {
	for {
		all := m.candidates()
		if len(all) == 0 {
			return
		}
		for _, o := range all {
			if o.runnable() {
				m.perform(o)
			}
		}
	}
}

// runAny runs one operation, chosen by the weights of the streams, and reports
// whether there was one.
func (m *Machine) runAny() bool {
	all := m.candidates()
	sum := 0
	for _, o := range all {
		sum += o.weight()
	}
	if sum == 0 {
		return false
	}
	k := m.choose(sum)
	for _, o := range all {
		if k -= o.weight(); k < 0 {
			m.perform(o)
			return true
		}
	}
	return false
}

func (o *op) weight() int {
	if o.stream == nil {
		return 1
	}
	return o.stream.weight
}

// force runs operations until target is done.
func (m *Machine) force(target *op) {
	var pause time.Duration
	for target.state != opDone {
		if m.cfg.Mode == Random && m.choose(4) > 1 && m.runAny() {
			continue
		}
		if o := m.next(target); o != nil {
			m.perform(o)
			pause = 0
			continue
		}
		pause = m.pause(pause)
	}
	m.clock = max(m.clock, target.time)
	m.lanes.observe(target)
}

// pause unlocks the machine for a moment, so that what the caller waits for can
// happen, and returns the length of the next pause.
func (m *Machine) pause(last time.Duration) time.Duration {
	m.mu.Unlock()
	time.Sleep(last)
	m.mu.Lock()
	return min(max(2*last, 20*time.Microsecond), time.Millisecond)
}

// waitUntil waits for another process.
func (m *Machine) waitUntil(ready func() bool) {
	var pause time.Duration
	for !ready() {
		pause = m.pause(pause)
	}
}

// query reports whether o is done. Who asks again and again makes it happen.
func (m *Machine) query(o *op, asked *int) bool {
	if o.state != opDone {
		if *asked++; *asked > m.cfg.Queries {
			if n := m.next(o); n != nil {
				m.perform(n)
			}
		}
	}
	if o.state == opDone {
		*asked = 0
		m.lanes.observe(o)
	}
	return o.state == opDone
}
