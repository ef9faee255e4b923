package cuda

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
)

// Copies between the host and a device go through windows of page-locked
// memory, because the driver copies from other memory only while the caller
// waits. Two windows are enough for the processor to fill one while the device
// reads the other; four let a second goroutine go on.
const (
	windowBytes = 1 << 20
	maxWindows  = 4
)

// stage is the windows of a device.
type stage struct {
	mu      sync.Mutex
	freed   sync.Cond
	waiting []*window // not in use by a goroutine; the device may still read them
	made    int
}

type window struct {
	data []byte
	at   uintptr
	last stamp // the last copy from or into it
}

// window returns a window that the device no longer uses. Without wait it
// returns nil if all are in use by goroutines, for a caller that has one: two
// of these that waited for each other would wait forever.
func (d *Device) window(ctx context.Context, op string, wait bool) (*window, error) {
	w, err := d.anyWindow(wait)
	if w == nil || err != nil {
		return nil, err
	}
	if err := w.last.sync(ctx, op); err != nil {
		d.putWindow(w)
		return nil, err
	}
	return w, nil
}

func (d *Device) anyWindow(wait bool) (*window, error) {
	g := &d.stage
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.freed.L == nil {
		g.freed.L = &g.mu
	}
	for {
		if len(g.waiting) > 0 { // the one that was used first is the first to be complete
			w := g.waiting[0]
			if done, _ := w.last.isComplete(); done || g.made == maxWindows {
				g.waiting = g.waiting[1:]
				return w, nil
			}
		}
		if g.made < maxWindows {
			return d.makeWindow()
		}
		if !wait {
			return nil, nil
		}
		g.freed.Wait()
	}
}

func (d *Device) makeWindow() (*window, error) {
	at, err := d.drv.MemHostAlloc(d.ctx, windowBytes)
	if err != nil {
		return nil, d.fail("page-locked memory", err)
	}
	d.stage.made++
	return &window{data: unsafe.Slice((*byte)(pointer(at)), windowBytes), at: at}, nil
}

func (d *Device) putWindow(w *window) {
	d.stage.mu.Lock()
	d.stage.waiting = append(d.stage.waiting, w)
	if d.stage.freed.L != nil {
		d.stage.freed.Signal()
	}
	d.stage.mu.Unlock()
}

// free gives the windows back. No goroutine has one.
func (g *stage) free(d *Device) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, w := range g.waiting {
		errs = append(errs, d.drv.MemFreeHost(d.ctx, w.at))
	}
	g.waiting, g.made = nil, 0
	return errors.Join(errs...)
}

// pointer converts an address of memory outside the Go heap.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

// upload copies from into the block from byte at on.
func (s *Stream) upload(ctx context.Context, b *block, at int, from []byte) error {
	for len(from) > 0 {
		w, err := s.d.window(ctx, "upload", true)
		if err != nil {
			return err
		}
		n := copy(w.data, from)
		err = s.submit("upload", []use{{b, true}}, func() error {
			return s.d.drv.MemcpyHtoDAsync(s.d.ctx, b.pointer()+driver.Pointer(at), w.at, uint64(n), s.handle)
		})
		w.last = stamp{s, s.submitted.Load()}
		s.d.putWindow(w)
		if err != nil {
			return err
		}
		from, at = from[n:], at+n
	}
	return nil
}

// download copies bytes of the block from byte at on, and waits for them. While
// the processor empties one window the device fills another.
func (s *Stream) download(ctx context.Context, to []byte, b *block, at int) (err error) {
	type part struct {
		w  *window
		to []byte
	}
	var parts []part // in windows that the device fills
	defer func() {
		for _, p := range parts {
			s.d.putWindow(p.w)
		}
	}()
	for len(to) > 0 || len(parts) > 0 {
		if len(to) > 0 && len(parts) < 2 {
			w, err := s.d.window(ctx, "download", len(parts) == 0)
			if err != nil {
				return err
			}
			if w != nil {
				n := min(len(to), windowBytes)
				parts = append(parts, part{w, to[:n]})
				err = s.submit("download", []use{{b: b}}, func() error {
					return s.d.drv.MemcpyDtoHAsync(s.d.ctx, w.at, b.pointer()+driver.Pointer(at), uint64(n), s.handle)
				})
				w.last = stamp{s, s.submitted.Load()}
				if err != nil {
					return err
				}
				to, at = to[n:], at+n
				continue
			}
		}
		if err := parts[0].w.last.sync(ctx, "download"); err != nil {
			return err
		}
		copy(parts[0].to, parts[0].w.data)
		s.d.putWindow(parts[0].w)
		parts = parts[1:]
	}
	return nil
}

// engine is the device as package memory knows it. Its copies are work of the
// main stream.
type engine struct{ d *Device }

func (e engine) Alloc(bytes int, p memory.Purpose) (*memory.Buffer, error) {
	return e.d.arena.alloc(bytes, p, e.d.main)
}

func (e engine) Upload(ctx context.Context, to *memory.Buffer, at int, from []byte) error {
	b, err := e.block("upload", to, at, len(from))
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(to)
	return e.d.main.upload(ctx, b, at, from)
}

func (e engine) Download(ctx context.Context, to []byte, from *memory.Buffer, at int) error {
	b, err := e.block("download", from, at, len(to))
	if err != nil {
		return err
	}
	defer runtime.KeepAlive(from)
	return e.d.main.download(ctx, to, b, at)
}

func (e engine) Copy(ctx context.Context, to *memory.Buffer, at int, from *memory.Buffer, fromAt, bytes int) error {
	dst, err := engine{nil}.block("copy", to, at, bytes)
	if err != nil {
		return err
	}
	src, err := engine{nil}.block("copy", from, fromAt, bytes)
	if err != nil {
		return err
	}
	if dst.d.drv != src.d.drv {
		return fmt.Errorf("cuda: copy from %s to %s: got devices of two drivers, want one: %w", src.d, dst.d, memory.ErrDevice)
	}
	defer runtime.KeepAlive(to)
	defer runtime.KeepAlive(from)
	s := e.d.main
	return s.copy(dst, at, src, fromAt, bytes)
}

// copy submits a copy between blocks, of one device or of two.
func (s *Stream) copy(dst *block, at int, src *block, fromAt, bytes int) error {
	if bytes == 0 {
		return nil
	}
	to, from := dst.pointer()+driver.Pointer(at), src.pointer()+driver.Pointer(fromAt)
	return s.submit("copy", []use{{dst, true}, {b: src}}, func() error {
		if dst.d == src.d {
			return s.d.drv.MemcpyDtoDAsync(s.d.ctx, to, from, uint64(bytes), s.handle)
		}
		return s.d.drv.MemcpyPeerAsync(to, dst.d.ctx, from, src.d.ctx, uint64(bytes), s.handle)
	})
}

// block returns the block of a buffer of the device, of any if it is nil.
func (e engine) block(op string, buf *memory.Buffer, at, bytes int) (*block, error) {
	b := blockOf(buf.Remote())
	switch {
	case b == nil || e.d != nil && b.d != e.d:
		return nil, fmt.Errorf("cuda: %s: got a buffer of %s, want one of a CUDA device: %w", op, buf.Device(), memory.ErrDevice)
	case at < 0 || bytes < 0 || at > buf.Len()-bytes:
		return nil, fmt.Errorf("cuda: %s: got bytes %d to %d, want them within a buffer of %d", op, at, at+bytes, buf.Len())
	}
	return b, nil
}
