package memory

import (
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/invariant"
)

// Handle is a holder of a buffer whose end others can observe: the base of a
// tensor. It is a small value; copies are the same handle.
//
// A handle is alive until Release or Donate, of which one succeeds, once. While
// it is alive any goroutine may take a use ([Handle.Use]), or one writer the
// lock ([Handle.Lock]); the hold on the buffer ends when the handle is dead and
// its last use has ended. All methods may be called from any goroutine at any
// time, also on dead handles. The zero Handle counts as released. The methods
// that end or move a use are for the goroutine that has it: on a handle without
// uses they panic.
//
// A reachable Handle keeps its Buffer reachable: the safety net finds only
// unreachable buffers.
type Handle struct {
	rec *record
	tag uint64 // the word of the record while the handle is alive and has no use
}

// NewHandle adds a holder to the buffer and returns it. The caller must itself
// be, or act for, a live holder.
func (b *Buffer) NewHandle() (Handle, error) {
	r, err := takeRecord()
	if err != nil {
		return Handle{}, err
	}
	if err := b.Retain(); err != nil {
		putRecord(r)
		return Handle{}, err
	}
	return b.s.attach(r), nil
}

// IntoHandle turns the caller's hold into a handle: the number of holders
// stays. After an error the caller still has its hold.
func (b *Buffer) IntoHandle() (Handle, error) {
	if b.Holders() == 0 {
		return Handle{}, fmt.Errorf("memory: handle on a buffer that nobody holds: %w", ErrReleased)
	}
	r, err := takeRecord()
	if err != nil {
		return Handle{}, err
	}
	return b.s.attach(r), nil
}

func (s *storage) attach(r *record) Handle {
	slab, i := slabOf(r.index)
	slab.owners[i] = s
	if invariant.Enabled {
		slab.sites[i] = invariant.Here(2)
	}
	s.chain(r)
	account.handles.current.Add(1)
	tag := r.word.Load()&genMask | stateAlive
	r.word.Store(tag)
	return Handle{rec: r, tag: tag}
}

// Use takes a use: until EndUse the bytes stay where they are and may not be
// written. It fails with [ErrReleased] or [ErrDonated] on a dead handle, and
// with [ErrWriting] while the handle is locked.
func (h Handle) Use() error { return h.begin(useUnit, usesMask) }

func (h Handle) begin(unit, mask uint64) error {
	if h.rec == nil {
		return ErrReleased
	}
	for {
		w := h.rec.word.Load()
		if w&^busyMask != h.tag {
			return h.refusal(w)
		}
		if w&mask == mask {
			return errTooManyUses
		}
		if h.rec.word.CompareAndSwap(w, w+unit) {
			return nil
		}
	}
}

var errTooManyUses = fmt.Errorf("memory: got %d uses or %d exports of one handle: %w", usesMask, exportMask/exportUnit, ErrLimit)

// refusal returns the reason why w, a record's word, is not the word of h
// without uses.
func (h Handle) refusal(w uint64) error {
	switch {
	case (w^h.tag)&genMask != 0 || w&stateMask == stateReleased:
		return ErrReleased
	case w&stateMask == stateDonated:
		return ErrDonated
	}
	return ErrWriting
}

// EndUse ends a use of Use.
func (h Handle) EndUse() { h.end(useUnit) }

// Lock takes the use that may write. It succeeds only if the handle has no
// other use, the handle is the buffer's only holder and the buffer has no flag.
// Only live handles make new holders, and a locked one makes none, so this
// stays true until Unlock. It fails like Use, and with ErrShared if the bytes
// are not exclusive.
func (h Handle) Lock() error { return h.lock(useUnit) }

func (h Handle) lock(unit uint64) error {
	if h.rec == nil {
		return ErrReleased
	}
	for !h.rec.word.CompareAndSwap(h.tag, h.tag|writing|unit) {
		switch w := h.rec.word.Load(); {
		case w == h.tag: // all uses have ended in between
		case w&^busyMask == h.tag:
			return ErrShared
		default:
			return h.refusal(w)
		}
	}
	slab, i := slabOf(h.rec.index)
	if slab.owners[i].state.Load() != exclusive {
		h.end(writing | unit)
		return ErrShared
	}
	return nil
}

// Unlock ends the lock of Lock.
func (h Handle) Unlock() { h.end(writing | useUnit) }

// Turns returns a counter that the goroutine with the lock may use to
// distinguish turns of writers: it reads the counter before it writes, and ends
// its turn by a compare-and-swap of that value to the next, which succeeds
// once. The counter belongs to the record of the handle: it only grows, also
// from one handle to the next, and may be read until the process ends.
func (h Handle) Turns() *atomic.Uint64 { return &h.rec.turns }

func (h Handle) end(what uint64) {
	w := h.rec.word.Add(-what)
	mask := uint64(usesMask)
	if what&exportUnit != 0 {
		mask = exportMask
	}
	if w&mask == mask {
		invariant.Failf("memory: a use of a handle ended twice")
	}
	if w&busyMask == 0 && w&dead != 0 {
		h.rec.retire()
	}
}

// Release ends the handle. Its hold ends now or, if the handle is in use, when
// the last use ends.
func (h Handle) Release() error { return h.kill(stateReleased) }

// Donate ends the handle in favour of an operation. The caller has a use or the
// lock; the hold ends when the caller ends that.
func (h Handle) Donate() error { return h.kill(stateDonated) }

func (h Handle) kill(state uint64) error {
	if h.rec == nil {
		return ErrReleased
	}
	for {
		w := h.rec.word.Load()
		if (w^h.tag)&(genMask|stateMask) != 0 {
			return h.refusal(w)
		}
		to := w&^stateMask | state
		if w&exportMask != 0 {
			to |= orphan
			orphans.Add(1) // before the word changes, because the end of the last export counts down
		}
		if !h.rec.word.CompareAndSwap(w, to) {
			if to&orphan != 0 {
				orphans.Add(-1)
			}
			continue
		}
		if w&busyMask == 0 {
			h.rec.retire()
		}
		if to&orphan != 0 {
			watchOrphans()
		}
		return nil
	}
}

// Move ends the handle and returns another one with its hold. The caller has
// the lock, which ends. Move also works if the handle was released under the
// lock. It costs one atomic operation, while a new handle and the end of the
// old one cost a dozen. A handle that is Spent cannot be moved.
func (h Handle) Move() Handle {
	slab, i := slabOf(h.rec.index)
	if attached := slab.attached[i].Load(); attached != nil {
		slab.attached[i].Store(nil) // no other goroutine attaches while the lock is held
		(*attached).End()
	}
	if invariant.Enabled {
		s := slab.owners[i]
		s.mu.Lock()
		slab.sites[i] = invariant.Here(1)
		s.mu.Unlock()
	}
	to := h.tag&genMask + genUnit | stateAlive
	if old := h.rec.word.Swap(to); (old^h.tag)&genMask != 0 || old&^(stateMask|genMask) != writing|useUnit || h.Spent() {
		invariant.Failf("memory: move of a handle that is not locked")
	}
	return Handle{rec: h.rec, tag: to}
}

// Spent reports whether the record of the handle has served as many handles as
// its generations can distinguish.
func (h Handle) Spent() bool { return h.rec == nil || h.tag&genMask+2*genUnit == 0 }

// Err returns nil for a live handle that is not locked for writing, otherwise
// the error of Use. The result may be outdated when it is returned.
func (h Handle) Err() error {
	if h.rec == nil {
		return ErrReleased
	}
	if w := h.rec.word.Load(); w&^busyMask != h.tag {
		return h.refusal(w)
	}
	return nil
}

// Uses returns the number of uses and of exports of the live handle, 0 for a
// dead one. The result may be outdated when it is returned.
func (h Handle) Uses() (uses, exports int) {
	if h.rec == nil {
		return 0, 0
	}
	if w := h.rec.word.Load(); (w^h.tag)&(genMask|stateMask) == 0 {
		return usesIn(w)
	}
	return 0, 0
}

func usesIn(w uint64) (uses, exports int) { return int(w & usesMask), int(w & exportMask / exportUnit) }

// Same reports whether two values are the same handle.
func (h Handle) Same(other Handle) bool { return h == other }
