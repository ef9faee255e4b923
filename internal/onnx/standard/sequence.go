package standard

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
)

var sequenceTable = map[string]lift.Operator{
	"SequenceConstruct":  lift.Lifted(11, liftSequenceConstruct),
	"SequenceEmpty":      lift.Lifted(11, liftSequenceEmpty),
	"SequenceAt":         lift.Lifted(11, liftSequenceAt),
	"SequenceInsert":     lift.Lifted(11, liftSequenceInsert),
	"SequenceErase":      lift.Lifted(11, liftSequenceErase),
	"SequenceLength":     lift.Lifted(11, liftSequenceLength),
	"SplitToSequence":    lift.Lifted(11, liftSplitToSequence),
	"ConcatFromSequence": lift.Lifted(11, liftConcatFromSequence),
	"SequenceMap":        lift.Lifted(17, liftSequenceMap),
	"Optional":           lift.Lifted(15, liftOptional),
	"OptionalHasElement": lift.Lifted(15, liftOptionalHas),
	"OptionalGetElement": lift.Lifted(15, liftOptionalGet),
}

// isOpen reports whether a sequence is packed, or has to be for operand i, a
// position in it: it is not known at load.
func isOpen(n *lift.Node, l *lift.List, i int) bool {
	if l.Open || n.Arg(i) == nil || n.Arg(i).Type.IsZero() {
		return l.Open
	}
	number, known := n.KnownInts(i)
	return !known || len(number) != 1
}

// position returns the place in a list of length that operand i names, which is
// known at load; an absent operand names the given one.
func position(n *lift.Node, i, length, absent, last int) int {
	v := n.Arg(i)
	if v == nil || n.Err != nil {
		return absent
	}
	if v.Type.IsZero() {
		n.GiveUp()
		return -1
	}
	number, known := n.KnownInts(i)
	if !known || len(number) != 1 {
		n.Fail("position: got %d numbers, want 1", len(number))
		return -1
	}
	at := number[0]
	if at < int64(-length) || at > int64(last) {
		n.Fail("position: got %d, want %d to %d", at, -length, last)
		return -1
	}
	if at < 0 {
		at += int64(length)
	}
	return int(at)
}

// open returns a sequence packed, nil if it or one of the given operands is not
// supported: then the node has ended.
func open(n *lift.Node, l *lift.List, operands ...int) *lift.Packed {
	for _, i := range operands {
		if v := n.Arg(i); v != nil && v.Type.IsZero() {
			n.GiveUp()
			return nil
		}
	}
	return n.Pack(l)
}

func liftSequenceConstruct(n *lift.Node) {
	if len(n.Args) == 0 {
		n.Fail("got no operands, want one or more")
		return
	}
	for i, v := range n.Args {
		if v == nil {
			n.Fail("operand %d: got %s, want a tensor", i, notTensor(n, i))
			return
		}
	}
	n.BindList(&lift.List{Items: n.Args})
}

// notTensor says what an operand is that is no tensor.
func notTensor(n *lift.Node, i int) string {
	switch l := n.List(i); {
	case l == nil:
		return "nothing"
	case l.Maps != nil:
		return "maps"
	}
	return "a sequence or optional"
}

func liftSequenceEmpty(n *lift.Node) {
	dt, err := dtype.FromONNX(int32(lift.TakeOr(n, "dtype", int64(dtype.F32.ONNX()))))
	if err != nil {
		n.Fail("dtype: %w", err)
	}
	l := &lift.List{DType: dt, Text: dt == dtype.String}
	if l.Text {
		l.DType = dtype.U8
	}
	n.BindList(l)
}

func liftSequenceAt(n *lift.Node) {
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if n.Arg(1) == nil {
		n.Fail("operand 1 is absent, want a position")
		return
	}
	if isOpen(n, l, 1) {
		if p := open(n, l, 1); p != nil {
			n.BindValue(n.ElementAt(p, n.Args[1]))
		}
		return
	}
	if at := position(n, 1, len(l.Items), 0, len(l.Items)-1); n.Err == nil && at >= 0 {
		n.BindValue(l.Items[at])
	}
}

func liftSequenceInsert(n *lift.Node) {
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if n.Arg(1) == nil {
		n.Fail("operand 1: got %s, want a tensor", notTensor(n, 1))
		return
	}
	if isOpen(n, l, 2) {
		if p := open(n, l, 1, 2); p != nil {
			n.BindPacked(n.Inserted(p, n.Args[1], n.Arg(2)))
		}
		return
	}
	at := position(n, 2, len(l.Items), len(l.Items), len(l.Items))
	if n.Err != nil || at < 0 {
		return
	}
	n.BindList(&lift.List{Items: slices.Insert(slices.Clone(l.Items), at, n.Args[1])})
}

func liftSequenceErase(n *lift.Node) {
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if isOpen(n, l, 1) {
		if p := open(n, l, 1); p != nil {
			at := n.Arg(1)
			if at == nil {
				at = integer(n, -1)
			}
			n.BindPacked(n.Erased(p, at))
		}
		return
	}
	if len(l.Items) == 0 {
		n.Fail("got an empty sequence, want one value or more")
		return
	}
	last := len(l.Items) - 1
	at := position(n, 1, len(l.Items), last, last)
	if n.Err != nil || at < 0 {
		return
	}
	n.BindList(&lift.List{Items: slices.Delete(slices.Clone(l.Items), at, at+1)})
}

func liftSequenceLength(n *lift.Node) {
	l := n.ListAt(0)
	switch {
	case l == nil:
	case l.Open:
		n.BindValue(n.Length(l.Packed))
	default:
		n.BindValue(n.Scalar(dtype.I64, float64(len(l.Items))))
	}
}
