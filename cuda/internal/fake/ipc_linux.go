package fake

import (
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// The older interface of sharing. A handle names a file of the exporter, which
// importers open; the memory is the exporter's and ends with it.

// importer are the imports of a machine.
type importer struct {
	areas  map[importKey]*area
	closed map[driver.Pointer]bool // addresses that nothing is at since
}

type importKey struct {
	nonce uint64
	ctx   *context
}

// foreign is memory of another machine.
type foreign struct {
	file   *backing
	orphan bool // the exporter has ended
}

// valid says why the memory is gone. What was in the memory of a process that
// has ended is undefined, which is no fault: from then on its bytes are others
// and count as not written.
func (f *foreign) valid() error {
	if f.file.head.state.Load() != stateLive {
		return errors.New("the process that exported it has freed it")
	}
	if !f.orphan && !f.file.held(0) {
		f.orphan = true
		data := f.file.bytes()
		for i := range data {
			data[i] = freedByte
		}
		clear(f.file.bitmap())
	}
	return nil
}

// IpcGetMemHandle implements [driver.Driver]. The handle is of the allocation,
// wherever in it p is.
func (m *Machine) IpcGetMemHandle(ctx driver.Context, p driver.Pointer) (driver.IPCHandle, error) {
	const call = "IpcGetMemHandle"
	if _, err := m.in(call, ctx); err != nil {
		return driver.IPCHandle{}, err
	}
	defer m.end()
	if m.cfg.NoIPC {
		return driver.IPCHandle{}, fail(call, driver.NotSupported)
	}
	a := m.space.find(p)
	if a == nil || a.kind != kindAlloc {
		return driver.IPCHandle{}, fail(call, driver.InvalidValue)
	}
	if err := m.share(a.mem, m.cfg.Registry); err != nil {
		return driver.IPCHandle{}, fail(call, mapFailed)
	}
	a.mem.file.export = true
	return m.ticketOf(a.mem.file, false), nil
}

// ticketFor checks a handle of another machine.
func (m *Machine) ticketFor(h driver.IPCHandle, event bool) (ticket, driver.Result) {
	t := parseTicket(h)
	switch {
	case m.cfg.NoIPC:
		return t, driver.NotSupported
	case t.magic != backingMagic || t.event != event:
		return t, driver.InvalidValue
	case t.machine == m.id: // the driver refuses handles of the same process
		return t, driver.InvalidContext
	}
	return t, driver.Success
}

// IpcOpenMemHandle implements [driver.Driver]. A second open in a context
// returns the same address; older drivers refuse it, so it is reported.
func (m *Machine) IpcOpenMemHandle(ctx driver.Context, h driver.IPCHandle) (driver.Pointer, error) {
	const call = "IpcOpenMemHandle"
	c, err := m.in(call, ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	t, r := m.ticketFor(h, false)
	if r != driver.Success {
		return 0, fail(call, r)
	}
	key := importKey{t.nonce, c}
	if a := m.imported.areas[key]; a != nil {
		m.report(Misuse, "memory of another process is opened that is open%s", a.site)
		a.opens++
		return a.base, nil
	}
	b, err := m.open(t)
	if err != nil {
		return 0, fail(call, mapFailed)
	}
	if b.head.device >= uint64(len(m.devices)) || !m.peers(c.device, m.devices[b.head.device]) {
		b.close()
		return 0, fail(call, mapFailed)
	}
	p := &physical{
		device: m.devices[b.head.device], size: b.head.size, data: b.bytes(), written: b.bitmap(),
		file: b, foreign: &foreign{file: b}, refs: 1, site: here(),
	}
	a := &area{base: m.place(p.size), size: p.size, kind: kindImport, mem: p, ctx: c, opens: 1}
	m.space.add(a)
	if m.imported.areas == nil {
		m.imported.areas, m.imported.closed = map[importKey]*area{}, map[driver.Pointer]bool{}
	}
	m.imported.areas[key] = a
	delete(m.imported.closed, a.base)
	return a.base, nil
}

// forget removes an import from the table.
func (i *importer) forget(a *area) {
	for k, o := range i.areas {
		if o == a {
			delete(i.areas, k)
		}
	}
}

// IpcCloseMemHandle implements [driver.Driver]. It does not wait for work that
// uses the memory.
func (m *Machine) IpcCloseMemHandle(ctx driver.Context, p driver.Pointer) error {
	const call = "IpcCloseMemHandle"
	c, err := m.in(call, ctx)
	if err != nil {
		return err
	}
	defer m.end()
	a := m.space.find(p)
	if a == nil || a.base != p || a.kind != kindImport || a.ctx != c {
		if a == nil && m.imported.closed[p] {
			m.report(Misuse, "memory of another process is closed that is closed already")
		}
		return fail(call, driver.InvalidValue)
	}
	if a.opens--; a.opens == 0 {
		m.imported.closed[p] = true
		m.dropArea(a)
	}
	return nil
}

// shared is the state of an event that several machines see: for each of the
// last records, by sequence, whether it was reached and who has to.
type shared struct{ file *backing }

// mark is a record of a shared event.
type mark struct {
	reached atomic.Uint64 // the sequence of the last record that was reached
	machine atomic.Uint64 // the number of the machine that recorded
}

const marks = 512

func (s *shared) mark(sequence uint64) *mark {
	all := s.file.bytes()
	return (*mark)(unsafe.Pointer(&all[sequence%marks*uint64(unsafe.Sizeof(mark{}))]))
}

// recorder begins a record and returns what ends it.
func (s *shared) recorder(m *Machine) func() {
	if s.file.head.state.Load() != stateLive {
		m.report(Misuse, "an imported event is recorded whose exporter destroyed it")
	}
	n := s.file.head.sequence.Add(1)
	k := s.mark(n)
	k.machine.Store(uint64(s.file.number))
	return func() {
		if s.file.all != nil {
			k.reached.Store(max(k.reached.Load(), n))
		}
	}
}

// waiter returns what reports whether the last record was reached. A record
// of a machine that has ended counts as reached: the driver ends the work of a
// process with it.
func (s *shared) waiter(m *Machine) func() bool {
	if s.file.head.state.Load() != stateLive {
		m.report(Misuse, "an imported event is waited for whose exporter destroyed it")
	}
	n := s.file.head.sequence.Load()
	if n == 0 {
		return func() bool { return true }
	}
	k := s.mark(n)
	return func() bool {
		if s.file.all == nil || k.reached.Load() >= n {
			return true
		}
		by := k.machine.Load()
		return by != uint64(s.file.number) && !s.file.held(int64(by))
	}
}

// close ends the use of the event by this machine.
func (s *shared) close(m *Machine) {
	if s.file.export {
		s.file.head.state.Store(stateFreed)
	}
	m.closing = append(m.closing, s.file)
}

// IpcGetEventHandle implements [driver.Driver].
func (m *Machine) IpcGetEventHandle(ctx driver.Context, handle driver.Event) (driver.IPCHandle, error) {
	const call = "IpcGetEventHandle"
	_, e, err := m.withEvent(call, ctx, handle)
	if err != nil {
		return driver.IPCHandle{}, err
	}
	defer m.end()
	switch {
	case m.cfg.NoIPC:
		return driver.IPCHandle{}, fail(call, driver.NotSupported)
	case e.flags&driver.EventInterprocess == 0:
		return driver.IPCHandle{}, fail(call, driver.InvalidValue)
	case e.shared == nil:
		b, err := newBacking(m.cfg.Registry, m.nonce(), marks*uint64(unsafe.Sizeof(mark{})), e.ctx.device.ordinal)
		if err == nil {
			err = b.lock(0)
		}
		if err != nil {
			return driver.IPCHandle{}, fail(call, mapFailed)
		}
		b.export = true
		e.shared = &shared{b}
		if e.rec != nil && e.rec.state != opDone {
			e.rec.finish = e.shared.recorder(m)
			e.rec.urgent = true
			m.hurry(e.rec)
		}
	case !e.shared.file.export: // imported itself
		return driver.IPCHandle{}, fail(call, driver.InvalidValue)
	}
	return m.ticketOf(e.shared.file, true), nil
}

// IpcOpenEventHandle implements [driver.Driver].
func (m *Machine) IpcOpenEventHandle(ctx driver.Context, h driver.IPCHandle) (driver.Event, error) {
	const call = "IpcOpenEventHandle"
	c, err := m.in(call, ctx)
	if err != nil {
		return 0, err
	}
	defer m.end()
	t, r := m.ticketFor(h, true)
	if r != driver.Success {
		return 0, fail(call, r)
	}
	b, err := m.open(t)
	if err != nil {
		return 0, fail(call, mapFailed)
	}
	return m.addEvent(&event{ctx: c, flags: driver.EventDisableTiming | driver.EventInterprocess, shared: &shared{b}}), nil
}
