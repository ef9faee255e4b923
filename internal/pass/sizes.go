package pass

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// This file is the only place where a pass after fold learns sizes. A pass asks
// a [question], or for the value of a constant, and the answer is recorded as a
// guard: the decisions that follow from it hold for all sizes at which every
// guard has the same answer. The rank and the element type of a value, and
// whether it has a size, need no guard: a structure requires all of them to
// stay (see structure.go). A test refuses passes that read types in any other
// way.

// question is a question of a pass about the types of one or two values a and
// b, with numbers x and y.
type question uint8

const (
	sameType   question = iota // whether a and b have the same type, of known rank
	sameSize                   // whether axis x of a is as long as axis y of b
	sizeOf                     // the size of axis x of a: it is the same for all sizes that the guards admit
	atMost                     // whether a has at most x elements
	fewRows                    // whether at most x rows of a meet one matrix of b
	inBlocks                   // whether a is spread over b in blocks, see [op.BlockOf]
	alongRow                   // whether a broadcasts along the axes of b from x on, without new ones
	perChannel                 // whether a has one element per channel of b, and lines up with them
	spelledOut                 // whether the constant a lists the sizes of b, none of which is 0
	questions
)

var questionNames = [questions]string{"same type", "same size", "size", "elements", "rows", "blocks", "along a row", "per channel", "spelled out"}

// fact is what answers depend on: the type of a value, and for spelledOut its
// bytes.
type fact struct {
	op.Type
	data []byte
}

// answer is a function of its arguments alone: it is evaluated when a pass asks
// and again for other sizes.
func (q question) answer(a, b fact, x, y int) int {
	holds := false
	switch q {
	case sameType:
		holds = a.Type == b.Type && a.Shape != nil
	case sameSize:
		n, m := a.Shape.Size(x), b.Shape.Size(y)
		holds = n == m && n >= 0
	case sizeOf:
		return a.Shape.Size(x)
	case atMost:
		holds = a.IsStatic() && a.Shape.NumElements() <= x
	case fewRows:
		holds = rowsOf(a.Shape, b.Shape.Rank()) <= x
	case inBlocks:
		_, _, holds = op.BlockOf(a.Shape, b.Shape)
	case alongRow:
		holds = isAlongRow(a, b, x)
	case perChannel:
		holds = isPerChannel(a, b)
	case spelledOut:
		holds = isSpelledOut(a.data, b.Type)
	default:
		panic("BUG: pass: a question without an answer")
	}
	if holds {
		return 1
	}
	return 0
}

func isAlongRow(a, b fact, axis int) bool {
	if a.Shape.Rank() == 0 || a.Shape.Rank() > b.Shape.Rank()-axis {
		return false
	}
	lead := b.Shape.Rank() - a.Shape.Rank()
	for i := range a.Shape.Rank() {
		if n := a.Shape.Size(i); n != b.Shape.Size(lead+i) && n != 1 {
			return false
		}
	}
	return true
}

// isPerChannel: [C,1,1] or [1,C,1,1] at rank 4.
func isPerChannel(a, b fact) bool {
	rank := b.Shape.Rank()
	axis := 1 - (rank - a.Shape.Rank())
	channels := b.Shape.Size(1)
	return rank >= 3 && axis >= 0 && axis <= 1 && channels >= 0 && a.Shape.NumElements() == channels && a.Shape.Size(axis) == channels
}

func isSpelledOut(target []byte, t op.Type) bool {
	sizes := t.Shape.Sizes()
	if len(target) != 8*len(sizes) {
		return false
	}
	for i, n := range sizes {
		if le64(target[8*i:]) != int64(n) || n == 0 {
			return false
		}
	}
	return true
}

// rowsOf is how many rows of a matrix or of several meet one matrix on the
// right, of which there are several if they have more than two axes.
func rowsOf(left *shape.Shape, rightRank int) int {
	sizes := left.Sizes()
	if rightRank > 2 {
		sizes = sizes[len(sizes)-2:]
	}
	rows := 1
	for _, n := range sizes[:len(sizes)-1] {
		rows *= n
	}
	return rows
}

// ask answers a question and records it. b may be nil.
func (c *Context) ask(q question, a, b *ir.Value, x, y int) int {
	var of [2]fact
	for i, v := range [2]*ir.Value{a, b} {
		if v != nil {
			of[i].Type = v.Type
		}
	}
	if q == spelledOut {
		of[0].data, _ = c.known(a)
	}
	got := q.answer(of[0], of[1], x, y)
	c.recordQuestion(q, a, b, x, y, got)
	return got
}

// is is ask for a question of yes or no.
func (c *Context) is(q question, a, b *ir.Value, x, y int) bool { return c.ask(q, a, b, x, y) != 0 }

// sameType reports whether two values have the same type, of known rank.
func (c *Context) sameType(a, b *ir.Value) bool { return c.is(sameType, a, b, 0, 0) }

// size returns the size of an axis of v, -1 if it is open. It pins the size.
func (c *Context) size(v *ir.Value, axis int) int { return c.ask(sizeOf, v, nil, axis, 0) }

// rank returns the rank of v, -1 if it is not known.
func rank(v *ir.Value) int {
	if v.Type.Shape == nil {
		return -1
	}
	return v.Type.Shape.Rank()
}

func isStatic(v *ir.Value) bool { return v.Type.IsStatic() }

// isSized reports whether an axis of v has a size.
func isSized(v *ir.Value, axis int) bool { return v.Type.Shape.Size(axis) >= 0 }

// attributes of a call do not depend on sizes.
type attributes interface {
	Int(name string) int64
	Float(name string) float64
	Str(name string) string
	Ints(name string) []int64
}

func attrsOf(c *ir.Call) attributes { return c.Sig(nil) }

// constant returns the bytes of a value that is a constant. It pins the value.
func (c *Context) constant(v *ir.Value) ([]byte, bool) {
	data, ok := c.known(v)
	if ok {
		c.recordValue(v, data)
	}
	return data, ok
}

// floats returns the elements of a constant of type f32. It pins them.
func (c *Context) floats(v *ir.Value) ([]float32, bool) {
	if !c.isKnown(v) || v.Type.DType != dtype.F32 {
		return nil, false
	}
	data, ok := c.constant(v)
	if !ok {
		return nil, false
	}
	out := make([]float32, len(data)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
	}
	return out, true
}

// numbers returns the elements of a constant of f32, or of 16-bit floats, which
// are widened. It pins them.
func (c *Context) numbers(v *ir.Value) ([]float32, bool) {
	var widen func(x uint16) float32
	switch {
	case !c.isKnown(v):
		return nil, false
	case v.Type.DType == dtype.F16:
		widen = func(x uint16) float32 { return dtype.Float16(x).Float32() }
	case v.Type.DType == dtype.BF16:
		widen = func(x uint16) float32 { return dtype.BFloat16(x).Float32() }
	default:
		return c.floats(v)
	}
	data, ok := c.constant(v)
	if !ok {
		return nil, false
	}
	out := make([]float32, len(data)/2)
	for i := range out {
		out[i] = widen(binary.LittleEndian.Uint16(data[2*i:]))
	}
	return out, true
}

// scalar returns the number that a constant of one float is. It pins it.
func (c *Context) scalar(v *ir.Value) (float64, bool) {
	if !c.isKnown(v) || !v.Type.DType.IsFloat() {
		return 0, false
	}
	data, ok := c.constant(v)
	if !ok || len(data) != v.Type.DType.Size() {
		return 0, false
	}
	switch v.Type.DType {
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(data)).Float32()), true
	case dtype.BF16:
		return float64(dtype.BFloat16(binary.LittleEndian.Uint16(data)).Float32()), true
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(data))), true
	case dtype.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(data)), true
	}
	return 0, false
}

// wholeView says of which operand the only result of a call is a view, -1 for
// none, and whether it is the whole operand and has its type. Equal types of
// unknown size may be of different sizes.
func (c *Context) wholeView(call *ir.Call) (arg int, whole bool) {
	arg, whole = wholeViewOf(call.Sig(c.known))
	c.recordView(call, arg, whole)
	return arg, whole
}

func wholeViewOf(sig *op.Sig) (arg int, whole bool) {
	arg, offset := sig.ViewOf(0)
	if arg < 0 {
		return -1, false
	}
	same := sig.Args[arg] == sig.Results[0] && (sig.Results[0].IsStatic() || sig.Def.Name == "identity")
	return arg, offset == 0 && same
}

// reducedAxes returns the axes of x over which a call reduces it, false if
// they are not known.
func (c *Context) reducedAxes(call *ir.Call, x *ir.Value) ([]int, bool) {
	if len(call.Args) > 1 {
		c.constant(call.Args[1].Value)
	}
	axes, known, err := call.Sig(c.known).ReduceAxes(rank(x))
	return axes, known && err == nil
}

// maxMergedWeight is the size up to which weights are compared by their
// bytes; above it comparing costs more than it finds.
const maxMergedWeight = 256

// mergeKey returns the type and the bytes of a weight if they are few, and the
// same for all sizes.
func (c *Context) mergeKey(w *ir.Value) (key string, ok bool) {
	if c.varying[w] {
		return "", false
	}
	if n, err := w.Type.Bytes(); err != nil || n > maxMergedWeight {
		return "", false
	}
	data, ok := c.known(w)
	if !ok {
		return "", false
	}
	return w.Type.String() + string(data), true
}

// typeKey is the type of a result as part of what makes two calls the same: a
// shape rule makes the same of the same operands at all sizes.
func typeKey(r *ir.Value) string { return r.Type.String() }

// bytesOf is the size of a value for reports, 0 if it is not known.
func bytesOf(t op.Type) int64 {
	n, _ := t.Bytes()
	return int64(n)
}

// newLike makes a result of the program of the type of v.
func (c *Context) newLike(v *ir.Value) *ir.Value {
	r := c.Program.NewValue(ir.Result, "", v.Type)
	c.recordCopy(r, v)
	return r
}
