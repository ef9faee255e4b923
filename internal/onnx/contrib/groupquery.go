package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var groupQueryTable = map[string]lift.Operator{"GroupQueryAttention": lift.Lifted(1, liftGroupQuery)}

// Operands of GroupQueryAttention.
const (
	groupKey, groupValue         = 1, 2
	groupPastKey, groupPastValue = 3, 4
	groupLast, groupTotal        = 5, 6 // the last place of each sample; the places of the longest one
	groupCos, groupSin           = 7, 8
	groupPositions, groupBias    = 9, 10
)

// More operands of GroupQueryAttention, and the number of all.
const (
	groupSink                    = 11
	groupQueryNorm, groupKeyNorm = 14, 15
	groupOperands                = 17
)

// groupRefused are the operands that are not supported.
var groupRefused = map[int]string{12: "k_scale", 13: "v_scale", 16: "query_seqlens"}

// groupQuery is a causal attention whose heads share keys in groups, over the
// keys that earlier runs have left and new ones. Each sample has a place of
// its own for its new keys: samples may be of different lengths, and the past
// may have room for more keys than it has.
type groupQuery struct {
	*lift.Node
	heads, groups, size int64
	causal              bool
	smooth              bool       // a number of 1 is added to the sum that weights are divided by
	scores              int64      // what output 3 has: 0 nothing, 1 scores, 2 weights
	epsilons            [2]op.Attr // of the norms of queries and keys
	length, total       *ir.Value  // of the new tokens, and of the longest sample with them: lists of one number
	first               *ir.Value  // the place of the first new token of each sample
}

func liftGroupQuery(n *lift.Node) {
	g := &groupQuery{Node: n, heads: lift.TakeOr(n, "num_heads", int64(0)), groups: lift.TakeOr(n, "kv_num_heads", int64(0))}
	attrs := g.attentionAttrs()
	rotary, interleaved := lift.TakeOr(n, "do_rotary", int64(0)) != 0, lift.TakeOr(n, "rotary_interleaved", int64(0))
	n.NoMoreAttrs()
	if g.scores == 0 {
		n.NoOutputs(3)
	}
	if !n.Operands(1, groupOperands) {
		return
	}
	g.checkOperands(rotary)
	q, k, v := g.projections()
	if n.Err != nil {
		return
	}
	q, k = g.normalized(q, groupQueryNorm, g.heads), g.normalized(k, groupKeyNorm, g.groups)
	g.findPlaces()
	if rotary {
		positions := g.positions()
		q, k = g.rotate(q, g.heads, positions, interleaved), g.rotate(k, g.groups, positions, interleaved)
	}
	k, v = g.cached(groupPastKey, g.split4(k, g.groups)), g.cached(groupPastValue, g.split4(v, g.groups))
	n.Output(1, "identity", []*ir.Value{k})
	n.Output(2, "identity", []*ir.Value{v})
	// The last query sees its own place and those before; without a causal mask
	// every query sees all keys of its sample.
	seen := n.Add(g.first, g.length)
	if !g.causal {
		last := n.Call("reshape", []*ir.Value{g.whole(groupLast), n.Ints([]int64{-1})})
		seen = n.WithNumber("add", last, 1, dtype.I64)
	}
	args := []*ir.Value{g.split4(q, g.heads), k, v, g.bias(), nil, nil, seen}
	y := g.attended(args, attrs)
	y = n.Call("transpose", []*ir.Value{y}, lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
	n.Output(0, "reshape", []*ir.Value{y, n.Ints([]int64{0, 0, g.heads * g.size})})
}

// attended is the attention, [batch, heads, length, size]. Where the sum of the
// exponentials of the scores has one more term, the sink of the head, all
// weights count the sum's part of the new one times: the sigmoid of the
// difference of their logarithms.
func (g *groupQuery) attended(args []*ir.Value, attrs []op.Attr) *ir.Value {
	sink := g.Arg(groupSink)
	if sink == nil && !g.smooth && !g.Wanted(3) {
		return g.Call("attention", args, attrs...)
	}
	if g.Err != nil {
		return nil
	}
	base := g.Path + g.Proto.Outputs[0]
	const masked = 2 // the scores are those after the mask
	results := g.Emit("attention", args, append(attrs, lift.IntAttr("qk_matmul_output_mode", masked)), []string{g.Fresh(base + ".attention"), "", "", g.Fresh(base + ".scores")})
	y, scores := results[0], inSingle(g.Node, results[3])
	var share *ir.Value
	if sink != nil || g.smooth {
		sum := g.Call("reduce_log_sum_exp", []*ir.Value{scores, g.Ints([]int64{-1})})
		if sink != nil {
			sink = g.Call("reshape", []*ir.Value{inSingle(g.Node, sink), g.Ints([]int64{g.heads, 1, 1})})
			sum = g.Call("sub", []*ir.Value{sum, sink})
		}
		share = g.Call("sigmoid", []*ir.Value{sum})
		y = as(g.Node, g.Call("mul", []*ir.Value{inSingle(g.Node, y), share}), g.Args[0].Type.DType)
	}
	if g.Wanted(3) {
		g.outputScores(scores, share)
	}
	return y
}

// outputScores binds output 3 to the scores, with zeros where keys do not
// count, or to the weights that follow from them.
func (g *groupQuery) outputScores(scores, share *ir.Value) {
	if g.scores == 2 {
		scores = g.Call("softmax", []*ir.Value{scores}, lift.IntAttr("axis", -1))
		if share != nil {
			scores = g.Call("mul", []*ir.Value{scores, share})
		}
	} else if g.Err == nil {
		scores = g.Call("where", []*ir.Value{g.Call("is_inf", []*ir.Value{scores}), g.Scalar(dtype.F32, 0), scores})
	}
	scores = g.Call("slice", []*ir.Value{scores, g.Ints([]int64{0}), g.total, g.Ints([]int64{3})})
	g.Output(3, "identity", []*ir.Value{as(g.Node, scores, g.Args[0].Type.DType)})
}

// normalized divides each head of x by its root mean square, if operand i has
// weights for that.
func (g *groupQuery) normalized(x *ir.Value, i int, heads int64) *ir.Value {
	scale := g.Arg(i)
	if scale == nil || g.Err != nil {
		return x
	}
	y := g.Call("reshape", []*ir.Value{x, g.Ints([]int64{0, 0, heads, g.size})})
	y = g.Call("rms_normalization", []*ir.Value{y, scale}, g.epsilons[i-groupQueryNorm])
	return g.Call("reshape", []*ir.Value{y, g.Ints([]int64{0, 0, heads * g.size})})
}

// attentionAttrs takes the attributes that say how keys are weighted, and
// refuses those that want something else.
func (g *groupQuery) attentionAttrs() []op.Attr {
	g.causal = lift.TakeOr(g.Node, "causal", int64(1)) != 0
	attrs := []op.Attr{lift.IntAttr("is_causal", 0)}
	if g.causal {
		attrs[0].Value = int64(1)
	}
	if scale := lift.TakeOr(g.Node, "scale", float32(0)); scale != 0 {
		attrs = append(attrs, op.Attr{Name: "scale", Value: float64(scale)})
	}
	softcap := lift.TakeOr(g.Node, "softcap", float32(0))
	if !(softcap >= 0) {
		g.Fail("softcap: got %g, want 0 or more", softcap)
	}
	attrs = append(attrs, op.Attr{Name: "softcap", Value: float64(softcap)})
	switch window := lift.TakeOr(g.Node, "local_window_size", int64(-1)); {
	case window >= 1: // with the query's own place
		attrs = append(attrs, lift.IntAttr("left_window_size", window-1))
	case window != -1:
		g.Fail("local_window_size: got %d, want -1, or 1 or more", window)
	}
	g.smooth = lift.TakeOr(g.Node, "smooth_softmax", int64(-1)) == 1
	if g.scores = lift.TakeOr(g.Node, "qk_output", int64(0)); g.scores < 0 || g.scores > 2 {
		g.Fail("qk_output: got %d, want 0, 1 or 2", g.scores)
	}
	only(g.Node, 0, "sliding_window_cache")
	usual := lift.TakeOr(g.Node, "qk_norm_epsilon", float32(1e-6))
	for i, name := range []string{"q_norm_epsilon", "k_norm_epsilon"} {
		g.epsilons[i] = op.Attr{Name: "epsilon", Value: float64(lift.TakeOr(g.Node, name, usual))}
	}
	for _, name := range []string{"k_quant_type", "v_quant_type"} {
		if v := lift.TakeOr(g.Node, name, "NONE"); v != "NONE" {
			g.Unsupported("%s %s", name, lift.Printable(v))
		}
	}
	g.Ignore("kv_cache_bit_width") // of refused attributes
	return attrs
}

// checkOperands checks conditions that the calls below would not check, or not
// report clearly.
func (g *groupQuery) checkOperands(rotary bool) {
	for i := range groupOperands {
		if name, ok := groupRefused[i]; ok && g.Arg(i) != nil {
			g.Unsupported("operand %d, %s", i, name)
		}
	}
	if g.heads < 1 || g.groups < 1 || g.heads%g.groups != 0 {
		g.Fail("got num_heads %d and kv_num_heads %d, want 1 or more of each, and a multiple", g.heads, g.groups)
	}
	needed := []int{groupLast, groupTotal}
	if rotary {
		needed = append(needed, groupCos, groupSin)
	}
	for _, i := range needed {
		if g.Arg(i) == nil {
			g.Fail("operand %d is absent, want a value", i)
		}
	}
	for _, i := range []int{groupKey, groupPastKey, groupQueryNorm} {
		if (g.Arg(i) == nil) != (g.Arg(i+1) == nil) {
			g.Fail("got one of operands %d and %d, want both or none", i, i+1)
		}
	}
	for i, want := range [groupBias + 1]int{0: 3, groupKey: 3, groupValue: 3, groupPastKey: 4, groupPastValue: 4, groupCos: 2, groupSin: 2, groupPositions: 2, groupBias: 4} {
		if rank, known := g.Rank(i); known && want != 0 && rank != want {
			g.Fail("operand %d: got %s, want %d dimensions: %w", i, g.Args[i].Type, want, shape.ErrShape)
		}
	}
	for _, i := range needed[:2] {
		if v := g.Arg(i); v != nil && v.Type.DType != dtype.I32 && v.Type.DType != dtype.I64 {
			g.Fail("operand %d: got %s, want i32", i, v.Type)
		}
	}
}

// projections are the queries, keys and values of the new tokens, [batch,
// length, heads * size].
func (g *groupQuery) projections() (q, k, v *ir.Value) {
	if g.Err != nil {
		return nil, nil, nil
	}
	q, k, v = g.Args[0], g.Arg(groupKey), g.Arg(groupValue)
	parts := g.heads
	if k == nil {
		parts += 2 * g.groups
	}
	all, ok := g.LastSize(q)
	if !ok || !g.WantDivides("last size of operand 0", all, parts) {
		return nil, nil, nil
	}
	g.size = all / parts
	if g.size < 1 {
		g.Fail("operand 0: got %s, want heads of 1 number or more: %w", q.Type, shape.ErrShape)
		return nil, nil, nil
	}
	if k == nil {
		list := split(g.Node, q, -1, g.heads*g.size, g.groups*g.size, g.groups*g.size)
		return list[0], list[1], list[2]
	}
	for i, x := range []*ir.Value{k, v} {
		sh := x.Type.Shape
		if sh == nil {
			continue
		}
		if size, ok := sh.Dim(2).Size(); ok && int64(size) != g.groups*g.size {
			g.Fail("operand %d: got %s, want %d heads of %d numbers: %w", groupKey+i, x.Type, g.groups, g.size, shape.ErrShape)
		}
	}
	return q, k, v
}

// findPlaces finds the place of the first token of each sample. The samples of
// a prompt begin at 0, and the shorter ones end in padding. Otherwise a sample
// that has fewer keys than there are new tokens gets a place below 0, at which
// the cache refuses it.
func (g *groupQuery) findPlaces() {
	g.length = g.Call("shape", g.Args[:1], lift.IntAttr("start", 1), lift.IntAttr("end", 2))
	g.total = g.Call("reshape", []*ir.Value{g.whole(groupTotal), g.Ints([]int64{1})})
	last := g.Call("reshape", []*ir.Value{g.whole(groupLast), g.Ints([]int64{-1})})
	least := g.Scalar(dtype.I64, 0)
	if g.Arg(groupPastKey) != nil {
		least = g.Call("min", []*ir.Value{g.Call("sub", []*ir.Value{g.length, g.total}), least})
	}
	before := g.Call("sub", []*ir.Value{g.Scalar(dtype.I64, 1), g.length})
	g.first = g.Call("max", []*ir.Value{g.Add(last, before), least})
}

// whole is an integer operand as i64.
func (g *groupQuery) whole(i int) *ir.Value {
	if g.Args[i].Type.DType == dtype.I64 {
		return g.Args[i]
	}
	return g.Call("cast", []*ir.Value{g.Args[i]}, op.Attr{Name: "to", Value: dtype.I64})
}

// positions are those of the new tokens, [batch, length]: their places, or
// what an operand says. Of a prompt it says only the first one.
func (g *groupQuery) positions() *ir.Value {
	steps := g.Call("range", []*ir.Value{g.Scalar(dtype.I64, 0), g.Call("squeeze", []*ir.Value{g.length}), g.Scalar(dtype.I64, 1)})
	given := g.Arg(groupPositions)
	if given == nil {
		return g.Add(g.Call("unsqueeze", []*ir.Value{g.first, g.Ints([]int64{1})}), steps)
	}
	start := g.Call("gather", []*ir.Value{g.Call("reshape", []*ir.Value{given, g.Ints([]int64{-1})}), g.Scalar(dtype.I64, 0)})
	isPrompt := g.Call("equal", []*ir.Value{g.length, g.total})
	return g.Call("where", []*ir.Value{isPrompt, g.Add(steps, start), given})
}

// rotate rotates the heads of x by the angles of their positions.
func (g *groupQuery) rotate(x *ir.Value, heads int64, positions *ir.Value, interleaved int64) *ir.Value {
	if g.Err != nil {
		return nil
	}
	half, ok := g.LastSize(g.Args[groupCos])
	if !ok {
		return nil
	}
	return g.Call("rotary_embedding", []*ir.Value{x, g.Args[groupCos], g.Args[groupSin], positions},
		lift.IntAttr("interleaved", interleaved), lift.IntAttr("num_heads", heads), lift.IntAttr("rotary_embedding_dim", 2*half))
}

// split4 makes [batch, heads, length, size] of [batch, length, heads * size].
// The length must be that of the queries: keys of another would be written,
// but not all be seen.
func (g *groupQuery) split4(x *ir.Value, heads int64) *ir.Value {
	if g.Err != nil {
		return nil
	}
	target := g.Ints([]int64{0, 0, heads, g.size})
	if sh := x.Type.Shape; sh == nil || sh.Dim(1) == shape.Unknown || sh.Dim(1) != g.Args[0].Type.Shape.Dim(1) {
		target = g.Call("concat", []*ir.Value{g.Ints([]int64{0}), g.length, g.Ints([]int64{heads, g.size})}, lift.IntAttr("axis", 0))
	}
	x = g.Call("reshape", []*ir.Value{x, target})
	return g.Call("transpose", []*ir.Value{x}, lift.IntsAttr("perm", []int64{0, 2, 1, 3}))
}

// cached writes x into a past operand at the place of each sample. A past
// without room for the longest sample grows to its length; where it has room,
// nothing is appended, and the past may be written in place.
func (g *groupQuery) cached(past int, x *ir.Value) *ir.Value {
	cache := g.Arg(past)
	if cache == nil {
		return x
	}
	capacity := g.Call("shape", []*ir.Value{cache}, lift.IntAttr("start", 2), lift.IntAttr("end", 3))
	missing := g.Call("max", []*ir.Value{g.Call("sub", []*ir.Value{g.total, capacity}), g.Scalar(dtype.I64, 0)})
	more := g.Call("slice", []*ir.Value{x, g.Ints([]int64{0}), missing, g.Ints([]int64{2})})
	all := g.Call("concat", []*ir.Value{cache, more}, lift.IntAttr("axis", 2))
	return g.Call("tensor_scatter", []*ir.Value{all, x, g.first})
}

// bias is the operand that is added to the scores, nil without. It must have
// a column per place of the longest sample: attention would take fewer.
func (g *groupQuery) bias() *ir.Value {
	bias := g.Arg(groupBias)
	if bias == nil {
		return nil
	}
	rows := g.Call("shape", []*ir.Value{bias}, lift.IntAttr("end", 3))
	return g.Call("reshape", []*ir.Value{bias, g.Call("concat", []*ir.Value{rows, g.total}, lift.IntAttr("axis", 0))})
}
