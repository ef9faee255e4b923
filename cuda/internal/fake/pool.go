package fake

import (
	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// The memory pool of a device gives out memory in stream order. Memory that was
// freed stays in the pool, which gives it back to the device when it is
// trimmed, and at every CtxSynchronize.

// DeviceGetDefaultMemPool implements [driver.Driver].
func (m *Machine) DeviceGetDefaultMemPool(dev driver.Device) (driver.Pool, error) {
	d, err := m.withDevice("DeviceGetDefaultMemPool", dev)
	if err != nil {
		return 0, err
	}
	defer m.end()
	return d.pool, nil
}

// MemPoolTrimTo implements [driver.Driver].
func (m *Machine) MemPoolTrimTo(p driver.Pool, keep uint64) error {
	if err := m.begin("MemPoolTrimTo"); err != nil {
		return err
	}
	defer m.end()
	d := m.pools[p]
	if d == nil {
		return fail("MemPoolTrimTo", driver.InvalidValue)
	}
	m.trim(d, keep)
	return nil
}

// trim returns free memory of the pool to the device until the pool has no more
// than keep bytes, with what is in use.
func (m *Machine) trim(d *device, keep uint64) {
	held := d.cached
	for _, a := range m.space.all {
		if a.kind == kindPool && a.mem.device == d {
			held += a.size
		}
	}
	if held > keep {
		give := min(held-keep, d.cached)
		d.cached -= give
		d.used -= give
	}
}

// MemAllocAsync implements [driver.Driver].
func (m *Machine) MemAllocAsync(ctx driver.Context, size uint64, stream driver.Stream) (driver.Pointer, error) {
	const call = "MemAllocAsync"
	c, s, err := m.on(call, ctx, stream)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if size == 0 {
		return 0, fail(call, driver.InvalidValue)
	}
	if s.capture != nil {
		s.capture.invalidate()
		return 0, fail(call, driver.NotSupported)
	}
	p := m.fromPool(c.device, size)
	if p == nil && s.last != nil {
		m.force(s.last) // what the stream frees is there afterwards
		p = m.fromPool(c.device, size)
	}
	if p == nil {
		return 0, fail(call, driver.OutOfMemory)
	}
	if c.lost != driver.Success {
		return 0, fail(call, c.lost)
	}
	o := &op{what: "allocation of the pool"}
	a := &area{base: m.place(size), size: size, kind: kindPool, mem: p, ctx: c, born: o}
	o.run = func(o *op) driver.Result {
		m.touchArea(o, a)
		return driver.Success
	}
	if r := m.submit(s, o); r != driver.Success {
		m.release(p)
		return 0, fail(call, r)
	}
	m.space.add(a)
	return a.base, nil
}

// fromPool returns memory that is free in the pool or on the device.
func (m *Machine) fromPool(d *device, size uint64) *physical {
	reuse := min(size, d.cached)
	if size-reuse > d.total-d.used {
		return nil
	}
	d.cached -= reuse
	d.used -= reuse
	return m.newPhysical(d, size)
}

// MemFreeAsync implements [driver.Driver].
func (m *Machine) MemFreeAsync(ctx driver.Context, p driver.Pointer, stream driver.Stream) error {
	const call = "MemFreeAsync"
	_, s, err := m.on(call, ctx, stream)
	if err != nil {
		return err
	}
	defer m.end()
	a := m.space.find(p)
	if a == nil || a.base != p || a.kind != kindPool || a.freed != nil {
		return fail(call, driver.InvalidValue)
	}
	if s.capture != nil {
		s.capture.invalidate()
		return fail(call, driver.NotSupported)
	}
	o := &op{what: "free of the pool"}
	o.run = func(o *op) driver.Result {
		if a.born.state != opDone {
			m.report(Fault, "%s%s: the operation that allocates the memory has not run", o.what, o.site)
		}
		d := a.mem.device
		m.touchArea(o, a)
		m.dropArea(a)
		d.used += a.size
		d.cached += a.size
		return driver.Success
	}
	if r := m.submit(s, o); r != driver.Success {
		return fail(call, r)
	}
	a.freed = o
	return nil
}
