package elementwise

import (
	"math/bits"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

// zeroElement is a 0 of any type.
var zeroElement = new(uint64)

// castLoop converts as many elements from lo on as there is a loop for, and
// returns their number.
func castLoop(v *kernel.Variant, dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int) int {
	if hi <= lo {
		return 0
	}
	p, q := kernel.KindOf(from), kernel.KindOf(to)
	var l *kernel.Loop
	switch {
	case from == dtype.Bool && to == dtype.Bool:
		l = &v.Elements.Truth
	case from == dtype.Bool && q >= 0:
		l = &v.Elements.Cast[kernel.KindBool][q]
		if q == kernel.KindI8 || q == kernel.KindU8 {
			l = &v.Elements.Truth
		}
	case p >= 0 && to == dtype.Bool:
		l = &v.Elements.Predicate[kernel.NotEqual][p][kernel.FirstRow]
	case p < 0 || q < 0:
		return 0
	case from.Size() == to.Size() && from.IsInt() && to.IsInt():
		copy(Part(dst, to, lo, hi), Part(src, from, lo, hi))
		return hi - lo
	default:
		l = &v.Elements.Cast[p][q]
	}
	d, s := Part(dst, to, lo, hi), Part(src, from, lo, hi)
	y, x := kernel.Operand{At: &d[0], Size: to.Size()}, kernel.Operand{At: &s[0], Size: from.Size()}
	return l.Over(hi-lo, y, x, kernel.Operand{At: (*byte)(unsafe.Pointer(zeroElement))}, kernel.Operand{})
}

// swappable reports whether operands may be changed round.
func swappable(op kernel.BinaryOp) bool {
	switch op {
	case kernel.Add, kernel.Mul, kernel.Min, kernel.Max, kernel.BitwiseAnd, kernel.BitwiseOr, kernel.BitwiseXor:
		return true
	}
	return false
}

// BinaryLoop computes as many elements of a run as there is a loop for, and
// returns their number.
func BinaryLoop[T kernel.Number](v *kernel.Variant, op kernel.BinaryOp, r *kernel.Run, d, a, b []T) int {
	form, ok := r.Form()
	if !ok {
		return 0
	}
	x, y := kernel.OperandOf(a, r.Off[1], r.Step[1]), kernel.OperandOf(b, r.Off[2], r.Step[2])
	if form == kernel.SecondRow && swappable(op) {
		form, x, y = kernel.FirstRow, y, x
	}
	dst := kernel.OperandOf(d, r.Off[0], 1)
	if l := &v.Elements.Bits[op]; l.Step != 0 && form == kernel.BothRows {
		dst.Size, x.Size, y.Size = 1, 1, 1
		size := int(unsafe.Sizeof(d[0]))
		return l.Over(r.N*size, dst, x, y, kernel.Operand{}) / size
	}
	return v.Elements.Binary[op][kernel.Kind[T]()][form].Over(r.N, dst, x, y, kernel.Operand{})
}

// mirrored is the test with its operands changed round.
func mirrored(op kernel.PredicateOp) kernel.PredicateOp {
	switch op {
	case kernel.Less:
		return kernel.Greater
	case kernel.LessOrEqual:
		return kernel.GreaterOrEqual
	case kernel.Greater:
		return kernel.Less
	case kernel.GreaterOrEqual:
		return kernel.LessOrEqual
	}
	return op
}

// predicateLoop is BinaryLoop for tests.
func predicateLoop[T kernel.Number](v *kernel.Variant, op kernel.PredicateOp, r *kernel.Run, d []uint8, a, b []T) int {
	form, ok := r.Form()
	if !ok {
		return 0
	}
	x, y := kernel.OperandOf(a, r.Off[1], r.Step[1]), kernel.OperandOf(b, r.Off[2], r.Step[2])
	dst := kernel.OperandOf(d, r.Off[0], 1)
	if op >= kernel.And {
		if form != kernel.BothRows || unsafe.Sizeof(a[0]) != 1 {
			return 0
		}
		return v.Elements.Logic[op].Over(r.N, dst, x, y, kernel.Operand{})
	}
	if form == kernel.SecondRow {
		op, form, x, y = mirrored(op), kernel.FirstRow, y, x
	}
	return v.Elements.Predicate[op][kernel.Kind[T]()][form].Over(r.N, dst, x, y, kernel.Operand{})
}

// unaryLoop computes as many elements as there is a loop for, and returns their
// number.
func unaryLoop[T kernel.Number](v *kernel.Variant, op kernel.UnaryOp, dst, src []T) int {
	if len(src) == 0 {
		return 0
	}
	l := &v.Elements.Unary[op][kernel.Kind[T]()]
	done := l.Over(len(src), kernel.OperandOf(dst, 0, 1), kernel.OperandOf(src, 0, 1), kernel.Operand{}, kernel.Operand{})
	if l.Step > 0 && done < len(src) && (op == kernel.Exp || op == kernel.Log) {
		// The last bits are this code's own, so that it computes the rest, too.
		cell := kernel.Totals.Get().(*[256]byte)
		group := unsafe.Slice((*T)(unsafe.Pointer(cell)), l.Step)
		copy(group, src[done:])
		l.Run(1, &cell[0], &cell[0], nil, nil)
		done += copy(dst[done:], group)
		kernel.Totals.Put(cell)
	}
	return done
}

// clampLoop is unaryLoop for limits, none of which is NaN.
func clampLoop[T kernel.Number](v *kernel.Variant, dst, src []T, lo, hi T) int {
	if len(src) == 0 {
		return 0
	}
	cell := kernel.Limits.Get().(*[2]uint64)
	defer kernel.Limits.Put(cell)
	place := func(i int, v T) kernel.Operand {
		p := unsafe.Pointer(&cell[i])
		*(*T)(p) = v
		return kernel.Operand{At: (*byte)(p)}
	}
	l := &v.Elements.Clamp[kernel.Kind[T]()]
	return l.Over(len(src), kernel.OperandOf(dst, 0, 1), kernel.OperandOf(src, 0, 1), place(0, lo), place(1, hi))
}

// byteLoop computes as many bools as there is a loop for, and returns their
// number.
func byteLoop(l *kernel.Loop, dst, src []uint8) int {
	if len(src) == 0 {
		return 0
	}
	return l.Over(len(src), kernel.OperandOf(dst, 0, 1), kernel.OperandOf(src, 0, 1), kernel.Operand{}, kernel.Operand{})
}

// whereLoop picks as many elements of a run as there is a loop for, and returns
// their number.
func whereLoop[W kernel.Word](v *kernel.Variant, r *kernel.Run, dst []W, cond []uint8, a, b []W) int {
	size := int(unsafe.Sizeof(dst[0]))
	if r.Step[0] != 1 || r.Step[1] != 1 || uint(r.Step[2]) > 1 || uint(r.Step[3]) > 1 || size > 8 {
		return 0
	}
	l := &v.Elements.Where[bits.TrailingZeros(uint(size))][1-r.Step[2]][1-r.Step[3]]
	d, c := kernel.OperandOf(dst, r.Off[0], 1), kernel.OperandOf(cond, r.Off[1], 1)
	return l.Over(r.N, d, c, kernel.OperandOf(a, r.Off[2], r.Step[2]), kernel.OperandOf(b, r.Off[3], r.Step[3]))
}
