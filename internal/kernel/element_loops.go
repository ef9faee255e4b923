package kernel

import (
	"math/bits"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// zeroElement is a 0 of any type.
var zeroElement = new(uint64)

// castLoop converts as many elements from lo on as there is a loop for, and returns their number.
func castLoop(v *Variant, dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int) int {
	if hi <= lo {
		return 0
	}
	p, q := KindOf(from), KindOf(to)
	var l *Loop
	switch {
	case from == dtype.Bool && to == dtype.Bool:
		l = &v.Elements.Truth
	case from == dtype.Bool && q >= 0:
		l = &v.Elements.Cast[KindBool][q]
		if q == KindI8 || q == KindU8 {
			l = &v.Elements.Truth
		}
	case p >= 0 && to == dtype.Bool:
		l = &v.Elements.Predicate[NotEqual][p][FirstRow]
	case p < 0 || q < 0:
		return 0
	case from.Size() == to.Size() && from.IsInt() && to.IsInt():
		copy(Part(dst, to, lo, hi), Part(src, from, lo, hi))
		return hi - lo
	default:
		l = &v.Elements.Cast[p][q]
	}
	d, s := Part(dst, to, lo, hi), Part(src, from, lo, hi)
	return l.Over(hi-lo, Operand{&d[0], to.Size()}, Operand{&s[0], from.Size()}, Operand{at: (*byte)(unsafe.Pointer(zeroElement))}, Operand{})
}

// swappable tells whether operands may be changed round.
func swappable(op BinaryOp) bool {
	switch op {
	case Add, Mul, Min, Max, BitAnd, BitOr, BitXor:
		return true
	}
	return false
}

// binaryLoop computes as many elements of a run as there is a loop for, and returns their number.
func binaryLoop[T Number](v *Variant, op BinaryOp, r *run, d, a, b []T) int {
	form, ok := r.form()
	if !ok {
		return 0
	}
	x, y := OperandOf(a, r.Off[1], r.Step[1]), OperandOf(b, r.Off[2], r.Step[2])
	if form == SecondRow && swappable(op) {
		form, x, y = FirstRow, y, x
	}
	dst := OperandOf(d, r.Off[0], 1)
	if l := &v.Elements.Bits[op]; l.Step != 0 && form == BothRows {
		dst.size, x.size, y.size = 1, 1, 1
		size := int(unsafe.Sizeof(d[0]))
		return l.Over(r.N*size, dst, x, y, Operand{}) / size
	}
	return v.Elements.Binary[op][kind[T]()][form].Over(r.N, dst, x, y, Operand{})
}

// mirrored is the test with its operands changed round.
func mirrored(op PredicateOp) PredicateOp {
	switch op {
	case Less:
		return Greater
	case LessEqual:
		return GreaterEqual
	case Greater:
		return Less
	case GreaterEqual:
		return LessEqual
	}
	return op
}

// predicateLoop is binaryLoop for tests.
func predicateLoop[T Number](v *Variant, op PredicateOp, r *run, d []uint8, a, b []T) int {
	form, ok := r.form()
	if !ok {
		return 0
	}
	x, y := OperandOf(a, r.Off[1], r.Step[1]), OperandOf(b, r.Off[2], r.Step[2])
	dst := OperandOf(d, r.Off[0], 1)
	if op >= And {
		if form != BothRows || unsafe.Sizeof(a[0]) != 1 {
			return 0
		}
		return v.Elements.Logic[op].Over(r.N, dst, x, y, Operand{})
	}
	if form == SecondRow {
		op, form, x, y = mirrored(op), FirstRow, y, x
	}
	return v.Elements.Predicate[op][kind[T]()][form].Over(r.N, dst, x, y, Operand{})
}

// unaryLoop computes as many elements as there is a loop for, and returns their number.
func unaryLoop[T Number](v *Variant, op UnaryOp, dst, src []T) int {
	if len(src) == 0 {
		return 0
	}
	l := &v.Elements.Unary[op][kind[T]()]
	done := l.Over(len(src), OperandOf(dst, 0, 1), OperandOf(src, 0, 1), Operand{}, Operand{})
	if l.Step > 0 && done < len(src) && (op == Exp || op == Log) {
		// The last bits are this code's own, so that it computes the rest, too.
		cell := totals.Get().(*[256]byte)
		group := unsafe.Slice((*T)(unsafe.Pointer(cell)), l.Step)
		copy(group, src[done:])
		l.Run(1, &cell[0], &cell[0], nil, nil)
		done += copy(dst[done:], group)
		totals.Put(cell)
	}
	return done
}

// clampLoop is unaryLoop for limits, none of which is NaN.
func clampLoop[T Number](v *Variant, dst, src []T, lo, hi T) int {
	if len(src) == 0 {
		return 0
	}
	cell := limits.Get().(*[2]uint64)
	defer limits.Put(cell)
	place := func(i int, v T) Operand {
		p := unsafe.Pointer(&cell[i])
		*(*T)(p) = v
		return Operand{at: (*byte)(p)}
	}
	return v.Elements.Clamp[kind[T]()].Over(len(src), OperandOf(dst, 0, 1), OperandOf(src, 0, 1), place(0, lo), place(1, hi))
}

// byteLoop computes as many bools as there is a loop for, and returns their number.
func byteLoop(l *Loop, dst, src []uint8) int {
	if len(src) == 0 {
		return 0
	}
	return l.Over(len(src), OperandOf(dst, 0, 1), OperandOf(src, 0, 1), Operand{}, Operand{})
}

// whereLoop picks as many elements of a run as there is a loop for, and returns their number.
func whereLoop[W Word](v *Variant, r *run, dst []W, cond []uint8, a, b []W) int {
	size := int(unsafe.Sizeof(dst[0]))
	if r.Step[0] != 1 || r.Step[1] != 1 || uint(r.Step[2]) > 1 || uint(r.Step[3]) > 1 || size > 8 {
		return 0
	}
	l := &v.Elements.Where[bits.TrailingZeros(uint(size))][1-r.Step[2]][1-r.Step[3]]
	return l.Over(r.N, OperandOf(dst, r.Off[0], 1), OperandOf(cond, r.Off[1], 1), OperandOf(a, r.Off[2], r.Step[2]), OperandOf(b, r.Off[3], r.Step[3]))
}
