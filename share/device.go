package share

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Device is an engine of package memory whose bytes can be shared with other
// processes: [OnDevice] takes devices that have one. It is comparable. Package
// cuda has an implementation; this package knows no other device. Its methods
// may be called from any goroutine, and none but AwaitWritten waits for work of
// the device.
type Device interface {
	// UUID identifies the device in every process.
	UUID() UUID
	// Granularity is the number of bytes of which chunks are multiples.
	Granularity() (int, error)
	// NewChunk obtains memory that other processes can map.
	NewChunk(bytes int) (Chunk, error)
	// MapChunk maps a chunk of another process for reading. It does not keep
	// the descriptor.
	MapChunk(fd, bytes int) (View, error)
	// Written returns an event of this process that is recorded behind the work
	// that wrote a buffer of the device, and the number of that record; or no
	// event, and whether the work is complete. With wantEvent false it returns
	// no event.
	Written(buf *memory.Buffer, wantEvent bool) (e Source, record uint32, complete bool, err error)
	// AwaitWritten waits for that work.
	AwaitWritten(ctx context.Context, buf *memory.Buffer) error
	// ShareAllocation returns the allocation of another allocator of this
	// process that contains the bytes of a buffer, for processes that open it.
	// It fails with an error that matches tensor.ErrUnsupported for bytes that
	// the driver does not share in this way. Otherwise ended is called once, on
	// any goroutine, after the buffer's last release, when the work of this
	// process that uses the bytes is complete. Its argument gives the bytes
	// back to their allocator, which ended calls now or later.
	ShareAllocation(buf *memory.Buffer, ended func(giveBack func())) (Allocation, error)
	// OpenAllocation opens an allocation of another process, which has no other
	// open view here.
	OpenAllocation(handle [64]byte, bytes int) (View, error)
	// OwnAllocation is OpenAllocation for one of this process, which drivers
	// open in other processes only.
	OwnAllocation(address uintptr) (View, error)
	// OpenEvent opens an event of another process. living reports whether that
	// process still exists: what it has not finished then, it never will.
	OpenEvent(handle [64]byte, living func() bool) (Event, error)
	// Settle ends blocks whose work is complete, and returns the number of
	// those whose work is not.
	Settle() int
}

// Chunk is memory of a device that this process has made.
type Chunk interface {
	// Buffer is the whole chunk, in the statistics of its device. Its release
	// gives the chunk back; other processes keep what they have mapped.
	Buffer() *memory.Buffer
	// Export returns a descriptor that the caller closes.
	Export() (fd int, err error)
	// Block returns a buffer of a part of the chunk, which may be written while
	// it has one holder. After its last release, done is called once when the
	// work that uses the bytes is complete, on any goroutine.
	Block(at, bytes int, done func()) (*memory.Buffer, error)
}

// Allocation is memory of another allocator of this process. Other processes
// open all of it with the handle; they must close it before it is freed.
type Allocation struct {
	Address uintptr
	Bytes   int
	Handle  [64]byte
}

// Source is an event of this process, which is recorded again and again. It is
// comparable.
type Source interface {
	// Handle lets other processes open the event.
	Handle() [64]byte
}

// View is a chunk or an allocation of another process that is mapped here for
// reading.
type View interface {
	// Block returns a read-only buffer of a part. Work that reads it waits, on
	// the device, for a record of the event, if after is not nil. After its
	// last release, done is called once when the work that uses the bytes is
	// complete. If living is not nil, it reports whether the process exists
	// without which the bytes are undefined; if not, new work fails.
	Block(at, bytes int, after Event, record uint32, living func() bool, done func()) (*memory.Buffer, error)
	// Unmap ends the view. It has no blocks.
	Unmap() error
}

// Event is an event of another process.
type Event interface {
	// Close ends the use of the event.
	Close() error
}

// OnDevice puts the owner's arenas into the memory of a device. Tensors that
// are made in the owner are on the device, and tensors that are elsewhere are
// copied there when they are offered. Peers get them on the same device, if
// their process has it.
//
// An offer is sent when the work that writes the tensor is complete, so that
// the tensor stays what it is whoever dies; see [BeforeWork].
func OnDevice(d *memory.Device) OwnerOption {
	return func(o *Owner) error {
		engine, shares := d.Engine().(Device)
		if !shares {
			return fmt.Errorf("got %s, want a device whose memory can be shared: %w", d, tensor.ErrUnsupported)
		}
		pages, err := engine.Granularity()
		if err != nil {
			return err
		}
		o.device = &ownDevice{Device: engine, mem: d, uuid: engine.UUID(), pages: pages}
		return nil
	}
}

// BeforeWork lets an offer of a device's tensor be sent before the work that
// writes it is complete, if the peer can open events of this process: the
// peer's device then waits for an event. If this process dies before that work
// is complete, the tensor is undefined, and a stream of the peer that waits for
// it already never goes on: so it is for processes that live and die together.
func BeforeWork() OfferOption {
	return func(c offerOptions) offerOptions {
		c.beforeWork = true
		return c
	}
}

// ownDevice is the device of an owner's arenas.
type ownDevice struct {
	Device
	mem   *memory.Device
	uuid  UUID
	pages int
}

// deviceMultiple is what blocks on devices are multiples of: the alignment that
// allocations of CUDA have.
const deviceMultiple = 256

// roundUp returns the size of the span for a block: every block has an address
// of its own.
func (o *Owner) roundUp(size int) int {
	if o.device == nil {
		return roundUp(size)
	}
	return max((size+deviceMultiple-1)/deviceMultiple*deviceMultiple, deviceMultiple)
}

// unit is what the sizes of arenas are multiples of.
func (o *Owner) unit() int {
	if o.device == nil {
		return hugePage
	}
	return max(hugePage, o.device.pages)
}

// settle frees blocks whose last work is complete, and returns the number of
// those whose work is not. The caller does not have o.mu.
func (o *Owner) settle() int {
	if o.device == nil {
		return 0
	}
	return o.device.Settle()
}

// memory returns the device of the arenas, nil for the host.
func (o *Owner) memory() *memory.Device {
	if o.device == nil {
		return nil
	}
	return o.device.mem
}

// finders look for devices that are not open yet.
var finders struct {
	mu   sync.Mutex
	list []func(UUID) (*memory.Device, error)
}

// RegisterDevices registers a function that opens the device with a UUID when a
// peer offers memory of it. The function returns nil if it knows no such
// device. Packages that drive devices call this when they are initialised.
func RegisterDevices(open func(UUID) (*memory.Device, error)) {
	if open == nil {
		return
	}
	finders.mu.Lock()
	defer finders.mu.Unlock()
	finders.list = append(finders.list, open)
}

// deviceOf returns this process's device with a UUID.
func deviceOf(id UUID) (Device, error) {
	var others []string
	for _, d := range memory.Devices() {
		if engine, shares := d.Engine().(Device); shares {
			if engine.UUID() == id {
				return engine, nil
			}
			others = append(others, engine.UUID().String())
		}
	}
	finders.mu.Lock()
	list := slices.Clone(finders.list)
	finders.mu.Unlock()
	for _, open := range list {
		d, err := open(id)
		if err != nil {
			return nil, fmt.Errorf("this arena is on device %s: %w", id, err)
		}
		if engine, shares := d.Engine().(Device); shares {
			return engine, nil
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("this arena is on device %s, and this program drives no devices (import package cuda)", id)
	}
	return nil, fmt.Errorf("this arena is on device %s, and this process has [%s]", id, strings.Join(others, " "))
}

// knowsDevices reports whether the peer can be offered memory of devices.
func (p *Peer) knowsDevices() error {
	if p.theirs.version > firstVersion && p.theirs.abilities&capDevices != 0 {
		return nil
	}
	return fmt.Errorf("%s takes no memory of devices (it speaks version %d of the protocol): %w", p.who(), p.theirs.version, ErrRefused)
}
