package kernel

import (
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// Loop is a loop over whole groups of elements of one type. Run takes the
// addresses of the result and of up to three operands: rows, or one element
// where the table says so. n counts groups, and is not 0. The zero Loop
// computes nothing. The kernel computes the rest of a row element by element,
// to the same bits, except that a loop may take either of +0 and -0 for the
// larger.
type Loop struct {
	Step int // elements of a group
	Run  func(n int, dst, x, y, z *byte)
	Long *Loop // for rows of longRow elements or more; nil if there is no other loop for them (see Row)
}

// The numbers of the element types that have loops.
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

// Which of two operands are rows. The other one is one element.
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
	Bits       BitLoops // of bytes, for elements of any type
	Predicate  PredicateLoops
	Logic      LogicLoops
	Unary      UnaryLoops
	Clamp      KindLoops
	Where      WhereLoops
	Not, Truth Loop
	Total      JoinLoops // reduce a row to one group of elements
	Columns    JoinLoops // reduce rows to one row
	Gather     Loop      // adds float32 to float64
	Backwards  SizeLoops // the operand is given by its last element
	Second     SizeLoops // every second element

	// These transpose n squares, which lie one below the other in src and side
	// by side in dst; steps count bytes. A square of words is as wide as a
	// vector, the others have eight elements.
	TransposeWords  func(n int, dst, src *uint32, dstStep, srcStep int)
	TransposeHalves func(n int, dst, src *uint16, dstStep, srcStep int)
	TransposeBytes  func(n int, dst, src *uint8, dstStep, srcStep int)
}

// Loops by function and by the numbers of element types.
type (
	CastLoops      [kinds + 1][kinds]Loop // from, to
	BinaryLoops    [NumBinary][kinds][forms]Loop
	BitLoops       [NumBinary]Loop
	PredicateLoops [NumPredicate][kinds][forms - 1]Loop
	LogicLoops     [NumPredicate]Loop
	UnaryLoops     [NumUnary][kinds]Loop
	KindLoops      [kinds]Loop
	JoinLoops      [kinds][NumBinary]Loop
	WhereLoops     [4][2][2]Loop // by the logarithm of the size; whether a and b are one element
	SizeLoops      [4]Loop       // by the logarithm of the size
)

// KindOf returns the number of an element type, -1 if there are no loops for
// it.
func KindOf(dt dtype.DType) int {
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

// Kind returns the number of the element type T.
func Kind[T Number]() int { return KindOf(dtype.Of[T]()) }

// Operand is an operand of a loop: the address of its first element, and the
// bytes from one element to the next, 0 for a single element.
type Operand struct {
	At   *byte
	Size int
}

// OperandOf returns the elements of x from index at on, or that element alone
// if step is 0.
func OperandOf[T any](x []T, at, step int) Operand {
	return Operand{(*byte)(unsafe.Pointer(&x[at])), step * int(unsafe.Sizeof(x[at]))}
}

func (r *Operand) skip(elements int) {
	r.At = (*byte)(unsafe.Add(unsafe.Pointer(r.At), elements*r.Size))
}

// Over computes the whole groups of n elements, and returns the number of
// elements in them.
func (l *Loop) Over(n int, dst, x, y, z Operand) int {
	if l.Step == 0 || n < l.Step {
		return 0
	}
	if l.Long != nil && n >= longRow {
		l = l.Long
	}
	groups, most := n/l.Step, AsmElements/l.Step
	for groups > most {
		l.Run(most, dst.At, x.At, y.At, z.At)
		groups -= most
		dst.skip(most * l.Step)
		x.skip(most * l.Step)
		y.skip(most * l.Step)
		z.skip(most * l.Step)
	}
	l.Run(groups, dst.At, x.At, y.At, z.At)
	return n / l.Step * l.Step
}

// Rest returns the run without its first n elements.
func (r *Run) Rest(n int) Run {
	left := *r
	left.N -= n
	for op := range left.Off {
		left.Off[op] += n * left.Step[op]
	}
	return left
}

// Form returns which operands are rows. It reports false if the result is not a
// row, or an operand neither a row nor one element.
func (r *Run) Form() (form int, ok bool) {
	switch [3]int(r.Step[:3]) {
	case [3]int{1, 1, 1}:
		return BothRows, true
	case [3]int{1, 1, 0}:
		return FirstRow, true
	case [3]int{1, 0, 1}:
		return SecondRow, true
	}
	return 0, false
}

// Limits has memory for operands that assembly takes by address. The address of
// a local variable, passed through a function variable, would cost an
// allocation.
var Limits = sync.Pool{New: func() any { return new([2]uint64) }}

// Totals has memory for the groups that loops reduce to, for the same reason.
var Totals = sync.Pool{New: func() any { return new([256]byte) }}
