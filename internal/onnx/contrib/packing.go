package contrib

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// packingTable has the operators of sequences that lie end to end, without the
// padding that a batch of different lengths needs.
var packingTable = map[string]lift.Operator{
	"RemovePadding":            lift.Lifted(1, liftRemovePadding),
	"RestorePadding":           lift.Lifted(1, liftRestorePadding),
	"PackedAttention":          lift.Lifted(1, liftPackedAttention),
	"PackedMultiHeadAttention": lift.Lifted(1, liftPackedMultiHead),
}

// liftRemovePadding returns the tokens that are no padding, [tokens, size];
// where they were, and after them where the padding was, [batch, length]; the
// sums of the lengths; and the greatest length.
func liftRemovePadding(n *lift.Node) {
	n.NoMoreAttrs()
	if !n.Operands(2, 2) {
		return
	}
	x, counts := n.Args[0], n.Args[1]
	size, ok := n.LastSize(x)
	if rank, known := n.Rank(0); !ok || !known || rank != 3 {
		n.Unsupported("operand 0 of %s, want [batch,length,size]", x.Type)
		return
	}
	whole, narrow := op.Attr{Name: "to", Value: dtype.I64}, op.Attr{Name: "to", Value: dtype.I32}
	lengths := n.Call("unsqueeze", []*ir.Value{n.Call("cast", []*ir.Value{counts}, whole), n.Ints([]int64{1})})
	places := n.Call("range", []*ir.Value{n.Scalar(dtype.I64, 0), sizeOf(n, x, 1), n.Scalar(dtype.I64, 1)})
	counted := n.Call("less", []*ir.Value{places, lengths})
	flat := n.Call("reshape", []*ir.Value{counted, n.Ints([]int64{-1})})
	where := func(flags *ir.Value) *ir.Value { return squeezed(n, n.Call("non_zero", []*ir.Value{flags})) }
	tokens, padding := where(flat), where(n.Call("not", []*ir.Value{flat}))
	rows := n.Call("reshape", []*ir.Value{x, n.Ints([]int64{-1, size})})
	n.Output(0, "gather", []*ir.Value{rows, tokens})
	all := n.Call("cast", []*ir.Value{n.Call("concat", []*ir.Value{tokens, padding}, lift.IntAttr("axis", 0))}, narrow)
	n.Output(1, "reshape", []*ir.Value{all, n.Call("shape", []*ir.Value{counted})}, lift.IntAttr("allowzero", 1))
	sums := n.Call("cum_sum", []*ir.Value{counts, n.Scalar(dtype.I64, 0)})
	n.Output(2, "concat", []*ir.Value{n.Call("cast", []*ir.Value{n.Ints([]int64{0})}, narrow), sums}, lift.IntAttr("axis", 0))
	n.Output(3, "reduce_max", []*ir.Value{counts})
}

// packing says where the tokens of sequences end to end are in a batch.
type packing struct {
	*lift.Node
	offsets *ir.Value // [batch, length]: those of the tokens, and then those of the padding
	tokens  *ir.Value // the offsets of the tokens, [tokens]
	rows    *ir.Value // which token is at each place, [batch, length], once that is needed
}

// newPacking reads the offsets of as many tokens as x has rows.
func newPacking(n *lift.Node, offsets, x *ir.Value) *packing {
	flat := n.Call("reshape", []*ir.Value{offsets, n.Ints([]int64{-1})})
	count := n.Call("shape", []*ir.Value{x}, lift.IntAttr("end", 1))
	list := n.Call("slice", []*ir.Value{flat, n.Ints([]int64{0}), count})
	return &packing{Node: n, offsets: offsets, tokens: as(n, list, dtype.I64)}
}

// padded is x [tokens, size] as [batch, length, size], with zeros for padding.
func (p *packing) padded(x *ir.Value) *ir.Value {
	if p.Err != nil {
		return nil
	}
	size, ok := p.LastSize(x)
	if !ok {
		return nil
	}
	if p.rows == nil {
		count := p.Call("shape", []*ir.Value{p.tokens})
		places := p.Call("shape", []*ir.Value{p.Call("reshape", []*ir.Value{p.offsets, p.Ints([]int64{-1})})})
		rows := p.Call("expand", []*ir.Value{count, places}) // padding is behind the tokens
		steps := p.Call("range", []*ir.Value{p.Scalar(dtype.I64, 0), p.Call("squeeze", []*ir.Value{count}), p.Scalar(dtype.I64, 1)})
		rows = p.Call("scatter_elements", []*ir.Value{rows, p.tokens, steps})
		p.rows = p.Call("reshape", []*ir.Value{rows, p.Call("shape", []*ir.Value{p.offsets})}, lift.IntAttr("allowzero", 1))
	}
	if p.Err != nil {
		return nil
	}
	zero := p.Call("constant_of_shape", []*ir.Value{p.Ints([]int64{1, size})}, op.Attr{Name: "dtype", Value: x.Type.DType})
	return p.Call("gather", []*ir.Value{p.Call("concat", []*ir.Value{x, zero}, lift.IntAttr("axis", 0)), p.rows})
}

func liftRestorePadding(n *lift.Node) {
	n.NoMoreAttrs()
	if n.Operands(2, 2) {
		n.Finish("identity", []*ir.Value{newPacking(n, n.Args[1], n.Args[0]).padded(n.Args[0])})
	}
}

// attend ends the node with the attention of q, k and v [tokens, heads * size]
// within each sequence. sums are those of the lengths, from 0 on.
func (p *packing) attend(a *attention, sums *ir.Value) {
	one := p.Ints([]int64{1})
	ends := p.Call("slice", []*ir.Value{sums, one, p.Ints([]int64{1 << 31})})
	starts := p.Call("slice", []*ir.Value{sums, p.Ints([]int64{0}), p.Ints([]int64{-1})})
	lengths := p.Call("cast", []*ir.Value{p.Call("sub", []*ir.Value{ends, starts})}, op.Attr{Name: "to", Value: dtype.I64})
	places := p.Call("range", []*ir.Value{p.Scalar(dtype.I64, 0), sizeOf(p.Node, p.offsets, 1), p.Scalar(dtype.I64, 1)})
	keep := p.Call("less", []*ir.Value{places, p.Call("unsqueeze", []*ir.Value{lengths, p.Ints([]int64{1, 2, 3})})})
	if p.Err != nil {
		return
	}
	dt := a.q.Type.DType
	bias := a.bias
	if bias == nil {
		bias = p.Scalar(dt, 0)
	}
	a.bias = p.Call("where", []*ir.Value{keep, bias, p.Scalar(dt, lowest(dt))})
	size, ok := p.LastSize(a.v)
	if !ok {
		return
	}
	a.q, a.k, a.v = p.padded(a.q), p.padded(a.k), p.padded(a.v)
	if p.Err != nil {
		return
	}
	y := attend(p.Node, a, []string{p.Fresh(p.Path + p.Proto.Outputs[0] + ".padded")})
	p.Finish("gather", []*ir.Value{p.Call("reshape", []*ir.Value{y[0], p.Ints([]int64{-1, size})}), p.tokens})
}

// liftPackedAttention makes q, k and v of x [tokens, size] by one product.
func liftPackedAttention(n *lift.Node) {
	a := readAttention(n)
	sizes := lift.TakeOr(n, "qkv_hidden_sizes", []int64(nil))
	n.NoMoreAttrs()
	if !n.Operands(5, 6) {
		return
	}
	sizes, ok := projectionSizes(n, sizes)
	if !ok {
		return
	}
	parts := split(n, n.Add(n.Call("matmul", n.Args[:2]), n.Args[2]), -1, sizes...)
	a.q, a.k, a.v, a.bias = parts[0], parts[1], parts[2], n.Arg(5)
	newPacking(n, n.Args[3], n.Args[0]).attend(a, n.Args[4])
}

// liftPackedMultiHead is an attention over q, k and v that are there already,
// or over all of them as [tokens, heads, 3, size].
func liftPackedMultiHead(n *lift.Node) {
	a := readAttention(n)
	n.NoMoreAttrs()
	if n.Err != nil || !n.Operands(1, 7) {
		return
	}
	offsets, sums := n.Arg(4), n.Arg(5)
	if offsets == nil || sums == nil {
		n.Fail("operand 4 or 5 is absent, want offsets of tokens and sums of lengths")
		return
	}
	a.q, a.k, a.v, a.bias = n.Args[0], n.Arg(1), n.Arg(2), n.Arg(6)
	switch rank, known := n.Rank(0); {
	case !known:
		n.Unsupported("an operand of unknown rank")
	case rank == 2 && a.k != nil && a.v != nil:
	case rank == 4 && a.k == nil && a.v == nil:
		size, ok := n.LastSize(a.q)
		if !ok {
			return
		}
		to := n.Ints([]int64{-1, a.heads * size})
		for i, part := range split(n, a.q, 2, 1, 1, 1) {
			*[]**ir.Value{&a.q, &a.k, &a.v}[i] = n.Call("reshape", []*ir.Value{part, to})
		}
	default:
		n.Fail("operand 0: got %s, want [tokens,size] with keys and values, or [tokens,heads,3,size] alone: %w", n.Args[0].Type, shape.ErrShape)
	}
	packed := newPacking(n, offsets, n.Args[0])
	if bias := n.Arg(3); bias != nil && n.Err == nil {
		addBias(n, a, bias, 3)
	}
	if n.Err == nil {
		packed.attend(a, sums)
	}
}
