package memory

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/invariant"
)

// Handle is one holder of a buffer whose end others can see: the base of a tensor. It is a small value; copies are the same
// handle.
//
// A handle is alive until Release or Donate, which succeed once. While it is alive anybody may take a use of it
// ([Handle.Use]), or one writer the lock ([Handle.Lock]); the hold on the buffer ends when the handle is dead and its last
// use has ended, whoever ends it. All methods may be called from any goroutine at any time, also on handles that are long
// dead.
//
// Whoever keeps a Handle keeps its Buffer too: the safety net finds a buffer that nobody can reach, and handles do not reach
// it.
type Handle struct {
	rec *record
	tag uint64 // the word of the record while the handle is alive and nobody uses it
}

// NewHandle makes another holder of the buffer. The caller must itself be, or act for, a live holder.
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

// IntoHandle turns the caller's hold into a handle: the number of holders stays. On an error the caller still has its hold.
func (b *Buffer) IntoHandle() (Handle, error) {
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

// Use takes a use: until EndUse the bytes stay where they are and nobody may write them. It fails with ErrReleased or
// ErrDonated on a dead handle, and with ErrWriting while a writer has it.
func (h Handle) Use() error {
	if h.rec == nil {
		return ErrReleased
	}
	for {
		w := h.rec.word.Load()
		if w&^usesMask != h.tag {
			return h.refusal(w)
		}
		if w&usesMask == usesMask {
			return errTooManyUses
		}
		if h.rec.word.CompareAndSwap(w, w+1) {
			return nil
		}
	}
}

var errTooManyUses = fmt.Errorf("memory: got %d uses of one handle: %w", usesMask, ErrLimit)

// refusal says why w, the word that was found, is not one of h at rest.
func (h Handle) refusal(w uint64) error {
	switch {
	case (w^h.tag)&genMask != 0 || w&stateMask == stateReleased:
		return ErrReleased
	case w&stateMask == stateDonated:
		return ErrDonated
	}
	return ErrWriting
}

// EndUse ends a use that Use took.
func (h Handle) EndUse() { h.end(1) }

// Lock takes the use that may write: it succeeds only if nobody else uses the handle, the handle is the buffer's only holder
// and the buffer is ours. New holders come only from live handles and a locked one makes none, so this stays true until
// Unlock. It fails like Use, and with ErrShared if the bytes are not exclusive.
func (h Handle) Lock() error {
	if h.rec == nil {
		return ErrReleased
	}
	for !h.rec.word.CompareAndSwap(h.tag, h.tag|writing|1) {
		switch w := h.rec.word.Load(); {
		case w == h.tag: // it came back to rest in between
		case w&^usesMask == h.tag:
			return ErrShared
		default:
			return h.refusal(w)
		}
	}
	slab, i := slabOf(h.rec.index)
	if slab.owners[i].state.Load() != exclusive {
		h.Unlock()
		return ErrShared
	}
	return nil
}

// Unlock ends what Lock took.
func (h Handle) Unlock() { h.end(writing | 1) }

func (h Handle) end(what uint64) {
	w := h.rec.word.Add(-what)
	if w&usesMask == usesMask {
		invariant.Failf("memory: a use of a handle ended twice")
	}
	if w&usesMask == 0 && w&stateMask != stateAlive {
		h.rec.retire()
	}
}

// Release gives the handle up. The bytes go back now or, if the handle is in use, when the last use ends.
func (h Handle) Release() error { return h.kill(stateReleased) }

// Donate gives the handle up to an operation. The caller has a use or the lock, and ends it afterwards: that is when the
// hold goes.
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
		if h.rec.word.CompareAndSwap(w, w&^stateMask|state) {
			if w&usesMask == 0 {
				h.rec.retire()
			}
			return nil
		}
	}
}

// Err returns nil for a live handle that nobody writes, otherwise the error with which Use would fail. The answer may be old
// when it arrives.
func (h Handle) Err() error {
	if h.rec == nil {
		return ErrReleased
	}
	if w := h.rec.word.Load(); w&^usesMask != h.tag {
		return h.refusal(w)
	}
	return nil
}

// Uses returns how many uses of the live handle are out, 0 for a dead one. The answer may be old when it arrives.
func (h Handle) Uses() int {
	if h.rec == nil {
		return 0
	}
	if w := h.rec.word.Load(); (w^h.tag)&(genMask|stateMask) == 0 {
		return int(w & usesMask)
	}
	return 0
}

// Same reports whether two values are the same handle.
func (h Handle) Same(other Handle) bool { return h == other }
