package standard

import (
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/wire"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var loopTable = map[string]lift.Operator{
	"Loop": {Lift: liftLoop, Lists: true, Text: liftLoop},
	"Scan": lift.Lifted(9, liftScan),
}

// iteration is the region of a loop, while it is made.
type iteration struct {
	*lift.Node // in the region
	block      *ir.Block
	body       *wire.Graph
	again      *ir.Value
}

// newIteration makes the region of a loop around a body. The loop state has the
// ranks of its first values, under the given names; type inference finds the
// sizes that hold in every iteration.
func newIteration(n *lift.Node, body *wire.Graph, carried []*ir.Value, names []string) *iteration {
	block := &ir.Block{}
	s := n.NestedScope(body, "body", block)
	r := &iteration{Node: &lift.Node{Scope: s, Name: n.Name, Proto: n.Proto}, block: block, body: body}
	add := func(name string, t op.Type) *ir.Value {
		v := n.Program.NewValue(ir.Param, n.Fresh(n.CallPath()+"body/"+name), t)
		v.Index = len(block.Params)
		block.Params = append(block.Params, v)
		return v
	}
	add("iteration", op.Type{DType: dtype.I64, Shape: shape.Scalar()})
	r.again = add("again", op.Type{DType: dtype.Bool, Shape: shape.Scalar()})
	for i, v := range carried {
		add(names[i], v.Type.Open())
	}
	return r
}

// bindInput binds an input of the body to a value.
func (r *iteration) bindInput(i int, v *ir.Value) {
	r.Values[r.body.Inputs[i].Name] = &lift.Binding{Value: v}
}

// yield imports the body and returns the values of its outputs.
func (r *iteration) yield(outputs int) []*ir.Value {
	if r.Err != nil {
		return nil
	}
	values, err := r.Nested(r.body, outputs)
	if err != nil {
		r.Fail("body: %w", err)
	}
	return values
}

// missingOperand fails on an operand that has to be a tensor and is none.
func missingOperand(n *lift.Node) bool {
	for i := range n.Args {
		if n.Args[i] == nil {
			n.Unsupported("operand %d: got no tensor to carry, want one", i)
		}
	}
	return n.Err != nil
}

func liftLoop(n *lift.Node) {
	body, _ := lift.Take[*wire.Graph](n, "body")
	n.NoMoreAttrs()
	carried := n.Args[min(2, len(n.Args)):]
	switch {
	case n.Err != nil:
		return
	case body == nil:
		n.Err = wire.Corruptf("got no body, want one")
	case len(body.Inputs) != 2+len(carried):
		n.Err = wire.Corruptf("body: got %d inputs, want the iteration, the condition and %d values", len(body.Inputs), len(carried))
	case len(body.Outputs) != 1+len(n.Proto.Outputs) && len(body.Outputs) < 1+len(carried):
		n.Err = wire.Corruptf("body: got %d outputs, want the condition, %d values, and what is stacked", len(body.Outputs), len(carried))
	case len(n.Proto.Outputs) > len(body.Outputs)-1:
		n.Err = wire.Corruptf("got %d outputs, want at most the body's %d without its condition", len(n.Proto.Outputs), len(body.Outputs)-1)
	}
	if n.Err != nil {
		return
	}
	n.Args = one(n, n.Args, ir.LoopArgs)
	st := n.NewStates(min(2, len(n.Args)), body.Inputs[2:])
	if st == nil {
		return
	}
	r := newIteration(n, body, st.Args, st.Names)
	for i, v := range r.block.Params[:ir.LoopArgs] {
		if declaresList(&body.Inputs[i]) {
			v = r.Call("unsqueeze", []*ir.Value{v, r.Ints([]int64{0})})
		}
		r.bindInput(i, v)
	}
	st.Params(r.Node, body.Inputs[2:], r.block.Params[ir.LoopArgs:])
	yielded, err := r.NestedBindings(body, len(body.Outputs))
	if err != nil {
		n.Fail("body: %w", err)
		return
	}
	next := st.Results(r.Node, yielded[1:])
	if r.Err == nil && len(next) < len(st.Args) { // something in the body is not supported
		n.GiveUp()
		return
	}
	r.block.Results = append([]*ir.Value{yielded[0].Value}, next...)
	for i, b := range yielded {
		if i > len(carried) {
			r.block.Results = append(r.block.Results, b.Value)
		}
		if b.Value == nil && (i == 0 || i > len(carried)) {
			r.Unsupported("output %q of the body: a sequence or optional to stack", body.Outputs[i].Name)
		}
		if i > len(carried) && r.IsText[b.Value] {
			r.Unsupported("output %q of the body: strings to stack", body.Outputs[i].Name)
		}
	}
	finishLoop(n, r, st, len(yielded)-1-len(carried))
}

// declaresList reports whether a loop's body takes its iteration or its
// condition as a list of one element, as tf2onnx has written bodies; ONNX
// Runtime passes it one.
func declaresList(in *wire.Value) bool { return in.Type.HasShape && len(in.Type.Dims) == 1 }

// finishLoop emits the loop, with as many results as its region yields.
func finishLoop(n *lift.Node, r *iteration, st *lift.States, stacks int) {
	if n.Err = r.Err; n.Err != nil {
		return
	}
	carried := len(n.Args) - min(len(n.Args), ir.LoopArgs)
	names := st.OutputNames(n, n.Proto.Outputs)
	outputs := make([]string, stacks) // of the node, what is stacked
	if len(n.Proto.Outputs) > carried {
		copy(outputs, n.Proto.Outputs[carried:])
	}
	for _, out := range outputs {
		if out != "" {
			out = n.ValueName(out)
		}
		names = append(names, out)
	}
	args := slices.Concat(n.Args[:len(n.Args)-carried], st.Args)
	values := n.Emit("loop", args, r.parts(stacks), names, r.block)
	if n.Err != nil {
		return
	}
	st.Bind(n, n.Proto.Outputs, values)
	for i, out := range outputs {
		if out != "" {
			n.Values[out] = &lift.Binding{Value: values[len(values)-stacks+i]}
		}
	}
}

// parts returns the body's declaration of its last outputs, which are stacked:
// it decides the shape of a stack of no iterations if nothing else does.
func (r *iteration) parts(stacks int) op.Attrs {
	var list []int64
	wanted, first := false, len(r.body.Outputs)-max(stacks, 0)
	for i := range r.body.Outputs[first:] {
		t, _, err := lift.TypeOf(&r.body.Outputs[first+i], shape.Unknown)
		if err != nil || t.Shape == nil {
			list = append(list, -1) // nothing, or types that are compared elsewhere
			continue
		}
		given := r.block.Results[len(r.block.Results)-stacks+i]
		wanted = wanted || !given.Type.IsStatic()
		list = append(list, int64(t.Shape.Rank()))
		for axis := range t.Shape.Rank() {
			size, ok := t.Shape.Dim(axis).Size()
			if !ok {
				size = -1
			}
			list = append(list, int64(size))
		}
	}
	if !wanted {
		return nil
	}
	return op.Attrs{{Name: "parts", Value: list}}
}

// scan has the attributes of a Scan.
type scan struct {
	body           *wire.Graph
	states         int
	inAxes, inDirs []int64
	outAxes        []int64
	outDirs        []int64
}

func readScan(n *lift.Node) *scan {
	s := &scan{}
	s.body, _ = lift.Take[*wire.Graph](n, "body")
	count, _ := lift.Take[int64](n, "num_scan_inputs")
	lists := map[string]*[]int64{"scan_input_axes": &s.inAxes, "scan_input_directions": &s.inDirs,
		"scan_output_axes": &s.outAxes, "scan_output_directions": &s.outDirs}
	for name, list := range lists {
		*list, _ = lift.Take[[]int64](n, name)
	}
	n.NoMoreAttrs()
	switch {
	case n.Err != nil || missingOperand(n):
		return nil
	case s.body == nil:
		n.Err = wire.Corruptf("got no body, want one")
	case count < 1 || count > int64(len(n.Args)):
		n.Err = wire.Corruptf("num_scan_inputs: got %d, want 1 to the number of operands, %d", count, len(n.Args))
	case len(s.body.Inputs) != len(n.Args):
		n.Err = wire.Corruptf("body: got %d inputs, want one per operand, %d", len(s.body.Inputs), len(n.Args))
	case len(s.body.Outputs) < len(n.Args)-int(count):
		n.Err = wire.Corruptf("body: got %d outputs, want %d states or more", len(s.body.Outputs), len(n.Args)-int(count))
	case len(n.Proto.Outputs) > len(s.body.Outputs):
		n.Err = wire.Corruptf("got %d outputs, want at most the body's %d", len(n.Proto.Outputs), len(s.body.Outputs))
	}
	if n.Err != nil {
		return nil
	}
	s.states = len(n.Args) - int(count)
	for name, list := range lists {
		want := int(count)
		if list == &s.outAxes || list == &s.outDirs {
			want = len(s.body.Outputs) - s.states
		}
		if *list == nil {
			*list = make([]int64, want)
		}
		if len(*list) != want {
			n.Err = wire.Corruptf("%s: got %d numbers, want %d", name, len(*list), want)
			return nil
		}
	}
	return s
}

// liftScan makes a loop with one iteration per slice: the slices are gathered
// in it, and its stacks are transposed and reversed after it.
func liftScan(n *lift.Node) {
	s := readScan(n)
	if s == nil {
		return
	}
	var names []string
	for i := range s.states {
		names = append(names, s.body.Inputs[i].Name)
	}
	r := newIteration(n, s.body, n.Args[:s.states], names)
	for i := range s.states {
		r.bindInput(i, r.block.Params[ir.LoopArgs+i])
	}
	var limit *ir.Value
	for i, axis := range s.inAxes {
		x := n.Args[s.states+i]
		size := n.Call("gather", []*ir.Value{n.Call("shape", []*ir.Value{x}), integer(n, axis)})
		if limit == nil {
			limit = size
		}
		at := r.block.Params[ir.LoopIteration]
		if s.inDirs[i] != 0 {
			last := n.Call("sub", []*ir.Value{size, integer(n, 1)})
			at = r.Call("sub", []*ir.Value{last, at})
		}
		if n.Err != nil {
			return
		}
		r.bindInput(s.states+i, r.Call("gather", []*ir.Value{x, at}, op.Attr{Name: "axis", Value: axis}))
	}
	outputs := r.yield(len(s.body.Outputs))
	if r.Err == nil {
		r.block.Results = append([]*ir.Value{r.again}, outputs...)
	}
	finishScan(n, s, r, append([]*ir.Value{limit, nil}, n.Args[:s.states]...))
}

// integer is a constant scalar.
func integer(n *lift.Node, v int64) *ir.Value { return n.Scalar(dtype.I64, float64(v)) }

// finishScan emits the loop and brings its stacks into the order that the
// attributes say.
func finishScan(n *lift.Node, s *scan, r *iteration, args []*ir.Value) {
	if n.Err = r.Err; n.Err != nil {
		return
	}
	names := make([]string, len(s.body.Outputs))
	changed := make([]bool, len(names))
	for i := range min(len(names), len(n.Proto.Outputs)) {
		k := i - s.states
		changed[i] = k >= 0 && (s.outAxes[k] != 0 || s.outDirs[k] != 0)
		switch out := n.Proto.Outputs[i]; {
		case out == "":
		case changed[i]:
			names[i] = n.Fresh(n.Path + out + ".stack")
		default:
			names[i] = n.ValueName(out)
		}
	}
	values := n.Emit("loop", args, r.parts(len(names)-s.states), names, r.block)
	for i, v := range values {
		if v == nil || n.Err != nil {
			continue
		}
		if changed[i] {
			v = unstack(n, v, s.outAxes[i-s.states], s.outDirs[i-s.states] != 0, n.ValueName(n.Proto.Outputs[i]))
		}
		n.Values[n.Proto.Outputs[i]] = &lift.Binding{Value: v}
	}
}

// unstack reverses a stack along its first axis and moves that to its place.
func unstack(n *lift.Node, v *ir.Value, axis int64, reverse bool, name string) *ir.Value {
	var result []*ir.Value
	emit := func(last bool, opName string, args []*ir.Value, attrs ...op.Attr) {
		if last {
			result = n.Emit(opName, args, attrs, []string{name})
		} else {
			result = []*ir.Value{n.Call(opName, args, attrs...)}
		}
		v = result[0]
	}
	if reverse {
		emit(axis == 0, "slice", []*ir.Value{v, n.Ints([]int64{-1}), n.Ints([]int64{math.MinInt64}), n.Ints([]int64{0}), n.Ints([]int64{-1})})
	}
	if axis == 0 || n.Err != nil {
		return v
	}
	if v.Type.Shape == nil {
		n.Unsupported("scan_output_axes: got axis %d of a value of unknown rank", axis)
		return v
	}
	rank := int64(v.Type.Shape.Rank())
	if axis < 0 {
		axis += rank
	}
	if axis < 0 || axis >= rank {
		n.Err = wire.Corruptf("scan_output_axes: got an axis outside of %s", v.Type)
		return v
	}
	perm := make([]int64, 0, rank)
	for i := int64(1); i < rank; i++ {
		perm = append(perm, i)
	}
	perm = append(perm[:axis], append([]int64{0}, perm[axis:]...)...)
	emit(true, "transpose", []*ir.Value{v}, op.Attr{Name: "perm", Value: perm})
	return v
}
