package kernel

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// Loop is a loop over whole groups of elements of one type: the places of the result and of up to three operands, which are rows, or one
// element where the table says so. n counts groups, and is not 0. The zero Loop does nothing. What a loop leaves of a row goes element by
// element, to the same bits; only of +0 and -0 a loop takes either for the larger.
type Loop struct {
	Step int // elements of a group
	Run  func(n int, dst, x, y, z *byte)
	Long *Loop // computes rows from longRow elements on, if it is there: see Row
}

// The element types that loops are for, by their number.
const (
	KindF32 = iota
	KindF64
	KindI8
	KindU8
	KindI16
	KindU16
	KindI32
	KindU32
	KindI64
	KindU64
	kinds
	KindBool = kinds // only to cast from
)

// Which of two operands are rows: the other is one element.
const (
	BothRows = iota
	FirstRow
	SecondRow
	forms
)

// ElementLoops are the loops over elements of any type.
type ElementLoops struct {
	Cast       CastLoops
	Binary     BinaryLoops
	Bits       BitLoops // of bytes, whatever the elements are
	Predicate  PredicateLoops
	Logic      LogicLoops
	Unary      UnaryLoops
	Clamp      KindLoops
	Where      WhereLoops
	Not, Truth Loop
	Total      JoinLoops // rows joined into one element, by whole groups: see joinRow
	Columns    JoinLoops // rows joined into one: see joinColumns
	Gather     Loop      // adds float32 to float64
	Backwards  SizeLoops // the operand is given by its last element
	Second     SizeLoops // every second element

	// These transpose n squares, which lie one below the other in src and side by side in dst; steps count bytes. A square of words is as
	// wide as a vector, the others have eight elements.
	TransposeWords  func(n int, dst, src *uint32, dstStep, srcStep int)
	TransposeHalves func(n int, dst, src *uint16, dstStep, srcStep int)
	TransposeBytes  func(n int, dst, src *uint8, dstStep, srcStep int)
}

// Loops by what they compute and by the numbers of element types.
type (
	CastLoops      [kinds + 1][kinds]Loop // from, to
	BinaryLoops    [numBinary][kinds][forms]Loop
	BitLoops       [numBinary]Loop
	PredicateLoops [numPredicate][kinds][forms - 1]Loop
	LogicLoops     [numPredicate]Loop
	UnaryLoops     [numUnary][kinds]Loop
	KindLoops      [kinds]Loop
	JoinLoops      [kinds][numBinary]Loop
	WhereLoops     [4][2][2]Loop // by the logarithm of the size; whether a and b are one element
	SizeLoops      [4]Loop       // by the logarithm of the size
)

// kindOf returns the number of an element type, -1 if there are no loops for it.
func kindOf(dt dtype.DType) int {
	switch dt {
	case dtype.F32:
		return KindF32
	case dtype.F64:
		return KindF64
	case dtype.I8:
		return KindI8
	case dtype.U8:
		return KindU8
	case dtype.I16:
		return KindI16
	case dtype.U16:
		return KindU16
	case dtype.I32:
		return KindI32
	case dtype.U32:
		return KindU32
	case dtype.I64:
		return KindI64
	case dtype.U64:
		return KindU64
	}
	return -1
}

func kind[T Number]() int { return kindOf(dtype.Of[T]()) }

// operand is an operand of a loop: where it begins and how far elements are apart, 0 if it is one.
type operand struct {
	at   *byte
	size int
}

// operandOf is the elements of x from number at on, or that one if step is 0.
func operandOf[T any](x []T, at, step int) operand {
	return operand{(*byte)(unsafe.Pointer(&x[at])), step * int(unsafe.Sizeof(x[at]))}
}

func (r *operand) skip(elements int) {
	r.at = (*byte)(unsafe.Add(unsafe.Pointer(r.at), elements*r.size))
}

// over computes as many of n elements as whole groups hold, and returns their number.
func (l *Loop) over(n int, dst, x, y, z operand) int {
	if l.Step == 0 || n < l.Step {
		return 0
	}
	if l.Long != nil && n >= longRow {
		l = l.Long
	}
	groups, most := n/l.Step, asmElements/l.Step
	for groups > most {
		l.Run(most, dst.at, x.at, y.at, z.at)
		groups -= most
		dst.skip(most * l.Step)
		x.skip(most * l.Step)
		y.skip(most * l.Step)
		z.skip(most * l.Step)
	}
	l.Run(groups, dst.at, x.at, y.at, z.at)
	return n / l.Step * l.Step
}

// zeroElement is a 0 of any type.
var zeroElement = new(uint64)

// castLoop converts as many elements from lo on as there is a loop for, and returns their number.
func castLoop(v *Variant, dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int) int {
	if hi <= lo {
		return 0
	}
	p, q := kindOf(from), kindOf(to)
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
		copy(part(dst, to, lo, hi), part(src, from, lo, hi))
		return hi - lo
	default:
		l = &v.Elements.Cast[p][q]
	}
	d, s := part(dst, to, lo, hi), part(src, from, lo, hi)
	return l.over(hi-lo, operand{&d[0], to.Size()}, operand{&s[0], from.Size()}, operand{at: (*byte)(unsafe.Pointer(zeroElement))}, operand{})
}

// rest is what is left of a run after n elements.
func (r *run) rest(n int) run {
	left := *r
	left.n -= n
	for op := range left.off {
		left.off[op] += n * left.step[op]
	}
	return left
}

// form tells whether operands are rows or one element, and which: the results are a row.
func (r *run) form() (form int, ok bool) {
	switch [3]int(r.step[:3]) {
	case [3]int{1, 1, 1}:
		return BothRows, true
	case [3]int{1, 1, 0}:
		return FirstRow, true
	case [3]int{1, 0, 1}:
		return SecondRow, true
	}
	return 0, false
}

// swappable tells whether operands may be changed round.
func (op BinaryOp) swappable() bool {
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
	x, y := operandOf(a, r.off[1], r.step[1]), operandOf(b, r.off[2], r.step[2])
	if form == SecondRow && op.swappable() {
		form, x, y = FirstRow, y, x
	}
	dst := operandOf(d, r.off[0], 1)
	if l := &v.Elements.Bits[op]; l.Step != 0 && form == BothRows {
		dst.size, x.size, y.size = 1, 1, 1
		size := int(unsafe.Sizeof(d[0]))
		return l.over(r.n*size, dst, x, y, operand{}) / size
	}
	return v.Elements.Binary[op][kind[T]()][form].over(r.n, dst, x, y, operand{})
}

// mirrored is the test with its operands changed round.
func (op PredicateOp) mirrored() PredicateOp {
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
	x, y := operandOf(a, r.off[1], r.step[1]), operandOf(b, r.off[2], r.step[2])
	dst := operandOf(d, r.off[0], 1)
	if op >= And {
		if form != BothRows || unsafe.Sizeof(a[0]) != 1 {
			return 0
		}
		return v.Elements.Logic[op].over(r.n, dst, x, y, operand{})
	}
	if form == SecondRow {
		op, form, x, y = op.mirrored(), FirstRow, y, x
	}
	return v.Elements.Predicate[op][kind[T]()][form].over(r.n, dst, x, y, operand{})
}

// unaryLoop computes as many elements as there is a loop for, and returns their number.
func unaryLoop[T Number](v *Variant, op UnaryOp, dst, src []T) int {
	if len(src) == 0 {
		return 0
	}
	l := &v.Elements.Unary[op][kind[T]()]
	done := l.over(len(src), operandOf(dst, 0, 1), operandOf(src, 0, 1), operand{}, operand{})
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

// limits are places for what assembly takes by address: through a function variable an address on the stack would cost an allocation.
var limits = sync.Pool{New: func() any { return new([2]uint64) }}

// clampLoop is unaryLoop for limits, none of which is NaN.
func clampLoop[T Number](v *Variant, dst, src []T, lo, hi T) int {
	if len(src) == 0 {
		return 0
	}
	cell := limits.Get().(*[2]uint64)
	defer limits.Put(cell)
	place := func(i int, v T) operand {
		p := unsafe.Pointer(&cell[i])
		*(*T)(p) = v
		return operand{at: (*byte)(p)}
	}
	return v.Elements.Clamp[kind[T]()].over(len(src), operandOf(dst, 0, 1), operandOf(src, 0, 1), place(0, lo), place(1, hi))
}

// byteLoop computes as many bools as there is a loop for, and returns their number.
func byteLoop(l *Loop, dst, src []uint8) int {
	if len(src) == 0 {
		return 0
	}
	return l.over(len(src), operandOf(dst, 0, 1), operandOf(src, 0, 1), operand{}, operand{})
}

// whereLoop picks as many elements of a run as there is a loop for, and returns their number.
func whereLoop[W word](v *Variant, r *run, dst []W, cond []uint8, a, b []W) int {
	size := int(unsafe.Sizeof(dst[0]))
	if r.step[0] != 1 || r.step[1] != 1 || uint(r.step[2]) > 1 || uint(r.step[3]) > 1 || size > 8 {
		return 0
	}
	l := &v.Elements.Where[bits.TrailingZeros(uint(size))][1-r.step[2]][1-r.step[3]]
	return l.over(r.n, operandOf(dst, r.off[0], 1), operandOf(cond, r.off[1], 1), operandOf(a, r.off[2], r.step[2]), operandOf(b, r.off[3], r.step[3]))
}
