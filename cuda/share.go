package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// Memory of a device for other processes: package share decides who has which
// part of it, this file makes it and says when its bytes are complete.

var _ share.Device = engine{}

func init() { share.RegisterDevices(find) }

// find opens the device of the machine with a UUID, nil if there is none.
func find(id share.UUID) (*memory.Device, error) {
	c, err := Open()
	if err != nil {
		return nil, err
	}
	for i := range c.Len() {
		h, err := c.d.DeviceGet(i)
		if err != nil {
			return nil, fmt.Errorf("cuda: device %d: %w", i, err)
		}
		if got, err := c.d.DeviceGetUUID(h); err != nil || got != id {
			continue // a device that does not tell is not the one that is wanted
		}
		d, err := c.Device(i)
		if err != nil {
			return nil, err
		}
		return d.mem, nil
	}
	return nil, nil
}

func (e engine) UUID() share.UUID { return e.d.info.UUID }

func (e engine) Granularity() (int, error) {
	if !e.d.info.VMM {
		return 0, fmt.Errorf("cuda: share memory of %s: the driver exports none as descriptors: %w", e.d, tensor.ErrUnsupported)
	}
	return int(e.d.arena.pageBytes()), nil
}

func (e engine) Settle() int {
	e.d.limbo.poll()
	return e.d.limbo.len()
}

// sharedChunk is memory that other processes map.
type sharedChunk struct {
	memory.Remote
	d     *Device
	bytes uint64
	mem   driver.Memory
	buf   *memory.Buffer
}

func (e engine) NewChunk(bytes int) (share.Chunk, error) {
	d := e.d
	if d.closed.Load() {
		return nil, fmt.Errorf("cuda: share %d bytes: %s is closed: %w", bytes, d, memory.ErrReleased)
	}
	c := &sharedChunk{d: d, bytes: uint64(bytes)}
	at, mem, err := d.mapMemory(c.bytes, d.arena.prop())
	if errors.Is(err, driver.OutOfMemory) && d.arena.Trim() > 0 {
		at, mem, err = d.mapMemory(c.bytes, d.arena.prop())
	}
	if err != nil {
		return nil, d.fail(fmt.Sprintf("share %d bytes", bytes), err)
	}
	c.Remote, c.mem = memory.Remote{Device: d.mem, Address: uintptr(at), Keeper: c}, mem
	if c.buf, err = d.mem.Own(&c.Remote, bytes, memory.Shared); err != nil {
		c.GiveBack()
		return nil, err
	}
	c.buf.SetLabel("shared arena")
	return c, nil
}

// GiveBack ends the chunk in this process. It has no blocks, and a block ends
// after its work, so no work of this process uses the bytes.
func (c *sharedChunk) GiveBack() {
	_ = errors.Join(c.d.unmap(driver.Pointer(c.Address), c.bytes), c.d.drv.MemRelease(c.mem)) // refused only when the device is lost
}

func (c *sharedChunk) Buffer() *memory.Buffer { return c.buf }

func (c *sharedChunk) Export() (int, error) {
	fd, err := c.d.drv.MemExportToShareableHandle(c.mem)
	if err != nil {
		return -1, c.d.fail("export memory", err)
	}
	return fd, nil
}

// shared is the home of blocks that package share has the bytes of.
type shared struct{ done func() }

func (h shared) giveBack(b *block) { b.d.limbo.leave(b, h.done) }

func (c *sharedChunk) Block(at, bytes int, done func()) (*memory.Buffer, error) {
	b := &block{d: c.d, bytes: bytes, home: shared{done}}
	b.Remote = memory.Remote{Device: c.d.mem, Address: c.Address + uintptr(at), Keeper: b}
	return c.d.mem.Adopt(&b.Remote, bytes, 0)
}

// written returns the work that wrote the block. For a block that other code
// may write it is all work of the device.
func (b *block) written() (stamp, error) {
	b.mu.Lock()
	foreign, w := b.mustWait(false), b.wrote
	b.mu.Unlock()
	if !foreign {
		return w, nil
	}
	s := b.d.main
	err := s.submit("share", []use{{b: b}}, func() error { return nil })
	return stamp{s, s.submitted.Load()}, err
}

func (e engine) Written(buf *memory.Buffer, wantEvent bool) (share.Source, uint32, bool, error) {
	defer runtime.KeepAlive(buf)
	b := blockOf(buf.Remote())
	if b == nil {
		return nil, 0, false, fmt.Errorf("cuda: share: the buffer is released: %w", memory.ErrReleased)
	}
	w, err := b.written()
	if err != nil || w.s == nil || w.s.done() >= w.at {
		return nil, 0, true, err
	}
	if s, ours := w.s.(*Stream); ours && wantEvent && b.d.events.work(b.d) {
		event, record, err := s.publish(w.at)
		if event != nil {
			return event, record, false, nil
		}
		if err != nil && isLost(err) {
			return nil, 0, false, b.d.fail("share", err)
		}
	}
	complete, err := w.isComplete()
	if err != nil {
		return nil, 0, false, b.d.fail("share", err)
	}
	return nil, 0, complete, nil
}

func (e engine) AwaitWritten(ctx context.Context, buf *memory.Buffer) error {
	defer runtime.KeepAlive(buf)
	b := blockOf(buf.Remote())
	if b == nil {
		return fmt.Errorf("cuda: share: the buffer is released: %w", memory.ErrReleased)
	}
	w, err := b.written()
	if err != nil || w.s == nil {
		return err
	}
	return w.sync(ctx, "share")
}

// sharedEvent is an event that other processes can open. It is recorded on one
// stream, and on another one after the end of that.
type sharedEvent struct {
	event    driver.Event
	handle   driver.IPCHandle
	recorded uint64 // the work of the stream that it covers
	records  uint32
}

func (e *sharedEvent) Handle() [64]byte { return e.handle }

// publish records the shared event of the stream behind the work up to the
// number at, unless it was before. It returns nil for a stream that is closed,
// whose work is complete.
func (s *Stream) publish(at uint64) (*sharedEvent, uint32, error) {
	s.event.Lock()
	defer s.event.Unlock()
	if s.marker == 0 {
		return nil, 0, nil
	}
	if s.shared == nil {
		e, err := s.d.events.get(s.d)
		if err != nil {
			return nil, 0, err
		}
		e.recorded, s.shared = 0, e
	}
	e := s.shared
	if e.recorded < at {
		covered := s.submitted.Load() // before the event, which may cover more
		if err := s.d.drv.EventRecord(s.d.ctx, e.event, s.handle); err != nil {
			return nil, 0, err
		}
		e.recorded = covered
		e.records++
	}
	return e, e.records, nil
}

// sharedEvents are the events of a device for other processes. One that a
// process has opened must not be destroyed, so those of closed streams are kept
// for later ones until the device is closed.
type sharedEvents struct {
	mu      sync.Mutex
	free    []*sharedEvent
	asked   bool
	missing bool // the driver cannot share events
}

// work reports whether the device can share events.
func (l *sharedEvents) work(d *Device) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked {
		v, err := d.drv.DeviceGetAttribute(driver.IPCEventSupported, d.handle)
		l.asked, l.missing = true, err != nil || v == 0
	}
	return !l.missing
}

func (l *sharedEvents) get(d *Device) (*sharedEvent, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.free); n > 0 {
		e := l.free[n-1]
		l.free = l.free[:n-1]
		return e, nil
	}
	ev, err := d.drv.EventCreate(d.ctx, driver.EventDisableTiming|driver.EventInterprocess)
	if err != nil {
		return nil, err
	}
	h, err := d.drv.IpcGetEventHandle(d.ctx, ev)
	if err != nil {
		l.missing = true
		_ = d.drv.EventDestroy(d.ctx, ev) // the first error counts
		return nil, err
	}
	return &sharedEvent{event: ev, handle: h}, nil
}

func (l *sharedEvents) put(e *sharedEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = append(l.free, e)
}

func (l *sharedEvents) destroy(d *Device) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, e := range l.free {
		errs = append(errs, d.drv.EventDestroy(d.ctx, e.event))
	}
	l.free = nil
	return errors.Join(errs...)
}
