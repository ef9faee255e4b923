package onnx

import (
	"slices"

	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
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

// headAttrs are the attributes that both attentions share.
func (n *node) headAttrs() (attrs []op.Attr, heads int64, filter float64) {
	heads = takeOr(n, "num_heads", int64(0))
	filter = float64(takeOr(n, "mask_filter_value", float32(-10000)))
	attrs = []op.Attr{intAttr("q_num_heads", heads), intAttr("kv_num_heads", heads), intAttr("is_causal", takeOr(n, "unidirectional", int64(0)))}
	if scale := takeOr(n, "scale", float32(0)); scale != 0 {
		attrs = append(attrs, op.Attr{Name: "scale", Value: float64(scale)})
	}
	return attrs, heads, filter
}

// keyMask makes a mask to be added of one number per sample and key, 0 where
// the key is to be left out.
func (n *node) keyMask(mask *ir.Value, dt dtype.DType, filter float64) *ir.Value {
	if sh := mask.Type.Shape; sh == nil || sh.Rank() != 2 {
		n.unsupported("a mask of %s, want one number per sample and key", mask.Type)
		return nil
	}
	keep := n.call("cast", []*ir.Value{mask}, op.Attr{Name: "to", Value: dt})
	out := n.with("mul", n.call("sub", []*ir.Value{n.scalar(dt, 1), keep}), math.Max(filter, lowest(dt)), dt)
	return n.call("unsqueeze", []*ir.Value{out, n.ints([]int64{1, 2})})
}

// lowest is about the lowest number of a float type.
func lowest(dt dtype.DType) float64 {
	if dt == dtype.F16 {
		return -65504
	}
	return -3e38
}

// liftMultiHead is an attention over q, k and v that are there already.
func liftMultiHead(n *node) {
	attrs, heads, filter := n.headAttrs()
	n.noMoreAttrs()
	if !n.operands(1, 8) {
		return
	}
	q, k, v := n.args[0], n.arg(1), n.arg(2)
	if k == nil || v == nil {
		n.unsupported("packed q, k and v")
		return
	}
	for i := range 3 {
		if rank, known := n.rank(i); !known || rank != 3 {
			n.unsupported("operand %d of %s, want 3 dimensions", i, n.args[i].Type)
			return
		}
	}
	if bias := n.arg(3); bias != nil {
		size, ok1 := n.lastSize(q)
		valueSize, ok2 := n.lastSize(v)
		if !ok1 || !ok2 {
			return
		}
		parts := n.split(bias, 0, size, size, valueSize)
		if n.err != nil {
			return
		}
		q, k, v = n.add(q, parts[0]), n.add(k, parts[1]), n.add(v, parts[2])
	}
	if heads < 1 {
		n.fail("num_heads: got %d, want 1 or more", heads)
		return
	}
	if isCausal(attrs) && q.Type.Shape.Dim(1) != k.Type.Shape.Dim(1) {
		// Its mask ends where the keys end, that of ONNX begins where the past ones end.
		n.unsupported("unidirectional with queries %s and keys %s, want as many of both", q.Type, k.Type)
		return
	}
	mask := n.arg(5)
	if padding := n.arg(4); padding != nil {
		own := n.keyMask(padding, q.Type.DType, filter)
		if n.err != nil {
			return
		}
		mask = n.add(own, mask)
	}
	n.attend([]*ir.Value{q, k, v, mask, n.arg(6), n.arg(7)}, attrs)
}

// attend emits the attention: outputs 1 and 2 are the keys and values so far.
func (n *node) attend(args []*ir.Value, attrs []op.Attr) {
	outputs := []string{n.proto.outputs[0], "", ""}
	for i := 1; i < len(n.proto.outputs); i++ {
		switch {
		case !n.wanted(i):
		case i > 2 || args[4] == nil:
			n.unsupported("output %d without past keys", i)
		default:
			outputs[i] = n.proto.outputs[i]
		}
	}
	if outputs[2] == "" && outputs[1] == "" {
		outputs = outputs[:1]
	}
	n.bind(outputs, func(names []string) []*ir.Value { return n.emit("attention", args, attrs, names) })
}

// split cuts a value along an axis.
func (n *node) split(x *ir.Value, axis int64, sizes ...int64) []*ir.Value {
	names := make([]string, len(sizes))
	for i := range names {
		names[i] = n.fresh(n.path + n.proto.outputs[0] + ".split")
	}
	return n.emit("split", []*ir.Value{x, n.ints(sizes)}, []op.Attr{intAttr("axis", axis)}, names)
}

// liftContribAttention makes q, k and v of x by one product.
func liftContribAttention(n *node) {
	attrs, heads, filter := n.headAttrs()
	sizes := takeOr(n, "qkv_hidden_sizes", []int64(nil))
	if takeOr(n, "do_rotary", int64(0)) != 0 || takeOr(n, "past_present_share_buffer", int64(0)) != 0 {
		n.unsupported("do_rotary or past_present_share_buffer 1")
	}
	n.ignore("rotary_embedding_dim")
	n.noMoreAttrs()
	if !n.operands(2, 6) {
		return
	}
	if n.arg(4) != nil || n.wanted(1) {
		n.unsupported("past keys")
		return
	}
	all, ok := n.lastSize(n.args[1])
	if !ok || heads < 1 {
		n.fail("num_heads: got %d, want 1 or more", heads)
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
	mask := n.arg(5)
	if own := n.arg(3); own != nil && n.err == nil {
		m := n.keyMask(own, n.args[0].Type.DType, filter)
		if n.err != nil {
			return
		}
		mask = n.add(m, mask)
	}
	if n.err == nil {
		n.attend([]*ir.Value{parts[0], parts[1], parts[2], mask, nil, nil}, attrs)
	}
}

func isCausal(attrs []op.Attr) bool {
	return slices.ContainsFunc(attrs, func(a op.Attr) bool { return a.Name == "is_causal" && a.Value == int64(1) })
}
