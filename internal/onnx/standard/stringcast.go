package standard

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// liftCast writes numbers as strings where these are wanted.
func liftCast(n *lift.Node) {
	if i := n.AttrIndex("to"); i < 0 || n.Attrs[i].Value != int64(dtype.String.ONNX()) {
		lift.Plain(n)
		return
	}
	ignoreRounding(n)
	numbersToText(n)
}

// liftCastText reads numbers that are written as strings.
func liftCastText(n *lift.Node) {
	code, _ := lift.Take[int64](n, "to")
	ignoreRounding(n)
	to, err := dtype.FromONNX(int32(code))
	if err != nil && n.Err == nil {
		n.Fail("attribute \"to\": %w", err)
		return
	}
	textToNumbers(n, to)
}

// ignoreRounding drops what says how numbers of few bits are rounded.
func ignoreRounding(n *lift.Node) { n.Ignore("saturate", "round_mode") }

// numbersToText ends the node with its first operand as strings.
func numbersToText(n *lift.Node) {
	n.Ignore("to")
	x := n.Arg(0)
	switch n.NoMoreAttrs(); {
	case n.Err != nil:
		return
	case x == nil:
		n.Fail("operand 0 is absent, want numbers")
		return
	case x.Type.IsZero():
		n.GiveUp()
		return
	}
	wide := dtype.F64
	switch dt := x.Type.DType; {
	case dt.IsFloat() && dt.Size() >= 2:
	case dt == dtype.U64:
		wide = dt
	case dt == dtype.Bool || dt.IsInt() && dt.Size() >= 1:
		wide = dtype.I64
	default:
		n.Unsupported("strings of %s", dt)
		return
	}
	if x.Type.DType != wide {
		x = n.Call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: wide})
	}
	n.Finish("number_to_string", []*ir.Value{x})
	n.MarkText(1)
}

// textToNumbers ends the node with the numbers that its first operand writes.
func textToNumbers(n *lift.Node, to dtype.DType) {
	if n.NoMoreAttrs(); !n.WantText(0) {
		return
	}
	wide := dtype.I64
	switch {
	case to == dtype.String:
		n.Finish("identity", n.Args[:1])
		n.MarkText(1)
		return
	case to.IsFloat() && to.Size() >= 2:
		wide = dtype.F64
	case to == dtype.U64:
		wide = to
	case to == dtype.Bool || to.IsInt() && to.Size() >= 1:
	default:
		n.Unsupported("strings as %s", to)
		return
	}
	width := op.Attr{Name: "to", Value: wide}
	if wide == to {
		n.Finish("string_to_number", n.Args[:1], width)
		return
	}
	n.Finish("cast", []*ir.Value{n.Call("string_to_number", n.Args[:1], width)}, op.Attr{Name: "to", Value: to})
}

// liftCastLikeText casts from strings or to them.
func liftCastLikeText(n *lift.Node) {
	ignoreRounding(n)
	x, like := n.Arg(0), n.Arg(1)
	switch {
	case len(n.Args) != 2 || x == nil || like == nil:
		n.Fail("got %d operands, want 2", len(n.Args))
	case n.IsText[x] && n.IsText[like]:
		textToNumbers(n, dtype.String)
	case n.IsText[x]:
		textToNumbers(n, like.Type.DType)
	default:
		numbersToText(n)
	}
}
