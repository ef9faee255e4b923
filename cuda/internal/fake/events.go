package fake

import (
	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// event is an event.
type event struct {
	ctx     *context
	flags   driver.EventFlags
	rec     *op     // the last record; nil before the first
	node    *node   // the last record, if it was captured
	shared  *shared // an interprocess event that another process can see
	queries int
	site    site
}

// EventCreate implements [driver.Driver].
func (m *Machine) EventCreate(ctx driver.Context, flags driver.EventFlags) (driver.Event, error) {
	c, err := m.in("EventCreate", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	all := driver.EventBlockingSync | driver.EventDisableTiming | driver.EventInterprocess
	if flags&^all != 0 || flags&driver.EventInterprocess != 0 && flags&driver.EventDisableTiming == 0 {
		return 0, fail("EventCreate", driver.InvalidValue)
	}
	return m.addEvent(&event{ctx: c, flags: flags}), nil
}

func (m *Machine) addEvent(e *event) driver.Event {
	h := driver.Event(m.handle())
	e.site = here()
	m.events[h] = e
	return h
}

// event finds an event; it starts a call in the event's context or another.
func (m *Machine) withEvent(call string, ctx driver.Context, handle driver.Event) (*context, *event, error) {
	c, err := m.in(call, ctx)
	if err != nil {
		return nil, nil, err
	}
	e := m.events[handle]
	if e == nil {
		m.mu.Unlock()
		return nil, nil, fail(call, driver.InvalidHandle)
	}
	return c, e, nil
}

// EventDestroy implements [driver.Driver]. Who waits for the event goes on
// waiting for its work.
func (m *Machine) EventDestroy(ctx driver.Context, handle driver.Event) error {
	_, e, err := m.withEvent("EventDestroy", ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	m.dropEvent(handle, e)
	return nil
}

func (m *Machine) dropEvent(handle driver.Event, e *event) {
	if e.shared != nil {
		e.shared.close(m)
	}
	delete(m.events, handle)
}

// EventRecord implements [driver.Driver].
func (m *Machine) EventRecord(ctx driver.Context, handle driver.Event, stream driver.Stream) error {
	const call = "EventRecord"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	e := m.events[handle]
	if e == nil || e.ctx != c {
		return fail(call, driver.InvalidHandle)
	}
	if s.capture != nil {
		if e.shared != nil {
			s.capture.invalidate()
			return fail(call, captureUnsupported)
		}
		e.node = s.capture.tail[s]
		if e.node == nil {
			e.node = s.capture.add(s, &op{what: "record an event"})
		}
		return nil
	}
	o := &op{what: "record an event"}
	if e.shared != nil {
		o.finish = e.shared.recorder(m)
		o.urgent = true
	}
	if r := m.submit(s, o); r != driver.Success {
		return fail(call, r)
	}
	e.rec, e.node, e.queries = o, nil, 0
	return nil
}

// CtxRecordEvent implements [driver.Driver].
func (m *Machine) CtxRecordEvent(ctx driver.Context, handle driver.Event) error {
	const call = "CtxRecordEvent"
	if m.cfg.Version < versionOfCtxRecord {
		return driver.ErrNotFound
	}
	c, e, err := m.withEvent(call, ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	if e.ctx != c {
		return fail(call, driver.InvalidHandle)
	}
	o := &op{what: "record an event", ctx: c}
	for _, s := range m.streamsOf(c) {
		if s.capture != nil {
			s.capture.invalidate()
			return fail(call, captureUnsupported)
		}
		o.after = append(o.after, deps(s.last)...)
	}
	for _, l := range m.loose {
		if l.ctx == c {
			o.after = append(o.after, l)
		}
	}
	if e.shared != nil {
		o.finish = e.shared.recorder(m)
		o.urgent = true
	}
	m.submitLoose(o)
	e.rec, e.node, e.queries = o, nil, 0
	return nil
}

// EventQuery implements [driver.Driver].
func (m *Machine) EventQuery(ctx driver.Context, handle driver.Event) (bool, error) {
	_, e, err := m.withEvent("EventQuery", ctx, handle)
	if err != nil {
		return false, err
	}
	defer m.end()
	if e.node != nil {
		e.node.capture.invalidate()
		return false, fail("EventQuery", captureUnsupported)
	}
	done := true
	if e.shared != nil {
		done = m.queryShared(e)
	} else if e.rec != nil {
		done = m.query(e.rec, &e.queries)
	}
	if r := e.ctx.lost; r != driver.Success {
		return false, fail("EventQuery", r)
	}
	return done, nil
}

// queryShared is EventQuery of an event whose last record may be another
// process's.
func (m *Machine) queryShared(e *event) bool {
	ready := e.shared.waiter(m)
	if ready() {
		return true
	}
	if e.rec != nil && !m.query(e.rec, &e.queries) {
		return false
	}
	return ready()
}

// EventSynchronize implements [driver.Driver].
func (m *Machine) EventSynchronize(ctx driver.Context, handle driver.Event) error {
	_, e, err := m.withEvent("EventSynchronize", ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	if e.node != nil {
		e.node.capture.invalidate()
		return fail("EventSynchronize", captureUnsupported)
	}
	if e.shared != nil {
		ready := e.shared.waiter(m)
		if e.rec != nil {
			m.force(e.rec)
		}
		m.waitUntil(ready)
	} else if e.rec != nil {
		m.force(e.rec)
	}
	return fail("EventSynchronize", e.ctx.lost)
}

// EventElapsedTime implements [driver.Driver], on the simulated clock.
func (m *Machine) EventElapsedTime(ctx driver.Context, from, to driver.Event) (float32, error) {
	const call = "EventElapsedTime"
	_, a, err := m.withEvent(call, ctx, from)
	if err != nil {
		return 0, err
	}
	defer m.end()
	b := m.events[to]
	if b == nil || a.rec == nil || b.rec == nil || (a.flags|b.flags)&driver.EventDisableTiming != 0 {
		return 0, fail(call, driver.InvalidHandle)
	}
	if a.rec.state != opDone || b.rec.state != opDone {
		return 0, fail(call, driver.NotReady)
	}
	return float32(b.rec.time-a.rec.time) / 1e6, nil
}
