package fake

import "time"

// hurry makes sure that o runs without another call if somebody outside of the
// machine waits for it.
func (m *Machine) hurry(o *op) {
	if !o.urgent {
		return
	}
	m.urgent++
	if !m.ticking {
		m.ticking = true
		go m.tick()
	}
}

// tick runs urgent work from time to time, as a device would.
func (m *Machine) tick() {
	for {
		time.Sleep(m.cfg.Idle)
		m.mu.Lock()
		if m.urgent == 0 || m.exited {
			m.ticking = false
			m.mu.Unlock()
			return
		}
		m.advance()
		m.mu.Unlock()
	}
}

// advance runs one operation that urgent work waits for.
func (m *Machine) advance() {
	var all []*op
	for _, s := range m.streams {
		all = append(all, s.queue...)
	}
	for _, o := range append(all, m.loose...) {
		if o.urgent && o.state == opQueued {
			if n := m.next(o); n != nil {
				m.perform(n)
				return
			}
		}
	}
}
