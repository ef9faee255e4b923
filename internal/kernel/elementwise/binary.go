package elementwise

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// BinaryF32 computes elements [lo, hi) of dst = op(a, b); the operands of n are
// dst, a, b.
func BinaryF32(v *kernel.Variant, op kernel.BinaryOp, n *kernel.Nest, lo, hi int, dst, a, b []float32) {
	if n.IsRow() {
		BinaryRowVV(v, op, dst[lo:hi], a[lo:hi], b[lo:hi]) // small calls have no time for a cursor
		return
	}
	c := n.Cursor(lo, hi)
	for c.Next() {
		id, ia, ib := c.Off[0], c.Off[1], c.Off[2]
		switch [3]int(c.Step[:3]) {
		case [3]int{1, 1, 1}:
			BinaryRowVV(v, op, dst[id:id+c.N], a[ia:ia+c.N], b[ib:ib+c.N])
		case [3]int{1, 1, 0}:
			BinaryRowVS(v, op, dst[id:id+c.N], a[ia:ia+c.N], b[ib])
		case [3]int{1, 0, 1}:
			binaryRowSV(v, op, dst[id:id+c.N], a[ia], b[ib:ib+c.N])
		default:
			FloatStrided(op, &c.Run, dst, a, b)
		}
	}
}

// BinaryF64 is BinaryF32 in float64.
func BinaryF64(v *kernel.Variant, op kernel.BinaryOp, n *kernel.Nest, lo, hi int, dst, a, b []float64) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		left := c.Rest(BinaryLoop(v, op, &c.Run, dst, a, b))
		FloatStrided(op, &left, dst, a, b)
	}
}

// BinaryInt is BinaryF32 for the integer types. Quotients and remainders of 0
// are 0.
func BinaryInt[T kernel.Integer](v *kernel.Variant, op kernel.BinaryOp, n *kernel.Nest, lo, hi int, dst, a, b []T) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		left := c.Rest(BinaryLoop(v, op, &c.Run, dst, a, b))
		intStrided(op, &left, dst, a, b)
	}
}

// ArithStrided computes n elements of what integers and floats share; false if
// op is not of that kind.
func ArithStrided[T kernel.Number](op kernel.BinaryOp, r *kernel.Run, d, a, b []T) bool {
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case kernel.Add:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] + b[ib]
		}
	case kernel.Sub:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] - b[ib]
		}
	case kernel.Mul:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] * b[ib]
		}
	case kernel.Min:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = min(a[ia], b[ib])
		}
	case kernel.Max:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = max(a[ia], b[ib])
		}
	default:
		return false
	}
	return true
}

func FloatStrided[T kernel.Float](op kernel.BinaryOp, r *kernel.Run, d, a, b []T) {
	if ArithStrided(op, r, d, a, b) {
		return
	}
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case kernel.Div:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] / b[ib]
		}
	case kernel.Mod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = floatMod(a[ia], b[ib])
		}
	case kernel.Fmod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = T(math.Mod(float64(a[ia]), float64(b[ib])))
		}
	case kernel.Pow:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = T(math.Pow(float64(a[ia]), float64(b[ib])))
		}
	default:
		if !formulaStrided(op, r, d, a, b) {
			kernel.Bug("%s is not defined on floats", op)
		}
	}
}

// formulaStrided computes a run of a function that has a formula. It returns
// false if op has none.
func formulaStrided[T kernel.Float](op kernel.BinaryOp, r *kernel.Run, d, a, b []T) bool {
	switch d := any(d).(type) {
	case []float32:
		return formulaStrided32(op, r, d, any(a).([]float32), any(b).([]float32))
	case []float64:
		return formulaStrided64(op, r, d, any(a).([]float64), any(b).([]float64))
	}
	return false
}

func floatMod[T kernel.Float](x, y T) T {
	r := math.Mod(float64(x), float64(y))
	switch {
	case r == 0:
		r = math.Copysign(0, float64(y))
	case (r < 0) != (y < 0):
		r += float64(y)
	}
	return T(r)
}

func intStrided[T kernel.Integer](op kernel.BinaryOp, r *kernel.Run, d, a, b []T) {
	if ArithStrided(op, r, d, a, b) {
		return
	}
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case kernel.Div:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			var q T
			if y := b[ib]; y != 0 {
				q = a[ia] / y
			}
			d[id] = q
		}
	case kernel.Mod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = intMod(a[ia], b[ib])
		}
	case kernel.Fmod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			var r T
			if y := b[ib]; y != 0 {
				r = a[ia] % y
			}
			d[id] = r
		}
	case kernel.Pow:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = intPow(a[ia], b[ib])
		}
	case kernel.Prelu:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			x := a[ia]
			if x < 0 {
				x *= b[ib]
			}
			d[id] = x
		}
	case kernel.BitwiseAnd:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] & b[ib]
		}
	case kernel.BitwiseOr:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] | b[ib]
		}
	case kernel.BitwiseXor:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] ^ b[ib]
		}
	case kernel.ShiftLeft:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] << uint64(b[ib])
		}
	case kernel.ShiftRight:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] >> uint64(b[ib])
		}
	default:
		kernel.Bug("%s is not defined on integers", op)
	}
}

func intMod[T kernel.Integer](x, y T) T {
	if y == 0 {
		return 0
	}
	r := x % y
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func intPow[T kernel.Integer](x, e T) T {
	if e < 0 {
		switch {
		case x == 1:
			return 1
		case x < 0 && x+1 == 0: // -1
			if e&1 != 0 {
				return x
			}
			return 1
		}
		return 0
	}
	r := T(1)
	for ; e > 0; e >>= 1 {
		if e&1 != 0 {
			r *= x
		}
		x *= x
	}
	return r
}
