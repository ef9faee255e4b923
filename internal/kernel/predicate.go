package kernel

import "math"

// Predicate computes elements [lo, hi) of dst = op(a, b); the operands of n are dst, a, b. Bools are given as uint8, with And, Or and
// Xor; to compare bools for equality use Xor and Not, since true has 255 values.
func Predicate[T Number](v *Variant, op PredicateOp, n *Nest, lo, hi int, dst []uint8, a, b []T) {
	c := n.cursor(lo, hi)
	for c.next() {
		left := c.rest(predicateLoop(v, op, &c.run, dst, a, b))
		predicateStrided(op, &left, dst, a, b)
	}
}

func predicateStrided[T Number](op PredicateOp, r *run, d []uint8, a, b []T) {
	n, id, ia, ib := r.n, r.off[0], r.off[1], r.off[2]
	sd, sa, sb := r.step[0], r.step[1], r.step[2]
	switch op {
	case Equal:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] == b[ib])
		}
	case NotEqual:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != b[ib])
		}
	case Less:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] < b[ib])
		}
	case LessEqual:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] <= b[ib])
		}
	case Greater:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] > b[ib])
		}
	case GreaterEqual:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] >= b[ib])
		}
	case And:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != 0) & bit(b[ib] != 0)
		}
	case Or:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != 0) | bit(b[ib] != 0)
		}
	case Xor:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != 0) ^ bit(b[ib] != 0)
		}
	default:
		bug("predicate %d", op)
	}
}

func bit(v bool) uint8 {
	var b uint8
	if v {
		b = 1
	}
	return b
}

// Not computes dst[i] = !src[i]. dst may be src exactly.
func Not(v *Variant, dst, src []uint8) {
	sameLen("not", len(dst), len(src))
	done := byteLoop(&v.Elements.Not, dst, src)
	dst, src = dst[done:], src[done:]
	for i, x := range src {
		dst[i] = bit(x == 0)
	}
}

// IsNaN computes dst[i] = src[i] is not a number.
func IsNaN[T Float](v *Variant, dst []uint8, src []T) {
	sameLen("is_nan", len(dst), len(src))
	r := evenRun(len(src))
	done := 0
	if len(src) > 0 {
		done = predicateLoop(v, NotEqual, &r, dst, src, src)
	}
	dst, src = dst[done:], src[done:]
	for i, x := range src {
		dst[i] = bit(x != x)
	}
}

// IsInf computes dst[i] = src[i] is infinite, of the signs asked for.
func IsInf[T Float](dst []uint8, src []T, negative, positive bool) {
	sameLen("is_inf", len(dst), len(src))
	neg, pos := bit(negative), bit(positive)
	for i, x := range src {
		dst[i] = neg&bit(float64(x) < -math.MaxFloat64) | pos&bit(float64(x) > math.MaxFloat64)
	}
}

// Where computes elements [lo, hi) of dst = cond ? a : b on elements of elemBytes bytes; the operands of n are dst, cond, a, b. Where a
// or b has the output's shape it may be the output.
func Where(v *Variant, n *Nest, lo, hi, elemBytes int, dst []byte, cond []uint8, a, b []byte) {
	switch elemBytes {
	case 1:
		where(v, n, lo, hi, dst, cond, a, b)
	case 2:
		where(v, n, lo, hi, view[uint16](dst), cond, view[uint16](a), view[uint16](b))
	case 4:
		where(v, n, lo, hi, view[uint32](dst), cond, view[uint32](a), view[uint32](b))
	case 8:
		where(v, n, lo, hi, view[uint64](dst), cond, view[uint64](a), view[uint64](b))
	case 16:
		where(v, n, lo, hi, view[word16](dst), cond, view[word16](a), view[word16](b))
	default:
		badElem("where", elemBytes)
	}
}

func where[W word](v *Variant, n *Nest, lo, hi int, dst []W, cond []uint8, a, b []W) {
	c := n.cursor(lo, hi)
	for c.next() {
		left := c.rest(whereLoop(v, &c.run, dst, cond, a, b))
		id, ic, ia, ib := left.off[0], left.off[1], left.off[2], left.off[3]
		for range left.n {
			v := b[ib]
			if cond[ic] != 0 {
				v = a[ia]
			}
			dst[id] = v
			id, ic, ia, ib = id+c.step[0], ic+c.step[1], ia+c.step[2], ib+c.step[3]
		}
	}
}
