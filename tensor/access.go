package tensor

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// View is the elements of a contiguous tensor as a Go slice in row-major order, and a use of the tensor until its Release.
// Data must not be kept longer, and not be written if the view is from Read.
type View[T dtype.Element] struct {
	Data []T
	use  Bytes
}

// Release ends the use. A second call on the same View does nothing; a View must not be copied.
func (v *View[T]) Release() {
	v.Data = nil
	v.use.Release()
}

// Read returns a view of x for reading. It fails with ErrDType unless T is x's element type, with ErrShape unless x is
// contiguous, and with ErrWriting while a writer has x.
func Read[T dtype.Element](x *Tensor) (View[T], error) { return view[T]("read", x, false) }

// Write returns a view of x for writing. While it is out every other access to x fails with ErrWriting. It fails with
// ErrShared unless x is exclusive, and like Read.
func Write[T dtype.Element](x *Tensor) (View[T], error) { return view[T]("write", x, true) }

func view[T dtype.Element](op string, x *Tensor, write bool) (View[T], error) {
	if x != nil && x.dt != dtype.Of[T]() {
		return View[T]{}, fmt.Errorf("%s: got %s, want elements of %s: %w", op, x.describe(), dtype.Of[T](), ErrDType)
	}
	use, err := x.access(op, write)
	if err != nil {
		return View[T]{}, err
	}
	var zero T
	if p := unsafe.Pointer(unsafe.SliceData(use.Data)); uintptr(p)%unsafe.Alignof(zero) == 0 {
		return View[T]{Data: unsafe.Slice((*T)(p), len(use.Data)/int(unsafe.Sizeof(zero))), use: use}, nil
	}
	use.Release()
	return View[T]{}, fmt.Errorf("%s: got %s at an address that is no multiple of %d, want aligned elements (copy it): %w",
		op, x.describe(), unsafe.Alignof(zero), ErrUnsupported)
}

// Bytes is a use of a contiguous tensor and its bytes. Data must not be kept after Release.
type Bytes struct {
	Data  []byte
	t     *Tensor
	write bool
}

// Release ends the use. A second call on the same Bytes does nothing; a Bytes must not be copied.
func (b *Bytes) Release() {
	t := b.t
	if t == nil {
		return
	}
	b.Data, b.t = nil, nil
	if b.write {
		t.unlock()
	} else {
		t.endUse()
	}
}

// Use returns the bytes of a contiguous tensor of any element type for reading, as Read does.
func (t *Tensor) Use() (Bytes, error) { return t.access("use", false) }

// Lock returns the bytes of a contiguous exclusive tensor of any element type for writing, as Write does.
func (t *Tensor) Lock() (Bytes, error) { return t.access("lock", true) }

func (t *Tensor) access(op string, write bool) (Bytes, error) {
	if t == nil || t.buf == nil {
		return Bytes{}, errNil(op)
	}
	if !t.layout.IsContiguous() {
		return Bytes{}, fmt.Errorf("%s: got %s%s, want a contiguous layout (see Contiguous): %w", op, t.dt, t.layout, ErrShape)
	}
	var err error
	if write {
		err = t.h.Lock()
	} else {
		err = t.use()
	}
	if err != nil {
		return Bytes{}, t.refusal(op, err)
	}
	return Bytes{Data: t.bytes(), t: t, write: write}, nil
}

// bytes returns what the layout spans. The caller has a use, or is the only one who knows the tensor.
func (t *Tensor) bytes() []byte {
	return t.buf.Bytes()[t.start : t.start+t.size : t.start+t.size]
}

// UnsafeBytes returns the bytes that the layout spans without taking a use, and the index in them where element [0,...,0]
// begins. They are valid only while something else keeps the tensor alive, and must not be written unless the caller knows
// that it is exclusive. A dead tensor has none.
func (t *Tensor) UnsafeBytes() (data []byte, first int) {
	if t == nil || t.buf == nil || t.use() != nil {
		return nil, 0
	}
	defer t.endUse()
	return t.bytes(), t.first
}

// Values returns a copy of the elements in row-major order, whatever the layout.
func Values[T dtype.Element](x *Tensor) ([]T, error) {
	const op = "values"
	if x == nil || x.buf == nil {
		return nil, errNil(op)
	}
	if x.dt != dtype.Of[T]() {
		return nil, fmt.Errorf("%s: got %s, want elements of %s: %w", op, x.describe(), dtype.Of[T](), ErrDType)
	}
	if _, err := shape.Bytes(x.dt, x.Shape()); err != nil { // a broadcast can repeat a few bytes beyond all memory
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := x.use(); err != nil {
		return nil, x.refusal(op, err)
	}
	defer x.endUse()
	out := make([]T, x.NumElements())
	gather(asBytes(out), x)
	return out, nil
}

// At returns the one element at the given places, one per dimension; a negative place counts from the end. Each call takes a
// use: for many elements there are [Read] and [Values].
func At[T dtype.Element](x *Tensor, places ...int) (T, error) {
	const op = "at"
	var v T
	if x == nil || x.buf == nil {
		return v, errNil(op)
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
	if err := x.use(); err != nil {
		return v, x.refusal(op, err)
	}
	defer x.endUse()
	return load[T](x.bytes()[x.first+skip*x.dt.Size():]), nil
}
