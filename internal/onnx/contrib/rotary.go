package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

var rotaryTable = map[string]lift.Operator{
	"RotaryEmbedding":  lift.Lifted(1, liftRotary),
	"MRotaryEmbedding": lift.Lifted(1, liftMultiRotary),
}

// rotaryAttrs takes the attributes of both operators. How a batch is laid out
// makes no difference.
func rotaryAttrs(n *lift.Node) (attrs []op.Attr, heads int64) {
	heads = lift.TakeOr(n, "num_heads", int64(0))
	n.Ignore("is_packed_batching")
	return []op.Attr{lift.IntAttr("interleaved", lift.TakeOr(n, "interleaved", int64(0))), lift.IntAttr("rotary_embedding_dim", lift.TakeOr(n, "rotary_embedding_dim", int64(0)))}, heads
}

// rotaryHeads is the number of heads of operand 0, where an attribute does not
// say it: the cosines have half a head's size.
func rotaryHeads(n *lift.Node, rank int, heads int64) (int64, bool) {
	if rank != 3 || heads != 0 {
		return heads, true
	}
	size, ok1 := n.LastSize(n.Args[0])
	half, ok2 := n.LastSize(n.Args[2])
	if !ok1 || !ok2 || !n.WantDivides("last size of x", size, 2*half) {
		return 0, false
	}
	return size / (2 * half), true
}

// liftRotary orders the operands as ONNX does, so that every token has a
// position where only the first one has.
func liftRotary(n *lift.Node) {
	attrs, heads := rotaryAttrs(n)
	n.Ignore("scale") // ONNX Runtime reads it, and computes the same without it
	n.NoMoreAttrs()
	if !n.Operands(4, 4) {
		return
	}
	x, positions := n.Args[0], n.Args[1]
	rank, known := n.Rank(0)
	at, placed := n.Rank(1)
	if !known || !placed {
		n.Unsupported("an operand of unknown rank")
		return
	}
	heads, ok := rotaryHeads(n, rank, heads)
	if !ok {
		return
	}
	if at < 2 {
		batch := n.Call("shape", []*ir.Value{x}, lift.IntAttr("end", 1))
		axis := int64(rank - 2) // of the tokens
		if rank == 3 {
			axis = 1
		}
		length := n.Call("shape", []*ir.Value{x}, lift.IntAttr("start", axis), lift.IntAttr("end", axis+1))
		steps := n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), n.Call("squeeze", []*ir.Value{length}), n.Scalar(dtype.I64, 1)})
		positions = n.Call("expand", []*ir.Value{n.Add(steps, positions), n.Call("concat", []*ir.Value{batch, length}, lift.IntAttr("axis", 0))})
	}
	n.Finish("rotary_embedding", []*ir.Value{x, n.Args[2], n.Args[3], positions}, append(attrs, lift.IntAttr("num_heads", heads))...)
}

// liftMultiRotary is a rotary embedding whose tokens have three positions
// each, [3, batch, length]: in time, height and width. A section of each head's
// angles follows each of them. The angles are gathered by their own position,
// and are those of the tokens then, [batch, length, angles].
func liftMultiRotary(n *lift.Node) {
	attrs, heads := rotaryAttrs(n)
	sections := lift.TakeOr(n, "mrope_section", []int64(nil))
	layout, scale := lift.TakeOr(n, "mrope_layout", int64(0)), lift.TakeOr(n, "scale", float32(1))
	n.NoMoreAttrs()
	if !n.Operands(4, 4) {
		return
	}
	rank, known := n.Rank(0)
	if at, placed := n.Rank(1); !known || !placed || at != 3 {
		n.Unsupported("operands of %s and %s, want x and positions [3,batch,length]", n.Args[0].Type, n.Args[1].Type)
		return
	}
	heads, ok := rotaryHeads(n, rank, heads)
	angles, sized := n.LastSize(n.Args[2])
	if !ok || !sized {
		return
	}
	var total int64
	for _, size := range sections {
		total += max(size, 0)
	}
	if len(sections) != 3 || min(sections[0], sections[1], sections[2]) < 0 || total != angles || layout != 0 && layout != 1 {
		n.Fail("got mrope_section %v and mrope_layout %d, want three sizes that are %d together, and 0 or 1", sections, layout, angles)
		return
	}
	// Which of the positions each angle follows, as indices [angles,1,1].
	which := make([]int64, angles)
	for i := range which {
		i := int64(i)
		switch {
		case layout == 0 && i >= sections[0]+sections[1], layout == 1 && i%3 == 2 && i < 3*sections[2]:
			which[i] = 2
		case layout == 0 && i >= sections[0], layout == 1 && i%3 == 1 && i < 3*sections[1]:
			which[i] = 1
		}
	}
	positions := n.Call("gather", []*ir.Value{n.Args[1], n.Ints(which)}) // [angles, batch, length]
	positions = n.Call("transpose", []*ir.Value{positions}, lift.IntsAttr("perm", []int64{1, 2, 0}))
	flat := n.Call("reshape", []*ir.Value{positions, n.Ints([]int64{-1, angles})})
	of := func(table *ir.Value) *ir.Value {
		y := n.Call("gather_elements", []*ir.Value{table, flat})
		if scale != 1 {
			y = n.WithNumber("mul", y, float64(scale), table.Type.DType)
		}
		return n.Call("reshape", []*ir.Value{y, n.Call("shape", []*ir.Value{positions})}, lift.IntAttr("allowzero", 1))
	}
	n.Finish("rotary_embedding", []*ir.Value{n.Args[0], of(n.Args[2]), of(n.Args[3])}, append(attrs, lift.IntAttr("num_heads", heads))...)
}
