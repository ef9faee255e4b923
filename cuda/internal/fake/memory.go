package fake

import (
	"fmt"
	"runtime"
	"slices"
	"sort"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/internal/osmem"
)

// unwrittenByte is what a byte that nobody wrote contains.
const unwrittenByte = 0xA5

// freedByte is what memory contains that was freed while another process could
// access it.
const freedByte = 0xDE

// physical is memory of a device, or of the host.
type physical struct {
	device   *device // nil for the host's
	size     uint64
	data     []byte
	written  []byte          // a bitmap; nil: every byte counts as written
	file     *backing        // of memory that other processes may see; nil for other memory
	counted  bool            // in device.used
	refs     int             // handles and mappings
	handle   driver.Memory   // while holds is not 0
	holds    int             // of the handle
	mapping  []byte          // of osmem
	unmap    runtime.Cleanup // of mapping, if nobody releases it
	accesses []access        // see touch
	foreign  *foreign        // whose memory it is, of another machine
	site     site
}

// kind is what an area is.
type kind uint8

const (
	kindMapping kind = iota // a physical allocation, mapped in a reservation
	kindAlloc
	kindPool
	kindManaged
	kindHost
	kindImport
)

func (k kind) String() string {
	return [...]string{"a mapping", "an allocation", "an allocation of the pool", "a managed allocation", "page-locked memory", "an imported allocation"}[k]
}

// area is a range of addresses with memory behind it.
type area struct {
	base   driver.Pointer
	size   uint64
	kind   kind
	mem    *physical
	offset uint64   // of the area in mem
	ctx    *context // that it belongs to; nil for mappings
	rights []driver.Access
	born   *op // of memory in stream order, when it exists
	freed  *op // and when not any more
	opens  int // of an import
	site   site
}

func (a *area) end() driver.Pointer { return a.base + driver.Pointer(a.size) }

// space is the address space of a machine.
type space struct {
	top      driver.Pointer // where new addresses begin
	all      []*area        // by address
	reserved []*reservation
	free     []span // released addresses
	last     *area  // the area that was found last
}

type reservation struct {
	base driver.Pointer
	size uint64
	site site
}

type span struct {
	base driver.Pointer
	size uint64
}

// The machine's addresses are between these, where hosts have no memory.
const lowest, highest driver.Pointer = 0x7000_0000_0000, 0x7f00_0000_0000

func (s *space) init() { s.top = lowest }

// areas returns the areas, by address.
func (s *space) areas() []*area { return slices.Clone(s.all) }

// pick returns addresses for size bytes with a gap behind them, so that an
// access past the end is found; 0 if there are none left.
func (s *space) pick(size, align, gap uint64, reuse bool) driver.Pointer {
	if reuse {
		for i := len(s.free) - 1; i >= 0; i-- {
			if f := s.free[i]; f.size >= size && uint64(f.base)%align == 0 {
				s.free = slices.Delete(s.free, i, i+1)
				return f.base
			}
		}
	}
	base := (uint64(s.top) + align - 1) &^ (align - 1)
	if size > uint64(highest) || base+size > uint64(highest) {
		return 0
	}
	s.top = driver.Pointer(base + (size+gap-1)&^(gap-1) + gap)
	return driver.Pointer(base)
}

func (s *space) add(a *area) {
	a.site = here()
	i := sort.Search(len(s.all), func(i int) bool { return s.all[i].base >= a.base })
	s.all = slices.Insert(s.all, i, a)
}

func (s *space) remove(a *area) {
	s.all = slices.DeleteFunc(s.all, func(o *area) bool { return o == a })
	s.last = nil
}

// find returns the area that contains p, nil if there is none.
func (s *space) find(p driver.Pointer) *area {
	if l := s.last; l != nil && p >= l.base && p < l.end() {
		return l
	}
	i := sort.Search(len(s.all), func(i int) bool { return s.all[i].base > p })
	if i == 0 || p >= s.all[i-1].end() {
		return nil
	}
	s.last = s.all[i-1]
	return s.last
}

// dropArea removes an area and lets go of its memory.
func (m *Machine) dropArea(a *area) {
	m.space.remove(a)
	m.imported.forget(a)
	switch a.kind {
	case kindAlloc, kindPool, kindImport:
		m.space.free = append(m.space.free, span{a.base - allocAlign, a.size + allocAlign})
	case kindHost:
		delete(m.hosts, uintptr(a.base))
	}
	m.release(a.mem)
}

// release gives up a reference to memory.
func (m *Machine) release(p *physical) {
	p.refs--
	if p.refs > 0 {
		return
	}
	if p.counted {
		p.device.used -= p.size
	}
	if p.file != nil {
		p.file.close()
	}
	if p.mapping != nil {
		p.unmap.Stop()
		_ = osmem.Unmap(p.mapping)
	}
	p.data, p.written, p.mapping, p.accesses = nil, nil, nil, nil
}

// piece is a part of an access that is in one area.
type piece struct {
	area *area
	at   uint64 // offset in the memory
	n    uint64
}

func (p piece) data() []byte { return p.area.mem.data[p.at : p.at+p.n] }

func (p piece) mark() {
	if p.area.mem.written != nil {
		setBits(p.area.mem.written, p.at, p.n)
	}
}

// pieces checks an access of device d and returns its parts. Mappings that
// follow each other are one range.
func (m *Machine) pieces(d *device, p driver.Pointer, n uint64, write bool, o *op) ([]piece, error) {
	var all []piece
	for n > 0 {
		a := m.space.find(p)
		if a == nil {
			return nil, fmt.Errorf("no memory at %#x", uint64(p))
		}
		if err := m.allowed(d, a, write, o); err != nil {
			return nil, fmt.Errorf("%#x, in %s of %d bytes at %#x: %w", uint64(p), a.kind, a.size, uint64(a.base), err)
		}
		k := min(n, uint64(a.end()-p))
		if a.kind != kindMapping && k < n {
			return nil, fmt.Errorf("%d bytes at %#x leave %s of %d bytes at %#x", n, uint64(p), a.kind, a.size, uint64(a.base))
		}
		all = append(all, piece{a, a.offset + uint64(p-a.base), k})
		p, n = p+driver.Pointer(k), n-k
	}
	for _, a := range all {
		m.touch(o, a.area.mem, access{from: a.at, to: a.at + a.n, write: write})
	}
	return all, nil
}

// allowed checks the right of a device to access an area.
func (m *Machine) allowed(d *device, a *area, write bool, o *op) error {
	if f := a.mem.foreign; f != nil {
		if err := f.valid(); err != nil {
			return err
		}
	}
	switch a.kind {
	case kindMapping:
		r := a.rights[d.ordinal]
		if r == driver.AccessNone || write && r != driver.AccessReadWrite {
			return fmt.Errorf("device %d has access %d", d.ordinal, r)
		}
	case kindAlloc, kindImport:
		if home := a.ctx.device; d != home && (d.primary == nil || !d.primary.peers[home]) {
			return fmt.Errorf("device %d has no access to memory of device %d", d.ordinal, home.ordinal)
		}
	case kindPool:
		if d != a.ctx.device {
			return fmt.Errorf("device %d has no access to the pool of device %d", d.ordinal, a.ctx.device.ordinal)
		}
		if a.freed != nil && o.submit > a.freed.submit {
			return fmt.Errorf("it was freed before the operation was submitted")
		}
		if a.born.state != opDone && a.born != o {
			return fmt.Errorf("the operation that allocates it has not run")
		}
	}
	return nil
}

// fault reports an access that failed.
func (m *Machine) fault(o *op, err error) driver.Result {
	m.report(Fault, "%s%s: %v", o.what, o.site, err)
	return driver.IllegalAddress
}

// newPhysical returns memory of a device that nobody has written; nil if the
// device has not enough.
func (m *Machine) newPhysical(d *device, size uint64) *physical {
	if !d.take(size) {
		return nil
	}
	p := &physical{device: d, size: size, counted: true, refs: 1, site: here()}
	all := size + bitmapSize(size)
	if size >= mappedBytes {
		if b, err := osmem.Map(int(all)); err == nil {
			p.mapping = b
			p.unmap = runtime.AddCleanup(p, func(b []byte) { _ = osmem.Unmap(b) }, b)
			p.data, p.written = b[:size:size], b[size:all]
			return p
		}
	}
	b := make([]byte, all)
	p.data, p.written = b[:size:size], b[size:]
	return p
}

// mappedBytes is the size from which memory is a mapping, of which only the
// pages count that are used.
const mappedBytes = 256 << 10

// Forget makes n bytes of device memory count as not written, as those of new
// memory: a program that hands out memory again can find reads of what was
// there before.
func (m *Machine) Forget(p driver.Pointer, n uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for n > 0 {
		a := m.space.find(p)
		if a == nil || a.mem.written == nil {
			return
		}
		k := min(n, uint64(a.end()-p))
		clearBits(a.mem.written, a.offset+uint64(p-a.base), k)
		p, n = p+driver.Pointer(k), n-k
	}
}
