package fake

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/internal/osmem"
)

// canShare: other processes can see memory and events.
const canShare = true

// backing is a file that several machines map: memory of a device, or the state
// of an event. Behind the bytes are the bitmap of those that were written, and
// a page with the header.
//
// Machines hold locks on bytes of the file: the exporter on byte 0, and each
// machine on the byte of its number. A lock that nobody holds says that its
// machine is gone, however it ended.
type backing struct {
	f      *os.File
	all    []byte
	unmap  runtime.Cleanup // of all, if nobody closes it
	head   *header
	path   string // in the registry; "" for a memfd
	number uint32 // of this machine
	export bool   // this machine made it for others to open
	counts bool   // in head.opens
}

// header is the last page of a backing.
type header struct {
	magic, nonce, size uint64
	device             uint64
	state              atomic.Uint32 // of stateLive...
	opens              atomic.Int32  // imports of the older interface
	machines           atomic.Uint32 // how many machines have numbers
	sequence           atomic.Uint64 // of the last record of an event
}

const (
	backingMagic = 0x454b4146_554e4554 // "TENUFAKE"
	stateLive    = 1
	stateFreed   = 2
	headerBytes  = pageSize
)

func roundPages(n uint64) uint64 { return (n + pageSize - 1) &^ (pageSize - 1) }

// newBacking makes a backing for size bytes: in a file of the folder, or a
// memfd.
func newBacking(folder string, nonce, size uint64, device int) (*backing, error) {
	b := &backing{}
	if folder != "" {
		b.path = registryFile(folder, nonce)
		f, err := os.OpenFile(b.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return nil, err
		}
		b.f = f
	} else {
		fd, err := unix.MemfdCreate("tenure-fake-cuda", unix.MFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("fake: memfd: %w", err)
		}
		b.f = os.NewFile(uintptr(fd), "memfd")
	}
	total := roundPages(size) + roundPages(bitmapSize(size)) + headerBytes
	if err := b.f.Truncate(int64(total)); err != nil {
		b.close()
		return nil, err
	}
	if err := b.mapAll(int(total)); err != nil {
		b.close()
		return nil, err
	}
	b.head.magic, b.head.nonce, b.head.size, b.head.device = backingMagic, nonce, size, uint64(device)
	b.head.state.Store(stateLive)
	b.number = b.head.machines.Add(1)
	return b, b.lock(int64(b.number))
}

func registryFile(folder string, nonce uint64) string {
	return filepath.Join(folder, fmt.Sprintf("%016x", nonce))
}

var errNotBacking = errors.New("fake: the descriptor is not that of memory of a fake device")

// openBacking maps the backing behind an open file, which it then owns.
func openBacking(f *os.File) (*backing, error) {
	b := &backing{f: f}
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	total := info.Size()
	if total < headerBytes || total%pageSize != 0 || total > 1<<46 {
		return nil, errNotBacking
	}
	if err := b.mapAll(int(total)); err != nil {
		return nil, err
	}
	if b.head.magic != backingMagic || uint64(total) != roundPages(b.head.size)+roundPages(bitmapSize(b.head.size))+headerBytes {
		b.drop()
		return nil, errNotBacking
	}
	b.number = b.head.machines.Add(1)
	return b, b.lock(int64(b.number))
}

func (b *backing) mapAll(total int) error {
	all, err := unix.Mmap(int(b.f.Fd()), 0, total, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("fake: map %d bytes: %w", total, err)
	}
	b.all = all
	b.unmap = runtime.AddCleanup(b, func(all []byte) { _ = unix.Munmap(all) }, all)
	b.head = (*header)(unsafe.Pointer(&all[total-headerBytes]))
	return nil
}

func (b *backing) bytes() []byte { return b.all[:b.head.size] }

func (b *backing) bitmap() []byte {
	at := roundPages(b.head.size)
	return b.all[at : at+bitmapSize(b.head.size)]
}

// lock takes the lock of a byte for the lifetime of this description of the
// file.
func (b *backing) lock(at int64) error { return b.setLock(unix.F_WRLCK, at) }

func (b *backing) setLock(kind int16, at int64) error {
	l := unix.Flock_t{Type: kind, Start: at, Len: 1}
	if err := unix.FcntlFlock(b.f.Fd(), unix.F_OFD_SETLK, &l); err != nil {
		return fmt.Errorf("fake: lock byte %d: %w", at, err)
	}
	return nil
}

// held reports whether another machine holds the lock of a byte.
func (b *backing) held(at int64) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: 1}
	err := unix.FcntlFlock(b.f.Fd(), unix.F_OFD_GETLK, &l)
	return err == nil && l.Type != unix.F_UNLCK
}

// disown gives up the locks, as the end of the process does.
func (b *backing) disown() {
	_ = b.setLock(unix.F_UNLCK, 0)
	_ = b.setLock(unix.F_UNLCK, int64(b.number))
}

// elsewhere reports whether another machine has the memory open. Its lock says
// so, which ends with its process.
func (b *backing) elsewhere() bool {
	for n := range b.head.machines.Load() {
		if n+1 != b.number && b.held(int64(n+1)) {
			return true
		}
	}
	return false
}

// revoke marks the memory as freed, for the machines that opened it. What they
// read from now on is not what was there.
func (b *backing) revoke(data []byte) {
	if b.head.opens.Load() > 0 {
		for i := range data {
			data[i] = freedByte
		}
	}
	b.head.state.Store(stateFreed)
}

// drop ends the mapping.
func (b *backing) drop() {
	if b.all != nil {
		b.unmap.Stop()
		_ = unix.Munmap(b.all)
		b.all = nil
	}
}

func (b *backing) close() {
	if b.head != nil && b.counts {
		b.head.opens.Add(-1)
	}
	b.drop()
	_ = b.f.Close()
	if b.path != "" {
		_ = os.Remove(b.path)
	}
	*b = backing{}
}

// share moves memory into a file that other processes can map.
func (m *Machine) share(p *physical, folder string) error {
	if p.file != nil {
		return nil
	}
	b, err := newBacking(folder, m.nonce(), p.size, p.device.ordinal)
	if err != nil {
		return err
	}
	if err := b.lock(0); err != nil {
		b.close()
		return err
	}
	copy(b.bytes(), p.data)
	copy(b.bitmap(), p.written)
	if p.mapping != nil {
		p.unmap.Stop()
		_ = osmem.Unmap(p.mapping)
		p.mapping = nil
	}
	p.data, p.written, p.file = b.bytes(), b.bitmap(), b
	return nil
}

// nonce returns a number that no other object of any machine has.
func (m *Machine) nonce() uint64 { return m.id*0x9e3779b97f4a7c15 ^ uint64(m.handle()) }

// disown gives up what other machines opened.
func (m *Machine) disown() {
	for _, a := range m.space.all {
		if a.mem.file != nil {
			a.mem.file.disown()
		}
	}
	for _, p := range m.memory {
		if p.file != nil {
			p.file.disown()
		}
	}
	for _, e := range m.events {
		if e.shared != nil {
			e.shared.file.disown()
		}
	}
}

// MemExportToShareableHandle implements [driver.Driver].
func (m *Machine) MemExportToShareableHandle(h driver.Memory) (int, error) {
	const call = "MemExportToShareableHandle"
	if err := m.begin(call); err != nil {
		return 0, err
	}
	defer m.end()
	p := m.memory[h]
	if p == nil || p.file == nil {
		return 0, fail(call, driver.InvalidValue)
	}
	fd, err := unix.FcntlInt(p.file.f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, fail(call, driver.OperatingSystem)
	}
	return fd, nil
}

// MemImportFromShareableHandle implements [driver.Driver].
func (m *Machine) MemImportFromShareableHandle(fd int) (driver.Memory, error) {
	const call = "MemImportFromShareableHandle"
	if err := m.begin(call); err != nil {
		return 0, err
	}
	defer m.end()
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return 0, fail(call, driver.InvalidValue)
	}
	f := os.NewFile(uintptr(own), "memfd")
	b, err := openBacking(f)
	if err != nil {
		_ = f.Close()
		return 0, fail(call, driver.InvalidValue)
	}
	if p := m.memoryOf(b.head.nonce); p != nil { // the memory is known here
		b.close()
		p.refs++
		return m.addMemory(p), nil
	}
	if b.head.device >= uint64(len(m.devices)) {
		b.close()
		return 0, fail(call, driver.NotSupported)
	}
	return m.addMemory(&physical{
		device: m.devices[b.head.device], size: b.head.size,
		data: b.bytes(), written: b.bitmap(), file: b, refs: 1, site: here(),
	}), nil
}

// memoryOf finds memory of virtual memory management by its nonce.
func (m *Machine) memoryOf(nonce uint64) *physical {
	for _, p := range m.memory {
		if p.file != nil && p.file.head.nonce == nonce {
			return p
		}
	}
	for _, a := range m.space.all {
		if a.kind == kindMapping && a.mem.file != nil && a.mem.file.head.nonce == nonce {
			return a.mem
		}
	}
	return nil
}

// ticket is the content of an IPCHandle.
type ticket struct {
	magic   uint64
	machine uint64
	nonce   uint64
	size    uint64
	pid, fd uint32
	event   bool
}

func (t ticket) handle() driver.IPCHandle {
	var h driver.IPCHandle
	e := binary.LittleEndian
	e.PutUint64(h[0:], t.magic)
	e.PutUint64(h[8:], t.machine)
	e.PutUint64(h[16:], t.nonce)
	e.PutUint64(h[24:], t.size)
	e.PutUint32(h[32:], t.pid)
	e.PutUint32(h[36:], t.fd)
	if t.event {
		h[40] = 1
	}
	return h
}

func parseTicket(h driver.IPCHandle) ticket {
	e := binary.LittleEndian
	return ticket{
		magic: e.Uint64(h[0:]), machine: e.Uint64(h[8:]), nonce: e.Uint64(h[16:]), size: e.Uint64(h[24:]),
		pid: e.Uint32(h[32:]), fd: e.Uint32(h[36:]), event: h[40] == 1,
	}
}

// ticketOf returns the handle of what b contains.
func (m *Machine) ticketOf(b *backing, event bool) driver.IPCHandle {
	return ticket{backingMagic, m.id, b.head.nonce, b.head.size, uint32(os.Getpid()), uint32(b.f.Fd()), event}.handle()
}

// open opens what a handle names.
func (m *Machine) open(t ticket) (*backing, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", t.pid, t.fd)
	if m.cfg.Registry != "" {
		path = registryFile(m.cfg.Registry, t.nonce)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	b, err := openBacking(f)
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	if b.head.nonce != t.nonce || b.head.state.Load() != stateLive || !b.held(0) {
		b.close()
		return nil, errors.New("fake: what the handle names is gone")
	}
	b.counts = true
	b.head.opens.Add(1)
	return b, nil
}
