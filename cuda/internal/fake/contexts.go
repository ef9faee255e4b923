package fake

import (
	"fmt"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// context is the primary context of a device.
type context struct {
	handle    driver.Context
	device    *device
	holds     int
	lost      driver.Result // what every call in it returns; Success while it works
	peers     map[*device]bool
	legacy    *stream
	perThread *stream
	site      site
}

// DevicePrimaryCtxRetain implements [driver.Driver].
func (m *Machine) DevicePrimaryCtxRetain(handle driver.Device) (driver.Context, error) {
	d, err := m.withDevice("DevicePrimaryCtxRetain", handle)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if d.primary == nil {
		c := &context{handle: driver.Context(m.handle()), device: d, peers: map[*device]bool{}, site: here()}
		c.legacy = m.addStream(c, &stream{handle: driver.LegacyStream, legacy: true})
		c.perThread = m.addStream(c, &stream{handle: driver.PerThreadStream})
		m.contexts[c.handle] = c
		d.primary = c
	}
	d.primary.holds++
	return d.primary.handle, nil
}

// DevicePrimaryCtxRelease implements [driver.Driver]. The last release waits
// for the context's work and destroys what belongs to it; its handle is never
// used again, so that a stale one is found.
func (m *Machine) DevicePrimaryCtxRelease(handle driver.Device) error {
	d, err := m.withDevice("DevicePrimaryCtxRelease", handle)
	if err != nil {
		return err
	}
	defer m.end()
	c := d.primary
	if c == nil {
		return fail("DevicePrimaryCtxRelease", driver.InvalidContext)
	}
	if c.holds > 1 {
		c.holds--
		return nil
	}
	m.finish(c)
	if d.primary != c { // another goroutine released it meanwhile
		return fail("DevicePrimaryCtxRelease", driver.InvalidContext)
	}
	c.holds--
	if c.holds > 0 {
		return nil
	}
	m.destroyContext(c)
	return nil
}

// destroyContext destroys a context and everything in it.
func (m *Machine) destroyContext(c *context) {
	note := func(what string, s site) {
		if c.lost != driver.Success {
			return // nothing of it could be destroyed
		}
		m.lost = append(m.lost, fmt.Sprintf("%s, lost with the context of device %d%s", what, c.device.ordinal, s))
	}
	for _, s := range m.streamsOf(c) {
		m.abandon(s)
		if s != c.legacy && s != c.perThread {
			note("a stream", s.site)
		}
		m.removeStream(s)
	}
	for h, e := range m.events {
		if e.ctx == c {
			note("an event", e.site)
			m.dropEvent(h, e)
		}
	}
	for h, mod := range m.modules {
		if mod.ctx == c {
			note("a module", mod.site)
			m.dropModule(h)
		}
	}
	for h, e := range m.execs {
		if e.ctx == c {
			note("an executable graph", e.site)
			delete(m.execs, h)
		}
	}
	for _, a := range m.space.areas() {
		if a.ctx == c && a.kind != kindMapping {
			note(fmt.Sprintf("%s of %d bytes", a.kind, a.size), a.site)
			m.dropArea(a)
		}
	}
	m.trim(c.device, 0)
	delete(m.contexts, c.handle)
	c.device.primary = nil
	c.lost = driver.InvalidContext
}

// CtxSynchronize implements [driver.Driver].
func (m *Machine) CtxSynchronize(handle driver.Context) error {
	c, err := m.in("CtxSynchronize", handle)
	if err != nil {
		return err
	}
	defer m.end()
	for _, s := range m.streamsOf(c) {
		if s.capture != nil {
			s.capture.invalidate()
			return fail("CtxSynchronize", captureUnsupported)
		}
	}
	m.finish(c)
	m.trim(c.device, 0)
	return fail("CtxSynchronize", c.lost)
}

// CtxEnablePeerAccess implements [driver.Driver].
func (m *Machine) CtxEnablePeerAccess(handle, peer driver.Context) error {
	c, err := m.in("CtxEnablePeerAccess", handle)
	if err != nil {
		return err
	}
	defer m.end()
	p := m.contexts[peer]
	if p == nil || p == c {
		return fail("CtxEnablePeerAccess", driver.InvalidContext)
	}
	if !m.peers(c.device, p.device) {
		return fail("CtxEnablePeerAccess", driver.PeerAccessUnsupp)
	}
	c.peers[p.device] = true
	return nil
}

// MemGetInfo implements [driver.Driver].
func (m *Machine) MemGetInfo(handle driver.Context) (free, total uint64, err error) {
	c, err := m.in("MemGetInfo", handle)
	if err != nil {
		return 0, 0, err
	}
	defer m.end()
	d := c.device
	return d.total - d.used, d.total, nil
}
