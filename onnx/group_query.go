package onnx

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var groupQueryTable = map[string]operator{"GroupQueryAttention": lifted(1, liftGroupQuery)}

// Operands of GroupQueryAttention.
const (
	groupKey, groupValue         = 1, 2
	groupPastKey, groupPastValue = 3, 4
	groupLast, groupTotal        = 5, 6 // the last place of each sample; the places of the longest one
	groupCos, groupSin           = 7, 8
	groupPositions, groupBias    = 9, 10
)

// groupQueryMore are the operands from 11 on, none of which is supported.
var groupQueryMore = [...]string{"head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight", "query_seqlens"}

// groupQuery is a causal attention whose heads share keys in groups, over the
// keys that earlier runs have left and new ones. Each sample has a place of
// its own for its new keys: samples may be of different lengths, and the past
// may have room for more keys than it has.
type groupQuery struct {
	*node
	heads, groups, size int64
	length, total       *ir.Value // of the new tokens, and of the longest sample with them: lists of one number
	first               *ir.Value // the place of the first new token of each sample
}

func liftGroupQuery(n *node) {
	g := &groupQuery{node: n, heads: takeOr(n, "num_heads", int64(0)), groups: takeOr(n, "kv_num_heads", int64(0))}
	attrs := g.attentionAttrs()
	turned, interleaved := takeOr(n, "do_rotary", int64(0)) != 0, takeOr(n, "rotary_interleaved", int64(0))
	n.noMoreAttrs()
	n.noOutputs(3)
	if !n.operands(1, groupBias+1+len(groupQueryMore)) {
		return
	}
	g.checkOperands(turned)
	q, k, v := g.projections()
	if n.err != nil {
		return
	}
	g.findPlaces()
	if turned {
		positions := g.positions()
		q, k = g.turn(q, g.heads, positions, interleaved), g.turn(k, g.groups, positions, interleaved)
	}
	k, v = g.cached(groupPastKey, g.split4(k, g.groups)), g.cached(groupPastValue, g.split4(v, g.groups))
	n.output(1, "identity", []*ir.Value{k})
	n.output(2, "identity", []*ir.Value{v})
	// The last query sees its own place and those before.
	seen := n.add(g.first, g.length)
	y := n.call("attention", []*ir.Value{g.split4(q, g.heads), k, v, g.bias(), nil, nil, seen}, attrs...)
	y = n.call("transpose", []*ir.Value{y}, intsAttr("perm", []int64{0, 2, 1, 3}))
	n.output(0, "reshape", []*ir.Value{y, n.ints([]int64{0, 0, g.heads * g.size})})
}

// attentionAttrs takes the attributes that say how keys are weighted, and
// refuses those that want something else.
func (g *groupQuery) attentionAttrs() []op.Attr {
	attrs := []op.Attr{intAttr("is_causal", 1)}
	if scale := takeOr(g.node, "scale", float32(0)); scale != 0 {
		attrs = append(attrs, op.Attr{Name: "scale", Value: float64(scale)})
	}
	softcap := takeOr(g.node, "softcap", float32(0))
	if !(softcap >= 0) {
		g.fail("softcap: got %g, want 0 or more", softcap)
	}
	attrs = append(attrs, op.Attr{Name: "softcap", Value: float64(softcap)})
	switch window := takeOr(g.node, "local_window_size", int64(-1)); {
	case window >= 1: // with the query's own place
		attrs = append(attrs, intAttr("left_window_size", window-1))
	case window != -1:
		g.fail("local_window_size: got %d, want -1, or 1 or more", window)
	}
	if smooth := takeOr(g.node, "smooth_softmax", int64(-1)); smooth != 0 && smooth != -1 {
		g.unsupported("smooth_softmax %d", smooth)
	}
	for _, a := range []struct {
		name string
		only int64
	}{{"causal", 1}, {"sliding_window_cache", 0}, {"qk_output", 0}} {
		if v := takeOr(g.node, a.name, a.only); v != a.only {
			g.unsupported("%s %d", a.name, v)
		}
	}
	for _, name := range []string{"k_quant_type", "v_quant_type"} {
		if v := takeOr(g.node, name, "NONE"); v != "NONE" {
			g.unsupported("%s %s", name, printable(v))
		}
	}
	g.ignore("kv_cache_bit_width", "qk_norm_epsilon", "q_norm_epsilon", "k_norm_epsilon") // of what is refused
	return attrs
}

// checkOperands checks what the calls below would not, or not clearly.
func (g *groupQuery) checkOperands(turned bool) {
	for i, name := range groupQueryMore {
		if at := groupBias + 1 + i; g.arg(at) != nil {
			g.unsupported("operand %d, %s", at, name)
		}
	}
	if g.heads < 1 || g.groups < 1 || g.heads%g.groups != 0 {
		g.fail("got num_heads %d and kv_num_heads %d, want 1 or more of each, and a multiple", g.heads, g.groups)
	}
	needed := []int{groupLast, groupTotal}
	if turned {
		needed = append(needed, groupCos, groupSin)
	}
	for _, i := range needed {
		if g.arg(i) == nil {
			g.fail("operand %d is absent, want a value", i)
		}
	}
	for _, i := range []int{groupKey, groupPastKey} {
		if (g.arg(i) == nil) != (g.arg(i+1) == nil) {
			g.fail("got one of operands %d and %d, want both or none", i, i+1)
		}
	}
	for i, want := range [groupBias + 1]int{0: 3, groupKey: 3, groupValue: 3, groupPastKey: 4, groupPastValue: 4, groupCos: 2, groupSin: 2, groupPositions: 2, groupBias: 4} {
		if rank, known := g.rank(i); known && want != 0 && rank != want {
			g.fail("operand %d: got %s, want %d dimensions: %w", i, g.args[i].Type, want, shape.ErrShape)
		}
	}
	for _, i := range needed[:2] {
		if v := g.arg(i); v != nil && v.Type.DType != dtype.I32 && v.Type.DType != dtype.I64 {
			g.fail("operand %d: got %s, want i32", i, v.Type)
		}
	}
}

// projections are the queries, keys and values of the new tokens, [batch,
// length, heads * size].
func (g *groupQuery) projections() (q, k, v *ir.Value) {
	if g.err != nil {
		return nil, nil, nil
	}
	q, k, v = g.args[0], g.arg(groupKey), g.arg(groupValue)
	parts := g.heads
	if k == nil {
		parts += 2 * g.groups
	}
	all, ok := g.lastSize(q)
	if !ok || !g.wantDivides("last size of operand 0", all, parts) {
		return nil, nil, nil
	}
	g.size = all / parts
	if g.size < 1 {
		g.fail("operand 0: got %s, want heads of 1 number or more: %w", q.Type, shape.ErrShape)
		return nil, nil, nil
	}
	if k == nil {
		list := g.split(q, -1, g.heads*g.size, g.groups*g.size, g.groups*g.size)
		return list[0], list[1], list[2]
	}
	for i, x := range []*ir.Value{k, v} {
		sh := x.Type.Shape
		if sh == nil {
			continue
		}
		if size, ok := sh.Dim(2).Size(); ok && int64(size) != g.groups*g.size {
			g.fail("operand %d: got %s, want %d heads of %d numbers: %w", groupKey+i, x.Type, g.groups, g.size, shape.ErrShape)
		}
	}
	return q, k, v
}

// findPlaces finds the place of the first token of each sample. The samples of
// a prompt begin at 0, and the shorter ones end in padding. Otherwise a sample
// that has fewer keys than there are new tokens gets a place below 0, at which
// the cache refuses it.
func (g *groupQuery) findPlaces() {
	g.length = g.call("shape", g.args[:1], intAttr("start", 1), intAttr("end", 2))
	g.total = g.call("reshape", []*ir.Value{g.whole(groupTotal), g.ints([]int64{1})})
	last := g.call("reshape", []*ir.Value{g.whole(groupLast), g.ints([]int64{-1})})
	least := g.scalar(dtype.I64, 0)
	if g.arg(groupPastKey) != nil {
		least = g.call("min", []*ir.Value{g.call("sub", []*ir.Value{g.length, g.total}), least})
	}
	before := g.call("sub", []*ir.Value{g.scalar(dtype.I64, 1), g.length})
	g.first = g.call("max", []*ir.Value{g.add(last, before), least})
}

// whole is an integer operand as i64.
func (g *groupQuery) whole(i int) *ir.Value {
	if g.args[i].Type.DType == dtype.I64 {
		return g.args[i]
	}
	return g.call("cast", []*ir.Value{g.args[i]}, op.Attr{Name: "to", Value: dtype.I64})
}

// positions are those of the new tokens, [batch, length]: their places, or
// what an operand says. Of a prompt it says only the first one.
func (g *groupQuery) positions() *ir.Value {
	steps := g.call("range", []*ir.Value{g.scalar(dtype.I64, 0), g.call("squeeze", []*ir.Value{g.length}), g.scalar(dtype.I64, 1)})
	given := g.arg(groupPositions)
	if given == nil {
		return g.add(g.call("unsqueeze", []*ir.Value{g.first, g.ints([]int64{1})}), steps)
	}
	start := g.call("gather", []*ir.Value{g.call("reshape", []*ir.Value{given, g.ints([]int64{-1})}), g.scalar(dtype.I64, 0)})
	isPrompt := g.call("equal", []*ir.Value{g.length, g.total})
	return g.call("where", []*ir.Value{isPrompt, g.add(steps, start), given})
}

// turn turns the heads of x by the angles of their positions.
func (g *groupQuery) turn(x *ir.Value, heads int64, positions *ir.Value, interleaved int64) *ir.Value {
	if g.err != nil {
		return nil
	}
	half, ok := g.lastSize(g.args[groupCos])
	if !ok {
		return nil
	}
	return g.call("rotary_embedding", []*ir.Value{x, g.args[groupCos], g.args[groupSin], positions},
		intAttr("interleaved", interleaved), intAttr("num_heads", heads), intAttr("rotary_embedding_dim", 2*half))
}

// split4 makes [batch, heads, length, size] of [batch, length, heads * size].
// The length must be that of the queries: keys of another would be written,
// but not all be seen.
func (g *groupQuery) split4(x *ir.Value, heads int64) *ir.Value {
	if g.err != nil {
		return nil
	}
	target := g.ints([]int64{0, 0, heads, g.size})
	if sh := x.Type.Shape; sh == nil || sh.Dim(1) == shape.Unknown || sh.Dim(1) != g.args[0].Type.Shape.Dim(1) {
		target = g.call("concat", []*ir.Value{g.ints([]int64{0}), g.length, g.ints([]int64{heads, g.size})}, intAttr("axis", 0))
	}
	x = g.call("reshape", []*ir.Value{x, target})
	return g.call("transpose", []*ir.Value{x}, intsAttr("perm", []int64{0, 2, 1, 3}))
}

// cached writes x into a past operand at the place of each sample. A past
// without room for the longest sample grows to its length; where it has room,
// nothing is appended, and the past may be written in place.
func (g *groupQuery) cached(past int, x *ir.Value) *ir.Value {
	held := g.arg(past)
	if held == nil {
		return x
	}
	room := g.call("shape", []*ir.Value{held}, intAttr("start", 2), intAttr("end", 3))
	lacking := g.call("max", []*ir.Value{g.call("sub", []*ir.Value{g.total, room}), g.scalar(dtype.I64, 0)})
	more := g.call("slice", []*ir.Value{x, g.ints([]int64{0}), lacking, g.ints([]int64{2})})
	all := g.call("concat", []*ir.Value{held, more}, intAttr("axis", 2))
	return g.call("tensor_scatter", []*ir.Value{all, x, g.first})
}

// bias is the operand that is added to the scores, nil without. It must have
// a column per place of the longest sample: attention would take fewer.
func (g *groupQuery) bias() *ir.Value {
	bias := g.arg(groupBias)
	if bias == nil {
		return nil
	}
	rows := g.call("shape", []*ir.Value{bias}, intAttr("end", 3))
	return g.call("reshape", []*ir.Value{bias, g.call("concat", []*ir.Value{rows, g.total}, intAttr("axis", 0))})
}
