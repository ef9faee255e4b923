package compute

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
)

// view reads the bytes of an operand or of scratch as elements of T.
func view[T any](b []byte) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	if len(b) == 0 {
		return nil
	}
	if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); len(b)%size != 0 || at%unsafe.Alignof(zero) != 0 {
		panic(fmt.Sprintf("BUG: compute: %d bytes at %#x are no whole aligned elements of %d bytes", len(b), at, size))
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

// asBytes is the reverse of view.
func asBytes[T float64 | int64](data []T) []byte {
	if len(data) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), len(data)*8)
}

// in and out read an operand's or a result's bytes as they stand now; nil when
// it is absent.
func in[T any](c *op.Call, i int) []T {
	if i >= len(c.In) {
		return nil
	}
	return view[T](c.In[i].Data)
}

func out[T any](c *op.Call, i int) []T {
	if i >= len(c.Out) {
		return nil
	}
	return view[T](c.Out[i].Data)
}

// sameBytes reports whether two operands lie in the same bytes.
func sameBytes(a, b []byte) bool {
	return len(a) > 0 && len(a) == len(b) && unsafe.SliceData(a) == unsafe.SliceData(b)
}

// has reports whether the operand is there.
func has(c *op.Call, i int) bool { return i < len(c.In) && !c.In[i].IsZero() }

// wanted reports whether the result is wanted.
func wanted(c *op.Call, i int) bool { return i < len(c.Out) && !c.Out[i].IsZero() }

func elements(a *op.Arg) int { return a.Shape.NumElements() }

// floatOf, intOf and numberOf pick the instance of a generic binder for an
// element type; nil when it has none.
func floatOf[F any](dt dtype.DType, f32, f64 F) (f F, ok bool) {
	switch dt {
	case dtype.F32:
		return f32, true
	case dtype.F64:
		return f64, true
	}
	return f, false
}

func intOf[F any](dt dtype.DType, i8, i16, i32, i64, u8, u16, u32, u64 F) (f F, ok bool) {
	switch dt {
	case dtype.I8:
		return i8, true
	case dtype.I16:
		return i16, true
	case dtype.I32:
		return i32, true
	case dtype.I64:
		return i64, true
	case dtype.U8:
		return u8, true
	case dtype.U16:
		return u16, true
	case dtype.U32:
		return u32, true
	case dtype.U64:
		return u64, true
	}
	return f, false
}

func isHalf(dt dtype.DType) bool { return dt == dtype.F16 || dt == dtype.BF16 }

// halfScratch is the scratch that the kernels on 16-bit floats take.
const halfScratch = elementwise.HalfScratchFloats * 4

// broadcastStrides appends to dst the strides under which an operand of the
// given sizes is walked over the sizes of out, by numpy's rule.
func broadcastStrides(dst, sizes, out []int) []int {
	from := len(dst)
	for range out {
		dst = append(dst, 0)
	}
	strides, step := dst[from:], 1
	for i := len(sizes) - 1; i >= 0; i-- {
		if sizes[i] != 1 {
			strides[i+len(out)-len(sizes)] = step
		}
		step *= sizes[i]
	}
	return dst
}

// checkLoops returns an error for sizes that kernels cannot walk.
func checkLoops(sizes []int) error {
	loops := 0
	for _, n := range sizes {
		if n != 1 {
			loops++
		}
	}
	if loops > kernel.MaxRank {
		return fmt.Errorf("got sizes %v, want at most %d other than 1: %w", sizes, kernel.MaxRank, op.ErrUnsupported)
	}
	return nil
}

// mostTable bounds the elements of an axis for which a task keeps a table on
// the Go heap, where no plan counts it: an axis of a declared type may have
// any size.
const mostTable = 1 << 24

func checkTable(axis, size int) error {
	if size > mostTable {
		return fmt.Errorf("axis %d: got %d elements, want at most %d: %w", axis, size, mostTable, op.ErrUnsupported)
	}
	return nil
}

// spanElements is the number of elements of one tile of a flat kernel.
const spanElements = 32 << 10

func spans(n int) int { return (n + spanElements - 1) / spanElements }

func span(tile, n int) (lo, hi int) { return tile * spanElements, min((tile+1)*spanElements, n) }
