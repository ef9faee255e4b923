package standard

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// liftOptional is its operand, or nothing.
func liftOptional(n *lift.Node) {
	t, declared := n.TakeAny("type")
	switch l := n.List(0); {
	case l != nil && l.Absent:
		n.Fail("got an optional, want a tensor or a sequence")
	case l != nil:
		n.BindList(l)
	case n.Arg(0) != nil:
		n.BindValue(n.Args[0])
	default:
		l := &lift.List{Absent: true}
		if t, ok := t.(*wire.Type); ok && declared {
			l.DType, l.Text = lift.ElementOf(t)
		}
		n.BindList(l)
	}
}

func liftOptionalHas(n *lift.Node) {
	l := n.List(0)
	switch v := n.Arg(0); {
	case v != nil && v.Type.IsZero():
		n.GiveUp()
	case v == nil && l == nil || l != nil && l.Absent:
		n.BindValue(n.Flag(false))
	case l != nil && l.Open && l.Packed.One:
		n.BindValue(n.Call("greater", []*ir.Value{n.Length(l.Packed), integer(n, 0)}))
	case l != nil && l.Open && l.Packed.Has != nil:
		n.BindValue(l.Packed.Has)
	default:
		n.BindValue(n.Flag(true))
	}
}

func liftOptionalGet(n *lift.Node) {
	l := n.List(0)
	switch {
	case n.Arg(0) != nil:
		n.BindValue(n.Args[0])
	case l == nil || l.Absent:
		n.Fail("got an optional without an element, want one with it")
	case l.Open && l.Packed.One:
		n.BindValue(n.ElementAt(l.Packed, integer(n, 0)))
	case l.Open && l.Packed.Has != nil:
		n.BindPacked(n.Required(l.Packed, presentOnly(n, l.Packed)))
	default:
		n.BindList(l)
	}
}

// presentOnly returns the table of an optional sequence. A run in which there
// is no sequence fails.
func presentOnly(n *lift.Node, p *lift.Packed) *ir.Value {
	has := n.Call("cast", []*ir.Value{p.Has}, op.Attr{Name: "to", Value: dtype.I64})
	one := n.Call("unsqueeze", []*ir.Value{has, n.Ints([]int64{0})})
	return n.Call("add", []*ir.Value{p.Table, firstOf(n, one)})
}

// firstOf returns 0, gathered from a list of so many zeros, i64[1]: a run in
// which there are none fails.
func firstOf(n *lift.Node, count *ir.Value) *ir.Value {
	list := n.Call("expand", []*ir.Value{integer(n, 0), count})
	return n.Call("gather", []*ir.Value{list, integer(n, 0)})
}
