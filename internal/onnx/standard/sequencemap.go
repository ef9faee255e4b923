package standard

import (
	"fmt"
	"math"
	"slices"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/shape"
)

func liftConcatFromSequence(n *lift.Node) {
	axis, given := lift.Take[int64](n, "axis")
	stack := lift.TakeOr(n, "new_axis", int64(0)) != 0
	n.NoMoreAttrs()
	l := n.ListAt(0)
	if l == nil {
		return
	}
	if l.Open && given {
		concatOpen(n, l.Packed, axis, stack)
		return
	}
	if !given || len(l.Items) == 0 {
		n.Fail("got %d values and no axis, want an axis and one value or more", len(l.Items))
		return
	}
	args := slices.Clone(l.Items)
	for i := range args {
		if stack {
			args[i] = n.Call("unsqueeze", []*ir.Value{args[i], n.Ints([]int64{axis})})
		}
	}
	n.Finish("concat", args, lift.IntAttr("axis", axis))
}

// concatOpen concatenates the elements of a packed sequence along an axis, or
// along a new one.
func concatOpen(n *lift.Node, p *lift.Packed, axis int64, stack bool) {
	rank, known := p.Rank()
	if known {
		last := int64(rank)
		if !stack {
			last--
		}
		if axis < -last-1 || axis > last {
			n.Fail("axis: got %d, want %d to %d: %w", axis, -last-1, last, shape.ErrShape)
			return
		}
		if axis < 0 {
			axis += last + 1
		}
	}
	switch {
	case axis < 0:
		n.Unsupported("a sequence of tensors of a rank that is not known at load, along axis %d", axis)
	case axis == 0:
		n.BindValue(concatFirst(n, p, stack))
	default:
		n.BindValue(concatInLoop(n, p, axis, stack))
	}
}

// concatFirst concatenates along the first axis: then the elements lie as they
// have to. A sequence of elements that do not fit to each other has fewer
// numbers than the shape, which has the largest of their sizes.
func concatFirst(n *lift.Node, p *lift.Packed, stack bool) *ir.Value {
	zero, one := n.Ints([]int64{0}), n.Ints([]int64{1})
	var end *ir.Value
	if rank, known := p.Rank(); known {
		end = n.Ints([]int64{int64(1 + rank)})
	} else {
		ranks := n.Call("slice", []*ir.Value{p.Table, zero, one, one})
		end = n.Call("add", []*ir.Value{n.Call("reduce_max", []*ir.Value{ranks, zero}, lift.IntAttr("keepdims", 0)), one})
	}
	sizes := n.Call("slice", []*ir.Value{p.Table, one, end, one})
	most := n.Call("reduce_max", []*ir.Value{sizes, zero}, lift.IntAttr("keepdims", 0))
	length := n.Call("unsqueeze", []*ir.Value{n.Length(p), zero})
	to := []*ir.Value{length, most}
	if !stack {
		first := n.Call("slice", []*ir.Value{sizes, zero, one, one})
		to[0] = n.Call("reduce_sum", []*ir.Value{first, zero}, lift.IntAttr("keepdims", 0))
		to[1] = n.Call("slice", []*ir.Value{most, one, n.Ints([]int64{math.MaxInt64}), zero})
	}
	to[0] = n.Call("add", []*ir.Value{to[0], firstOf(n, length)})
	y := n.Call("reshape", []*ir.Value{p.Data, n.Call("concat", to, lift.IntAttr("axis", 0))}, lift.IntAttr("allowzero", 1))
	if n.Err == nil && n.IsText[p.Data] {
		n.IsText[y] = true
	}
	return y
}

// concatInLoop appends one element after the other.
func concatInLoop(n *lift.Node, p *lift.Packed, axis int64, stack bool) *ir.Value {
	element := func(n *lift.Node, at *ir.Value) *ir.Value {
		x := n.ElementAt(p, at)
		if stack {
			x = n.Call("unsqueeze", []*ir.Value{x, n.Ints([]int64{axis})})
		}
		return x
	}
	first := element(n, integer(n, 0))
	if n.Err != nil {
		return nil
	}
	r := newIteration(n, &wire.Graph{}, []*ir.Value{first}, []string{"joined"})
	r.Err = n.Err
	at := r.Call("add", []*ir.Value{r.block.Params[ir.LoopIteration], integer(r.Node, 1)})
	next := r.Call("concat", []*ir.Value{r.block.Params[ir.LoopArgs], element(r.Node, at)}, lift.IntAttr("axis", axis))
	r.block.Results = []*ir.Value{r.again, next}
	if n.Err = r.Err; n.Err != nil {
		return nil
	}
	limit := n.Call("sub", []*ir.Value{n.Length(p), integer(n, 1)})
	name := n.Fresh(n.Path + n.Proto.Outputs[0] + ".joined")
	return n.Emit("loop", []*ir.Value{limit, nil, first}, nil, []string{name}, r.block)[0]
}

// collect emits a loop of so many iterations, each of which appends one tensor
// to each of the given empty lists, and binds the outputs of the node to these.
func collect(n *lift.Node, limit *ir.Value, lists []*lift.List, body *wire.Graph, each func(r *iteration) []*ir.Value) {
	inputs := make([]wire.Value, len(lists))
	for j := range inputs {
		inputs[j].Name = fmt.Sprintf("results %d", j)
	}
	lists = append([]*lift.List{nil, nil}, lists...)
	empty := &lift.Node{Scope: n.Scope, Name: n.Name, Proto: n.Proto, Args: make([]*ir.Value, len(lists)), Lists: lists, Err: n.Err}
	st := empty.NewStates(ir.LoopArgs, inputs)
	if n.Err = empty.Err; st == nil || n.Err != nil {
		return
	}
	r := newIteration(n, body, st.Args, st.Names)
	st.Params(r.Node, inputs, r.block.Params[ir.LoopArgs:])
	values := each(r)
	yielded := make([]*lift.Binding, len(values))
	for j, x := range values {
		if r.Err != nil {
			break
		}
		if x.Type.IsZero() {
			n.GiveUp()
			return
		}
		if p := r.Inserted(r.Values[inputs[j].Name].List.Packed, x, nil); p != nil {
			yielded[j] = &lift.Binding{List: lift.OpenList(p)}
		}
	}
	if n.Err = r.Err; n.Err != nil {
		return
	}
	r.block.Results = append([]*ir.Value{r.again}, st.Results(r.Node, yielded)...)
	if n.Err = r.Err; n.Err != nil {
		return
	}
	args := append([]*ir.Value{limit, nil}, st.Args...)
	values = n.Emit("loop", args, nil, st.OutputNames(n, n.Proto.Outputs), r.block)
	if n.Err == nil {
		st.Bind(n, n.Proto.Outputs, values)
	}
}

// mapOpen maps sequences whose length is not known at load.
func mapOpen(n *lift.Node, body *wire.Graph) {
	lists := make([]*lift.List, len(n.Proto.Outputs))
	for j := range lists {
		t, text, err := lift.TypeOf(&body.Outputs[j], shape.Unknown)
		if err != nil {
			n.Fail("body: output %q: %w", body.Outputs[j].Name, err)
			return
		}
		lists[j] = &lift.List{DType: t.DType, Text: text}
	}
	packed := make([]*lift.Packed, len(n.Args))
	for j := range n.Args {
		if l := n.List(j); l != nil {
			if l = n.ListAt(j); l == nil {
				return
			}
			if packed[j] = n.Pack(l); packed[j] == nil {
				return
			}
		}
	}
	collect(n, n.Length(packed[0]), lists, body, func(r *iteration) []*ir.Value {
		for j, p := range packed {
			x := n.Arg(j)
			if p != nil {
				x = r.ElementAt(p, r.block.Params[ir.LoopIteration])
			}
			r.bindInput(j, x)
		}
		return r.yield(len(n.Proto.Outputs))
	})
}

// liftSequenceMap imports the body once per value, or as a loop.
func liftSequenceMap(n *lift.Node) {
	body, _ := lift.Take[*wire.Graph](n, "body")
	n.NoMoreAttrs()
	first := n.ListAt(0)
	if first == nil {
		return
	}
	if body == nil || len(body.Inputs) != len(n.Args) || len(body.Outputs) < len(n.Proto.Outputs) {
		n.Fail("got a body that does not fit, want one of %d inputs and %d outputs", len(n.Args), len(n.Proto.Outputs))
		return
	}
	if slices.ContainsFunc(n.Lists, func(l *lift.List) bool { return l != nil && l.Open }) {
		mapOpen(n, body)
		return
	}
	results := make([]*lift.List, len(n.Proto.Outputs))
	for j := range results {
		results[j] = &lift.List{}
	}
	for i := range first.Items {
		n.Grow(lift.ExpandedSize(body.Nodes)/64 + len(n.Proto.Outputs))
		values := mapped(n, body, i, len(first.Items))
		if n.Err != nil {
			return
		}
		for j := range results {
			results[j].Items = append(results[j].Items, values[j])
		}
	}
	for j, out := range n.Proto.Outputs {
		if out != "" {
			n.Values[out] = &lift.Binding{List: results[j]}
		}
	}
}

// mapped imports the body of a SequenceMap for the values at position i.
func mapped(n *lift.Node, body *wire.Graph, i, length int) []*ir.Value {
	s := n.NestedScope(body, "body", n.Block)
	for j := range body.Inputs {
		v := n.Arg(j)
		if j < len(n.Lists) && n.Lists[j] != nil {
			if len(n.Lists[j].Items) != length {
				n.Fail("operand %d: got a sequence of %d values, want %d", j, len(n.Lists[j].Items), length)
				return nil
			}
			v = n.Lists[j].Items[i]
		}
		s.Values[body.Inputs[j].Name] = &lift.Binding{Value: v}
	}
	values, err := s.Nested(body, len(n.Proto.Outputs))
	if err != nil {
		n.Fail("body: %w", err)
	}
	return values
}
