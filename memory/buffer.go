package memory

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

// Buffer is contiguous bytes with a count of their holders. The bytes are freed when the last holder releases them. A
// nil or zero Buffer has no bytes and no holder.
type Buffer struct {
	s *storage
}

// Source allocates buffers. The contents of a buffer are undefined, and its last release returns it to its source.
type Source interface {
	Alloc(bytes int) (*Buffer, error)
}

// storage is what a Buffer counts. It is a thing of its own so that the safety net can still reach it when nobody holds the
// Buffer.
type storage struct {
	state   atomic.Uint64 // holders in the lower 32 bits, flags above
	data    []byte        // the bytes of the buffer
	raw     []byte        // what goes back: data, the canary behind it and the slack
	chunk   *chunk        // the chunk raw is a slot of, nil for a mapping
	slot    int
	size    int      // len(data), also when data is gone
	giveUp  func()   // how bytes that others took go back; nil for ours and for imported ones that nobody wants back
	pool    *pool    // the arena that data is from, nil for none
	whole   *storage // the memory of the class that it is a part of, then
	renewal *renewal // of a buffer that can serve again, nil for the others
	label   string
	id      uint64
	net     runtime.Cleanup
	site    invariant.Site
	stack   []uintptr // where it was allocated, if profiling was on

	mu    sync.Mutex // guards first and the chain of records
	first uint32     // the handles on this buffer

	purpose Purpose // here it fills a gap

	before, after *storage // neighbours among the live buffers
}

// Flags are the reasons why a buffer is never exclusive, however few holders it has.
type Flags uint64

// The flags.
const (
	ReadOnly Flags = 1 << (32 + iota) // declared constant by its maker or by Freeze
	Imported                          // bytes of others: a slice of the caller, a tensor of another library
	Mapped                            // pages of a file
)

const (
	holdersMask = 1<<32 - 1
	exclusive   = 1 // one holder, no flag
)

// String lists the flags in words.
func (f Flags) String() string {
	switch {
	case f&Mapped != 0:
		return "mapped from a file"
	case f&Imported != 0:
		return "imported"
	case f&ReadOnly != 0:
		return "read-only"
	}
	return "none"
}

// canaryBytes is how much room behind every allocation the invariant build checks.
const canaryBytes = 64

// Alloc returns a buffer of zeroed bytes, aligned to [Alignment], outside the Go heap. The caller holds it.
// It fails with ErrLimit at the limit of the process or of the system.
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

// Process returns the memory of the process as a [Source]: its buffers are those of [Alloc], counted under p, but with
// undefined contents, for callers that write every byte.
func Process(p Purpose) Source { return process(p) }

type process Purpose

func (p process) Alloc(bytes int) (*Buffer, error) {
	s, _, err := newStorage(bytes, Purpose(p))
	if err != nil {
		return nil, err
	}
	return s.publish(0), nil
}

// newStorage takes memory and counts it. fresh says that it is zero.
func newStorage(bytes int, p Purpose) (s *storage, fresh bool, err error) {
	if bytes < 0 || bytes > math.MaxInt-canaryBytes {
		return nil, false, fmt.Errorf("memory: allocate for %s: got %d bytes, want 0 to %d", p, bytes, math.MaxInt-canaryBytes)
	}
	if p >= noPurpose {
		return nil, false, fmt.Errorf("memory: allocate %d bytes: got %s, want a purpose", bytes, p)
	}
	r, err := reserveOrCollect(bytes, p)
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
		s.slot = s.chunk.slotOf(s.raw)
	} else if s.raw, fresh, err = mapping(need + gap(need)); err != nil {
		return false, err
	}
	s.data = s.raw[:bytes:bytes]
	if invariant.Enabled {
		invariant.SetCanary(s.raw[bytes : bytes+canaryBytes])
	}
	return fresh, nil
}

// mapping returns a mapping of at least size bytes: one that waits, or a fresh one, whose bytes are zero.
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

// Import makes a buffer of bytes that belong to others. It is never exclusive and not part of the figures. Its last
// release calls release, once, from whatever goroutine that is; release may be nil.
func Import(data []byte, release func()) *Buffer { return Adopt(data, Imported, release) }

// Adopt is [Import] with the given flags. Without flags the bytes may be written when they have one holder: the caller
// guarantees that nothing else refers to them.
func Adopt(data []byte, flags Flags, release func()) *Buffer {
	s := &storage{data: data[:len(data):len(data)], giveUp: release, purpose: noPurpose}
	return s.publish(flags)
}

// Own makes a buffer of memory that the caller took from the system itself, such as an arena that other processes map.
// The buffer is counted under p and against the limit like memory of Alloc, and may be written while it has one holder.
// Its last release calls giveBack, once, from whatever goroutine that is. After an error the caller still has its
// memory.
func Own(data []byte, p Purpose, giveBack func()) (*Buffer, error) {
	if p >= noPurpose {
		return nil, fmt.Errorf("memory: own %d bytes: got %s, want a purpose", len(data), p)
	}
	if giveBack == nil {
		return nil, fmt.Errorf("memory: own %d bytes for %s: got no function that gives them back, want one", len(data), p)
	}
	r, err := reserveOrCollect(len(data), p)
	if err != nil {
		return nil, err
	}
	r.done()
	account.system.current.Add(int64(len(data)))
	s := &storage{data: data[:len(data):len(data)], giveUp: giveBack, purpose: p}
	return s.publish(0), nil
}

// MapFile maps a file for reading, as bytes of purpose Weights. The bytes are the file's: if the file is truncated
// while it is mapped, reading behind its end kills the process, so replace such files by renaming a new one over them.
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
	r, err := reserveOrCollect(size, Weights)
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

// publish makes the caller the first holder and attaches the safety net to the buffer.
func (s *storage) publish(flags Flags) *Buffer {
	s.size = len(s.data)
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

// Bytes returns the bytes while the buffer has a holder; the caller is, or acts for, one of them. Without a holder it
// returns nil.
func (b *Buffer) Bytes() []byte {
	if b.Holders() == 0 {
		return nil
	}
	return b.s.data
}

// Len returns the number of bytes, also without a holder.
func (b *Buffer) Len() int {
	if b.none() {
		return 0
	}
	return b.s.size
}

// none reports whether the buffer is nil or zero: nobody holds it.
func (b *Buffer) none() bool { return b == nil || b.s == nil }

// Holders returns the number of holders.
func (b *Buffer) Holders() int {
	if b.none() {
		return 0
	}
	return int(b.s.state.Load() & holdersMask)
}

// IsExclusive reports whether the buffer has one holder and no flag.
func (b *Buffer) IsExclusive() bool { return !b.none() && b.s.state.Load() == exclusive }

// Flags returns why the buffer is never exclusive, 0 if it may be.
func (b *Buffer) Flags() Flags {
	if b.none() {
		return 0
	}
	return Flags(b.s.state.Load() &^ holdersMask)
}

// Freeze sets the flag ReadOnly for good: from now on no holder may write the bytes. The caller is, or acts for, a live holder,
// and no writer has the buffer: a lock that was taken before stays taken.
func (b *Buffer) Freeze() {
	if !b.none() {
		b.s.state.Or(uint64(ReadOnly))
	}
}

// Purpose returns what the bytes are for. An imported buffer has none.
func (b *Buffer) Purpose() Purpose {
	if b.none() {
		return noPurpose
	}
	return b.s.purpose
}

// SetLabel sets the description of the bytes in reports of leaks. Call it before the buffer is shared.
func (b *Buffer) SetLabel(label string) {
	if !b.none() {
		b.s.label = label
	}
}

// Resident returns how many of the bytes are in physical memory, in whole pages. It is known only on Linux and only for
// buffers that are a mapping of their own (over 32 KiB); other cases are an error that matches errors.ErrUnsupported.
func (b *Buffer) Resident() (int, error) {
	if b.none() {
		return 0, fmt.Errorf("memory: resident size: got no buffer: %w", ErrReleased)
	}
	if b.s.chunk != nil || b.s.purpose == noPurpose {
		return 0, fmt.Errorf("memory: resident size of a buffer of %d bytes that is no mapping of its own: %w", b.Len(), errUnsupported)
	}
	if b.Flags()&Mapped != 0 {
		return osmem.Resident(b.Bytes())
	}
	return resident(b.Bytes())
}

// Discard lets the system take back the pages that lie wholly within bytes from to to. Pages of a mapped file are read
// again when they are next accessed: a way to free what was copied elsewhere. Other bytes are then undefined. It is
// advice: an error, which for buffers that are no mapping of their own matches errors.ErrUnsupported, changes nothing.
func (b *Buffer) Discard(from, to int) error {
	if b.none() {
		return fmt.Errorf("memory: discard: got no buffer: %w", ErrReleased)
	}
	data := b.Bytes()
	if from < 0 || from > to || to > len(data) {
		return fmt.Errorf("memory: discard bytes %d to %d: want them within a buffer of %d", from, to, len(data))
	}
	if b.s.chunk != nil || b.s.purpose == noPurpose {
		return fmt.Errorf("memory: discard bytes of a buffer of %d that is no mapping of its own: %w", len(data), errUnsupported)
	}
	page := osmem.PageSize()
	from, to = (from+page-1)/page*page, to/page*page
	if from >= to {
		return nil
	}
	if b.Flags()&Mapped != 0 {
		return osmem.DontNeed(data[from:to])
	}
	return discard(data[from:to])
}

// IsTrimmable reports whether Discard lets the system take back pages of a mapped file. Where it does not, they stay in memory
// from when they are first read until the buffer ends. It is false for buffers that are not mapped from a file.
func (b *Buffer) IsTrimmable() bool { return b.Flags()&Mapped != 0 && osmem.TrimsFiles() }

// Retain adds a holder. The caller must itself be, or act for, a live holder; on a buffer without holders the error is
// [ErrReleased].
func (b *Buffer) Retain() error {
	if b.none() {
		return fmt.Errorf("memory: retain: got no buffer: %w", ErrReleased)
	}
	for {
		old := b.s.state.Load()
		if old&holdersMask == 0 {
			return fmt.Errorf("memory: retain a buffer that nobody holds: %w", ErrReleased)
		}
		if old&holdersMask == holdersMask {
			return fmt.Errorf("memory: retain: got 2^32 holders: %w", ErrLimit)
		}
		if b.s.state.CompareAndSwap(old, old+1) {
			return nil
		}
	}
}

// Release drops the caller's hold. The last release frees the bytes. A holder that releases twice drops the hold of
// another; where there is no other the error is [ErrReleased].
func (b *Buffer) Release() error {
	if b.none() || !b.s.drop() {
		return fmt.Errorf("memory: release a buffer that nobody holds: %w", ErrReleased)
	}
	runtime.KeepAlive(b)
	return nil
}

func (s *storage) drop() bool {
	for {
		old := s.state.Load()
		if old&holdersMask == 0 {
			return false
		}
		if s.state.CompareAndSwap(old, old-1) {
			if old&holdersMask == 1 {
				s.free()
			}
			return true
		}
	}
}

func (s *storage) free() {
	if s.renewal == nil {
		s.net.Stop()
	}
	live.remove(s)
	switch {
	case s.pool != nil:
		data := s.data
		s.data = nil
		s.pool.put(s, len(data))
	case s.purpose == noPurpose:
		giveUp := s.giveUp
		s.data, s.giveUp = nil, nil
		if giveUp != nil {
			giveUp()
		}
		if s.renewal != nil {
			s.vacated()
		}
	case s.giveUp != nil: // of Own
		n := len(s.data)
		s.data = nil
		s.giveUp()
		account.system.current.Add(-int64(n))
		unreserve(n, s.purpose)
	case Flags(s.state.Load())&Mapped != 0:
		data, raw := s.data, s.raw
		s.data, s.raw = nil, nil
		account.files.Add(-int64(len(data)))
		if len(raw) > 0 {
			mustGiveBack(osmem.Unmap(raw))
		}
		unreserve(len(data), s.purpose)
	default:
		s.giveBack()
	}
}

// giveBack undoes newStorage.
func (s *storage) giveBack() {
	data, raw := s.data, s.raw
	s.data, s.raw = nil, nil
	if len(raw) > 0 {
		if invariant.Enabled {
			s.checkCanary(raw[len(data) : len(data)+canaryBytes])
			invariant.Poison(raw)
		}
		if s.chunk != nil {
			mustGiveBack(s.chunk.put(s.slot))
		} else {
			mustGiveBack(cache.put(raw))
		}
	}
	unreserve(len(data), s.purpose)
}

func (s *storage) checkCanary(canary []byte) {
	if i := invariant.CheckCanary(canary); i >= 0 {
		invariant.Failf("memory: byte %d behind a buffer of %s (%s) was overwritten; allocated at\n%s", i, s.purpose, s.label, s.site)
	}
}

// mustGiveBack: the system refuses to take back only what we did not get from it.
func mustGiveBack(err error) {
	if err != nil {
		invariant.Failf("memory: %v", err)
	}
}
