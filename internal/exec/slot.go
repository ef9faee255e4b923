package exec

import (
	"errors"

	"github.com/tenure-go/tenure/memory"
)

// Slot owns the arena and the scratch of one concurrent run. They have the size
// of the plan that runs: a smaller plan returns memory to the system, and a
// larger one frees the old arena before it takes the new one. After
// [Slot.Reserve] they have at least the reserved bytes.
type Slot struct {
	arena, scratch *memory.Buffer
	reserved       struct{ arena, scratch int64 }
	runners        map[*Executable]*Runner
	attached       *Runner
	epoch          int
	turn           int // counts the changes of runners
}

// Runner returns the slot's runner of e, attached to an arena of its plan's
// size. On the same executable as the time before it allocates nothing.
func (s *Slot) Runner(e *Executable) (*Runner, error) {
	if s.attached != nil && s.attached.exe == e {
		return s.attached, nil
	}
	r := s.runners[e]
	if r == nil {
		s.makeRoom(e.structure)
		var err error
		if r, err = e.NewRunner(); err != nil {
			return nil, err
		}
	}
	s.attached = nil
	if err := s.resize(e.ArenaBytes, e.ScratchBytes); err != nil {
		return nil, err
	}
	if s.runners == nil {
		s.runners = map[*Executable]*Runner{}
	}
	s.runners[e] = r
	s.turn++
	r.turn = s.turn
	r.Attach(bytesOr(s.arena), bytesOr(s.scratch))
	s.attached = r
	return r, nil
}

// Reserve takes an arena and scratch for every plan that needs no more. Runners
// of such plans allocate no memory for them, and smaller plans return none.
func (s *Slot) Reserve(arena, scratch int64) error {
	s.attached = nil
	s.reserved.arena, s.reserved.scratch = arena, scratch
	return s.resize(0, 0)
}

// resize makes arena and scratch have the given sizes, or the reserved ones
// where these are larger.
func (s *Slot) resize(arena, scratch int64) error {
	if err := resize(&s.arena, max(arena, s.reserved.arena), memory.Activations); err != nil {
		return err
	}
	return resize(&s.scratch, max(scratch, s.reserved.scratch), memory.Scratch)
}

// Trim returns what the slot has and did not reserve to the system, and reports
// the number of bytes. The runners stay.
func (s *Slot) Trim() (bytes int64) {
	for _, b := range []struct {
		buf      **memory.Buffer
		reserved int64
	}{{&s.arena, s.reserved.arena}, {&s.scratch, s.reserved.scratch}} {
		if *b.buf == nil || b.reserved > 0 {
			continue
		}
		bytes += int64((*b.buf).Len())
		_ = (*b.buf).Release() // it has no other holder
		*b.buf, s.attached = nil, nil
	}
	return bytes
}

// Keep drops the slot's runners of executables that are not kept any more.
// Nothing changed since the last call when epoch is the same.
func (s *Slot) Keep(epoch int, kept func(*Executable) bool) {
	if s.epoch == epoch {
		return
	}
	s.epoch = epoch
	for e := range s.runners {
		if kept(e) {
			continue
		}
		s.drop(e)
	}
}

// mostOfOne is how many runners a slot has of executables of one structure: a
// runner of one more is made of the tasks of another.
const mostOfOne = 4

// makeRoom drops the runner that was used the longest ago where there are as
// many of the structure as may be.
func (s *Slot) makeRoom(of *structure) {
	var oldest *Executable
	n := 0
	for e, r := range s.runners {
		if e.structure != of {
			continue
		}
		n++
		if oldest == nil || r.turn < s.runners[oldest].turn {
			oldest = e
		}
	}
	if n >= mostOfOne {
		s.drop(oldest)
	}
}

// drop ends the runner of an executable.
func (s *Slot) drop(e *Executable) {
	r := s.runners[e]
	delete(s.runners, e)
	if s.attached == r {
		s.attached = nil
	}
	r.retire()
}

// Release frees the slot's memory.
func (s *Slot) Release() error {
	for e := range s.runners {
		s.drop(e)
	}
	s.attached, s.runners = nil, nil
	return errors.Join(resize(&s.arena, 0, memory.Activations), resize(&s.scratch, 0, memory.Scratch))
}

func bytesOr(b *memory.Buffer) []byte {
	if b == nil {
		return nil
	}
	return b.Bytes()
}

// resize makes the buffer have the given size. Its contents are undefined.
func resize(b **memory.Buffer, bytes int64, purpose memory.Purpose) error {
	if *b != nil {
		if int64((*b).Len()) == bytes {
			return nil
		}
		old := *b
		*b = nil
		if err := old.Release(); err != nil {
			return err
		}
	}
	if bytes == 0 {
		return nil
	}
	fresh, err := memory.Process(purpose).Alloc(int(bytes))
	if err != nil {
		return err
	}
	*b = fresh
	return nil
}
