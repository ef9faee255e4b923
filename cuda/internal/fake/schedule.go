package fake

import (
	"slices"
	"time"

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
