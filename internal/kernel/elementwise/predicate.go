package elementwise

import (
	"math"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Predicate computes elements [lo, hi) of dst = op(a, b); the operands of n are
// dst, a, b. Bools are given as uint8, with And, Or and Xor; to compare bools
// for equality use Xor and Not, since true has 255 values.
func Predicate[T kernel.Number](v *kernel.Variant, op kernel.PredicateOp, n *kernel.Nest, lo, hi int, dst []uint8, a, b []T) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		left := c.Rest(predicateLoop(v, op, &c.Run, dst, a, b))
		predicateStrided(op, &left, dst, a, b)
	}
}

func predicateStrided[T kernel.Number](op kernel.PredicateOp, r *kernel.Run, d []uint8, a, b []T) {
	n, id, ia, ib := r.N, r.Off[0], r.Off[1], r.Off[2]
	sd, sa, sb := r.Step[0], r.Step[1], r.Step[2]
	switch op {
	case kernel.Equal:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] == b[ib])
		}
	case kernel.NotEqual:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != b[ib])
		}
	case kernel.Less:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] < b[ib])
		}
	case kernel.LessOrEqual:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] <= b[ib])
		}
	case kernel.Greater:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] > b[ib])
		}
	case kernel.GreaterOrEqual:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] >= b[ib])
		}
	case kernel.And:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != 0) & bit(b[ib] != 0)
		}
	case kernel.Or:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != 0) | bit(b[ib] != 0)
		}
	case kernel.Xor:
		for ; n > 0; n, id, ia, ib = n-1, id+sd, ia+sa, ib+sb {
			d[id] = bit(a[ia] != 0) ^ bit(b[ib] != 0)
		}
	default:
		kernel.Bug("predicate %d", op)
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
func Not(v *kernel.Variant, dst, src []uint8) {
	kernel.SameLen("not", len(dst), len(src))
	done := byteLoop(&v.Elements.Not, dst, src)
	dst, src = dst[done:], src[done:]
	for i, x := range src {
		dst[i] = bit(x == 0)
	}
}

// IsNaN computes dst[i] = src[i] is not a number.
func IsNaN[T kernel.Float](v *kernel.Variant, dst []uint8, src []T) {
	kernel.SameLen("is_nan", len(dst), len(src))
	r := kernel.EvenRun(len(src))
	done := 0
	if len(src) > 0 {
		done = predicateLoop(v, kernel.NotEqual, &r, dst, src, src)
	}
	dst, src = dst[done:], src[done:]
	for i, x := range src {
		dst[i] = bit(x != x)
	}
}

// IsInf computes dst[i] = src[i] is infinite, of the signs asked for.
func IsInf[T kernel.Float](dst []uint8, src []T, negative, positive bool) {
	kernel.SameLen("is_inf", len(dst), len(src))
	neg, pos := bit(negative), bit(positive)
	for i, x := range src {
		dst[i] = neg&bit(float64(x) < -math.MaxFloat64) | pos&bit(float64(x) > math.MaxFloat64)
	}
}

// Where computes elements [lo, hi) of dst = cond ? a : b on elements of
// elemBytes bytes; the operands of n are dst, cond, a, b. Where a or b has the
// output's shape it may be the output.
func Where(v *kernel.Variant, n *kernel.Nest, lo, hi, elemBytes int, dst []byte, cond []uint8, a, b []byte) {
	switch elemBytes {
	case 1:
		where(v, n, lo, hi, dst, cond, a, b)
	case 2:
		where(v, n, lo, hi, kernel.View[uint16](dst), cond, kernel.View[uint16](a), kernel.View[uint16](b))
	case 4:
		where(v, n, lo, hi, kernel.View[uint32](dst), cond, kernel.View[uint32](a), kernel.View[uint32](b))
	case 8:
		where(v, n, lo, hi, kernel.View[uint64](dst), cond, kernel.View[uint64](a), kernel.View[uint64](b))
	case 16:
		where(v, n, lo, hi, kernel.View[kernel.Word16](dst), cond, kernel.View[kernel.Word16](a), kernel.View[kernel.Word16](b))
	default:
		kernel.BadElem("where", elemBytes)
	}
}

// Choose replaces the elements of x whose flag is, or is not, set by fill.
func Choose(v *kernel.Variant, x []float32, flags []uint8, fill *float32, set bool) {
	flags = flags[:len(x)]
	done := 0
	if len(x) > 0 {
		d, f, one := kernel.OperandOf(x, 0, 1), kernel.OperandOf(flags, 0, 1), kernel.Operand{At: (*byte)(unsafe.Pointer(fill))}
		if set {
			done = v.Elements.Where[2][1][0].Over(len(x), d, f, one, d)
		} else {
			done = v.Elements.Where[2][0][1].Over(len(x), d, f, d, one)
		}
	}
	for i := done; i < len(x); i++ {
		if (flags[i] != 0) == set {
			x[i] = *fill
		}
	}
}

func where[W kernel.Word](v *kernel.Variant, n *kernel.Nest, lo, hi int, dst []W, cond []uint8, a, b []W) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		left := c.Rest(whereLoop(v, &c.Run, dst, cond, a, b))
		id, ic, ia, ib := left.Off[0], left.Off[1], left.Off[2], left.Off[3]
		for range left.N {
			v := b[ib]
			if cond[ic] != 0 {
				v = a[ia]
			}
			dst[id] = v
			id, ic, ia, ib = id+c.Step[0], ic+c.Step[1], ia+c.Step[2], ib+c.Step[3]
		}
	}
}
