package memory

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Device is a memory that the processor does not address, such as that of a
// graphics processor. Its buffers have holders, handles and flags like all
// others, but no [Buffer.Bytes]; they are counted and bounded apart from the
// processor's. A package that drives devices makes one for each; nil is the
// processor's memory.
type Device struct {
	engine Engine
	ledger ledger
}

// Engine allocates and copies bytes of a device, for code that does not know
// which kind of device it is. Work of an engine is ordered: a copy sees the
// bytes that work submitted before it leaves, on whatever queue of the device
// that was.
type Engine interface {
	// Alloc returns a buffer of the device whose contents are undefined.
	Alloc(bytes int, p Purpose) (*Buffer, error)
	// Upload copies from into the buffer from byte at on. It returns when from
	// may change.
	Upload(ctx context.Context, to *Buffer, at int, from []byte) error
	// Download copies bytes of the buffer from byte at on, and returns when
	// they are in to.
	Download(ctx context.Context, to []byte, from *Buffer, at int) error
	// Copy copies bytes between two buffers, of which at least one is of the
	// device and none is the processor's. It returns when the copy is
	// submitted.
	Copy(ctx context.Context, to *Buffer, at int, from *Buffer, fromAt, bytes int) error
	// Gather copies the elements of a strided array of the device, in row-major
	// order, into the buffer from byte at on. It returns when the copy is
	// submitted.
	Gather(ctx context.Context, to *Buffer, at int, from Spread) error
}

// Spread is the elements of a strided array in a buffer. Elements have 1, 2, 4,
// 8 or 16 bytes; strides count elements and may be 0 or negative.
type Spread struct {
	Buffer  *Buffer
	At      int // byte of element [0,...,0]
	Element int // bytes of an element
	Sizes   []int
	Strides []int
}

// Remote is bytes of a device. The engine of the device embeds it in its own
// record of the bytes, which is the Keeper.
type Remote struct {
	Device  *Device
	Address uintptr // of the first byte, in the address space of the device
	Keeper  Keeper
}

// Keeper is an engine's record of bytes of its device.
type Keeper interface {
	// GiveBack is called once, by the last release of the buffer, on the
	// goroutine of that release. Work of the device that uses the bytes may
	// still be under way, and GiveBack does not wait for it.
	GiveBack()
}

// devices is the list of all devices, for statistics.
var devices struct {
	mu   sync.Mutex
	list []*Device
}

// NewDevice makes a device. name identifies it in errors and statistics, such
// as "cuda:0".
func NewDevice(name string, e Engine) (*Device, error) {
	if name == "" || e == nil {
		return nil, fmt.Errorf("memory: device %q: got no name or no engine, want both", name)
	}
	d := &Device{engine: e}
	d.ledger.name = name
	devices.mu.Lock()
	defer devices.mu.Unlock()
	if slices.ContainsFunc(devices.list, func(other *Device) bool { return other.ledger.name == name }) {
		return nil, fmt.Errorf("memory: device %q: got the name of another device, want a new one", name)
	}
	devices.list = append(devices.list, d)
	return d, nil
}

// Close removes the device from the statistics. It fails with [ErrShared] while
// the device has buffers.
func (d *Device) Close() error {
	if d == nil {
		return nil
	}
	if n := d.ledger.total.count.Load(); n > 0 {
		return fmt.Errorf("memory: close %s: got %d buffers of %d bytes that are held, want none: %w", d, n, d.ledger.total.current.Load(), ErrShared)
	}
	devices.mu.Lock()
	defer devices.mu.Unlock()
	devices.list = slices.DeleteFunc(devices.list, func(other *Device) bool { return other == d })
	return nil
}

// Devices lists the devices that were made and not closed, by name.
func Devices() []*Device {
	devices.mu.Lock()
	defer devices.mu.Unlock()
	list := slices.Clone(devices.list)
	slices.SortFunc(list, func(a, b *Device) int { return cmp.Compare(a.ledger.name, b.ledger.name) })
	return list
}

// String returns the name of the device, "host" for nil.
func (d *Device) String() string {
	if d == nil {
		return "host"
	}
	return d.ledger.name
}

// Engine returns the engine of the device, nil for the processor's memory.
func (d *Device) Engine() Engine {
	if d == nil {
		return nil
	}
	return d.engine
}

// Source returns the memory of the device as a [Source], counted under p. For
// nil it is [Process].
func (d *Device) Source(p Purpose) Source {
	if d == nil {
		return Process(p)
	}
	return onDevice{d, p}
}

type onDevice struct {
	d *Device
	p Purpose
}

func (s onDevice) Alloc(bytes int) (*Buffer, error) {
	if s.d.engine == nil {
		return nil, fmt.Errorf("memory: allocate %d bytes: got the zero Device, want one of NewDevice: %w", bytes, ErrReleased)
	}
	return s.d.engine.Alloc(bytes, s.p)
}

// Own makes a buffer of bytes of the device that its engine allocated. The
// buffer counts under p and against the device's limit, and may be written
// while it has one holder. After an error the engine still owns the bytes.
func (d *Device) Own(r *Remote, bytes int, p Purpose) (*Buffer, error) {
	if p >= noPurpose {
		return nil, fmt.Errorf("memory: own %d bytes of %s: got %s, want a purpose", bytes, d, p)
	}
	if err := d.check("own", r, bytes); err != nil {
		return nil, err
	}
	l := &d.ledger
	n, err := l.reserveOrCollect(bytes, p)
	if err != nil {
		return nil, err
	}
	n.done()
	s := &storage{remote: r, size: bytes, purpose: p}
	return s.publish(0), nil
}

// Adopt makes a buffer of bytes of the device that another allocator keeps,
// with the given flags, as the function [Adopt] does. They are not counted.
func (d *Device) Adopt(r *Remote, bytes int, flags Flags) (*Buffer, error) {
	if err := d.check("adopt", r, bytes); err != nil {
		return nil, err
	}
	s := &storage{remote: r, size: bytes, purpose: noPurpose}
	return s.publish(flags), nil
}

func (d *Device) check(op string, r *Remote, bytes int) error {
	if d == nil || r == nil || r.Device != d || r.Keeper == nil {
		return fmt.Errorf("memory: %s %d bytes of %s: got no record of bytes of this device, want one with a keeper", op, bytes, d)
	}
	if bytes < 0 || uint64(r.Address) > math.MaxUint64-uint64(bytes) {
		return fmt.Errorf("memory: %s: got %d bytes at address %#x of %s, want them within its address space", op, bytes, r.Address, d)
	}
	return nil
}

func (s *storage) freeRemote() {
	if s.purpose != noPurpose {
		s.remote.Device.ledger.unreserve(s.size, s.purpose)
	}
	s.remote.Keeper.GiveBack()
}

// DeviceFigures is one reading of a device's counters.
type DeviceFigures struct {
	Total     Usage
	ByPurpose [numPurposes]Usage
	Limit     int64 // 0 means no limit
}

// Of returns the figures of one purpose.
func (f DeviceFigures) Of(p Purpose) Usage { return f.ByPurpose[p] }

// Stats reads the device's counters, which count the requested bytes of its
// buffers. A nil device has the figures of the processor's memory.
func (d *Device) Stats() DeviceFigures {
	l := d.books()
	f := DeviceFigures{Total: l.total.read(), Limit: l.limit.Load()}
	for p := range l.purposes {
		f.ByPurpose[p] = l.purposes[p].read()
	}
	return f
}

// SetLimit bounds the bytes of all live buffers of the device, as the function
// [SetLimit] does for the processor's memory.
func (d *Device) SetLimit(bytes int64) (old int64) { return d.books().limit.Swap(max(bytes, 0)) }

// ResetPeak sets every peak of the device to its current value.
func (d *Device) ResetPeak() { d.books().resetPeak() }

func (d *Device) books() *ledger {
	if d == nil {
		return &host
	}
	return &d.ledger
}

// Device returns the device whose memory the bytes are in, nil for the
// processor's.
func (b *Buffer) Device() *Device {
	if b.none() || b.s.remote == nil {
		return nil
	}
	return b.s.remote.Device
}

// Remote returns the bytes of a device, while the buffer has a holder; the
// caller is, or acts for, one of them. It is nil for the processor's memory.
func (b *Buffer) Remote() *Remote {
	if b.Holders() == 0 {
		return nil
	}
	return b.s.remote
}
