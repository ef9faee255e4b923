package exec

import (
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
)

// held is a value whose size depends on data, while a run has it: its type
// now, and its bytes, which are all or a part of a buffer that it is a holder
// of, or lie in the arena.
//
// Only the methods touch the fields, and a test holds the package to that.
// Each method that gives h a value drops the one that was there. A value goes
// on by share, view or move, never by assignment: go vet reports a copy.
type held struct {
	_       noCopy
	is      op.Type
	span    []byte
	base    *memory.Buffer // nil in the arena, and for no bytes
	purpose memory.Purpose // of buffers that are made for it
	holds   *int           // of the runner: how many of its values have a buffer
}

// noCopy makes go vet report the copy of a struct that has it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// count says where h counts its hold, and what its buffers are for.
func (h *held) count(holds *int, p memory.Purpose) { h.holds, h.purpose = holds, p }

// typ returns the type of the value, the zero Type when there is none.
func (h *held) typ() op.Type { return h.is }

// bytes returns the bytes of the value, valid until it is dropped.
func (h *held) bytes() []byte { return h.span }

// hasBuffer reports whether the value lies in a buffer.
func (h *held) hasBuffer() bool { return h.base != nil }

// mayOverwrite reports whether h has a buffer with no other holder and is all
// of it.
func (h *held) mayOverwrite() bool {
	return h.base != nil && h.base.Holders() == 1 && len(h.span) == h.base.Len()
}

// drop leaves h without a value.
func (h *held) drop() {
	if h.base != nil {
		*h.holds--
		if err := h.base.Release(); err != nil {
			panic("BUG: exec: " + err.Error())
		}
	}
	h.is, h.span, h.base = op.Type{}, nil, nil
}

// set gives h a new buffer for a value of type t, zeroed.
func (h *held) set(t op.Type) error {
	h.drop()
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	if n > 0 {
		if h.base, err = memory.Alloc(n, h.purpose); err != nil {
			return err
		}
		*h.holds++
		h.span = h.base.Bytes()
	}
	h.is = t
	return nil
}

// place gives h bytes of the arena, of which the plan says how long they are
// the value's.
func (h *held) place(t op.Type, data []byte) {
	h.drop()
	h.is, h.span = t, data
}

// copy gives h a new buffer with the bytes of a value that lies outside the
// buffers of a run.
func (h *held) copy(t op.Type, data []byte) error {
	if err := h.set(t); err != nil {
		return err
	}
	if len(data) != len(h.span) {
		panic(fmt.Sprintf("BUG: exec: got %d bytes, want %d of %s", len(data), len(h.span), t))
	}
	copy(h.span, data)
	return nil
}

// view makes h the part of another value's buffer from offset on. Both hold
// the buffer then.
func (h *held) view(from *held, t op.Type, offset int) error {
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	if from.base == nil || offset < 0 || offset > len(from.span)-n {
		panic(fmt.Sprintf("BUG: exec: got a view of bytes %d to %d, want it within the %d of a buffer", offset, offset+n, len(from.span)))
	}
	buf, data := from.base, from.span[offset:offset+n:offset+n]
	if n == 0 {
		h.drop()
		h.is = t
		return nil
	}
	if err := buf.Retain(); err != nil {
		return err
	}
	h.drop()
	*h.holds++
	h.is, h.span, h.base = t, data, buf
	return nil
}

// share makes h the same value as another one. Both hold the buffer then;
// what lies in the arena is copied, because the plan knows of one holder.
func (h *held) share(from *held) error {
	switch {
	case h == from:
		return nil
	case from.base != nil:
		return h.view(from, from.is, 0)
	}
	return h.copy(from.is, from.span)
}

// move makes h the same value as another one, which has none any more.
func (h *held) move(from *held) error {
	if h == from {
		return nil
	}
	if err := h.share(from); err != nil {
		return err
	}
	from.drop()
	return nil
}

// grow gives h a larger buffer for a value of type t, which begins with the
// first bytes of the value that it has.
func (h *held) grow(t op.Type, keep int) error {
	old := held{holds: h.holds}
	defer old.drop()
	old.swap(h)
	if err := h.set(t); err != nil {
		return err
	}
	copy(h.span, old.span[:keep])
	return nil
}

// swap exchanges two values.
func (h *held) swap(o *held) {
	h.is, o.is = o.is, h.is
	h.span, o.span = o.span, h.span
	h.base, o.base = o.base, h.base
}

// cut leaves the bytes of a smaller type. A buffer of which less than half is
// left is exchanged for one of the right size: it would pin the rest.
func (h *held) cut(t op.Type) error {
	n, err := t.Bytes()
	if err != nil || n > len(h.span) {
		panic(fmt.Sprintf("BUG: exec: got %s of a kernel, want at most %d bytes", t, len(h.span)))
	}
	if h.base != nil && (n == 0 || n < h.base.Len()/2) {
		return h.grow(t, n)
	}
	h.is, h.span = t, h.span[:n:n]
	return nil
}

// own gives h a buffer of its own purpose that nobody else holds and that the
// value begins, as an output needs it.
func (h *held) own() error {
	if h.isOwn() {
		return nil
	}
	return h.grow(h.is, len(h.span))
}

func (h *held) isOwn() bool {
	if h.base == nil {
		return len(h.span) == 0
	}
	whole := h.base.Bytes()
	return h.base.Holders() == 1 && h.base.Purpose() == h.purpose && &h.span[0] == &whole[0] && len(h.span) >= len(whole)/2
}

// take leaves h without a value. The caller has its hold: a buffer that the
// value begins and nobody else holds, nil for no bytes.
func (h *held) take() (*memory.Buffer, op.Type) {
	if invariant.Enabled && !h.isOwn() {
		invariant.Failf("exec: an output of %s shares its bytes, or is a part of them", h.is)
	}
	buf, t := h.base, h.is
	if buf != nil {
		*h.holds--
	}
	h.is, h.span, h.base = op.Type{}, nil, nil
	return buf, t
}

// leftover counts the holds that runs have left behind.
var leftover atomic.Int64

// Leftover returns how many holds on buffers of values whose size depends on
// data were found when runs ended, since the process began. The runs gave them
// up then. It is 0 unless Tenure has a fault; in builds with the tag
// `invariants` such a run panics. It may be called from any goroutine.
func Leftover() int64 { return leftover.Load() }

// endRun drops all values but the outputs of a run that succeeded, and checks
// that nothing else was held: by then every value has had its last use.
func (r *Runner) endRun(succeeded bool) {
	left, outputs := 0, 0
	for i := range r.dynamic {
		h := &r.dynamic[i]
		if h.hasBuffer() && succeeded {
			if r.exe.isOutput[i] {
				outputs++
				continue
			}
			left++
		}
		if !succeeded || !r.exe.isOutput[i] {
			h.drop()
		}
	}
	if left += r.holds - outputs; left == 0 {
		return
	}
	leftover.Add(int64(left))
	if invariant.Enabled {
		invariant.Failf("exec: %d values were held at the end of a run", left)
	}
}

// TakeDynamic hands over result i of the run that has just ended without
// error, whose size depends on data: the caller holds the buffer, which is nil
// for no bytes. The value begins the buffer, and nobody else holds it. A result
// that was taken before has the zero Type.
func (r *Runner) TakeDynamic(i int) (*memory.Buffer, op.Type) {
	return r.dynamic[r.exe.outDynamic[i]].take()
}

// dropDynamic gives up all values whose size depends on data.
func (r *Runner) dropDynamic() {
	for i := range r.dynamic {
		r.dynamic[i].drop()
	}
}
