package kernel

import "github.com/tenure-go/tenure/dtype"

// Arithmetic on F16 and BF16 is done in float32: rows are widened into scratch, computed, and rounded once. Where a function here takes
// scratch, any length will do that gives each row a few elements; HalfScratchFloats is a good one.
const HalfScratchFloats = 3 * 512

// vectorHalves tells whether the variant converts 16-bit floats in vectors.
var vectorHalves bool

// widen fills dst with the elements of src at, at+stride, ...
func widen(dt dtype.DType, dst []float32, src []uint16, at, stride int) {
	if stride == 1 {
		done := widenVectors(dt, dst, src[at:])
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
		bug("%s is no 16-bit float", dt)
	}
}

// narrow rounds all of src into the elements of dst at, at+stride, ...
func narrow(dt dtype.DType, dst []uint16, at, stride int, src []float32) {
	if stride == 1 {
		done := narrowVectors(dt, dst[at:], src)
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
		bug("%s is no 16-bit float", dt)
	}
}

// UnaryHalf is UnaryF32 for the 16-bit floats. dst may be src exactly.
func UnaryHalf(op UnaryOp, dt dtype.DType, dst, src []uint16, a, b float32, scratch []float32) {
	sameLen(op.String(), len(dst), len(src))
	for len(src) > 0 {
		n := min(len(src), len(scratch))
		widen(dt, scratch[:n], src, 0, 1)
		UnaryF32(op, scratch[:n], scratch[:n], a, b)
		narrow(dt, dst, 0, 1, scratch[:n])
		dst, src = dst[n:], src[n:]
	}
}

// BinaryHalf is BinaryF32 for the 16-bit floats.
func BinaryHalf(op BinaryOp, n *Nest, lo, hi int, dt dtype.DType, dst, a, b []uint16, scratch []float32) {
	size := len(scratch) / 2
	x, y := scratch[:size], scratch[size:]
	c := n.cursor(lo, hi)
	for c.next() {
		for at := 0; at < c.n; at += size {
			m := min(c.n-at, size)
			widen(dt, x[:m], a, c.off[1]+at*c.step[1], c.step[1])
			widen(dt, y[:m], b, c.off[2]+at*c.step[2], c.step[2])
			binaryRowVV(op, x[:m], x[:m], y[:m])
			narrow(dt, dst, c.off[0]+at*c.step[0], c.step[0], x[:m])
		}
	}
}

// PredicateHalf is Predicate for the 16-bit floats.
func PredicateHalf(op PredicateOp, n *Nest, lo, hi int, dt dtype.DType, dst []uint8, a, b []uint16, scratch []float32) {
	size := len(scratch) / 2
	x, y := scratch[:size], scratch[size:]
	c := n.cursor(lo, hi)
	for c.next() {
		for at := 0; at < c.n; at += size {
			m := min(c.n-at, size)
			widen(dt, x[:m], a, c.off[1]+at*c.step[1], c.step[1])
			widen(dt, y[:m], b, c.off[2]+at*c.step[2], c.step[2])
			r := evenRun(m)
			r.off[0], r.step[0] = c.off[0]+at*c.step[0], c.step[0]
			predicateStrided(op, &r, dst, x, y)
		}
	}
}
