package fake

import (
	"slices"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// stream is a queue of operations, which run in order.
type stream struct {
	m           *Machine
	handle      driver.Stream
	ctx         *context
	legacy      bool // the default stream
	nonBlocking bool
	destroyed   bool // ends with its last operation
	queue       []*op
	last        *op // the operation that was submitted last
	clock       int64
	weight      int // of its choice by the random scheduler
	queries     int // in a row that found work
	capture     *capture
	site        site
}

// addStream adds a stream to a context.
func (m *Machine) addStream(c *context, s *stream) *stream {
	s.m, s.ctx, s.site, s.weight = m, c, here(), 1
	if m.cfg.Mode == Random {
		s.weight = m.drawWeight()
	}
	m.streams = append(m.streams, s)
	return s
}

// removeStream forgets a stream.
func (m *Machine) removeStream(s *stream) {
	m.streams = slices.DeleteFunc(m.streams, func(o *stream) bool { return o == s })
	delete(m.byStream, s.handle)
	m.lanes.leave(s)
}

// streamsOf returns the streams of a context, in order of creation.
func (m *Machine) streamsOf(c *context) []*stream {
	var of []*stream
	for _, s := range m.streams {
		if s.ctx == c {
			of = append(of, s)
		}
	}
	return of
}

// StreamCreate implements [driver.Driver].
func (m *Machine) StreamCreate(ctx driver.Context, flags driver.StreamFlags, _ int) (driver.Stream, error) {
	c, err := m.in("StreamCreate", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if flags > driver.StreamNonBlocking {
		return 0, fail("StreamCreate", driver.InvalidValue)
	}
	s := m.addStream(c, &stream{handle: driver.Stream(m.handle()), nonBlocking: flags == driver.StreamNonBlocking})
	m.byStream[s.handle] = s
	return s.handle, nil
}

// StreamDestroy implements [driver.Driver]. Work that was submitted still runs.
func (m *Machine) StreamDestroy(ctx driver.Context, handle driver.Stream) error {
	_, s, err := m.on("StreamDestroy", ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	if s == s.ctx.legacy || s == s.ctx.perThread {
		return fail("StreamDestroy", driver.InvalidHandle)
	}
	if s.capture != nil {
		s.capture.invalidate()
		s.capture.leave(s)
	}
	delete(m.byStream, handle)
	s.destroyed = true
	if len(s.queue) == 0 {
		m.removeStream(s)
	}
	return nil
}

// StreamSynchronize implements [driver.Driver].
func (m *Machine) StreamSynchronize(ctx driver.Context, handle driver.Stream) error {
	c, s, err := m.on("StreamSynchronize", ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	if r := captured(s); r != driver.Success {
		return fail("StreamSynchronize", r)
	}
	for _, o := range m.before(s) {
		m.force(o)
	}
	m.trim(c.device, 0)
	return fail("StreamSynchronize", c.lost)
}

// StreamQuery implements [driver.Driver].
func (m *Machine) StreamQuery(ctx driver.Context, handle driver.Stream) (bool, error) {
	c, s, err := m.on("StreamQuery", ctx, handle)
	if err != nil {
		return false, err
	}
	defer m.end()
	if r := captured(s); r != driver.Success {
		return false, fail("StreamQuery", r)
	}
	done := true
	for _, o := range m.before(s) {
		done = m.query(o, &s.queries) && done
	}
	return done && c.lost == driver.Success, fail("StreamQuery", c.lost)
}

// captured is the result of a call that waits for a stream.
func captured(s *stream) driver.Result {
	if s.capture != nil {
		s.capture.invalidate()
		return captureUnsupported
	}
	if s.legacy && s.ctx.capturing() {
		return captureImplicit
	}
	return driver.Success
}

// StreamWaitEvent implements [driver.Driver].
func (m *Machine) StreamWaitEvent(ctx driver.Context, handle driver.Stream, event driver.Event) error {
	const call = "StreamWaitEvent"
	_, s, err := m.on(call, ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	e := m.events[event]
	if e == nil {
		return fail(call, driver.InvalidHandle)
	}
	if e.node != nil {
		return fail(call, m.joinCapture(s, e.node))
	}
	if s.capture != nil {
		// An event that was recorded outside of the capture is a dependency
		// that a replay cannot have.
		s.capture.invalidate()
		return fail(call, driver.Result(905))
	}
	o := &op{what: "wait for an event"}
	if e.shared != nil {
		o.ready = e.shared.waiter(m)
	}
	o.after = deps(e.rec)
	return fail(call, m.submit(s, o))
}

// LaunchHostFunc implements [driver.Driver]. fn may also be a token of
// [RegisterHostFunc].
func (m *Machine) LaunchHostFunc(ctx driver.Context, handle driver.Stream, fn, arg uintptr) error {
	_, s, err := m.on("LaunchHostFunc", ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	f := hostFunc(fn)
	if f == nil {
		return fail("LaunchHostFunc", driver.InvalidValue)
	}
	return fail("LaunchHostFunc", m.submit(s, &op{what: "host function", host: func() { f(arg) }}))
}
