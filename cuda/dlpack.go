package cuda

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// The engine is also a [dlpack.Exchanger]: tensors of the device are exchanged
// with other libraries in place, and an event orders the work of the two.

// Place implements [dlpack.Exchanger].
func (e engine) Place(r *memory.Remote) dlpack.Device {
	if b := blockOf(r); b != nil && b.managed {
		return dlpack.Device{Type: dlpack.CUDAManaged, ID: int32(b.d.number)}
	}
	return dlpack.Device{Type: dlpack.CUDA, ID: int32(e.d.number)}
}

// Current implements [dlpack.Exchanger].
func (e engine) Current() dlpack.Stream { return dlpack.Stream(e.d.main.handle) }

// Lend implements [dlpack.Exchanger].
func (e engine) Lend(r *memory.Remote, to dlpack.Stream, write bool) error {
	b := blockOf(r)
	if b == nil {
		return fmt.Errorf("cuda: export: got bytes of %s, want those of a CUDA device: %w", r.Device, tensor.ErrDevice)
	}
	if to != dlpack.NoSync {
		if to == 0 {
			to = dlpack.LegacyStream
		}
		if err := b.precede(driver.Stream(to), write); err != nil {
			return err
		}
	}
	b.lend(write)
	return nil
}

// precede makes later work of a stream that another library made wait for the
// work that must come before a use of the bytes.
func (b *block) precede(h driver.Stream, write bool) error {
	if err := b.exists(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mustWait(write) {
		if err := b.d.whole.before(b.d, b.d.ctx, h); err != nil {
			return b.d.fail("wait", err)
		}
	}
	if err := b.d.precede(b.wrote, h); err != nil || !write {
		return err
	}
	for _, r := range b.reads {
		if err := b.d.precede(r, h); err != nil {
			return err
		}
	}
	return nil
}

// precede makes later work of a stream that another library made wait for w. It
// asks first whether w is complete, so that further exports of the same bytes
// need no call of the driver.
func (d *Device) precede(w stamp, h driver.Stream) error {
	if s, ours := w.s.(*Stream); ours && s.d == d && s.handle == h && h != driver.PerThreadStream {
		return nil
	}
	done, err := w.isComplete()
	if err != nil {
		return w.s.fail("wait", err)
	}
	if !done {
		_, err = w.s.precede(d, h, w.at)
	}
	return err
}

// loan is the home of bytes of another library.
type loan struct {
	end   func()
	ready stamp // the work of this package that the bytes were ready behind at first

	mu     sync.Mutex
	shared []*lending // what lends the bytes to other processes
}

// giveBack ends the loan when the work that uses the bytes is complete: the
// library may give them to others at once, on any stream.
func (l *loan) giveBack(b *block) {
	if b.isUnused(l.ready) {
		l.finish(b.d)
		return
	}
	b.d.limbo.leave(b, func() { l.finish(b.d) })
}

// finish ends the loan, once all that lends the bytes to other processes has
// let go of them. No work of this process uses them.
func (l *loan) finish(d *Device) {
	end := func() {
		d.borrowed.Add(-1)
		l.end()
	}
	l.mu.Lock()
	list := l.shared
	l.mu.Unlock()
	if len(list) == 0 {
		end()
		return
	}
	var left atomic.Int32
	left.Store(int32(len(list)))
	for _, s := range list {
		s.ended(func() {
			d.shared.drop(s.base)
			if left.Add(-1) == 0 {
				end()
			}
		})
	}
}

// isUnused reports whether nothing has used the bytes since they were ready.
func (b *block) isUnused(ready stamp) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wrote == ready && len(b.reads) == 0 && b.lent.Load() == 0
}

// Receive implements [dlpack.Exchanger].
func (e engine) Receive(l dlpack.Loan) (*memory.Buffer, error) {
	d := e.d
	if err := d.usable("import"); err != nil {
		return nil, err
	}
	if l.Bytes > 0 {
		for _, at := range []uintptr{l.Address, l.Address + uintptr(l.Bytes) - 1} {
			if err := d.check(l.Device, driver.Pointer(at)); err != nil {
				return nil, err
			}
		}
	}
	home := &loan{end: l.End}
	b := &block{d: d, bytes: l.Bytes, home: home, managed: l.Device.Type == dlpack.CUDAManaged}
	b.Remote = memory.Remote{Device: d.mem, Address: l.Address, Keeper: b}
	ready, err := d.ready(l.Ready)
	if err != nil {
		return nil, fmt.Errorf("cuda: import: stream %d: %w", l.Ready, err)
	}
	b.wrote, home.ready = ready, ready
	buf, err := d.mem.Adopt(&b.Remote, l.Bytes, l.Flags)
	if err == nil {
		d.borrowed.Add(1)
	}
	return buf, err
}

// check holds what a producer says of an address against what the driver says.
func (d *Device) check(claim dlpack.Device, at driver.Pointer) error {
	info, err := d.drv.PointerGetAttributes(at)
	if err != nil {
		return d.fail("import", err)
	}
	got := ""
	switch {
	case info.Type == driver.TypeHost:
		got = "page-locked host memory"
	case info.Type != driver.TypeDevice && info.Type != driver.TypeUnified:
		got = "memory that the driver does not know"
	case info.Ordinal != d.number:
		got = fmt.Sprintf("memory of device %d", info.Ordinal)
	case claim.Type == dlpack.CUDAManaged && !info.Managed:
		got = "memory that is not managed"
	default:
		return nil
	}
	return fmt.Errorf("cuda: import: got %s at address %#x, want what the producer says: %s %d: %w", got, uint64(at), claim.Type, claim.ID, tensor.ErrDevice)
}

// ready returns the work of this package behind which bytes are ready that a
// producer has made ready on a stream.
func (d *Device) ready(on dlpack.Stream) (stamp, error) {
	if on == dlpack.NoSync {
		return stamp{}, nil
	}
	s, ours := d.main, false
	if known, found := d.handles.Load(driver.Stream(on)); found {
		s, ours = known.(*Stream), true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usable("import"); err != nil {
		return stamp{}, err
	}
	var err error
	switch {
	case on == 0: // behind all work of the producer, wherever it is
		err = d.whole.before(d, d.ctx, s.handle)
	case !ours:
		err = d.whole.after(s, driver.Stream(on))
	}
	if err != nil {
		return stamp{}, d.fail("wait", err)
	}
	// The producer's wait, or this one, counts as work of the stream.
	return stamp{s, s.submitted.Add(1)}, nil
}
