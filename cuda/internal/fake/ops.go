package fake

import (
	"slices"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

type opState uint8

const (
	opQueued  opState = iota
	opRunning         // a host function that has not returned
	opDone
)

// op is an operation of a stream, or of a context.
type op struct {
	what   string
	stream *stream // nil: ordered by after only
	ctx    *context
	after  []*op                   // must be done before
	ready  func() bool             // what another process must have done before; nil is nothing
	run    func(*op) driver.Result // nil: nothing to do
	host   func()                  // a host function
	finish func()                  // runs also if the operation does not
	urgent bool                    // somebody outside of the machine waits for it
	bytes  uint64                  // that it moves, for its duration
	state  opState
	time   int64 // when it was done
	submit int64
	lane   int // see lanes
	clock  []uint64
	site   site
}

// submit appends an operation to a stream, or to the graph that the stream
// captures.
func (m *Machine) submit(s *stream, o *op) driver.Result {
	if s.capture != nil {
		return s.capture.submit(s, o)
	}
	if s.legacy && s.ctx.capturing() {
		return captureImplicit
	}
	m.enqueue(s, o)
	return driver.Success
}

// enqueue appends an operation to a stream. The default stream waits for all
// blocking streams, and they for it.
func (m *Machine) enqueue(s *stream, o *op) {
	o.stream, o.ctx, o.submit, o.site = s, s.ctx, m.clock, here()
	o.urgent = o.urgent || o.host != nil || o.ready != nil
	switch {
	case s.legacy:
		for _, b := range m.streamsOf(s.ctx) {
			if b != s && !b.nonBlocking {
				o.after = append(o.after, deps(b.last)...)
			}
		}
	case !s.nonBlocking:
		o.after = append(o.after, deps(s.ctx.legacy.last)...)
	}
	m.lanes.stamp(o, slices.Concat(o.after, deps(s.last))...)
	s.queue = append(s.queue, o)
	s.last = o
	s.queries = 0
	m.hurry(o)
}

// submitLoose adds an operation that only o.after orders.
func (m *Machine) submitLoose(o *op) {
	o.submit, o.site = m.clock, here()
	m.lanes.stamp(o, o.after...)
	m.loose = append(m.loose, o)
	m.hurry(o)
}

// deps is what an operation is after: o, unless there is none.
func deps(o *op) []*op {
	if o == nil {
		return nil
	}
	return []*op{o}
}

// before returns the last operations that a wait for a stream waits for.
func (m *Machine) before(s *stream) []*op {
	last := deps(s.last)
	if s.legacy {
		for _, b := range m.streamsOf(s.ctx) {
			if b != s && !b.nonBlocking {
				last = append(last, deps(b.last)...)
			}
		}
	}
	return last
}

// runnable reports whether an operation may run now.
func (o *op) runnable() bool {
	if o.state != opQueued || o.stream != nil && o.stream.queue[0] != o {
		return false
	}
	for _, a := range o.after {
		if a.state != opDone {
			return false
		}
	}
	return o.ready == nil || o.ready()
}

// finish waits for all work of a context.
func (m *Machine) finish(c *context) {
	for _, s := range m.streamsOf(c) {
		if s.last != nil {
			m.force(s.last)
		}
	}
	for _, o := range slices.Clone(m.loose) {
		if o.ctx == c {
			m.force(o)
		}
	}
}

// perform runs an operation.
func (m *Machine) perform(o *op) {
	if o.host != nil && o.ctx.lost == driver.Success {
		m.callHost(o)
		return
	}
	if o.run != nil && o.ctx.lost == driver.Success {
		if r := o.run(o); r != driver.Success {
			m.lose(o.ctx, r)
		}
	}
	m.complete(o)
}

// complete takes an operation out of its queue.
func (m *Machine) complete(o *op) {
	if o.state == opDone { // its context was lost
		return
	}
	start := o.submit
	for _, a := range o.after {
		start = max(start, a.time)
	}
	if s := o.stream; s != nil {
		start = max(start, s.clock)
	}
	o.time = start + 1000 + int64(o.bytes/100) // 100 GB/s
	o.state = opDone
	if s := o.stream; s != nil {
		s.clock = o.time
		s.queue = slices.Delete(s.queue, 0, 1)
		if s.destroyed && len(s.queue) == 0 {
			m.removeStream(s)
		}
	} else {
		m.loose = slices.DeleteFunc(m.loose, func(l *op) bool { return l == o })
	}
	m.settle(o)
}

// settle ends an operation that has run, or never will.
func (m *Machine) settle(o *op) {
	o.state = opDone
	if o.urgent {
		m.urgent--
	}
	if o.finish != nil {
		o.finish()
	}
	// The events that point here must not keep what it used.
	o.after, o.ready, o.run, o.host, o.finish = nil, nil, nil, nil, nil
}

// abandon drops the work of a stream, which will not run.
func (m *Machine) abandon(s *stream) {
	for _, o := range s.queue {
		m.settle(o)
	}
	s.queue = nil
}

// lose makes a context fail every later call with r. Its work is dropped.
func (m *Machine) lose(c *context, r driver.Result) {
	c.lost = r
	for _, s := range m.streamsOf(c) {
		m.abandon(s)
	}
	m.loose = slices.DeleteFunc(m.loose, func(o *op) bool {
		if o.ctx == c {
			m.settle(o)
		}
		return o.ctx == c
	})
}
