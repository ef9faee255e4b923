package contrib

import (
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var attentionTable = map[string]lift.Operator{
	"MultiHeadAttention": lift.Lifted(1, liftMultiHead),

	"DecoderMaskedMultiHeadAttention": lift.Lifted(1, liftDecoderMasked),

	"Attention": lift.Lifted(1, liftAttention),

	"RelativePositionBias":      lift.Lifted(1, liftRelativeBias),
	"GatedRelativePositionBias": lift.Lifted(1, liftGatedBias),
}

// attention is an attention of ONNX Runtime's while it is put together.
type attention struct {
	heads        int64
	filter       float64 // added to the score of a masked key
	isCausal     bool
	attrs        []op.Attr
	q, k, v      *ir.Value // [batch, length, heads * size], or all of them [batch, heads, length, size]
	pastK, pastV *ir.Value
	mask, bias   *ir.Value // which keys count, and the terms added to the scores
	places       *ir.Value // 0, 1, ... of the keys, past ones too, once they are needed
	anyCounts    bool      // numbers below 0 in a mask mean that a key counts
	buffered     bool      // the past has room for more keys, and an operand says how many there are
}

// readAttention takes the attributes that both attentions share.
func readAttention(n *lift.Node) *attention {
	a := &attention{heads: lift.TakeOr(n, "num_heads", int64(0)), isCausal: lift.TakeOr(n, "unidirectional", int64(0)) != 0}
	a.filter = float64(lift.TakeOr(n, "mask_filter_value", float32(-10000)))
	a.attrs = []op.Attr{lift.IntAttr("q_num_heads", a.heads), lift.IntAttr("kv_num_heads", a.heads)}
	if scale := lift.TakeOr(n, "scale", float32(0)); scale != 0 {
		a.attrs = append(a.attrs, op.Attr{Name: "scale", Value: float64(scale)})
	}
	if a.heads < 1 || a.heads > 1<<20 {
		n.Fail("num_heads: got %d, want 1 to %d", a.heads, 1<<20)
	}
	return a
}

// liftMultiHead is an attention over q, k and v that are there already.
func liftMultiHead(n *lift.Node) {
	a := readAttention(n)
	n.NoMoreAttrs()
	if n.Operands(1, 10) {
		a.buffered, a.anyCounts = n.Arg(bufferedCount) != nil, n.Arg(bufferedBeams) != nil
		a.finish(n)
	}
}

// finish ends the node of an attention over q, k and v.
func (a *attention) finish(n *lift.Node) {
	if a.isCausal && n.Wanted(3) {
		n.Unsupported("output 3 with unidirectional")
	}
	a.pastK, a.pastV, a.mask, a.bias = n.Arg(6), n.Arg(7), n.Arg(4), n.Arg(5)
	operandsOf(n, a)
	if n.Err != nil {
		return
	}
	if length := a.keyAxis(); a.isCausal && a.q.Type.Shape.Dim(length) != a.k.Type.Shape.Dim(length) {
		// The last query of ONNX Runtime's sees all keys, however many there
		// are.
		n.Unsupported("unidirectional with queries %s and keys %s, want as many of both", a.q.Type, a.k.Type)
		return
	}
	if a.buffered {
		a.finishBuffered(n)
		return
	}
	outputs := []string{n.Proto.Outputs[0]}
	for i := 1; i < len(n.Proto.Outputs) && (n.Wanted(1) || n.Wanted(2) || n.Wanted(3)); i++ {
		outputs = append(outputs, "")
		if n.Wanted(i) {
			outputs[i] = n.Proto.Outputs[i]
		}
	}
	if n.Wanted(3) {
		a.attrs = append(a.attrs, lift.IntAttr("qk_matmul_output_mode", 2)) // after the mask
	}
	n.Bind(outputs, func(names []string) []*ir.Value { return attend(n, a, names) })
}

// operandsOf sets q, k and v, which are operands in one of four forms, with
// their bias added.
func operandsOf(n *lift.Node, a *attention) {
	var rank [3]int // 0 for an operand that is absent
	for i := range rank {
		if r, known := n.Rank(i); known {
			rank[i] = r
		} else if n.Arg(i) != nil {
			n.Unsupported("operand %d of %s, whose rank is not known at load", i, n.Args[i].Type)
			return
		}
	}
	a.q, a.k, a.v = n.Args[0], n.Arg(1), n.Arg(2)
	added := 3 // how many of them the bias is for
	switch rank {
	case [3]int{3, 3, 3}:
	case [3]int{3, 4, 4}:
		added = 1
	case [3]int{5, 0, 0}:
		if parts := unpack(n, 0, 3, a.heads); n.Err == nil {
			a.q, a.k, a.v = parts[0], parts[1], parts[2]
		}
	case [3]int{3, 5, 0}:
		if n.Arg(3) != nil {
			n.Unsupported("a bias of packed keys and values")
		}
		if parts := unpack(n, 1, 2, a.heads); n.Err == nil {
			a.k, a.v = parts[0], parts[1]
		}
	default:
		n.Unsupported("operands of %v dimensions (0: absent), want 3, 3 and 3, or 3, 4 and 4, or 5 alone, or 3 and 5", rank)
	}
	if n.Err == nil && (rank[0] != 3 || rank[1] != 3) && (a.pastK != nil || a.pastV != nil) {
		n.Unsupported("past keys with operands of %v dimensions", rank)
	}
	if bias := n.Arg(3); bias != nil && n.Err == nil {
		addBias(n, a, bias, added)
	}
	if n.Err == nil && added == 1 {
		a.q = headsFirst(n, a, a.q)
	}
}

// addBias adds the parts of a bias: that of q alone, or of all three.
func addBias(n *lift.Node, a *attention, bias *ir.Value, count int) {
	size, ok := n.LastSize(a.q)
	all, known := n.LastSize(bias)
	if !ok || !known {
		return
	}
	if all < 2*size {
		n.Fail("operand 3: got %s, want 2 * %d numbers for q and k, and those for v: %w", bias.Type, size, shape.ErrShape)
		return
	}
	parts := split(n, bias, 0, size, size, all-2*size)
	for i, x := range []**ir.Value{&a.q, &a.k, &a.v}[:count] {
		if n.Err == nil {
			*x = n.Add(*x, parts[i])
		}
	}
}

// unpack takes operand i [batch, length, heads, count, size] apart, as
// [batch, length, heads * size] each.
func unpack(n *lift.Node, i, count int, heads int64) []*ir.Value {
	x := n.Args[i]
	var sizes [3]int64
	for j := range sizes {
		size, known := x.Type.Shape.Dim(2 + j).Size()
		if !known {
			n.Unsupported("operand %d of %s, whose heads are not known at load", i, x.Type)
			return nil
		}
		sizes[j] = int64(size)
	}
	if sizes[0] != heads || sizes[1] != int64(count) {
		n.Fail("operand %d: got %s, want %d heads of %d rows: %w", i, x.Type, heads, count, shape.ErrShape)
		return nil
	}
	var parts []*ir.Value
	for _, part := range split(n, x, 3, []int64{1, 1, 1}[:count]...) {
		parts = append(parts, n.Call("reshape", []*ir.Value{part, n.Ints([]int64{0, 0, heads * sizes[2]})}))
	}
	return parts
}

// headsFirst returns x [batch, length, heads * size] as [batch, heads, length,
// size].
func headsFirst(n *lift.Node, a *attention, x *ir.Value) *ir.Value {
	if n.Err != nil {
		return nil
	}
	width, ok := n.LastSize(x)
	if !ok || !n.WantDivides("last size of q, k or v", width, a.heads) {
		return nil
	}
	x = n.Call("reshape", []*ir.Value{x, n.Ints([]int64{0, 0, a.heads, width / a.heads})})
	return n.Call("transpose", []*ir.Value{x}, lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
}

// keyAxis is the axis of the keys that counts them.
func (a *attention) keyAxis() int { return a.k.Type.Shape.Rank() - 2 }

// attend emits the attention. Its results are [batch, length, heads * size],
// and, where they have names, the keys and values so far.
func attend(n *lift.Node, a *attention, names []string) []*ir.Value {
	mask := scoreMask(n, a)
	args := []*ir.Value{a.q, a.k, a.v, mask, a.pastK, a.pastV}
	if n.Err != nil || a.k.Type.Shape.Rank() == 3 {
		return n.Emit("attention", args, a.attrs, names)
	}
	size, _ := n.LastSize(a.v)
	own := n.Fresh(names[0] + ".heads")
	results := n.Emit("attention", args, a.attrs, append([]string{own}, names[1:]...))
	y := n.Call("transpose", results[:1], lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
	y = n.Emit("reshape", []*ir.Value{y, n.Ints([]int64{0, 0, a.heads * size})}, nil, names[:1])[0]
	return append([]*ir.Value{y}, results[1:]...)
}

// split cuts a value along an axis.
func split(n *lift.Node, x *ir.Value, axis int64, sizes ...int64) []*ir.Value {
	names := make([]string, len(sizes))
	for i := range names {
		names[i] = n.Fresh(n.Path + n.Proto.Outputs[0] + ".split")
	}
	return n.Emit("split", []*ir.Value{x, n.Ints(sizes)}, []op.Attr{lift.IntAttr("axis", axis)}, names)
}

// liftAttention makes q, k and v of x by one product.
func liftAttention(n *lift.Node) {
	a := readAttention(n)
	sizes := lift.TakeOr(n, "qkv_hidden_sizes", []int64(nil))
	refuseSharedPast(n)
	n.Ignore("rotary_embedding_dim")
	n.NoMoreAttrs()
	if !n.Operands(2, 7) {
		return
	}
	for i, want := range []int{3, 2} {
		if rank, known := n.Rank(i); !known || rank != want {
			n.Unsupported("operand %d of %s, want %d dimensions", i, n.Args[i].Type, want)
			return
		}
	}
	sizes, ok := projectionSizes(n, sizes)
	if !ok {
		return
	}
	a.mask, a.bias = n.Arg(3), n.Arg(5)
	attendPacked(n, a, n.Add(n.Call("matmul", n.Args[:2]), n.Arg(2)), sizes, n.Arg(4))
}

// projectionSizes are the sizes of q, k and v in a product with operand 1, by
// an attribute or a third each.
func projectionSizes(n *lift.Node, sizes []int64) ([]int64, bool) {
	all, ok := n.LastSize(n.Args[1])
	if !ok {
		return nil, false
	}
	if len(sizes) == 0 {
		sizes = []int64{all / 3, all / 3, all / 3}
		return sizes, n.WantDivides("last size of the weights", all, 3)
	}
	if len(sizes) != 3 || sizes[0]+sizes[1]+sizes[2] != all {
		n.Fail("qkv_hidden_sizes: got %v, want three that are %d together", sizes, all)
		return nil, false
	}
	return sizes, true
}

// refuseSharedPast refuses attributes that say how other devices keep keys.
func refuseSharedPast(n *lift.Node) {
	if lift.TakeOr(n, "do_rotary", int64(0)) != 0 || lift.TakeOr(n, "past_present_share_buffer", int64(0)) != 0 {
		n.Unsupported("do_rotary or past_present_share_buffer 1")
	}
}

// attendPacked ends the node with the attention over a product that has q, k
// and v of these sizes side by side.
func attendPacked(n *lift.Node, a *attention, product *ir.Value, sizes []int64, past *ir.Value) {
	parts := split(n, product, -1, sizes...)
	a.q, a.k, a.v = parts[0], parts[1], parts[2]
	if past != nil {
		pasts := split(n, past, 0, 1, 1)
		a.pastK, a.pastV = squeezed(n, pasts[0]), squeezed(n, pasts[1])
	}
	if n.Err == nil {
		attendWithPresent(n, a)
	}
}

func squeezed(n *lift.Node, x *ir.Value) *ir.Value {
	return n.Call("squeeze", []*ir.Value{x, n.Ints([]int64{0})})
}

// attendWithPresent ends the node with an attention, and perhaps with its keys
// and values so far as one value.
func attendWithPresent(n *lift.Node, a *attention) {
	names := make([]string, 1)
	if n.Wanted(1) {
		base := n.Path + n.Proto.Outputs[1]
		names = append(names, n.Fresh(base+".keys"), n.Fresh(base+".values"))
	}
	var results []*ir.Value
	n.Bind(n.Proto.Outputs[:1], func(own []string) []*ir.Value {
		names[0] = own[0]
		results = attend(n, a, names)
		return results[:1]
	})
	if len(results) == 3 && n.Err == nil {
		front := n.Ints([]int64{0})
		keys, values := n.Call("unsqueeze", []*ir.Value{results[1], front}), n.Call("unsqueeze", []*ir.Value{results[2], front})
		n.Output(1, "concat", []*ir.Value{keys, values}, lift.IntAttr("axis", 0))
	}
}
