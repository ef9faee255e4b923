package memory

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

// Buffer is a contiguous range of bytes with a count of its holders. The bytes
// are freed when the last holder releases them. A nil or zero Buffer has no
// bytes and no holder.
type Buffer struct {
	s *storage
}

// Source allocates buffers. The contents of a buffer are undefined. Its last
// release returns it to its source.
type Source interface {
	Alloc(bytes int) (*Buffer, error)
}

// storage is the state of a Buffer. It is a separate object, so that the safety
// net can still reach it when the Buffer is unreachable.
type storage struct {
	state   atomic.Uint64 // holders in the lower 32 bits, flags above
	data    []byte        // the bytes of the buffer
	raw     []byte        // the allocation: data, the canary behind it and the slack
	chunk   *chunk        // the chunk of which raw is a slot, nil for a mapping
	remote  *Remote       // bytes of a device, nil for the processor's; data is nil then
	size    int           // len(data), also after data was freed
	giveUp  func()        // returns bytes of other allocators; nil for this package's, and for imported ones without a release function
	pool    *pool         // the arena of data, nil if there is none
	whole   *storage      // the class's memory of which data is a part, if there is an arena
	renewal *renewal      // of a renewable buffer, nil for others
	label   string
	id      uint64
	net     runtime.Cleanup
	site    invariant.Site
	stack   []uintptr // call stack of the allocation, if profiling was on

	mu    sync.Mutex // guards first and the list of records
	first uint32     // the handles on this buffer

	slot    uint16 // of the chunk; this and the next are declared here to fill a gap
	purpose Purpose

	before, after *storage // neighbours among the live buffers
}

// Flags are the reasons why a buffer is never exclusive, regardless of the
// number of holders.
type Flags uint64

// The flags.
const (
	ReadOnly Flags = 1 << (32 + iota) // declared constant by Freeze or when it was made
	Imported                          // bytes of another allocator: a slice of the caller, a tensor of another library
	Mapped                            // pages of a file
)

const (
	holdersMask = 1<<32 - 1
	exclusive   = 1 // one holder, no flag
)

// String lists the flags.
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

// returns nil.
func (b *Buffer) Bytes() []byte {
	if b.Holders() == 0 {
		return nil
	}
	return b.s.data
}

// Len returns the number of bytes, also of a buffer without a holder.
func (b *Buffer) Len() int {
	if b.none() {
		return 0
	}
	return b.s.size
}

// none reports whether the buffer is nil or zero, which means that it has no
// holder.
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

// Flags returns the reasons why the buffer is never exclusive, 0 if it may be.
func (b *Buffer) Flags() Flags {
	if b.none() {
		return 0
	}
	return Flags(b.s.state.Load() &^ holdersMask)
}

// Freeze sets the flag ReadOnly permanently: from now on no holder may write
// the bytes. The caller is, or acts for, a live holder, and no writer has the
// buffer: a lock that was taken before stays taken.
func (b *Buffer) Freeze() {
	if !b.none() {
		b.s.state.Or(uint64(ReadOnly))
	}
}

// Purpose returns the purpose of the bytes. An imported buffer has none.
func (b *Buffer) Purpose() Purpose {
	if b.none() {
		return noPurpose
	}
	return b.s.purpose
}

// SetLabel sets the description of the bytes in reports of leaks. Call it
// before the buffer is shared.
func (b *Buffer) SetLabel(label string) {
	if !b.none() {
		b.s.label = label
	}
}

// Resident returns the number of bytes that are in physical memory, in whole
// pages. It is available only on Linux and only for buffers that are a mapping
// of their own (over 32 KiB); otherwise the error matches
// errors.ErrUnsupported.
func (b *Buffer) Resident() (int, error) {
	if b.none() {
		return 0, fmt.Errorf("memory: resident size: got no buffer: %w", ErrReleased)
	}
	if b.s.chunk != nil || b.s.remote != nil || b.s.purpose == noPurpose {
		return 0, fmt.Errorf("memory: resident size of a buffer of %d bytes that is no mapping of its own: %w", b.Len(), errUnsupported)
	}
	if b.Flags()&Mapped != 0 {
		return osmem.Resident(b.Bytes())
	}
	return resident(b.Bytes())
}

// Discard permits the system to take back the pages that lie wholly within
// bytes from to to. Pages of a mapped file are read again at the next access,
// so Discard frees memory whose contents were copied elsewhere. Other bytes are
// undefined afterwards. Discard is advice: after an error nothing has changed.
// For buffers that are not a mapping of their own the error matches
// errors.ErrUnsupported.
func (b *Buffer) Discard(from, to int) error {
	if b.none() {
		return fmt.Errorf("memory: discard: got no buffer: %w", ErrReleased)
	}
	data := b.Bytes()
	if b.s.remote != nil {
		return fmt.Errorf("memory: discard bytes of a buffer on %s: %w", b.Device(), errUnsupported)
	}
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

// IsTrimmable reports whether Discard lets the system take back pages of a
// mapped file. Otherwise they stay in memory from their first access until the
// end of the buffer. It is false for buffers that are not mapped from a file.
func (b *Buffer) IsTrimmable() bool { return b.Flags()&Mapped != 0 && osmem.TrimsFiles() }

// Retain adds a holder. The caller must itself be, or act for, a live holder;
// on a buffer without holders the error is [ErrReleased].
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

// Release drops the caller's hold. The last release frees the bytes. A holder
// that releases twice drops the hold of another holder; if there is none, the
// error is [ErrReleased].
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
	case s.remote != nil:
		s.freeRemote()
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
	case s.giveUp != nil: // made by Own
		n := len(s.data)
		s.data = nil
		s.giveUp()
		account.system.current.Add(-int64(n))
		host.unreserve(n, s.purpose)
	case Flags(s.state.Load())&Mapped != 0:
		data, raw := s.data, s.raw
		s.data, s.raw = nil, nil
		account.files.Add(-int64(len(data)))
		if len(raw) > 0 {
			mustGiveBack(osmem.Unmap(raw))
		}
		host.unreserve(len(data), s.purpose)
	default:
		s.giveBack()
	}
}

// giveBack frees the memory of newStorage.
func (s *storage) giveBack() {
	data, raw := s.data, s.raw
	s.data, s.raw = nil, nil
	if len(raw) > 0 {
		if invariant.Enabled {
			s.checkCanary(raw[len(data) : len(data)+canaryBytes])
			invariant.Poison(raw)
		}
		if s.chunk != nil {
			mustGiveBack(s.chunk.put(int(s.slot)))
		} else {
			mustGiveBack(cache.put(raw))
		}
	}
	host.unreserve(len(data), s.purpose)
}

func (s *storage) checkCanary(canary []byte) {
	if i := invariant.CheckCanary(canary); i >= 0 {
		invariant.Failf("memory: byte %d behind a buffer of %s (%s) was overwritten; allocated at\n%s", i, s.purpose, s.label, s.site)
	}
}

// mustGiveBack: the system refuses only memory that was not obtained from it.
func mustGiveBack(err error) {
	if err != nil {
		invariant.Failf("memory: %v", err)
	}
}
