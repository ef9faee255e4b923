package kernel

import (
	"math/bits"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
)

// lane is a loop over whole groups of elements, in assembly: the places of the result and of up to three operands, which are rows, or one
// element where the lane says so. The zero lane does nothing. What a lane leaves of a row goes element by element, to the same bits;
// only of +0 and -0 a lane takes either for the larger.
type lane struct {
	step int // elements of a group
	run  func(groups int, dst, x, y, z *byte)
	long *lane // computes rows from longRow elements on, if it is there: see rowCode
}

// laneKinds is the number of element types that lanes are for.
const laneKinds = 10

// Which of two operands are rows: the other is one element.
const (
	bothRows = iota
	firstRow
	secondRow
	laneForms
)

// laneElements is how much of a row one call of assembly takes.
const laneElements = 16 << 10

// longLane is the length from which rows tend to come from memory.
const longLane = 1 << 10

// laneSet is what a variant has lanes for: a dispatch point, empty in the portable variant.
type laneSet struct {
	cast      [laneKinds + 1][laneKinds]lane // the last row is from bool
	binary    [numBinary][laneKinds][laneForms]lane
	bits      [numBinary]lane // of bytes, whatever the elements are
	predicate [numPredicate][laneKinds][laneForms - 1]lane
	logic     [numPredicate]lane
	unary     [numUnary][laneKinds]lane
	clamp     [laneKinds]lane
	where     [4][2][2]lane // by the size's logarithm; whether a and b are one element
	not       lane
	truth     lane
	total     [laneKinds][numBinary]lane // rows joined into one element, by whole groups: see joinRow
	columns   [laneKinds][numBinary]lane // rows joined into one: see joinColumns
	gather    lane                       // adds float32 to float64
	backwards [4]lane                    // by the size's logarithm; the operand is given by its last element
	second    [4]lane                    // every second element
}

var lanes laneSet

// kindOf numbers the element types.
func kindOf(dt dtype.DType) int {
	switch dt {
	case dtype.F32:
		return 0
	case dtype.F64:
		return 1
	case dtype.I8:
		return 2
	case dtype.U8:
		return 3
	case dtype.I16:
		return 4
	case dtype.U16:
		return 5
	case dtype.I32:
		return 6
	case dtype.U32:
		return 7
	case dtype.I64:
		return 8
	case dtype.U64:
		return 9
	}
	return -1
}

func kind[T Number]() int { return kindOf(dtype.Of[T]()) }

// laneRow is an operand of a lane: where it begins and how far elements are apart, 0 if it is one.
type laneRow struct {
	at   *byte
	size int
}

// laneRowOf is the elements of x from number at on, or that one if step is 0.
func laneRowOf[T any](x []T, at, step int) laneRow {
	return laneRow{(*byte)(unsafe.Pointer(&x[at])), step * int(unsafe.Sizeof(x[at]))}
}

func (r *laneRow) skip(elements int) {
	r.at = (*byte)(unsafe.Add(unsafe.Pointer(r.at), elements*r.size))
}

// over computes as many of n elements as whole groups hold, and returns their number.
func (l *lane) over(n int, dst, x, y, z laneRow) int {
	if l.step == 0 || n < l.step {
		return 0
	}
	if l.long != nil && n >= longLane {
		l = l.long
	}
	groups, most := n/l.step, laneElements/l.step
	for groups > most {
		l.run(most, dst.at, x.at, y.at, z.at)
		groups -= most
		dst.skip(most * l.step)
		x.skip(most * l.step)
		y.skip(most * l.step)
		z.skip(most * l.step)
	}
	l.run(groups, dst.at, x.at, y.at, z.at)
	return n / l.step * l.step
}

// zeroElement is a 0 of any type.
var zeroElement = new(uint64)

// castLane converts as many elements from lo on as it has a lane for, and returns their number.
func castLane(dst []byte, to dtype.DType, src []byte, from dtype.DType, lo, hi int) int {
	if hi <= lo {
		return 0
	}
	p, q := kindOf(from), kindOf(to)
	var l *lane
	switch {
	case from == dtype.Bool && to == dtype.Bool:
		l = &lanes.truth
	case from == dtype.Bool && q >= 0:
		l = &lanes.cast[laneKinds][q]
		if q == kindOf(dtype.I8) || q == kindOf(dtype.U8) {
			l = &lanes.truth
		}
	case p >= 0 && to == dtype.Bool:
		l = &lanes.predicate[NotEqual][p][firstRow]
	case p < 0 || q < 0:
		return 0
	case from.Size() == to.Size() && from.IsInt() && to.IsInt():
		copy(part(dst, to, lo, hi), part(src, from, lo, hi))
		return hi - lo
	default:
		l = &lanes.cast[p][q]
	}
	d, s := part(dst, to, lo, hi), part(src, from, lo, hi)
	return l.over(hi-lo, laneRow{&d[0], to.Size()}, laneRow{&s[0], from.Size()}, laneRow{at: (*byte)(unsafe.Pointer(zeroElement))}, laneRow{})
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

// isLane tells whether operands are rows or one element, and which: the results are a row.
func (r *run) isLane() (form int, ok bool) {
	switch [3]int(r.step[:3]) {
	case [3]int{1, 1, 1}:
		return bothRows, true
	case [3]int{1, 1, 0}:
		return firstRow, true
	case [3]int{1, 0, 1}:
		return secondRow, true
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

// binaryLane computes as many elements of a run as there is a lane for, and returns their number.
func binaryLane[T Number](op BinaryOp, r *run, d, a, b []T) int {
	form, ok := r.isLane()
	if !ok {
		return 0
	}
	x, y := laneRowOf(a, r.off[1], r.step[1]), laneRowOf(b, r.off[2], r.step[2])
	if form == secondRow && op.swappable() {
		form, x, y = firstRow, y, x
	}
	dst := laneRowOf(d, r.off[0], 1)
	if l := &lanes.bits[op]; l.step != 0 && form == bothRows {
		dst.size, x.size, y.size = 1, 1, 1
		size := int(unsafe.Sizeof(d[0]))
		return l.over(r.n*size, dst, x, y, laneRow{}) / size
	}
	return lanes.binary[op][kind[T]()][form].over(r.n, dst, x, y, laneRow{})
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

// predicateLane is binaryLane for tests.
func predicateLane[T Number](op PredicateOp, r *run, d []uint8, a, b []T) int {
	form, ok := r.isLane()
	if !ok {
		return 0
	}
	x, y := laneRowOf(a, r.off[1], r.step[1]), laneRowOf(b, r.off[2], r.step[2])
	dst := laneRowOf(d, r.off[0], 1)
	if op >= And {
		if form != bothRows || unsafe.Sizeof(a[0]) != 1 {
			return 0
		}
		return lanes.logic[op].over(r.n, dst, x, y, laneRow{})
	}
	if form == secondRow {
		op, form, x, y = op.mirrored(), firstRow, y, x
	}
	return lanes.predicate[op][kind[T]()][form].over(r.n, dst, x, y, laneRow{})
}

// unaryLane computes as many elements as it has a lane for, and returns their number.
func unaryLane[T Number](op UnaryOp, dst, src []T) int {
	if len(src) == 0 {
		return 0
	}
	l := &lanes.unary[op][kind[T]()]
	done := l.over(len(src), laneRowOf(dst, 0, 1), laneRowOf(src, 0, 1), laneRow{}, laneRow{})
	if l.step > 0 && done < len(src) && (op == Exp || op == Log) {
		// The last bits are this code's own, so that it computes the rest, too.
		cell := totals.Get().(*[256]byte)
		group := unsafe.Slice((*T)(unsafe.Pointer(cell)), l.step)
		copy(group, src[done:])
		l.run(1, &cell[0], &cell[0], nil, nil)
		done += copy(dst[done:], group)
		totals.Put(cell)
	}
	return done
}

// limits are places for what assembly takes by address: through a function variable an address on the stack would cost an allocation.
var limits = sync.Pool{New: func() any { return new([2]uint64) }}

// clampLane is unaryLane for limits, none of which is NaN.
func clampLane[T Number](dst, src []T, lo, hi T) int {
	if len(src) == 0 {
		return 0
	}
	cell := limits.Get().(*[2]uint64)
	defer limits.Put(cell)
	place := func(i int, v T) laneRow {
		p := unsafe.Pointer(&cell[i])
		*(*T)(p) = v
		return laneRow{at: (*byte)(p)}
	}
	return lanes.clamp[kind[T]()].over(len(src), laneRowOf(dst, 0, 1), laneRowOf(src, 0, 1), place(0, lo), place(1, hi))
}

// byteLane computes as many bools as it has a lane for, and returns their number.
func byteLane(l *lane, dst, src []uint8) int {
	if len(src) == 0 {
		return 0
	}
	return l.over(len(src), laneRowOf(dst, 0, 1), laneRowOf(src, 0, 1), laneRow{}, laneRow{})
}

// whereLane picks as many elements of a run as there is a lane for, and returns their number.
func whereLane[W word](r *run, dst []W, cond []uint8, a, b []W) int {
	size := int(unsafe.Sizeof(dst[0]))
	if r.step[0] != 1 || r.step[1] != 1 || uint(r.step[2]) > 1 || uint(r.step[3]) > 1 || size > 8 {
		return 0
	}
	l := &lanes.where[bits.TrailingZeros(uint(size))][1-r.step[2]][1-r.step[3]]
	return l.over(r.n, laneRowOf(dst, r.off[0], 1), laneRowOf(cond, r.off[1], 1), laneRowOf(a, r.off[2], r.step[2]), laneRowOf(b, r.off[3], r.step[3]))
}
