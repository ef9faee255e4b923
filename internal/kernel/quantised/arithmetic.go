package quantised

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Arithmetic is the sum or the product of two quantised operands, quantised
// again. A sum is a*(scaleA/scaleY) + b*(scaleB/scaleY) and then the rest,
// zeroY less each zero times its ratio; a product is
// (a-zeroA)*(b-zeroB)*(scaleA*scaleB/scaleY) and then zeroY. Every operation is
// rounded to float32; the last result is rounded to the nearest integer, halves
// to the even one, and saturated. ONNX Runtime computes QLinearAdd and
// QLinearMul so.
type Arithmetic struct {
	Product                   bool
	SignedA, SignedB, SignedY bool

	ratioA, ratioB, rest float32
	zeroA, zeroB         float64
}

// ArithmeticScratch is the size of a worker's scratch in bytes.
const ArithmeticScratch = 10 * arithmeticPiece

const arithmeticPiece = 1024

// Set takes the scales and zeros of a, b and the result.
func (k *Arithmetic) Set(scaleA, zeroA, scaleB, zeroB, scaleY, zeroY Numbers) {
	a, b, y := float32(one(scaleA, 0)), float32(one(scaleB, 0)), float32(one(scaleY, 0))
	if k.zeroA, k.zeroB = one(zeroA, 0), one(zeroB, 0); k.Product {
		k.ratioA, k.rest = float32(a*b)/y, float32(one(zeroY, 0))
		return
	}
	k.ratioA, k.ratioB = a/y, b/y
	zeros := float32(float32(k.ratioA*float32(k.zeroA)) + float32(k.ratioB*float32(k.zeroB)))
	k.rest = float32(one(zeroY, 0)) - zeros
}

// Run computes the elements [lo, hi) of a nest of the result, a and b. scratch
// holds ArithmeticScratch bytes, aligned for float32.
func (k *Arithmetic) Run(v *kernel.Variant, n *kernel.Nest, lo, hi int, dst, a, b, scratch []byte) {
	loop := k.loop(v)
	for c := n.Cursor(lo, hi); c.Next(); {
		switch step := c.Step; {
		case loop == nil || step[0] != 1:
			k.pieces(v, &c.Run, dst, a, b, scratch)
		case step[1] == 1 && (step[2] == 0 || step[2] == 1):
			k.row(loop, c.N, dst[c.Off[0]:], a[c.Off[1]:], b[c.Off[2]:], step[2] == 0)
		case step[1] == 0 && step[2] == 1:
			other := k.swapped()
			other.row(loop, c.N, dst[c.Off[0]:], b[c.Off[2]:], a[c.Off[1]:], true)
		default:
			k.pieces(v, &c.Run, dst, a, b, scratch)
		}
	}
}

// loop returns the machine's loop over a row, nil where it has none, or one
// that does not take the scales: results may not be numbers where a term is
// infinite.
func (k *Arithmetic) loop(v *kernel.Variant) func(kernel.ByteArithmetic) {
	const most = 1e30
	for _, x := range []float32{k.ratioA, k.ratioB, k.rest} {
		if !(-most < x && x < most) {
			return nil
		}
	}
	if k.Product {
		return v.Bytes.Multiply
	}
	return v.Bytes.Add
}

// swapped has a and b in the place of each other.
func (k *Arithmetic) swapped() Arithmetic {
	s := *k
	s.SignedA, s.SignedB, s.zeroA, s.zeroB = k.SignedB, k.SignedA, k.zeroB, k.zeroA
	if !k.Product {
		s.ratioA, s.ratioB = k.ratioB, k.ratioA
	}
	return s
}

// row computes n elements, with one of b or as many.
func (k *Arithmetic) row(loop func(kernel.ByteArithmetic), n int, dst, a, b []byte, one bool) {
	_, _, _ = dst[n-1], a[n-1], b[0]
	call := kernel.ByteArithmetic{Out: &dst[0], A: &a[0], B: &b[0], N: n, RatioA: k.ratioA, RatioB: k.ratioB, Rest: k.rest}
	if one {
		call.One = 1
	} else {
		_ = b[n-1]
	}
	if k.Product { // the ratios of a sum have the zeros in its rest
		call.ZeroA, call.ZeroB = int32(k.zeroA), int32(k.zeroB)
	}
	const flip, words = 0x8080808080808080, 128<<16 | 128
	if k.SignedA {
		call.FlipA, call.ZeroA = flip, call.ZeroA+128
	}
	if k.SignedB {
		call.FlipB, call.ZeroB = flip, call.ZeroB+128
	}
	if k.SignedY {
		call.FlipOut, call.Offset = flip, words
	}
	loop(call)
}

// pieces computes a run without a loop for it.
func (k *Arithmetic) pieces(v *kernel.Variant, c *kernel.Run, dst, a, b, scratch []byte) {
	floats := kernel.View[float32](scratch[:8*arithmeticPiece])
	rows := scratch[8*arithmeticPiece:]
	for i := 0; i < c.N; i += arithmeticPiece {
		m := min(arithmeticPiece, c.N-i)
		x := bytesOfRun(rows[:arithmeticPiece], a, c.Off[1]+i*c.Step[1], c.Step[1], m)
		k.widen(v, floats[:m], x, k.SignedA, k.ratioA, k.zeroA)
		x = bytesOfRun(rows[arithmeticPiece:], b, c.Off[2]+i*c.Step[2], c.Step[2], m)
		k.widen(v, floats[arithmeticPiece:][:m], x, k.SignedB, k.ratioB, k.zeroB)
		to, step := c.Off[0]+i*c.Step[0], c.Step[0]
		if step == 1 {
			k.piece(v, dst[to:to+m], floats[:m], floats[arithmeticPiece:][:m])
			continue
		}
		k.piece(v, rows[:m], floats[:m], floats[arithmeticPiece:][:m])
		for j, r := range rows[:m] {
			dst[to+j*step] = r
		}
	}
}

// bytesOfRun returns n bytes that lie step apart, in buf unless they follow
// each other.
func bytesOfRun(buf, x []byte, at, step, n int) []byte {
	switch step {
	case 1:
		return x[at : at+n]
	case 0:
		for i := range buf[:n] {
			buf[i] = x[at]
		}
	default:
		for i := range buf[:n] {
			buf[i] = x[at+i*step]
		}
	}
	return buf[:n]
}

// widen makes floats of bytes: terms of a sum, or factors of a product.
func (k *Arithmetic) widen(v *kernel.Variant, dst []float32, x []byte, signed bool, ratio float32, zero float64) {
	if k.Product {
		ratio = 1
	} else {
		zero = 0
	}
	i := 0
	if v.Bytes.DequantizeU8 != nil {
		i = dequantizeRow(v, dst, x, signed, ratio, zero)
	}
	for ; i < len(x); i++ {
		f := float32(x[i])
		if signed {
			f = float32(int8(x[i]))
		}
		dst[i] = (f - float32(zero)) * ratio
	}
}

// piece computes the result from widened operands, which it overwrites.
func (k *Arithmetic) piece(v *kernel.Variant, dst []byte, a, b []float32) {
	if k.Product {
		elementwise.BinaryRowVV(v, kernel.Mul, a, a, b)
		elementwise.BinaryRowVS(v, kernel.Mul, a, a, k.ratioA)
	} else {
		elementwise.BinaryRowVV(v, kernel.Add, a, a, b)
	}
	elementwise.BinaryRowVS(v, kernel.Add, a, a, k.rest)
	lo, hi := 0.0, 255.0
	if k.SignedY {
		lo, hi = -128, 127
	}
	i := 0
	if v.Bytes.Quantize != nil {
		i = quantizeRow(v, dst, a, 1, lo, hi, 0)
	}
	for ; i < len(a); i++ {
		dst[i] = byte(saturate(a[i], 0, lo, hi))
	}
}
