package kernel

import "math"

// BinaryF32 computes elements [lo, hi) of dst = op(a, b); the operands of n are dst, a, b.
func BinaryF32(v *Variant, op BinaryOp, n *Nest, lo, hi int, dst, a, b []float32) {
	if n.IsRow() {
		binaryRowVV(v, op, dst[lo:hi], a[lo:hi], b[lo:hi]) // small calls have no time for a cursor
		return
	}
	c := n.Cursor(lo, hi)
	for c.Next() {
		id, ia, ib := c.Off[0], c.Off[1], c.Off[2]
		switch [3]int(c.Step[:3]) {
		case [3]int{1, 1, 1}:
			binaryRowVV(v, op, dst[id:id+c.N], a[ia:ia+c.N], b[ib:ib+c.N])
		case [3]int{1, 1, 0}:
			binaryRowVS(v, op, dst[id:id+c.N], a[ia:ia+c.N], b[ib])
		case [3]int{1, 0, 1}:
			binaryRowSV(v, op, dst[id:id+c.N], a[ia], b[ib:ib+c.N])
		default:
			floatStrided(op, &c.run, dst, a, b)
		}
	}
}

// BinaryF64 is BinaryF32 in float64.
func BinaryF64(v *Variant, op BinaryOp, n *Nest, lo, hi int, dst, a, b []float64) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		left := c.rest(binaryLoop(v, op, &c.run, dst, a, b))
		floatStrided(op, &left, dst, a, b)
	}
}

// BinaryInt is BinaryF32 for the integer types.
func BinaryInt[T Integer](v *Variant, op BinaryOp, n *Nest, lo, hi int, dst, a, b []T) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		left := c.rest(binaryLoop(v, op, &c.run, dst, a, b))
		intStrided(op, &left, dst, a, b)
	}
}

// arithStrided computes n elements of what integers and floats share; false if op is not of that kind.
func arithStrided[T Number](op BinaryOp, r *run, d, a, b []T) bool {
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case Add:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] + b[ib]
		}
	case Sub:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] - b[ib]
		}
	case Mul:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] * b[ib]
		}
	case Min:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = min(a[ia], b[ib])
		}
	case Max:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = max(a[ia], b[ib])
		}
	case PRelu:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			x := a[ia]
			if x < 0 {
				x *= b[ib]
			}
			d[id] = x
		}
	default:
		return false
	}
	return true
}

func floatStrided[T Float](op BinaryOp, r *run, d, a, b []T) {
	if arithStrided(op, r, d, a, b) {
		return
	}
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case Div:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] / b[ib]
		}
	case Mod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = floatMod(a[ia], b[ib])
		}
	case FMod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = T(math.Mod(float64(a[ia]), float64(b[ib])))
		}
	case Pow:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = T(math.Pow(float64(a[ia]), float64(b[ib])))
		}
	default:
		Bug("%s is not defined on floats", op)
	}
}

func floatMod[T Float](x, y T) T {
	r := math.Mod(float64(x), float64(y))
	switch {
	case r == 0:
		r = math.Copysign(0, float64(y))
	case (r < 0) != (y < 0):
		r += float64(y)
	}
	return T(r)
}

func intStrided[T Integer](op BinaryOp, r *run, d, a, b []T) {
	if arithStrided(op, r, d, a, b) {
		return
	}
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case Div:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			var q T
			if y := b[ib]; y != 0 {
				q = a[ia] / y
			}
			d[id] = q
		}
	case Mod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = intMod(a[ia], b[ib])
		}
	case FMod:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			var r T
			if y := b[ib]; y != 0 {
				r = a[ia] % y
			}
			d[id] = r
		}
	case Pow:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = intPow(a[ia], b[ib])
		}
	case BitAnd:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] & b[ib]
		}
	case BitOr:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] | b[ib]
		}
	case BitXor:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] ^ b[ib]
		}
	case ShiftLeft:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] << uint64(b[ib])
		}
	case ShiftRight:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = a[ia] >> uint64(b[ib])
		}
	default:
		Bug("%s is not defined on integers", op)
	}
}

func intMod[T Integer](x, y T) T {
	if y == 0 {
		return 0
	}
	r := x % y
	if r != 0 && (r < 0) != (y < 0) {
		r += y
	}
	return r
}

func intPow[T Integer](x, e T) T {
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
