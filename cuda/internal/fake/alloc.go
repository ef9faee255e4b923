package fake

import (
	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// allocAlign is the alignment of allocations. Addresses have no greater one by
// chance.
const allocAlign = 512

// place returns addresses for an allocation.
func (m *Machine) place(size uint64) driver.Pointer {
	const slot = 2 << 20
	return m.space.pick(size+allocAlign, slot, slot, m.cfg.ReuseAddresses) + allocAlign
}

// MemAlloc implements [driver.Driver].
func (m *Machine) MemAlloc(ctx driver.Context, size uint64) (driver.Pointer, error) {
	c, err := m.in("MemAlloc", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if size == 0 {
		return 0, fail("MemAlloc", driver.InvalidValue)
	}
	p := m.newPhysical(c.device, size)
	if p == nil {
		return 0, fail("MemAlloc", driver.OutOfMemory)
	}
	a := &area{base: m.place(size), size: size, kind: kindAlloc, mem: p, ctx: c}
	m.space.add(a)
	return a.base, nil
}

// MemFree implements [driver.Driver]. It waits for all work of the context,
// except for memory of the pool.
func (m *Machine) MemFree(ctx driver.Context, p driver.Pointer) error {
	const call = "MemFree"
	c, err := m.in(call, ctx)
	if err != nil {
		return err
	}
	defer m.end()
	a := m.space.find(p)
	if a == nil || a.base != p || a.kind != kindAlloc && a.kind != kindManaged && a.kind != kindPool || a.freed != nil {
		return fail(call, driver.InvalidValue)
	}
	if a.kind != kindPool {
		m.counts.synchronising++
		m.finish(a.ctx)
		if m.space.find(p) != a { // another goroutine freed it meanwhile
			return fail(call, driver.InvalidValue)
		}
	}
	if a.mem.file != nil {
		if a.mem.file.elsewhere() {
			m.report(Misuse, "memory%s is freed that another process has open", a.site)
		}
		a.mem.file.revoke(a.mem.data)
	}
	m.dropArea(a)
	return fail(call, c.lost)
}

// MemAllocManaged implements [driver.Driver]. The address is one of the host,
// too.
func (m *Machine) MemAllocManaged(ctx driver.Context, size uint64) (driver.Pointer, error) {
	c, err := m.in("MemAllocManaged", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if size == 0 {
		return 0, fail("MemAllocManaged", driver.InvalidValue)
	}
	if !c.device.take(size) {
		return 0, fail("MemAllocManaged", driver.OutOfMemory)
	}
	a := m.hostArea(size)
	if a == nil {
		c.device.used -= size
		return 0, fail("MemAllocManaged", driver.OutOfMemory)
	}
	a.kind, a.ctx, a.mem.device, a.mem.counted = kindManaged, c, c.device, true
	m.space.add(a)
	return a.base, nil
}

// MemHostAlloc implements [driver.Driver].
func (m *Machine) MemHostAlloc(ctx driver.Context, size uint64) (uintptr, error) {
	c, err := m.in("MemHostAlloc", ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if size == 0 {
		return 0, fail("MemHostAlloc", driver.InvalidValue)
	}
	a := m.hostArea(size)
	if a == nil {
		return 0, fail("MemHostAlloc", driver.OutOfMemory)
	}
	a.kind, a.ctx = kindHost, c
	m.space.add(a)
	m.hosts[uintptr(a.base)] = a
	return uintptr(a.base), nil
}

// MemFreeHost implements [driver.Driver]. It does not wait for work that uses
// the memory: such work fails.
func (m *Machine) MemFreeHost(ctx driver.Context, p uintptr) error {
	if _, err := m.in("MemFreeHost", ctx); err != nil {
		return err
	}
	defer m.end()
	a := m.hosts[p]
	if a == nil {
		return fail("MemFreeHost", driver.InvalidValue)
	}
	m.dropArea(a)
	return nil
}

// PointerGetAttributes implements [driver.Driver].
func (m *Machine) PointerGetAttributes(p driver.Pointer) (driver.PointerInfo, error) {
	if err := m.begin("PointerGetAttributes"); err != nil {
		return driver.PointerInfo{}, err
	}
	defer m.end()
	a := m.space.find(p)
	switch {
	case a == nil:
		return driver.PointerInfo{Type: driver.TypeUnknown, Ordinal: -2}, nil
	case a.kind == kindHost:
		return driver.PointerInfo{Type: driver.TypeHost, Context: a.ctx.handle, Ordinal: a.ctx.device.ordinal}, nil
	case a.kind == kindMapping: // belongs to no context
		return driver.PointerInfo{Type: driver.TypeDevice, Ordinal: a.mem.device.ordinal}, nil
	}
	return driver.PointerInfo{
		Type: driver.TypeDevice, Context: a.ctx.handle,
		Ordinal: a.mem.device.ordinal, Managed: a.kind == kindManaged, IPC: a.kind == kindAlloc && !m.cfg.NoIPC,
	}, nil
}

// MemGetAddressRange implements [driver.Driver].
func (m *Machine) MemGetAddressRange(ctx driver.Context, p driver.Pointer) (base driver.Pointer, size uint64, err error) {
	if _, err := m.in("MemGetAddressRange", ctx); err != nil {
		return 0, 0, err
	}
	defer m.end()
	a := m.space.find(p)
	if a == nil {
		return 0, 0, fail("MemGetAddressRange", driver.NotFound)
	}
	return a.base, a.size, nil
}
