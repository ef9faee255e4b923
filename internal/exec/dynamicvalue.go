package exec

import (
	"fmt"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
)

// dynamicValue is a value whose size depends on data, during a run: its type
// now, and its bytes, which are all or a part of a buffer of which it is a
// holder, or lie in the arena.
//
// Only the methods touch the fields; a test checks that. Each method that sets
// a value drops the one that was there. Values are passed on by share, view or
// move, never by assignment: go vet reports a copy.
type dynamicValue struct {
	_       noCopy
	is      op.Type
	span    []byte
	base    *memory.Buffer // nil in the arena, and for no bytes
	purpose memory.Purpose // of buffers that are made for it
	buffers *int           // of the runner: the number of its values that have a buffer
}

// noCopy makes go vet report the copy of a struct that has it.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// init sets the counter of d's buffer and the purpose of its buffers.
func (d *dynamicValue) init(buffers *int, p memory.Purpose) { d.buffers, d.purpose = buffers, p }

// typ returns the type of the value, the zero Type when there is none.
func (d *dynamicValue) typ() op.Type { return d.is }

// bytes returns the bytes of the value, valid until it is dropped.
func (d *dynamicValue) bytes() []byte { return d.span }

// hasBuffer reports whether the value lies in a buffer.
func (d *dynamicValue) hasBuffer() bool { return d.base != nil }

// buffer returns the buffer in which the value lies, nil for none.
func (d *dynamicValue) buffer() *memory.Buffer { return d.base }

// mayOverwrite reports whether d has a buffer with no other holder and is all
// of it.
func (d *dynamicValue) mayOverwrite() bool {
	return d.base != nil && d.base.Holders() == 1 && len(d.span) == d.base.Len()
}

// drop leaves d without a value.
func (d *dynamicValue) drop() {
	if d.base != nil {
		*d.buffers--
		if err := d.base.Release(); err != nil {
			panic("BUG: exec: " + err.Error())
		}
	}
	d.is, d.span, d.base = op.Type{}, nil, nil
}

// set makes d a new value of type t in a buffer of its own, zeroed.
func (d *dynamicValue) set(t op.Type) error {
	d.drop()
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	if n > 0 {
		if d.base, err = memory.Alloc(n, d.purpose); err != nil {
			return err
		}
		*d.buffers++
		d.span = d.base.Bytes()
	}
	d.is = t
	return nil
}

// place makes d a value in bytes of the arena; the plan says how long they are
// the value's.
func (d *dynamicValue) place(t op.Type, data []byte) {
	d.drop()
	d.is, d.span = t, data
}

// copy makes d a copy, in a buffer of its own, of a value that lies outside the
// buffers of a run.
func (d *dynamicValue) copy(t op.Type, data []byte) error {
	if err := d.set(t); err != nil {
		return err
	}
	if len(data) != len(d.span) {
		panic(fmt.Sprintf("BUG: exec: got %d bytes, want %d of %s", len(data), len(d.span), t))
	}
	copy(d.span, data)
	return nil
}

// view makes d the part of another value's buffer from offset on. Both are
// holders of the buffer then.
func (d *dynamicValue) view(from *dynamicValue, t op.Type, offset int) error {
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	if from.base == nil || offset < 0 || offset > len(from.span)-n {
		panic(fmt.Sprintf("BUG: exec: got a view of bytes %d to %d, want it within the %d of a buffer", offset, offset+n, len(from.span)))
	}
	buf, data := from.base, from.span[offset:offset+n:offset+n]
	if n == 0 {
		d.drop()
		d.is = t
		return nil
	}
	if err := buf.Retain(); err != nil {
		return err
	}
	d.drop()
	*d.buffers++
	d.is, d.span, d.base = t, data, buf
	return nil
}

// share makes d the same value as another one. Both are holders of the buffer
// then; a value in the arena is copied, because the plan has one holder for it.
func (d *dynamicValue) share(from *dynamicValue) error {
	switch {
	case d == from:
		return nil
	case from.base != nil:
		return d.view(from, from.is, 0)
	}
	return d.copy(from.is, from.span)
}

// move makes d the same value as another one, and leaves that one without a
// value.
func (d *dynamicValue) move(from *dynamicValue) error {
	if d == from {
		return nil
	}
	if err := d.share(from); err != nil {
		return err
	}
	from.drop()
	return nil
}

// grow makes d a value of type t in a larger buffer, which begins with the
// first bytes of the value that it has.
func (d *dynamicValue) grow(t op.Type, keep int) error {
	old := dynamicValue{buffers: d.buffers}
	defer old.drop()
	old.swap(d)
	if err := d.set(t); err != nil {
		return err
	}
	copy(d.span, old.span[:keep])
	return nil
}

// extend makes d a value of type t that begins with the bytes of another one:
// in the same buffer if that is from's alone and is long enough, otherwise in a
// new one with room for as many bytes again. The bytes after those of from are
// undefined; from stays as it is, because it does not have them.
func (d *dynamicValue) extend(from *dynamicValue, t op.Type) error {
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	if b := from.base; b != nil && len(from.span) > 0 && b.Holders() == 1 && b.Purpose() == d.purpose && len(b.Bytes()) >= n && &b.Bytes()[0] == &from.span[0] {
		if err := b.Retain(); err != nil {
			return err
		}
		d.drop()
		*d.buffers++
		d.is, d.span, d.base = t, b.Bytes()[:n:n], b
		return nil
	}
	if n == 0 {
		return d.set(t)
	}
	base, err := memory.Alloc(2*n, d.purpose)
	if err != nil {
		return err
	}
	copy(base.Bytes(), from.span)
	d.drop()
	*d.buffers++
	d.is, d.span, d.base = t, base.Bytes()[:n:n], base
	return nil
}

// swap exchanges two values.
func (d *dynamicValue) swap(o *dynamicValue) {
	d.is, o.is = o.is, d.is
	d.span, o.span = o.span, d.span
	d.base, o.base = o.base, d.base
}

// cut leaves the bytes of a smaller type. A buffer of which less than half is
// left is exchanged for one of the right size: it would pin the rest.
func (d *dynamicValue) cut(t op.Type) error {
	n, err := t.Bytes()
	if err != nil || n > len(d.span) {
		panic(fmt.Sprintf("BUG: exec: got %s of a kernel, want at most %d bytes", t, len(d.span)))
	}
	if d.base != nil && (n == 0 || n < d.base.Len()/2) {
		return d.grow(t, n)
	}
	d.is, d.span = t, d.span[:n:n]
	return nil
}

// own puts d at the beginning of a buffer of its own purpose without another
// holder, as an output needs it.
func (d *dynamicValue) own() error {
	if d.isOwn() {
		return nil
	}
	return d.grow(d.is, len(d.span))
}

func (d *dynamicValue) isOwn() bool {
	if d.base == nil {
		return len(d.span) == 0
	}
	whole := d.base.Bytes()
	return d.base.Holders() == 1 && d.base.Purpose() == d.purpose && &d.span[0] == &whole[0] && len(d.span) >= len(whole)/2
}

// take leaves d without a value and hands its buffer over to the caller, nil
// for no bytes. The value lies at the beginning, and nothing else uses it.
func (d *dynamicValue) take() (*memory.Buffer, op.Type) {
	if invariant.Enabled && !d.isOwn() {
		invariant.Failf("exec: an output of %s shares its bytes, or is a part of them", d.is)
	}
	buf, t := d.base, d.is
	if buf != nil {
		*d.buffers--
	}
	d.is, d.span, d.base = op.Type{}, nil, nil
	return buf, t
}

// leftover counts the buffers that runs have left behind.
var leftover atomic.Int64

// Leftover returns how many buffers of values whose size depends on data were
// still in use when runs ended, since the process began. The runs released them
// then. It is 0 unless Tenure has a fault; in builds with the tag `invariants`
// such a run panics. It may be called from any goroutine.
func Leftover() int64 { return leftover.Load() }

// endRun drops all values but the outputs of a run that succeeded, and checks
// that no other value was there: by then each has had its last use.
func (r *Runner) endRun(succeeded bool) {
	left, outputs := 0, 0
	for i := range r.dynamic {
		d := &r.dynamic[i]
		if d.hasBuffer() && succeeded {
			if r.exe.dynamic[i].isResult {
				outputs++
				continue
			}
			left++
		}
		if !succeeded || !r.exe.dynamic[i].isResult {
			d.drop()
		}
	}
	if left += r.buffers - outputs; left == 0 {
		return
	}
	leftover.Add(int64(left))
	if invariant.Enabled {
		invariant.Failf("exec: %d values were left at the end of a run", left)
	}
}

// TakeDynamic hands over result i of the run that has just ended without
// error, whose size depends on data. The caller owns the buffer, which is nil
// for no bytes, and is its only holder; the value lies at its beginning. A
// result that was taken before has the zero Type.
func (r *Runner) TakeDynamic(i int) (*memory.Buffer, op.Type) {
	return r.dynamic[r.exe.results[i].dynamic].take()
}

// dropDynamic drops all values whose size depends on data.
func (r *Runner) dropDynamic() {
	for i := range r.dynamic {
		r.dynamic[i].drop()
	}
}
