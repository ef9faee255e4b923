package fake

import (
	"slices"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// pageSize is the unit of reservations, that of the host's pages.
const pageSize = 4096

// unit is what sizes and alignments of reservations must be multiples of.
func (m *Machine) unit() uint64 { return min(pageSize, m.cfg.Granularity) }

// aligned reports whether all values are multiples of the granularity.
func (m *Machine) aligned(values ...uint64) bool {
	return !slices.ContainsFunc(values, func(v uint64) bool { return v%m.cfg.Granularity != 0 })
}

// MemGetAllocationGranularity implements [driver.Driver].
func (m *Machine) MemGetAllocationGranularity(prop driver.AllocationProp, _ driver.GranularityOption) (uint64, error) {
	if _, err := m.withDevice("MemGetAllocationGranularity", prop.Device); err != nil {
		return 0, err
	}
	defer m.end()
	return m.cfg.Granularity, nil
}

// MemAddressReserve implements [driver.Driver].
func (m *Machine) MemAddressReserve(size, alignment uint64) (driver.Pointer, error) {
	if err := m.begin("MemAddressReserve"); err != nil {
		return 0, err
	}
	defer m.end()
	if size == 0 || size%m.unit() != 0 || alignment&(alignment-1) != 0 {
		return 0, fail("MemAddressReserve", driver.InvalidValue)
	}
	g := m.cfg.Granularity
	r := &reservation{base: m.space.pick(size, max(alignment, g), g, m.cfg.ReuseAddresses), size: size, site: here()}
	if r.base == 0 {
		return 0, fail("MemAddressReserve", driver.OutOfMemory)
	}
	m.space.reserved = append(m.space.reserved, r)
	return r.base, nil
}

// MemAddressFree implements [driver.Driver].
func (m *Machine) MemAddressFree(p driver.Pointer, size uint64) error {
	if err := m.begin("MemAddressFree"); err != nil {
		return err
	}
	defer m.end()
	i := slices.IndexFunc(m.space.reserved, func(r *reservation) bool { return r.base == p })
	if i < 0 || m.space.reserved[i].size != size || m.mapped(p, size) {
		return fail("MemAddressFree", driver.InvalidValue)
	}
	m.space.reserved = slices.Delete(m.space.reserved, i, i+1)
	m.space.free = append(m.space.free, span{p, size})
	return nil
}

// mapped reports whether a mapping overlaps a range.
func (m *Machine) mapped(p driver.Pointer, size uint64) bool {
	return slices.ContainsFunc(m.space.all, func(a *area) bool { return a.base < p+driver.Pointer(size) && p < a.end() })
}

// MemCreate implements [driver.Driver].
func (m *Machine) MemCreate(size uint64, prop driver.AllocationProp) (driver.Memory, error) {
	const call = "MemCreate"
	d, err := m.withDevice(call, prop.Device)
	if err != nil {
		return 0, err
	}
	defer m.end()
	if size == 0 || !m.aligned(size) {
		return 0, fail(call, driver.InvalidValue)
	}
	if prop.Exportable && (m.cfg.NoExport || !canShare) {
		return 0, fail(call, driver.NotSupported)
	}
	p := m.newPhysical(d, size)
	if p == nil {
		return 0, fail(call, driver.OutOfMemory)
	}
	if prop.Exportable {
		if err := m.share(p, ""); err != nil {
			m.release(p)
			return 0, fail(call, driver.OperatingSystem)
		}
	}
	return m.addMemory(p), nil
}

// addMemory makes a reference to memory one of its handle.
func (m *Machine) addMemory(p *physical) driver.Memory {
	if p.handle == 0 {
		p.handle = driver.Memory(m.handle())
	}
	p.holds++
	m.memory[p.handle] = p
	return p.handle
}

// MemRelease implements [driver.Driver].
func (m *Machine) MemRelease(h driver.Memory) error {
	if err := m.begin("MemRelease"); err != nil {
		return err
	}
	defer m.end()
	p := m.memory[h]
	if p == nil {
		return fail("MemRelease", driver.InvalidValue)
	}
	if p.holds--; p.holds == 0 {
		delete(m.memory, h)
	}
	m.release(p)
	return nil
}

// MemMap implements [driver.Driver].
func (m *Machine) MemMap(p driver.Pointer, size, offset uint64, h driver.Memory) error {
	const call = "MemMap"
	if err := m.begin(call); err != nil {
		return err
	}
	defer m.end()
	mem := m.memory[h]
	switch {
	case mem == nil, size == 0, !m.aligned(uint64(p), size), offset != 0, size > mem.size, !m.inReservation(p, size), m.mapped(p, size):
		return fail(call, driver.InvalidValue)
	}
	mem.refs++
	m.space.add(&area{base: p, size: size, kind: kindMapping, mem: mem, rights: make([]driver.Access, len(m.devices))})
	return nil
}

// inReservation reports whether one reservation contains the range.
func (m *Machine) inReservation(p driver.Pointer, size uint64) bool {
	return slices.ContainsFunc(m.space.reserved, func(r *reservation) bool {
		return p >= r.base && uint64(p-r.base) <= r.size && size <= r.size-uint64(p-r.base)
	})
}

// mappings returns the mappings that fill a range exactly; nil if there are
// none.
func (m *Machine) mappings(p driver.Pointer, size uint64) []*area {
	var all []*area
	for size > 0 {
		a := m.space.find(p)
		if a == nil || a.kind != kindMapping || a.base != p || a.size > size {
			return nil
		}
		all = append(all, a)
		p, size = a.end(), size-a.size
	}
	return all
}

// MemUnmap implements [driver.Driver]. It does not wait for work that uses the
// memory: such work fails.
func (m *Machine) MemUnmap(p driver.Pointer, size uint64) error {
	if err := m.begin("MemUnmap"); err != nil {
		return err
	}
	defer m.end()
	all := m.mappings(p, size)
	if len(all) == 0 {
		return fail("MemUnmap", driver.InvalidValue)
	}
	for _, a := range all {
		m.dropArea(a)
	}
	return nil
}

// MemSetAccess implements [driver.Driver].
func (m *Machine) MemSetAccess(p driver.Pointer, size uint64, dev driver.Device, access driver.Access) error {
	const call = "MemSetAccess"
	d, err := m.withDevice(call, dev)
	if err != nil {
		return err
	}
	defer m.end()
	all := m.mappings(p, size)
	if len(all) == 0 || access != driver.AccessNone && access != driver.AccessRead && access != driver.AccessReadWrite {
		return fail(call, driver.InvalidValue)
	}
	for _, a := range all {
		if access != driver.AccessNone && !m.peers(d, a.mem.device) {
			return fail(call, driver.InvalidDevice)
		}
	}
	for _, a := range all {
		a.rights[d.ordinal] = access
	}
	return nil
}

// MemRetainAllocationHandle implements [driver.Driver]: the handle is the one
// that the memory was mapped with.
func (m *Machine) MemRetainAllocationHandle(p driver.Pointer) (driver.Memory, error) {
	if err := m.begin("MemRetainAllocationHandle"); err != nil {
		return 0, err
	}
	defer m.end()
	a := m.space.find(p)
	if a == nil || a.kind != kindMapping {
		return 0, fail("MemRetainAllocationHandle", driver.InvalidValue)
	}
	a.mem.refs++
	return m.addMemory(a.mem), nil
}
