package fake

import (
	"slices"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// node is an operation of a graph.
type node struct {
	capture *capture
	op      *op // what to run; each launch runs a copy
	after   []*node
}

// capture is a graph that streams are recording.
type capture struct {
	origin  *stream
	nodes   []*node
	tail    map[*stream]*node // the last node of each stream that takes part; nil before the first
	invalid bool
}

type graph struct {
	nodes []*node
	ctx   *context
	site  site
}

type executable struct {
	nodes []*node
	ctx   *context
	last  *op // the end of the last launch
	site  site
}

// capturing reports whether a blocking stream of the context is captured: the
// default stream cannot be used meanwhile.
func (c *context) capturing() bool {
	for _, s := range c.legacy.m.streamsOf(c) {
		if s.capture != nil && !s.nonBlocking {
			return true
		}
	}
	return false
}

func (c *capture) invalidate() { c.invalid = true }

// leave takes a stream out of a capture.
func (c *capture) leave(s *stream) {
	delete(c.tail, s)
	s.capture = nil
}

// submit adds an operation to a capture.
func (c *capture) submit(s *stream, o *op) driver.Result {
	if c.invalid {
		return captureInvalidated
	}
	o.site = here()
	c.add(s, o)
	return driver.Success
}

// add appends a node behind the last one of a stream.
func (c *capture) add(s *stream, o *op) *node {
	o.ctx = s.ctx
	n := &node{capture: c, op: o}
	if t := c.tail[s]; t != nil {
		n.after = []*node{t}
	}
	c.nodes = append(c.nodes, n)
	c.tail[s] = n
	return n
}

// joinCapture makes later operations of a stream wait for a captured event. A
// stream that is not captured joins the capture.
func (m *Machine) joinCapture(s *stream, n *node) driver.Result {
	c := n.capture
	switch {
	case c.invalid:
		return captureInvalidated
	case s.capture != nil && s.capture != c:
		s.capture.invalidate()
		c.invalidate()
		return captureMerge
	case s.legacy:
		c.invalidate()
		return captureImplicit
	}
	s.capture = c
	j := c.add(s, &op{what: "wait for an event"})
	j.after = append(j.after, n)
	return driver.Success
}

// StreamBeginCapture implements [driver.Driver]. The mode is the relaxed one.
func (m *Machine) StreamBeginCapture(ctx driver.Context, handle driver.Stream) error {
	_, s, err := m.on("StreamBeginCapture", ctx, handle)
	if err != nil {
		return err
	}
	defer m.end()
	if s.legacy {
		return fail("StreamBeginCapture", captureUnsupported)
	}
	if s.capture != nil {
		return fail("StreamBeginCapture", illegalState)
	}
	s.capture = &capture{origin: s, tail: map[*stream]*node{s: nil}}
	return nil
}

// StreamEndCapture implements [driver.Driver].
func (m *Machine) StreamEndCapture(ctx driver.Context, stream driver.Stream) (driver.Graph, error) {
	const call = "StreamEndCapture"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return 0, err
	}
	defer m.end()
	g := s.capture
	if g == nil {
		return 0, fail(call, driver.InvalidValue)
	}
	if g.origin != s {
		return 0, fail(call, captureUnmatched)
	}
	joined := g.joined()
	for t := range g.tail {
		t.capture = nil
	}
	for _, e := range m.events {
		if e.node != nil && e.node.capture == g {
			e.node, e.rec = nil, nil
		}
	}
	switch {
	case g.invalid:
		return 0, fail(call, captureInvalidated)
	case !joined:
		return 0, fail(call, captureUnjoined)
	}
	h := driver.Graph(m.handle())
	m.graphs[h] = &graph{nodes: g.nodes, ctx: c, site: here()}
	return h, nil
}

// joined reports whether the last node of the origin follows those of all other
// streams.
func (c *capture) joined() bool {
	before := map[*node]bool{}
	var visit func(n *node)
	visit = func(n *node) {
		if n == nil || before[n] {
			return
		}
		before[n] = true
		for _, a := range n.after {
			visit(a)
		}
	}
	visit(c.tail[c.origin])
	for _, t := range c.tail {
		if t != nil && !before[t] {
			return false
		}
	}
	return true
}

// GraphInstantiate implements [driver.Driver].
func (m *Machine) GraphInstantiate(ctx driver.Context, h driver.Graph) (driver.Exec, error) {
	c, err := m.in("GraphInstantiate", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	g := m.graphs[h]
	if g == nil {
		return 0, fail("GraphInstantiate", driver.InvalidValue)
	}
	e := driver.Exec(m.handle())
	m.execs[e] = &executable{nodes: slices.Clone(g.nodes), ctx: c, site: here()}
	return e, nil
}

// GraphLaunch implements [driver.Driver]. A launch waits for the one before of
// the same executable graph.
func (m *Machine) GraphLaunch(ctx driver.Context, h driver.Exec, stream driver.Stream) error {
	_, s, err := m.on("GraphLaunch", ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	e := m.execs[h]
	if e == nil {
		return fail("GraphLaunch", driver.InvalidValue)
	}
	if s.capture != nil { // a graph within a graph
		s.capture.invalidate()
		return fail("GraphLaunch", driver.NotSupported)
	}
	first := &op{what: "start of a graph", after: deps(e.last)}
	if r := m.submit(s, first); r != driver.Success {
		return fail("GraphLaunch", r)
	}
	ops := map[*node]*op{}
	last := &op{what: "end of a graph"}
	for _, n := range e.nodes {
		o := *n.op
		o.after = deps(first)
		for _, a := range n.after {
			o.after = append(o.after, ops[a])
		}
		o.urgent = o.host != nil
		ops[n] = &o
		m.submitLoose(&o)
		last.after = append(last.after, &o)
	}
	e.last = last
	return fail("GraphLaunch", m.submit(s, last))
}

// GraphExecDestroy implements [driver.Driver]. A launch that has not completed
// goes on.
func (m *Machine) GraphExecDestroy(ctx driver.Context, h driver.Exec) error {
	if _, err := m.in("GraphExecDestroy", ctx); err != nil {
		return err
	}
	defer m.end()
	if m.execs[h] == nil {
		return fail("GraphExecDestroy", driver.InvalidValue)
	}
	delete(m.execs, h)
	return nil
}

// GraphDestroy implements [driver.Driver].
func (m *Machine) GraphDestroy(ctx driver.Context, h driver.Graph) error {
	if _, err := m.in("GraphDestroy", ctx); err != nil {
		return err
	}
	defer m.end()
	if m.graphs[h] == nil {
		return fail("GraphDestroy", driver.InvalidValue)
	}
	delete(m.graphs, h)
	return nil
}
