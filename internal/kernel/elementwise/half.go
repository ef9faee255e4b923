package elementwise

import (
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

// Arithmetic on F16 and BF16 is done in float32: rows are widened into scratch,
// computed, and rounded once. Where a function here takes scratch, any length
// with a few elements for each row suffices; HalfScratchFloats is a good one.
const HalfScratchFloats = 3 * 512

// hidden returns p without the compiler's knowledge: the memory that a loop
// gets by address does not outlive the call, so a buffer of a caller can stay
// on its stack.
func hidden(p unsafe.Pointer) unsafe.Pointer {
	at := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&at))
}

// widenVectors converts as many elements from the first on as whole vectors
// hold, and returns their number.
func widenVectors(v *kernel.Variant, dt dtype.DType, dst []float32, src []uint16) int {
	n, f := len(dst)/8, v.Rows.WidenBF16
	if dt == dtype.F16 {
		f = v.Rows.WidenF16
	}
	if n == 0 || f == nil {
		return 0
	}
	_ = src[8*n-1]
	for at := 0; at < 8*n; at += kernel.AsmElements {
		f(min(n-at/8, kernel.AsmElements/8), (*float32)(hidden(unsafe.Pointer(&dst[at]))), (*uint16)(hidden(unsafe.Pointer(&src[at]))))
	}
	return 8 * n
}

func narrowVectors(v *kernel.Variant, dt dtype.DType, dst []uint16, src []float32) int {
	n, f := len(src)/8, v.Rows.NarrowBF16
	if dt == dtype.F16 {
		f = v.Rows.NarrowF16
	}
	if n == 0 || f == nil {
		return 0
	}
	_ = dst[8*n-1]
	for at := 0; at < 8*n; at += kernel.AsmElements {
		f(min(n-at/8, kernel.AsmElements/8), (*uint16)(hidden(unsafe.Pointer(&dst[at]))), (*float32)(hidden(unsafe.Pointer(&src[at]))))
	}
	return 8 * n
}

// Widen fills dst with the elements of src at, at+stride, ...
func Widen(v *kernel.Variant, dt dtype.DType, dst []float32, src []uint16, at, stride int) {
	if stride == 0 && len(dst) > 1 {
		Widen(v, dt, dst[:1], src, at, 0)
		kernel.Repeat(dst[1:], dst[0])
		return
	}
	if stride == 1 {
		done := widenVectors(v, dt, dst, src[at:])
		if n := len(dst); done > 0 && done < n { // the last vector overlaps the one before it
			widenVectors(v, dt, dst[n-8:], src[at+n-8:])
			return
		}
		dst, at = dst[done:], at+done
	}
	switch dt {
	case dtype.F16:
		for i := range dst {
			dst[i] = dtype.Float16(src[at]).Float32()
			at += stride
		}
	case dtype.BF16:
		for i := range dst {
			dst[i] = dtype.BFloat16(src[at]).Float32()
			at += stride
		}
	default:
		kernel.Bug("%s is no 16-bit float", dt)
	}
}

// Narrow rounds all of src into the elements of dst at, at+stride, ..., which
// are no bytes of src.
func Narrow(v *kernel.Variant, dt dtype.DType, dst []uint16, at, stride int, src []float32) {
	if stride == 1 {
		done := narrowVectors(v, dt, dst[at:], src)
		if n := len(src); done > 0 && done < n { // the last vector overlaps the one before it
			narrowVectors(v, dt, dst[at+n-8:], src[n-8:])
			return
		}
		src, at = src[done:], at+done
	}
	switch dt {
	case dtype.F16:
		for _, x := range src {
			dst[at] = uint16(dtype.Float16FromFloat32(x))
			at += stride
		}
	case dtype.BF16:
		for _, x := range src {
			dst[at] = uint16(dtype.BFloat16FromFloat32(x))
			at += stride
		}
	default:
		kernel.Bug("%s is no 16-bit float", dt)
	}
}

// castHalves is Cast between float32 and a 16-bit float, unless the result lies
// in the operand's bytes.
func castHalves(v *kernel.Variant, dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int) bool {
	isHalf := func(dt dtype.DType) bool { return dt == dtype.F16 || dt == dtype.BF16 }
	switch {
	case lo >= hi || unsafe.SliceData(dst) == unsafe.SliceData(src):
		return false
	case isHalf(from) && to == dtype.F32:
		Widen(v, from, kernel.View[float32](Part(dst, to, lo, hi)), kernel.View[uint16](Part(src, from, lo, hi)), 0, 1)
	case isHalf(to) && from == dtype.F32:
		Narrow(v, to, kernel.View[uint16](Part(dst, to, lo, hi)), 0, 1, kernel.View[float32](Part(src, from, lo, hi)))
	default:
		return false
	}
	return true
}

// UnaryHalf is UnaryF32 for the 16-bit floats. dst may be src exactly.
func UnaryHalf(v *kernel.Variant, op kernel.UnaryOp, dt dtype.DType, dst, src []uint16, a, b float32, scratch []float32) {
	kernel.SameLen(op.String(), len(dst), len(src))
	for len(src) > 0 {
		n := min(len(src), len(scratch))
		Widen(v, dt, scratch[:n], src, 0, 1)
		UnaryF32(v, op, scratch[:n], scratch[:n], a, b)
		Narrow(v, dt, dst, 0, 1, scratch[:n])
		dst, src = dst[n:], src[n:]
	}
}

// BinaryHalf is BinaryF32 for the 16-bit floats.
func BinaryHalf(v *kernel.Variant, op kernel.BinaryOp, n *kernel.Nest, lo, hi int, dt dtype.DType, dst, a, b []uint16, scratch []float32) {
	size := len(scratch) / 2
	x, y := scratch[:size], scratch[size:]
	c := n.Cursor(lo, hi)
	for c.Next() {
		if c.Step[2] == 0 { // one element
			Widen(v, dt, y[:1], b, c.Off[2], 1)
		}
		for at := 0; at < c.N; at += size {
			m := min(c.N-at, size)
			Widen(v, dt, x[:m], a, c.Off[1]+at*c.Step[1], c.Step[1])
			if c.Step[2] == 0 {
				BinaryRowVS(v, op, x[:m], x[:m], y[0])
			} else {
				Widen(v, dt, y[:m], b, c.Off[2]+at*c.Step[2], c.Step[2])
				BinaryRowVV(v, op, x[:m], x[:m], y[:m])
			}
			Narrow(v, dt, dst, c.Off[0]+at*c.Step[0], c.Step[0], x[:m])
		}
	}
}

// PredicateHalf is Predicate for the 16-bit floats.
func PredicateHalf(v *kernel.Variant, op kernel.PredicateOp, n *kernel.Nest, lo, hi int, dt dtype.DType, dst []uint8, a, b []uint16, scratch []float32) {
	size := len(scratch) / 2
	x, y := scratch[:size], scratch[size:]
	c := n.Cursor(lo, hi)
	for c.Next() {
		for at := 0; at < c.N; at += size {
			m := min(c.N-at, size)
			Widen(v, dt, x[:m], a, c.Off[1]+at*c.Step[1], c.Step[1])
			Widen(v, dt, y[:m], b, c.Off[2]+at*c.Step[2], c.Step[2])
			r := kernel.EvenRun(m)
			r.Off[0], r.Step[0] = c.Off[0]+at*c.Step[0], c.Step[0]
			predicateStrided(op, &r, dst, x, y)
		}
	}
}
