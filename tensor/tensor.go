package tensor

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
)

// Tensor is an immutable handle on the bytes of an array: element type, shape,
// layout and position in a buffer never change. Several tensors may have the
// same bytes. The methods may be called from any goroutine, also after the
// tensor's end: type, shape and layout stay readable, and everything else is an
// error then.
//
// A nil or zero Tensor has no bytes: methods that return an error return
// [ErrNoTensor], the others the zero value.
type Tensor struct {
	h      memory.Handle
	buf    *memory.Buffer
	layout *shape.Layout
	start  int // the bytes of the buffer from the layout's lowest element to its highest
	size   int
	first  int // index in these bytes at which element [0,...,0] begins
	dt     dtype.DType
	pins   bool                      // it keeps more bytes of the buffer alive than its own
	fate   atomic.Pointer[Operation] // the operation that it was given up to
	shown  unsafe.Pointer            // the description for foreign code; atomic
}

// place computes the range of bytes of a layout whose element [0,...,0] is at
// offset of a buffer of length bytes.
func place(op string, dt dtype.DType, l *shape.Layout, offset, length int) (start, size, first int, err error) {
	if l.Shape() == nil {
		return 0, 0, 0, fmt.Errorf("%s: got no layout, want one: %w", op, ErrLayout)
	}
	low, high := l.Span()
	each := dt.Size()
	if each == 0 { // packed: elements are not whole bytes, so the layout must be row-major without gaps
		if !l.IsContiguous() {
			return 0, 0, 0, fmt.Errorf("%s: got layout %s of %s, want a contiguous one, because its elements are packed: %w", op, l, dt, ErrLayout)
		}
		size, err = dt.ByteLen(l.Shape().NumElements())
		if err != nil {
			return 0, 0, 0, fmt.Errorf("%s: %w", op, err)
		}
		start = offset
	} else {
		// A layout reaches at most 2^58 elements in either direction, of at
		// most 16 bytes, so nothing here overflows.
		start, size, first = offset+low*each, (high-low+1)*each, -low*each
	}
	if offset < 0 || start < 0 || start > length || size > length-start {
		return 0, 0, 0, fmt.Errorf("%s: got %s%s from byte %d on, want it within a buffer of %d bytes: %w", op, dt, l, offset, length, ErrShape)
	}
	return start, size, first, nil
}

// over returns a tensor on buf without a handle, which the caller adds before
// it publishes the tensor.
func over(op string, buf *memory.Buffer, offset int, dt dtype.DType, l *shape.Layout) (*Tensor, error) {
	length := buf.Len()
	start, size, first, err := place(op, dt, l, offset, length)
	if err != nil {
		return nil, err
	}
	return &Tensor{buf: buf, dt: dt, pins: size < length-size, layout: l, start: start, size: size, first: first}, nil
}

// DType returns the element type.
func (t *Tensor) DType() dtype.DType {
	if t == nil {
		return dtype.Invalid
	}
	return t.dt
}

// Shape returns the interned shape, which is static.
func (t *Tensor) Shape() *shape.Shape { return t.Layout().Shape() }

// Layout returns shape and strides.
func (t *Tensor) Layout() *shape.Layout {
	if t == nil {
		return nil
	}
	return t.layout
}

// NumElements returns the number of elements.
func (t *Tensor) NumElements() int { return max(t.Shape().NumElements(), 0) }

// NumBytes returns the number of bytes that the elements span in the buffer,
// gaps between them included.
func (t *Tensor) NumBytes() int {
	if t == nil {
		return 0
	}
	return t.size
}

// Release ends the tensor. Its hold on the bytes ends now or, if uses are out,
// when the last of them ends. A second call returns [ErrReleased], a call after
// a donation [ErrDonated].
func (t *Tensor) Release() error {
	if t == nil || t.buf == nil {
		return errNil("release", t)
	}
	err := t.h.Release()
	runtime.KeepAlive(t)
	if err != nil {
		return t.refusal("release", err)
	}
	return nil
}

// use takes a use of the handle; endUse and unlock end one. They keep t
// reachable until the word has changed, because a buffer that becomes
// unreachable while a use is out counts as a leak.
func (t *Tensor) use() error {
	err := t.h.Use()
	if err == nil && t.buf.Holders() == 0 {
		t.endUse()
		err = errLost
	}
	return err
}

// useHost takes a use for code that reads the bytes with the processor.
func (t *Tensor) useHost() error {
	err := t.use()
	if err == nil && t.buf.Device() != nil {
		t.endUse()
		err = ErrDevice
	}
	return err
}

// lockHost takes the lock for code that writes the bytes with the processor.
func (t *Tensor) lockHost() error {
	err := t.h.Lock()
	if err == nil && t.buf.Device() != nil {
		t.unlock()
		err = ErrDevice
	}
	return err
}

func (t *Tensor) endUse() {
	t.h.EndUse()
	runtime.KeepAlive(t)
}

func (t *Tensor) unlock() {
	t.h.Unlock()
	runtime.KeepAlive(t)
}

// Device returns the device whose memory the bytes are in, nil for the
// processor's.
func (t *Tensor) Device() *memory.Device {
	if t == nil {
		return nil
	}
	return t.buf.Device()
}

// Holders returns the number of holders of the buffer: tensors on any part of
// it, models, plans.
func (t *Tensor) Holders() int {
	if t == nil || t.buf == nil {
		return 0
	}
	return t.buf.Holders()
}

func (t *Tensor) overlapError(op string) error {
	return fmt.Errorf("%s: got %s%s, want a layout in which no two elements share a byte: %w", op, t.dt, t.layout, ErrLayout)
}

// errNil is the error of an operation on a tensor without bytes.
func errNil(op string, t *Tensor) error {
	if t == nil {
		return fmt.Errorf("%s: got %w: the *Tensor is nil", op, ErrNoTensor)
	}
	return fmt.Errorf("%s: got %w: it is the zero Tensor, want one that a function made", op, ErrNoTensor)
}
