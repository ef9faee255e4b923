package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
)

// Operands that say what a buffer of past keys holds: how many keys, how many
// beams a sample has, and from which beam a key is.
const bufferedCount, bufferedBeams = 8, 9

// liftDecoderMasked is a MultiHeadAttention of one query, whose operands have
// another order.
func liftDecoderMasked(n *lift.Node) {
	a := readAttention(n)
	a.buffered = lift.TakeOr(n, "past_present_share_buffer", int64(0)) != 0
	n.Ignore("output_qk") // as the outputs say
	n.NoMoreAttrs()
	if !n.Operands(1, 11) {
		return
	}
	args := make([]*ir.Value, 10)
	for to, from := range []int{0, 1, 2, 10, 3, 4, 5, 6, 7, 9} { // operand 8, the beams, is a size of 9 too
		args[to] = n.Arg(from)
	}
	if args[1] == nil && args[2] == nil && n.Err == nil {
		all, ok := n.LastSize(args[0])
		if !ok || !n.WantDivides("last size of operand 0", all, 3) {
			return
		}
		copy(args, split(n, args[0], -1, all/3, all/3, all/3))
	}
	n.Args = args
	if rank, known := n.Rank(1); known && rank == 4 { // keys of an encoder, which no past precedes
		a.buffered = false
		n.Args[6], n.Args[7], n.Args[bufferedCount], n.Args[bufferedBeams] = nil, nil, nil, nil
	}
	if a.buffered && (n.Arg(6) == nil || n.Arg(7) == nil || n.Arg(bufferedCount) == nil) {
		n.Fail("operand 5, 6 or 7 is absent, want buffers of keys and values, and how many they have")
	}
	a.anyCounts = n.Arg(bufferedBeams) != nil
	if n.Err == nil {
		a.finish(n)
	}
}

// finishBuffered ends the node of an attention whose past keys are the first
// ones of a buffer [batch, heads, room, size]. New keys are written behind
// them, in the buffer's bytes where nothing else reads these.
func (a *attention) finishBuffered(n *lift.Node) {
	if a.pastK == nil || a.pastV == nil || a.k.Type.Shape.Rank() != 3 {
		n.Unsupported("how many past keys there are (operand %d) without past keys, or with keys of 4 dimensions", bufferedCount)
		return
	}
	length := n.Call("shape", []*ir.Value{a.k}, lift.IntAttr("start", 1), lift.IntAttr("end", 2))
	batch := n.Call("shape", []*ir.Value{a.q}, lift.IntAttr("end", 1))
	count := n.Call("reshape", []*ir.Value{as(n, n.Arg(bufferedCount), dtype.I64), n.Ints([]int64{1})})
	first := n.Call("expand", []*ir.Value{count, batch})
	q := headsFirst(n, a, a.q)
	k := n.Call("tensor_scatter", []*ir.Value{a.pastK, headsFirst(n, a, a.k), first})
	v := n.Call("tensor_scatter", []*ir.Value{a.pastV, headsFirst(n, a, a.v), first})
	n.Output(1, "identity", []*ir.Value{k})
	n.Output(2, "identity", []*ir.Value{v})
	if beams := n.Arg(bufferedBeams); beams != nil && n.Err == nil {
		rows := beamRows(n, beams, count, batch)
		k, v = ofBeams(n, k, rows), ofBeams(n, v, rows)
	}
	if n.Err != nil {
		return
	}
	width, ok := n.LastSize(a.v)
	if !ok {
		return
	}
	a.q, a.k, a.pastK, a.pastV = q, k, nil, nil
	bias := filtered(n, a)
	if bias == nil {
		bias = a.bias
	} else {
		bias = n.Add(bias, a.bias)
	}
	if a.isCausal {
		a.attrs = append(a.attrs, lift.IntAttr("is_causal", 1))
	}
	names := []string{n.Fresh(n.Path + n.Proto.Outputs[0] + ".heads"), "", "", ""}
	if n.Wanted(3) {
		names[3] = n.Fresh(n.Path + n.Proto.Outputs[3] + ".all")
		a.attrs = append(a.attrs, lift.IntAttr("qk_matmul_output_mode", 2)) // after the mask
	} else {
		names = names[:1]
	}
	results := n.Emit("attention", []*ir.Value{q, k, v, bias, nil, nil, n.Add(first, length)}, a.attrs, names)
	y := n.Call("transpose", results[:1], lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
	n.Output(0, "reshape", []*ir.Value{y, n.Ints([]int64{0, 0, width})})
	if n.Wanted(3) {
		n.Output(3, "slice", []*ir.Value{results[3], n.Ints([]int64{0}), n.Add(count, length), n.Ints([]int64{3})})
	}
}

// beamRows are the rows of a buffer from which the keys of each row are,
// [batch, room]: those of past keys are of some beam of the same sample, new
// ones of the row itself. beams are [samples, beams, room].
func beamRows(n *lift.Node, beams, count, batch *ir.Value) *ir.Value {
	zero, one := n.Scalar(dtype.I64, 0), n.Scalar(dtype.I64, 1)
	own := n.Call("range", []*ir.Value{zero, n.Call("squeeze", []*ir.Value{batch}), one})
	own = n.Call("unsqueeze", []*ir.Value{own, n.Ints([]int64{1})})
	width := sizeOf(n, beams, 1)
	sample := n.Call("mul", []*ir.Value{n.Call("div", []*ir.Value{own, width}), width})
	flat := n.Call("reshape", []*ir.Value{as(n, beams, dtype.I64), n.Call("concat", []*ir.Value{batch, n.Ints([]int64{-1})}, lift.IntAttr("axis", 0))})
	places := n.Call("range", []*ir.Value{zero, sizeOf(n, beams, 2), one})
	return n.Call("where", []*ir.Value{n.Call("less", []*ir.Value{places, count}), n.Add(sample, flat), own})
}

// ofBeams are the keys of a buffer [batch, heads, room, size], each from the
// row that is its own.
func ofBeams(n *lift.Node, x, rows *ir.Value) *ir.Value {
	x = n.Call("transpose", []*ir.Value{x}, lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
	if n.Err != nil {
		return nil
	}
	places := n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), sizeOf(n, x, 1), n.Scalar(dtype.I64, 1)})
	places = n.Call("expand", []*ir.Value{places, n.Call("shape", []*ir.Value{rows})})
	end := n.Ints([]int64{2})
	at := n.Call("concat", []*ir.Value{n.Call("unsqueeze", []*ir.Value{rows, end}), n.Call("unsqueeze", []*ir.Value{places, end})}, lift.IntAttr("axis", 2))
	y := n.Call("gather_nd", []*ir.Value{x, at})
	return n.Call("transpose", []*ir.Value{y}, lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
}
