package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var contribAttentionTable = map[string]operator{
	"RotaryEmbedding":    lifted(1, liftContribRotary),
	"MultiHeadAttention": lifted(1, liftMultiHead),
	"Attention":          lifted(1, liftContribAttention),
}

// liftContribRotary orders the operands as ONNX does, and gives every token a
// position where only the first one has.
func liftContribRotary(n *node) {
	heads := takeOr(n, "num_heads", int64(0))
	attrs := []op.Attr{intAttr("interleaved", takeOr(n, "interleaved", int64(0))), intAttr("rotary_embedding_dim", takeOr(n, "rotary_embedding_dim", int64(0)))}
	if takeOr(n, "scale", float32(1)) != 1 || takeOr(n, "is_packed_batching", int64(0)) != 0 {
		n.unsupported("scale other than 1 or is_packed_batching 1")
	}
	n.noMoreAttrs()
	if !n.operands(4, 4) {
		return
	}
	x, positions := n.args[0], n.args[1]
	rank, known := n.rank(0)
	at, placed := n.rank(1)
	if !known || !placed {
		n.unsupported("an operand of unknown rank")
		return
	}
	if rank == 3 && heads == 0 {
		size, ok1 := n.lastSize(x)
		half, ok2 := n.lastSize(n.args[2])
		if !ok1 || !ok2 || !n.wantDivides("last size of x", size, 2*half) {
			return
		}
		heads = size / (2 * half)
	}
	if at < 2 {
		batch := n.call("shape", []*ir.Value{x}, intAttr("end", 1))
		axis := int64(rank - 2) // of the tokens
		if rank == 3 {
			axis = 1
		}
		length := n.call("shape", []*ir.Value{x}, intAttr("start", axis), intAttr("end", axis+1))
		steps := n.call("range", []*ir.Value{n.scalar(dtype.I64, 0), n.call("squeeze", []*ir.Value{length}), n.scalar(dtype.I64, 1)})
		positions = n.call("expand", []*ir.Value{n.add(steps, positions), n.call("concat", []*ir.Value{batch, length}, intAttr("axis", 0))})
	}
	n.finish("rotary_embedding", []*ir.Value{x, n.args[2], n.args[3], positions}, append(attrs, intAttr("num_heads", heads))...)
}

// contribAttention is an attention of ONNX Runtime's while it is put together.
type contribAttention struct {
	heads        int64
	filter       float64 // what the score of a masked key has added
	isCausal     bool
	attrs        []op.Attr
	q, k, v      *ir.Value // [batch, length, heads * size], or all of them [batch, heads, length, size]
	pastK, pastV *ir.Value
	mask, bias   *ir.Value // which keys count, and what is added to the scores
	places       *ir.Value // 0, 1, ... of the keys, past ones too, once somebody asked
}

// contribAttention takes the attributes that both attentions share.
func (n *node) contribAttention() *contribAttention {
	a := &contribAttention{heads: takeOr(n, "num_heads", int64(0)), isCausal: takeOr(n, "unidirectional", int64(0)) != 0}
	a.filter = float64(takeOr(n, "mask_filter_value", float32(-10000)))
	a.attrs = []op.Attr{intAttr("q_num_heads", a.heads), intAttr("kv_num_heads", a.heads)}
	if scale := takeOr(n, "scale", float32(0)); scale != 0 {
		a.attrs = append(a.attrs, op.Attr{Name: "scale", Value: float64(scale)})
	}
	if a.heads < 1 || a.heads > 1<<20 {
		n.fail("num_heads: got %d, want 1 to %d", a.heads, 1<<20)
	}
	return a
}

// liftMultiHead is an attention over q, k and v that are there already.
func liftMultiHead(n *node) {
	a := n.contribAttention()
	n.noMoreAttrs()
	if !n.operands(1, 10) {
		return
	}
	if n.arg(8) != nil || n.arg(9) != nil {
		n.unsupported("past keys in a buffer that present ones share")
	}
	if n.wanted(3) {
		n.unsupported("output 3")
	}
	a.pastK, a.pastV, a.mask, a.bias = n.arg(6), n.arg(7), n.arg(4), n.arg(5)
	n.operandsOf(a)
	if n.err != nil {
		return
	}
	if length := a.keyAxis(); a.isCausal && a.q.Type.Shape.Dim(length) != a.k.Type.Shape.Dim(length) {
		// The last query of ONNX Runtime's sees all keys, however many there are.
		n.unsupported("unidirectional with queries %s and keys %s, want as many of both", a.q.Type, a.k.Type)
		return
	}
	outputs := []string{n.proto.Outputs[0]}
	for i := 1; i < len(n.proto.Outputs) && (n.wanted(1) || n.wanted(2)); i++ {
		outputs = append(outputs, "")
		if n.wanted(i) {
			outputs[i] = n.proto.Outputs[i]
		}
	}
	n.bind(outputs, func(names []string) []*ir.Value { return n.attend(a, names) })
}

// operandsOf sets q, k and v, which are operands in one of four forms, with
// their bias added.
func (n *node) operandsOf(a *contribAttention) {
	var rank [3]int // 0 for an operand that is absent
	for i := range rank {
		if r, known := n.rank(i); known {
			rank[i] = r
		} else if n.arg(i) != nil {
			n.unsupported("operand %d of %s, whose rank is not known at load", i, n.args[i].Type)
			return
		}
	}
	a.q, a.k, a.v = n.args[0], n.arg(1), n.arg(2)
	added := 3 // how many of them the bias is for
	switch rank {
	case [3]int{3, 3, 3}:
	case [3]int{3, 4, 4}:
		added = 1
	case [3]int{5, 0, 0}:
		if parts := n.unpack(0, 3, a.heads); n.err == nil {
			a.q, a.k, a.v = parts[0], parts[1], parts[2]
		}
	case [3]int{3, 5, 0}:
		if n.arg(3) != nil {
			n.unsupported("a bias of packed keys and values")
		}
		if parts := n.unpack(1, 2, a.heads); n.err == nil {
			a.k, a.v = parts[0], parts[1]
		}
	default:
		n.unsupported("operands of %v dimensions (0: absent), want 3, 3 and 3, or 3, 4 and 4, or 5 alone, or 3 and 5", rank)
	}
	if n.err == nil && (rank[0] != 3 || rank[1] != 3) && (a.pastK != nil || a.pastV != nil) {
		n.unsupported("past keys with operands of %v dimensions", rank)
	}
	if bias := n.arg(3); bias != nil && n.err == nil {
		n.addBias(a, bias, added)
	}
	if n.err == nil && added == 1 {
		a.q = n.headsFirst(a)
	}
}

// addBias adds the parts of a bias: that of q alone, or of all three.
func (n *node) addBias(a *contribAttention, bias *ir.Value, count int) {
	size, ok := n.lastSize(a.q)
	all, known := n.lastSize(bias)
	if !ok || !known {
		return
	}
	if all < 2*size {
		n.fail("operand 3: got %s, want 2 * %d numbers for q and k, and those for v: %w", bias.Type, size, shape.ErrShape)
		return
	}
	parts := n.split(bias, 0, size, size, all-2*size)
	for i, x := range []**ir.Value{&a.q, &a.k, &a.v}[:count] {
		if n.err == nil {
			*x = n.add(*x, parts[i])
		}
	}
}

// unpack takes operand i [batch, length, heads, count, size] apart, as
// [batch, length, heads * size] each.
func (n *node) unpack(i, count int, heads int64) []*ir.Value {
	x := n.args[i]
	var sizes [3]int64
	for j := range sizes {
		size, known := x.Type.Shape.Dim(2 + j).Size()
		if !known {
			n.unsupported("operand %d of %s, whose heads are not known at load", i, x.Type)
			return nil
		}
		sizes[j] = int64(size)
	}
	if sizes[0] != heads || sizes[1] != int64(count) {
		n.fail("operand %d: got %s, want %d heads of %d rows: %w", i, x.Type, heads, count, shape.ErrShape)
		return nil
	}
	var parts []*ir.Value
	for _, part := range n.split(x, 3, []int64{1, 1, 1}[:count]...) {
		parts = append(parts, n.call("reshape", []*ir.Value{part, n.ints([]int64{0, 0, heads * sizes[2]})}))
	}
	return parts
}

// headsFirst returns q as [batch, heads, length, size], as the keys are.
func (n *node) headsFirst(a *contribAttention) *ir.Value {
	width, ok := n.lastSize(a.q)
	if !ok || !n.wantDivides("last size of q", width, a.heads) {
		return nil
	}
	q := n.call("reshape", []*ir.Value{a.q, n.ints([]int64{0, 0, a.heads, width / a.heads})})
	return n.call("transpose", []*ir.Value{q}, intsAttr("perm", []int64{0, 2, 1, 3}))
}

// keyAxis is the axis of the keys that counts them.
func (a *contribAttention) keyAxis() int { return a.k.Type.Shape.Rank() - 2 }

// attend emits the attention. Its results are [batch, length, heads * size],
// and where names ask for them the keys and values so far.
func (n *node) attend(a *contribAttention, names []string) []*ir.Value {
	mask := n.scoreMask(a)
	args := []*ir.Value{a.q, a.k, a.v, mask, a.pastK, a.pastV}
	if n.err != nil || a.k.Type.Shape.Rank() == 3 {
		return n.emit("attention", args, a.attrs, names)
	}
	size, _ := n.lastSize(a.v)
	own := n.fresh(names[0] + ".heads")
	results := n.emit("attention", args, a.attrs, append([]string{own}, names[1:]...))
	y := n.call("transpose", results[:1], intsAttr("perm", []int64{0, 2, 1, 3}))
	y = n.emit("reshape", []*ir.Value{y, n.ints([]int64{0, 0, a.heads * size})}, nil, names[:1])[0]
	return append([]*ir.Value{y}, results[1:]...)
}

// split cuts a value along an axis.
func (n *node) split(x *ir.Value, axis int64, sizes ...int64) []*ir.Value {
	names := make([]string, len(sizes))
	for i := range names {
		names[i] = n.fresh(n.path + n.proto.Outputs[0] + ".split")
	}
	return n.emit("split", []*ir.Value{x, n.ints(sizes)}, []op.Attr{intAttr("axis", axis)}, names)
}

// liftContribAttention makes q, k and v of x by one product.
func liftContribAttention(n *node) {
	a := n.contribAttention()
	sizes := takeOr(n, "qkv_hidden_sizes", []int64(nil))
	if takeOr(n, "do_rotary", int64(0)) != 0 || takeOr(n, "past_present_share_buffer", int64(0)) != 0 {
		n.unsupported("do_rotary or past_present_share_buffer 1")
	}
	n.ignore("rotary_embedding_dim")
	n.noMoreAttrs()
	if !n.operands(2, 7) {
		return
	}
	for i, want := range []int{3, 2} {
		if rank, known := n.rank(i); !known || rank != want {
			n.unsupported("operand %d of %s, want %d dimensions", i, n.args[i].Type, want)
			return
		}
	}
	all, ok := n.lastSize(n.args[1])
	if !ok {
		return
	}
	if len(sizes) == 0 {
		if !n.wantDivides("last size of the weights", all, 3) {
			return
		}
		sizes = []int64{all / 3, all / 3, all / 3}
	}
	if len(sizes) != 3 || sizes[0]+sizes[1]+sizes[2] != all {
		n.fail("qkv_hidden_sizes: got %v, want three that are %d together", sizes, all)
		return
	}
	product := n.add(n.call("matmul", n.args[:2]), n.arg(2))
	parts := n.split(product, -1, sizes...)
	a.q, a.k, a.v, a.mask, a.bias = parts[0], parts[1], parts[2], n.arg(3), n.arg(5)
	if past := n.arg(4); past != nil {
		pasts := n.split(past, 0, 1, 1)
		a.pastK, a.pastV = n.squeezed(pasts[0]), n.squeezed(pasts[1])
	}
	if n.err == nil {
		n.attendWithPresent(a)
	}
}

func (n *node) squeezed(x *ir.Value) *ir.Value {
	return n.call("squeeze", []*ir.Value{x, n.ints([]int64{0})})
}

// attendWithPresent ends the node with an attention, and perhaps with its keys
// and values so far as one value.
func (n *node) attendWithPresent(a *contribAttention) {
	names := make([]string, 1)
	if n.wanted(1) {
		base := n.path + n.proto.Outputs[1]
		names = append(names, n.fresh(base+".keys"), n.fresh(base+".values"))
	}
	var results []*ir.Value
	n.bind(n.proto.Outputs[:1], func(own []string) []*ir.Value {
		names[0] = own[0]
		results = n.attend(a, names)
		return results[:1]
	})
	if len(results) == 3 && n.err == nil {
		front := n.ints([]int64{0})
		keys, values := n.call("unsqueeze", []*ir.Value{results[1], front}), n.call("unsqueeze", []*ir.Value{results[2], front})
		n.output(1, "concat", []*ir.Value{keys, values}, intAttr("axis", 0))
	}
}
