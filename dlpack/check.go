package dlpack

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// MaxDims is the largest number of dimensions that Import accepts. No library
// produces more, and Import reads as many words behind two pointers that it
// cannot check.
const MaxDims = 64

// firstPage is the first address that can be valid: the page below is never
// mapped.
const firstPage = 4096

// described is a DLTensor as a tensor of package tensor.
type described struct {
	dt      dtype.DType
	layout  *shape.Layout
	address uintptr // of the bytes that the elements span, 0 if there are none
	size    int
	first   int // index in the bytes at which element [0,...,0] begins
}

// describe checks every field of d. An accepted description is consistent;
// whether its addresses are mapped depends on the producer.
func describe(d *DLTensor, flags Flags, nullStrides bool) (described, error) {
	none := described{}
	dt, err := d.elementType(flags)
	if err != nil {
		return none, err
	}
	if err := d.Device.check(); err != nil {
		return none, err
	}
	l, err := d.layout(nullStrides)
	if err != nil {
		return none, err
	}
	if dt.Size() == 0 && !l.IsContiguous() {
		return none, fmt.Errorf("got layout %s of %s, want a contiguous one, because its elements are packed: %w", l, dt, tensor.ErrLayout)
	}
	address, size, first, err := d.span(dt, l)
	if err != nil {
		return none, err
	}
	return described{dt, l, address, size, first}, nil
}

// data returns the bytes, which are in host memory.
func (x described) data() []byte {
	return unsafe.Slice((*byte)(pointer(x.address)), x.size)
}

func (d *DLTensor) elementType(flags Flags) (dtype.DType, error) {
	t := d.DType
	if t.Lanes != 1 {
		return dtype.Invalid, fmt.Errorf("got elements of %d lanes, want 1: %w", t.Lanes, tensor.ErrUnsupported)
	}
	dt, err := dtype.FromDLPack(uint8(t.Code), t.Bits, t.Lanes)
	if err != nil {
		return dtype.Invalid, err
	}
	if dt.Size() == 0 && flags&FlagSubBytePadded != 0 {
		return dtype.Invalid, fmt.Errorf("got %s with a byte for each element, want it packed: %w", dt, tensor.ErrUnsupported)
	}
	return dt, nil
}

func (d *DLTensor) layout(nullStrides bool) (*shape.Layout, error) {
	if d.NDim < 0 || d.NDim > MaxDims {
		return nil, fmt.Errorf("got %d dimensions, want 0 to %d: %w", d.NDim, MaxDims, tensor.ErrShape)
	}
	dims, err := d.words("shape", d.Shape)
	if err != nil {
		return nil, err
	}
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, err
	}
	if d.Strides == 0 && d.NDim > 0 {
		if !nullStrides {
			return nil, fmt.Errorf("got NULL strides for %d dimensions, want them written out from DLPack 1.2 on: %w", d.NDim, tensor.ErrCorrupt)
		}
		return shape.RowMajor(s), nil
	}
	strides, err := d.words("strides", d.Strides)
	if err != nil {
		return nil, err
	}
	return shape.Strided(s, strides...)
}

// words copies the NDim numbers at an address.
func (d *DLTensor) words(what string, address uintptr) ([]int, error) {
	if d.NDim == 0 {
		return nil, nil
	}
	if address < firstPage || address%8 != 0 || address > math.MaxUint64-8*MaxDims {
		return nil, fmt.Errorf("got %s at address %#x, want an aligned one: %w", what, address, tensor.ErrCorrupt)
	}
	words := make([]int, d.NDim)
	for i, w := range unsafe.Slice((*int64)(pointer(address)), d.NDim) {
		words[i] = int(w)
	}
	return words, nil
}

// span returns the bytes that the elements of layout l reach.
func (d *DLTensor) span(dt dtype.DType, l *shape.Layout) (address uintptr, size, first int, err error) {
	if l.Shape().NumElements() == 0 {
		return 0, 0, 0, nil // without elements, data and offset have no meaning
	}
	if d.Data < firstPage {
		return 0, 0, 0, fmt.Errorf("got data at address %#x for %s%s, want a mapped one: %w", d.Data, dt, l, tensor.ErrCorrupt)
	}
	if d.ByteOffset > math.MaxInt64 {
		return 0, 0, 0, fmt.Errorf("got byte offset %d, want 0 or more: %w", int64(d.ByteOffset), tensor.ErrCorrupt)
	}
	// Element counts and offsets are at most 2^58, elements at most 16 bytes,
	// so no product below overflows an int.
	size, err = dt.ByteLen(l.Shape().NumElements())
	if err != nil {
		return 0, 0, 0, err
	}
	if each := dt.Size(); each > 0 {
		low, high := l.Span()
		size, first = (high-low+1)*each, -low*each
	}
	at := d.Data + uintptr(d.ByteOffset)
	if at < d.Data || at < firstPage+uintptr(first) || at-uintptr(first) > math.MaxInt64-uintptr(size) {
		return 0, 0, 0, fmt.Errorf("got %s%s from byte %d behind address %#x on, want it within the address space: %w", dt, l, d.ByteOffset, d.Data, tensor.ErrCorrupt)
	}
	if align := alignment(dt); at%align != 0 {
		return 0, 0, 0, fmt.Errorf("got elements of %s at address %#x, want a multiple of %d: %w", dt, at, align, tensor.ErrLayout)
	}
	return at - uintptr(first), size, first, nil
}

// alignment returns the alignment that Go and C require of an element: its
// size, or that of a part of a complex number.
func alignment(dt dtype.DType) uintptr {
	size := uintptr(dt.Size())
	if dt.IsComplex() {
		size /= 2
	}
	return max(size, 1)
}
