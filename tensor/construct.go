package tensor

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// New returns a tensor of zeros in a buffer of its own. The caller owns it and
// releases it.
func New(dt dtype.DType, s *shape.Shape) (*Tensor, error) { return NewFor(memory.IO, dt, s) }

// NewFor is New with the bytes counted under purpose p.
func NewFor(p memory.Purpose, dt dtype.DType, s *shape.Shape) (*Tensor, error) {
	return alloc("new", p, dt, s)
}

// Make returns a tensor in a buffer of src, for callers that write every
// element: the values are undefined. A nil src means [memory.Process] with
// purpose [memory.Activations].
func Make(src memory.Source, dt dtype.DType, s *shape.Shape) (*Tensor, error) {
	if src == nil {
		src = memory.Process(memory.Activations)
	}
	return allocFrom("make", src, dt, s)
}

// MakeOnHost is [Make] for callers that write the elements with the processor:
// it fails with [ErrDevice] if the buffers of src are on a device.
func MakeOnHost(src memory.Source, dt dtype.DType, s *shape.Shape) (*Tensor, error) {
	t, err := Make(src, dt, s)
	if err == nil && t.Device() != nil {
		err = t.refusal("make", ErrDevice)
		_ = t.Release()
		return nil, err
	}
	return t, err
}

// allocFrom returns a tensor whose values are undefined.
func allocFrom(op string, src memory.Source, dt dtype.DType, s *shape.Shape) (*Tensor, error) {
	bytes, err := shape.Bytes(dt, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	buf, err := src.Alloc(bytes)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", op, dt, s, err)
	}
	if bytes > 0 && dt.Bits() < 8 && buf.Device() == nil {
		buf.Bytes()[bytes-1] = 0 // clears the bits behind the last element, which are never written
	}
	return own(op, buf, dt, shape.RowMajor(s))
}

// alloc returns a tensor of zeros.
func alloc(op string, p memory.Purpose, dt dtype.DType, s *shape.Shape) (*Tensor, error) {
	bytes, err := shape.Bytes(dt, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	buf, err := memory.Alloc(bytes, p)
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", op, dt, s, err)
	}
	return own(op, buf, dt, shape.RowMajor(s))
}

// own makes a tensor of a whole buffer. It takes over the caller's hold, also
// if it fails.
func own(op string, buf *memory.Buffer, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	t, err := over(op, buf, 0, dt, l)
	if err == nil {
		buf.SetLabel(dt.String())
		t.h, err = buf.IntoHandle()
	}
	if err != nil {
		_ = buf.Release() // the hold is this function's, so this cannot fail
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return t, nil
}

// Of returns a tensor with a copy of data, in row-major order. Without dims the
// tensor is a scalar of one element.
func Of[T dtype.Element](data []T, dims ...int) (*Tensor, error) {
	dt, s, err := typed("of", data, dims)
	if err != nil {
		return nil, err
	}
	return fromBytes("of", dt, s, asBytes(data))
}

// Zeros returns a tensor of zeros in a buffer of its own: [New] for a Go type
// and sizes.
func Zeros[T dtype.Element](dims ...int) (*Tensor, error) {
	const op = "zeros"
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return alloc(op, memory.IO, dtype.Of[T](), s)
}

// Full returns a tensor with v in every element.
func Full[T dtype.Element](v T, dims ...int) (*Tensor, error) {
	const op = "full"
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	t, err := allocFrom(op, memory.Process(memory.IO), dtype.Of[T](), s)
	if err != nil {
		return nil, err
	}
	data := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(t.bytes()))), s.NumElements())
	for i := range data {
		data[i] = v
	}
	return t, nil
}

// Wrap returns a tensor over the caller's slice, without a copy. The tensor is
// never exclusive: operations never write into it. The caller must not write
// into data while the tensor or a view of it is alive. For a slice that results
// are to be written into, use [WrapWritable].
func Wrap[T dtype.Element](data []T, dims ...int) (*Tensor, error) {
	dt, s, err := typed("wrap", data, dims)
	if err != nil {
		return nil, err
	}
	return own("wrap", memory.Import(asBytes(data), nil), dt, shape.RowMajor(s))
}

// WrapWritable is [Wrap] for a slice that may be written: the tensor is
// exclusive like one with bytes of its own. It can be written by [Write],
// receive an output of a run (tenure.Into), and be given up to an operation,
// whose result is then in data. The caller must not read or write data until
// the tensor and every tensor that took over its bytes are released.
func WrapWritable[T dtype.Element](data []T, dims ...int) (*Tensor, error) {
	const op = "wrap writable"
	dt, s, err := typed(op, data, dims)
	if err != nil {
		return nil, err
	}
	return own(op, memory.Adopt(asBytes(data), 0, nil), dt, shape.RowMajor(s))
}

// FromBytes returns a tensor with a copy of data: the elements in row-major
// order and the machine's byte order, packed if they are smaller than a byte.
// Bytes of Bool other than 0 become 1.
func FromBytes(dt dtype.DType, s *shape.Shape, data []byte) (*Tensor, error) {
	return fromBytes("from bytes", dt, s, data)
}

func fromBytes(op string, dt dtype.DType, s *shape.Shape, data []byte) (*Tensor, error) {
	want, err := shape.Bytes(dt, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if len(data) != want {
		return nil, fmt.Errorf("%s: got %d bytes for %s%s, want %d: %w", op, len(data), dt, s, want, ErrShape)
	}
	t, err := allocFrom(op, memory.Process(memory.IO), dt, s)
	if err != nil {
		return nil, err
	}
	dst := t.bytes()
	copy(dst, data)
	if dt == dtype.Bool {
		for i, b := range dst {
			if b > 1 {
				dst[i] = 1
			}
		}
	}
	return t, nil
}

// FromBuffer returns a tensor over a part of a buffer: element [0,...,0] is at
// the byte offset. The tensor is an additional holder; the caller keeps its own
// hold, and releases it if the tensor is to be writable.
func FromBuffer(buf *memory.Buffer, offset int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	const op = "from buffer"
	if dt.Bits() == 0 {
		return nil, fmt.Errorf("%s: got element type %s, want one of fixed size: %w", op, dt, ErrDType)
	}
	t, err := over(op, buf, offset, dt, l)
	if err != nil {
		return nil, err
	}
	if t.h, err = buf.NewHandle(); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return t, nil
}

// Renew makes a tensor that has ended alive again over other bytes, if they
// match the previous ones: the same type and layout, at the same offset in a
// buffer of the same size. It is for a tensor that [FromBuffer] made of a
// buffer of [memory.AdoptRenewable]; the tensor's hold must be the only one. It
// allocates no object. If the previous bytes have a holder or do not match,
// Renew does nothing and returns false.
func (t *Tensor) Renew(data []byte, label string, release func(), offset int, dt dtype.DType, l *shape.Layout) bool {
	if t == nil || t.buf == nil || t.dt != dt || t.layout != l || t.start+t.first != offset || t.Alive() || t.buf.Holders() > 0 {
		return false
	}
	// State of the previous life is cleared before the next one begins.
	t.fate.Store(nil)
	atomic.StorePointer(&t.shown, nil)
	h, ok := t.buf.Renew(t.h, data, label, release)
	if ok {
		t.h = h
	}
	return ok
}

func typed[T dtype.Element](op string, data []T, dims []int) (dtype.DType, *shape.Shape, error) {
	s, err := shape.Of(dims...)
	if err != nil {
		return dtype.Invalid, nil, fmt.Errorf("%s: %w", op, err)
	}
	if len(data) != s.NumElements() {
		return dtype.Invalid, nil, fmt.Errorf("%s: got %d elements for shape %s, want %d: %w", op, len(data), s, s.NumElements(), ErrShape)
	}
	return dtype.Of[T](), s, nil
}

func asBytes[T dtype.Element](data []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*int(unsafe.Sizeof(zero)))
}
