package tensor

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// View is the elements of a contiguous tensor as a Go slice in row-major order.
// It is a use of the tensor until its Release. Data must not be used after
// that, and must not be written if the view is from Read.
//
// A View must not be copied: go vet reports copies. A copy is the same use: the
// first Release of any of them ends it, and Data of the others must not be used
// after that.
type View[T dtype.Element] struct {
	Data []T
	_    noCopy
	turn turn
}

// Release ends the use. It may be called from any goroutine. A second call, or
// a call on a copy, does nothing.
func (v *View[T]) Release() {
	if v == nil {
		return
	}
	v.Data = nil
	v.turn.end()
}

// Read returns a view of x for reading. It fails with ErrDType unless T is x's
// element type, with ErrLayout unless x is contiguous and its elements are
// aligned, and with ErrWriting while a writer has x.
func Read[T dtype.Element](x *Tensor) (View[T], error) {
	return view[T]("read", x, new(atomic.Uint64)) // declared here, where Read is inlined, so that it is on the caller's stack
}

// Write returns a view of x for writing. While it is out every other access to
// x fails with ErrWriting. It fails with ErrShared unless x is exclusive, and
// like Read.
func Write[T dtype.Element](x *Tensor) (View[T], error) { return view[T]("write", x, nil) }

func view[T dtype.Element](op string, x *Tensor, readers *atomic.Uint64) (View[T], error) {
	if x == nil || x.buf == nil {
		return View[T]{}, errNil(op, x)
	}
	if x.dt != dtype.Of[T]() {
		return View[T]{}, fmt.Errorf("%s: got %s, want elements of %s: %w", op, x.describe(), dtype.Of[T](), ErrDType)
	}
	data, use, err := x.access(op, readers)
	if err != nil {
		return View[T]{}, err
	}
	var zero T
	if p := unsafe.Pointer(unsafe.SliceData(data)); uintptr(p)%unsafe.Alignof(zero) == 0 {
		return View[T]{Data: unsafe.Slice((*T)(p), len(data)/int(unsafe.Sizeof(zero))), turn: use}, nil
	}
	use.end()
	return View[T]{}, fmt.Errorf("%s: got %s at an address that is no multiple of %d, want aligned elements (copy it): %w",
		op, x.describe(), unsafe.Alignof(zero), ErrLayout)
}

// Bytes is the bytes of a contiguous tensor, and a use of it. Data must not be
// used after Release. Like a [View] it must not be copied.
type Bytes struct {
	Data []byte
	_    noCopy
	turn turn
}

// Release ends the use, as [View.Release] does.
func (b *Bytes) Release() {
	if b == nil {
		return
	}
	b.Data = nil
	b.turn.end()
}

// Use returns the bytes of a contiguous tensor of any element type for reading,
// as Read does.
func (t *Tensor) Use() (Bytes, error) {
	return t.lend("use", new(atomic.Uint64)) // as in Read
}

// Lock returns the bytes of a contiguous exclusive tensor of any element type
// for writing, as Write does.
func (t *Tensor) Lock() (Bytes, error) { return t.lend("lock", nil) }

func (t *Tensor) lend(op string, readers *atomic.Uint64) (Bytes, error) {
	if t == nil || t.buf == nil {
		return Bytes{}, errNil(op, t)
	}
	data, use, err := t.access(op, readers)
	return Bytes{Data: data, turn: use}, err
}

// access takes a use for reading, which readers counts, or the lock if readers
// is nil.
func (t *Tensor) access(op string, readers *atomic.Uint64) ([]byte, turn, error) {
	if !t.layout.IsContiguous() {
		return nil, turn{}, fmt.Errorf("%s: got %s%s, want a contiguous layout (see Contiguous): %w", op, t.dt, t.layout, ErrLayout)
	}
	var err error
	if readers == nil {
		err = t.lockHost()
	} else {
		err = t.useHost()
	}
	if err != nil {
		return nil, turn{}, t.refusal(op, err)
	}
	use := turn{t: t, count: readers}
	if readers == nil {
		use.count, use.write = t.h.Turns(), true
		use.number = use.count.Load()
	}
	return t.bytes(), use, nil
}

// turn is one use of a tensor. All copies of it refer to the same counter; the
// copy that moves the counter on from the turn's number ends the use. There is
// one writer at a time, so writers share the counter of the handle; each reader
// has a counter of its own.
type turn struct {
	t      *Tensor
	count  *atomic.Uint64
	number uint64
	write  bool
}

func (u *turn) end() {
	t := u.t
	if t == nil {
		return
	}
	u.t = nil
	if !u.count.CompareAndSwap(u.number, u.number+1) {
		return // another copy has ended it
	}
	if u.write {
		t.unlock()
	} else {
		t.endUse()
	}
}

// noCopy makes go vet (copylocks) report copies of a struct with a field of
// this type.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}

// bytes returns the bytes that the layout spans. The caller has a use, or no
// other goroutine knows the tensor.
func (t *Tensor) bytes() []byte {
	return t.buf.Bytes()[t.start : t.start+t.size : t.start+t.size]
}

// UnsafeBytes returns the bytes that the layout spans without taking a use, and
// the index in them at which element [0,...,0] begins. They are valid only
// while something else keeps the tensor alive, and may be written only if the
// caller knows that the tensor is exclusive. For a dead tensor, and for one on
// a device, the result is nil.
func (t *Tensor) UnsafeBytes() (data []byte, first int) {
	if t == nil || t.buf == nil || t.useHost() != nil {
		return nil, 0
	}
	defer t.endUse()
	return t.bytes(), t.first
}

// Values returns a copy of the elements in row-major order, for any layout.
func Values[T dtype.Element](x *Tensor) ([]T, error) {
	const op = "values"
	if x == nil || x.buf == nil {
		return nil, errNil(op, x)
	}
	if x.dt != dtype.Of[T]() {
		return nil, fmt.Errorf("%s: got %s, want elements of %s: %w", op, x.describe(), dtype.Of[T](), ErrDType)
	}
	if _, err := shape.Bytes(x.dt, x.Shape()); err != nil { // a broadcast can repeat a few bytes beyond all memory
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := x.useHost(); err != nil {
		return nil, x.refusal(op, err)
	}
	defer x.endUse()
	out := make([]T, x.NumElements())
	gather(asBytes(out), x)
	return out, nil
}

// At returns the element at the given index, one position per dimension; a
// negative position counts from the end. Each call takes a use: for many
// elements use [Read] or [Values].
func At[T dtype.Element](x *Tensor, places ...int) (T, error) {
	const op = "at"
	var v T
	if x == nil || x.buf == nil {
		return v, errNil(op, x)
	}
	if x.dt != dtype.Of[T]() {
		return v, fmt.Errorf("%s: got %s, want elements of %s: %w", op, x.describe(), dtype.Of[T](), ErrDType)
	}
	skip, err := placeOf(op, x.layout, places)
	if err != nil {
		return v, err
	}
	if rank := x.Shape().Rank(); len(places) < rank {
		return v, fmt.Errorf("%s: got %d places for shape %s, want %d: %w", op, len(places), x.Shape(), rank, ErrShape)
	}
	if err := x.useHost(); err != nil {
		return v, x.refusal(op, err)
	}
	defer x.endUse()
	return load[T](x.bytes()[x.first+skip*x.dt.Size():]), nil
}
