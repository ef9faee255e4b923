package kernel

import (
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
	UnaryLoops     [NumUnary][kinds]Loop
	KindLoops      [kinds]Loop
	JoinLoops      [kinds][numBinary]Loop
	WhereLoops     [4][2][2]Loop // by the logarithm of the size; whether a and b are one element
	SizeLoops      [4]Loop       // by the logarithm of the size
)

// KindOf returns the number of an element type, -1 if there are no loops for it.
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

func Kind[T Number]() int { return KindOf(dtype.Of[T]()) }

// Operand is an operand of a loop: where it begins and how far elements are apart, 0 if it is one.
type Operand struct {
	At   *byte
	Size int
}

// OperandOf is the elements of x from number at on, or that one if step is 0.
func OperandOf[T any](x []T, at, step int) Operand {
	return Operand{(*byte)(unsafe.Pointer(&x[at])), step * int(unsafe.Sizeof(x[at]))}
}

func (r *Operand) skip(elements int) {
	r.At = (*byte)(unsafe.Add(unsafe.Pointer(r.At), elements*r.Size))
}

// Over computes as many of n elements as whole groups hold, and returns their number.
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

// rest is what is left of a run after n elements.
func (r *Run) Rest(n int) Run {
	left := *r
	left.N -= n
	for op := range left.Off {
		left.Off[op] += n * left.Step[op]
	}
	return left
}

// form tells whether operands are rows or one element, and which: the results are a row.
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

// Limits are places for what assembly takes by address: through a function variable an address on the stack would cost an allocation.
var Limits = sync.Pool{New: func() any { return new([2]uint64) }}

// Totals are places for those of loops: see Limits.
var Totals = sync.Pool{New: func() any { return new([256]byte) }}
