package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
)

// view is memory of another process, or of another allocator of this one.
type view struct {
	d   *Device
	at  driver.Pointer
	end func() error // nil for memory of this process
}

// noGuests is the count of the guests of a closed device.
const noGuests = -1

// enter counts an arena or an event of another process, before it is opened:
// while one is counted, the device is not closed.
func (d *Device) enter(op string) error {
	for {
		n := d.guests.Load()
		if n == noGuests {
			return fmt.Errorf("cuda: %s: %s is closed: %w", op, d, memory.ErrReleased)
		}
		if d.guests.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// leave ends what enter began, after the arena or event is closed.
func (d *Device) leave() { d.guests.Add(-1) }

func (e engine) MapChunk(fd, bytes int) (v share.View, err error) {
	d := e.d
	if err := d.enter("map memory of another process"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.leave()
		}
	}()
	m, err := d.drv.MemImportFromShareableHandle(fd)
	if err != nil {
		return nil, d.fail("import memory", err)
	}
	defer func() { _ = d.drv.MemRelease(m) }() // the mapping keeps the memory
	at, err := d.mapView(m, uint64(bytes))
	if err != nil {
		return nil, d.fail("map memory of another process", err)
	}
	return &view{d, at, func() error { return d.unmap(at, uint64(bytes)) }}, nil
}

// mapView maps memory for reading. Tensors over it are read-only, too, where
// the driver knows no memory that is only read.
func (d *Device) mapView(m driver.Memory, size uint64) (driver.Pointer, error) {
	if !d.noReadOnly.Load() {
		at, err := d.mapAt(m, size, driver.AccessRead)
		if !errors.Is(err, driver.NotSupported) && !errors.Is(err, driver.InvalidValue) {
			return at, err
		}
	}
	at, err := d.mapAt(m, size, driver.AccessReadWrite)
	if err == nil {
		d.noReadOnly.Store(true)
	}
	return at, err
}

func (c *view) Block(at, bytes int, after share.Event, record uint32, living func() bool, done func()) (*memory.Buffer, error) {
	b := &block{d: c.d, bytes: bytes, home: shared{done}, living: living}
	b.Remote = memory.Remote{Device: c.d.mem, Address: uintptr(c.at) + uintptr(at), Keeper: b}
	if e, is := after.(*foreignEvent); is {
		b.wrote = stamp{e, e.learn(record)}
	}
	return c.d.mem.Adopt(&b.Remote, bytes, memory.Imported|memory.ReadOnly)
}

func (c *view) Unmap() error {
	defer c.d.leave()
	if c.end == nil {
		return nil
	}
	if err := c.end(); err != nil && !isLost(err) {
		return c.d.fail("unmap memory of another process", err)
	}
	return nil
}

// foreignEvent is an event of another process, which that process records again
// and again. Its work has the numbers of the records.
type foreignEvent struct {
	d      *Device
	living func() bool // the other process exists

	known    atomic.Uint64 // the last record that an offer has named: the event is of this one or a later one
	complete atomic.Uint64

	mu    sync.Mutex
	event driver.Event // 0 when closed
	lost  uint64       // records up to this number were not reached when the process was gone
}

func (e engine) OpenEvent(handle [64]byte, living func() bool) (share.Event, error) {
	if err := e.d.enter("open an event of another process"); err != nil {
		return nil, err
	}
	ev, err := e.d.drv.IpcOpenEventHandle(e.d.ctx, handle)
	if err != nil {
		e.d.leave()
		return nil, e.d.fail("open an event of another process", err)
	}
	return &foreignEvent{d: e.d, living: living, event: ev}, nil
}

// learn returns the number of a record. Records are counted in 32 bits on the
// way here and named in no particular order, so they are near the last one that
// is known.
func (e *foreignEvent) learn(record uint32) uint64 {
	for {
		last := e.known.Load()
		at := uint64(int64(last) + int64(int32(record-uint32(last))))
		if at <= last || e.known.CompareAndSwap(last, at) {
			return at
		}
	}
}

func (e *foreignEvent) done() uint64 { return e.complete.Load() }

func (e *foreignEvent) fail(op string, err error) error { return e.d.fail(op, err) }

func (e *foreignEvent) isComplete(at uint64) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	err := e.ask()
	if err != nil {
		return false, err
	}
	return max(e.complete.Load(), e.lost) >= at, nil // what will never be written need not be waited for
}

// ask looks whether the records that are known are reached. The caller has the
// lock.
func (e *foreignEvent) ask() error {
	known := e.known.Load() // before the question, whose answer may be about a later record
	if e.event == 0 {
		raise(&e.complete, known)
		return nil
	}
	living := e.living() // before the question: the process may reach the record and end
	done, err := e.d.drv.EventQuery(e.d.ctx, e.event)
	if err != nil {
		return err
	}
	switch {
	case done:
		raise(&e.complete, known)
	case !living:
		e.lost = known
	}
	return nil
}

func (e *foreignEvent) precede(d *Device, h driver.Stream, at uint64) (uint64, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	known := e.known.Load()
	if err := e.ask(); err != nil {
		return 0, d.fail("wait", err)
	}
	switch {
	case e.complete.Load() >= at:
		return 0, nil
	case e.lost >= at:
		return 0, fmt.Errorf("cuda: wait for work of another process on %s: the process died before the work was complete: %w", e.d, share.ErrClosed)
	}
	if err := d.drv.StreamWaitEvent(d.ctx, h, e.event); err != nil {
		return 0, d.fail("wait", err)
	}
	return known, nil
}

func (e *foreignEvent) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.event == 0 {
		return nil
	}
	ev := e.event
	e.event = 0
	defer e.d.leave()
	if err := e.d.drv.EventDestroy(e.d.ctx, ev); err != nil && !isLost(err) {
		return e.d.fail("close an event of another process", err)
	}
	return nil
}
