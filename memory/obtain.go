package memory

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

// canaryBytes is the number of bytes behind every allocation that the invariant
// build checks.
const canaryBytes = 64

// Alloc returns a buffer of zeroed bytes, aligned to [Alignment], outside the
// Go heap. The caller holds it. It fails with ErrLimit at the limit of the
// process or of the system.
func Alloc(bytes int, p Purpose) (*Buffer, error) {
	s, fresh, err := newStorage(bytes, p)
	if err != nil {
		return nil, err
	}
	if !fresh {
		clear(s.data)
	}
	return s.publish(0), nil
}

// Process returns the memory of the process as a [Source]: its buffers are
// those of [Alloc], counted under p, but with undefined contents, for callers
// that write every byte.
func Process(p Purpose) Source { return process(p) }

type process Purpose

func (p process) Alloc(bytes int) (*Buffer, error) {
	s, _, err := newStorage(bytes, Purpose(p))
	if err != nil {
		return nil, err
	}
	return s.publish(0), nil
}

// newStorage allocates memory and counts it. fresh reports whether it is
// zeroed.
func newStorage(bytes int, p Purpose) (s *storage, fresh bool, err error) {
	if bytes < 0 || bytes > math.MaxInt-canaryBytes {
		return nil, false, fmt.Errorf("memory: allocate for %s: got %d bytes, want 0 to %d", p, bytes, math.MaxInt-canaryBytes)
	}
	if p >= noPurpose {
		return nil, false, fmt.Errorf("memory: allocate %d bytes: got %s, want a purpose", bytes, p)
	}
	r, err := host.reserveOrCollect(bytes, p)
	if err != nil {
		return nil, false, err
	}
	s = &storage{purpose: p}
	if fresh, err = s.obtain(bytes); err != nil {
		r.cancel()
		return nil, false, fmt.Errorf("memory: allocate %d bytes for %s: %w (%w)", bytes, p, err, ErrLimit)
	}
	r.done()
	return s, fresh, nil
}

func (s *storage) obtain(bytes int) (fresh bool, err error) {
	if bytes == 0 {
		return true, nil
	}
	need := bytes
	if invariant.Enabled {
		need += canaryBytes
	}
	if need <= maxSlot {
		b := binOf(need)
		if s.raw, s.chunk, err = b.take(); err != nil && Trim() > 0 {
			s.raw, s.chunk, err = b.take()
		}
		if err != nil {
			return false, err
		}
		s.slot = uint16(s.chunk.slotOf(s.raw))
	} else if s.raw, fresh, err = mapping(need + gap(need)); err != nil {
		return false, err
	}
	s.data = s.raw[:bytes:bytes]
	if invariant.Enabled {
		invariant.SetCanary(s.raw[bytes : bytes+canaryBytes])
	}
	return fresh, nil
}

// mapping returns a mapping of at least size bytes: a kept one, or a fresh one,
// whose bytes are zero.
func mapping(size int) (m []byte, fresh bool, err error) {
	if size < hugeBytes {
		if m = cache.take(size); m != nil {
			return m, false, nil
		}
	}
	if m, err = obtain(size); err != nil && Trim() > 0 {
		m, err = obtain(size)
	}
	return m, true, err
}

func (c *chunk) slotOf(slot []byte) int {
	return int(uintptr(unsafe.Pointer(unsafe.SliceData(slot)))-uintptr(unsafe.Pointer(unsafe.SliceData(c.mem)))) / c.bin.slot
}

// Import makes a buffer of bytes that another allocator owns. It is never
// exclusive and not part of the statistics. Its last release calls release
// once, on the goroutine of that release; release may be nil.
func Import(data []byte, release func()) *Buffer { return Adopt(data, Imported, release) }

// Adopt is [Import] with the given flags. Without flags the bytes may be
// written when they have one holder: the caller guarantees that nothing else
// refers to them.
func Adopt(data []byte, flags Flags, release func()) *Buffer {
	s := &storage{data: data[:len(data):len(data)], giveUp: release, purpose: noPurpose}
	return s.publish(flags)
}

// Own makes a buffer of memory that the caller obtained from the system itself,
// such as an arena that other processes map. The buffer counts under p and
// against the limit like memory of Alloc, and may be written while it has one
// holder. Its last release calls giveBack once, on the goroutine of that
// release. After an error the caller still owns its memory.
func Own(data []byte, p Purpose, giveBack func()) (*Buffer, error) {
	if p >= noPurpose {
		return nil, fmt.Errorf("memory: own %d bytes: got %s, want a purpose", len(data), p)
	}
	if giveBack == nil {
		return nil, fmt.Errorf("memory: own %d bytes for %s: got no function that gives them back, want one", len(data), p)
	}
	r, err := host.reserveOrCollect(len(data), p)
	if err != nil {
		return nil, err
	}
	r.done()
	account.system.current.Add(int64(len(data)))
	s := &storage{data: data[:len(data):len(data)], giveUp: giveBack, purpose: p}
	return s.publish(0), nil
}

// MapFile maps a file for reading, as bytes of purpose Weights. The bytes are
// the file's: if the file is truncated while it is mapped, reading behind its
// end kills the process, so replace such files by renaming a new one over them.
func MapFile(path string) (*Buffer, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("memory: map file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("memory: map file: %w", err)
	}
	if info.IsDir() {
		return nil, fmt.Errorf("memory: map file %s: got a directory, want a regular file", path)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("memory: map file %s: got %s, want a regular file", path, info.Mode().Type())
	}
	if info.Size() > math.MaxInt {
		return nil, fmt.Errorf("memory: map file %s: got %d bytes, want at most %d", path, info.Size(), math.MaxInt)
	}
	size := int(info.Size())
	r, err := host.reserveOrCollect(size, Weights)
	if err != nil {
		return nil, err
	}
	s := &storage{purpose: Weights}
	if size > 0 {
		if s.raw, err = osmem.MapFile(f, size); err != nil {
			r.cancel()
			return nil, fmt.Errorf("memory: %w", err)
		}
		s.data = s.raw[:size:size]
	}
	r.done()
	account.files.Add(int64(size))
	return s.publish(Mapped | ReadOnly), nil
}

// publish makes the caller the first holder and attaches the safety net to the
// buffer.
func (s *storage) publish(flags Flags) *Buffer {
	if s.remote == nil {
		s.size = len(s.data)
	}
	s.state.Store(exclusive | uint64(flags))
	if invariant.Enabled {
		s.site = invariant.Here(2)
	}
	if profiling.Load() {
		s.stack = callers()
	}
	live.add(s)
	b := &Buffer{s: s}
	s.net = runtime.AddCleanup(b, (*storage).dropped, s)
	return b
}

// Bytes returns the bytes while the buffer has a holder; the caller is, or acts
// for, one of them. Without a holder it
