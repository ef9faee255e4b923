package randomprogram_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// TestRandomMutation draws programs that write values, through views of views,
// in branches and loops. What the pure program returns, interpreted and in a
// proved plan, equals what statements return that write bytes one after the
// other.
func TestRandomMutation(t *testing.T) {
	seen := forRandom(t, 1000, func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program {
		d := drawMutation(t, true)
		source := d.program
		d.compareMutation(t, pool, seen)
		return source
	})
	for _, what := range []string{"view", "view of a view", "write", "write through a view", "write in a branch", "write in a loop", "read after a write through another view", "transpose", "slice", "split", "reshape"} {
		if seen[what] == 0 && !testing.Short() {
			t.Errorf("got no program with a %s, want some", what)
		}
	}
}

// TestMutationMovesNoMore draws programs without control flow, whose views are
// contiguous. A run of the plan moves as many bytes as the statements of the
// source that move elements, or fewer: what the others write is computed in
// place.
func TestMutationMovesNoMore(t *testing.T) {
	seen := forRandom(t, 1000, func(t *rapid.T, pool *compute.Pool, seen map[string]int) *ir.Program {
		d := drawMutation(t, false)
		source := d.program
		d.compareMutation(t, pool, seen)
		d.compareMoves(t, source, pool, seen)
		return source
	})
	if seen["bytes moved"] > seen["bytes that the source moves"] || seen["bytes that the source moves"] == 0 || seen["write through a view"] == 0 && !testing.Short() {
		t.Errorf("got %d bytes moved in all, want at most %d", seen["bytes moved"], seen["bytes that the source moves"])
	}
}

// mutation is a drawn program that writes values.
type mutation struct {
	*drawer
	control bool                             // with branches and loops, and views that are not contiguous
	roots   map[*ir.Value]root               // of all visible values
	through map[*ir.Value]*ir.Value          // by the same: the view through which it was written last
	used    map[string]bool                  // computations, without control flow: none is drawn twice, as the passes would merge them
	sources map[*ir.Value]map[*ir.Value]bool // of values that are no views: from which such values they were computed
	depth   int
	seen    map[string]int
}

// root says what a visible value is a view of, itself or through others.
type root struct {
	value *ir.Value
	fixed bool // it is not written: a weight, an input that is not donated
	views int
}

func drawMutation(t *rapid.T, control bool) *mutation {
	d := &mutation{drawer: &drawer{t: t, block: &ir.Block{}}, control: control, roots: map[*ir.Value]root{}, through: map[*ir.Value]*ir.Value{}, used: map[string]bool{}, sources: map[*ir.Value]map[*ir.Value]bool{}, seen: map[string]int{}}
	d.randomProgram = &randomProgram{program: &ir.Program{Name: "mutation", Body: d.block}, weights: ir.WeightMap{}, bounds: map[*ir.Value]bound{}}
	for i := range d.n(1, 3) {
		p := d.program.NewValue(ir.Param, fmt.Sprintf("p%d", i), op.Type{DType: dtype.F32, Shape: d.someShape()})
		p.Index, p.Donated = i, !d.one(4)
		d.open = append(d.open, 0)
		d.block.Params = append(d.block.Params, p)
		d.show(p, root{value: p, fixed: !p.Donated})
		for round := range d.inputs {
			d.inputs[round] = append(d.inputs[round], d.smallFloats(p.Type))
		}
	}
	for range d.n(2, 16) {
		d.statement()
	}
	for range d.n(1, 4) {
		if control {
			d.block.Results = append(d.block.Results, d.recent())
		}
	}
	for _, v := range d.block.Params {
		if !control && v.Donated {
			d.block.Results = append(d.block.Results, v) // other results could need copies
		}
	}
	return d
}

func (d *mutation) someShape() *shape.Shape {
	return rapid.SampledFrom([]*shape.Shape{shape.MustOf(12), shape.MustOf(4, 6), shape.MustOf(6, 4), shape.MustOf(2, 4, 3), shape.MustOf(1, 4, 6)}).Draw(d.t, "shape")
}

func (d *mutation) show(v *ir.Value, r root) {
	d.visible = append(d.visible, v)
	d.roots[v] = r
}

func (d *mutation) statement() {
	x := d.recent()
	kinds := []string{"view", "view", "view", "write", "write", "write", "write", "value", "copy"}
	if d.control && d.depth < 2 {
		kinds = append(kinds, "if", "loop")
	}
	switch rapid.SampledFrom(kinds).Draw(d.t, "statement") {
	case "view":
		d.viewOf(x)
	case "write":
		x = d.like(x, func(v *ir.Value) bool { return !d.roots[v].fixed })
		if !d.roots[x].fixed {
			d.write(x)
		}
	case "value":
		name, args := d.compute(x)
		if !d.isNew(name, args) {
			return
		}
		d.add(&ir.Call{Op: op.Builtin().Lookup(name), Results: make([]*ir.Value, 1)}, args...)
	case "copy":
		d.add(&ir.Call{Op: op.Builtin().Lookup("copy"), Results: make([]*ir.Value, 1)}, x)
	case "if":
		d.branch()
	case "loop":
		d.loop()
	}
}

// compute draws a function of x, and perhaps of another value of its type.
func (d *mutation) compute(x *ir.Value) (name string, args []*ir.Value) {
	if d.one(2) {
		return rapid.SampledFrom([]string{"neg", "relu", "abs", "sign"}).Draw(d.t, "unary"), []*ir.Value{x}
	}
	args = []*ir.Value{x, d.like(x, sameType(x))}
	if d.one(2) {
		slices.Reverse(args)
	}
	return rapid.SampledFrom([]string{"add", "sub", "max", "min"}).Draw(d.t, "binary"), args
}

func (d *mutation) isNew(name string, args []*ir.Value) bool {
	for _, a := range args {
		name += " " + d.roots[a].value.Name
	}
	used := d.used[name]
	d.used[name] = true
	return d.control || !used
}

func (d *mutation) write(x *ir.Value) {
	name, args := d.compute(d.like(x, sameType(x)))
	if d.one(3) {
		name, args = "copy", args[:1]
	} else if d.one(2) {
		args[0] = x
	}
	if !d.isNew(name, args) {
		return
	}
	for _, a := range args {
		from, of := d.roots[a].value, d.roots[x].value
		if !d.control && (from == of && (a != x || name == "copy") || from != of && d.sources[from][of]) {
			return // old elements are read: it may have to be computed elsewhere first
		}
	}
	c := &ir.Call{Op: op.Builtin().Lookup(name), Results: make([]*ir.Value, 1), Writes: []*ir.Value{x}}
	if d.add(c, args...) == nil {
		return
	}
	d.seen["write"]++
	of := d.roots[x].value
	if x != of {
		d.seen["write through a view"]++
	}
	d.through[of] = x
}

func (d *mutation) viewOf(x *ir.Value) {
	rank := x.Type.Shape.Rank()
	if rank == 0 {
		return
	}
	axis, kind := 0, d.n(0, 3)
	if d.control {
		axis, kind = d.n(0, max(0, rank-1)), d.n(0, 5)
	} else {
		for axis < rank-1 && x.Type.Shape.Size(axis) == 1 {
			axis++ // the parts are contiguous
		}
	}
	c, args := &ir.Call{Results: make([]*ir.Value, 1)}, []*ir.Value{x}
	name := "reshape"
	switch kind {
	case 0:
		name, c.Attrs, c.Results = "split", op.Attrs{attr("axis", int64(axis))}, make([]*ir.Value, 2)
		size := x.Type.Shape.Dims()[axis]
		n, _ := size.Size()
		first := d.n(0, n)
		args = append(args, d.ints(int64(first), int64(n-first)))
	case 1:
		name = "slice"
		n := x.Type.Shape.Size(axis)
		start := d.n(0, n)
		args = append(args, d.ints(int64(start)), d.ints(int64(d.n(start, n+1))), d.ints(int64(axis)))
	case 2:
		args = append(args, d.ints(rapid.SampledFrom([][]int64{{-1}, {2, -1}, {1, 2, -1}, {-1, 3}}).Draw(d.t, "target")...))
	case 3:
		name = "unsqueeze"
		args = append(args, d.ints(0))
	case 4:
		name = "transpose"
		perm := make([]int64, rank)
		for i, p := range rapid.Permutation(rangeOf(rank)).Draw(d.t, "perm") {
			perm[i] = int64(p)
		}
		c.Attrs = op.Attrs{attr("perm", perm)}
	default: // a box of two axes
		if rank < 2 {
			return
		}
		name = "slice"
		var starts, ends []int64
		for _, n := range x.Type.Shape.Sizes()[:2] {
			start := d.n(0, n)
			starts, ends = append(starts, int64(start)), append(ends, int64(d.n(start, n)))
		}
		args = append(args, d.ints(starts...), d.ints(ends...))
	}
	c.Op = op.Builtin().Lookup(name)
	if d.add(c, args...) == nil {
		return
	}
	c.Args[0].View = true
	of := d.roots[x]
	of.views++
	for _, v := range c.Results {
		d.roots[v] = of
	}
	d.seen["view"]++
	d.seen[name]++
	if of.views > 1 {
		d.seen["view of a view"]++
	}
}

// add adds a call that the operator table accepts, and shows its results.
func (d *mutation) add(c *ir.Call, args ...*ir.Value) []*ir.Value {
	for _, a := range args {
		c.Args = append(c.Args, ir.Operand{Value: a})
		if of := d.roots[a]; of.value != nil && d.through[of.value] != nil && d.through[of.value] != a {
			d.seen["read after a write through another view"]++
		}
	}
	sig := c.Sig(d.known)
	if err := op.InferTypes(sig); err != nil {
		return nil
	}
	for i, t := range sig.Results {
		if len(c.Writes) > 0 && t != c.Writes[0].Type {
			return nil
		}
		v := d.program.NewValue(ir.Result, "", t)
		v.Def, v.Index = c, i
		c.Results[i] = v
	}
	d.block.Calls = append(d.block.Calls, c)
	if len(c.Writes) > 0 {
		d.addSources(d.roots[c.Writes[0]].value, args)
		return c.Results
	}
	for _, v := range c.Results {
		d.show(v, root{value: v})
		d.addSources(v, args)
	}
	return c.Results
}

func (d *mutation) addSources(v *ir.Value, args []*ir.Value) {
	if d.sources[v] == nil {
		d.sources[v] = map[*ir.Value]bool{}
	}
	for _, a := range args {
		if of := d.roots[a].value; of != nil {
			d.sources[v][of] = true
			maps.Copy(d.sources[v], d.sources[of])
		}
	}
}

// region draws a block that returns values of the given types.
func (d *mutation) region(params []*ir.Value, types ...op.Type) *ir.Block {
	outer, visible := d.block, len(d.visible)
	d.block = &ir.Block{Params: params}
	d.depth++
	before := d.seen["write"]
	for _, p := range params {
		if p.Type.DType == dtype.F32 {
			d.show(p, root{value: p})
		}
	}
	for range d.n(0, 4) {
		d.statement()
	}
	for _, t := range types {
		v := d.like(d.visible[len(d.visible)-1], func(v *ir.Value) bool { return v.Type == t })
		if v.Type != t {
			v = d.visible[slices.IndexFunc(d.visible, func(v *ir.Value) bool { return v.Type == t })]
		}
		d.block.Results = append(d.block.Results, v)
	}
	b := d.block
	d.block, d.visible = outer, d.visible[:visible]
	d.depth--
	if d.seen["write"] > before {
		d.seen["write in a region"]++
	}
	return b
}

func (d *mutation) branch() {
	t := d.recent().Type
	before := d.seen["write"]
	c := &ir.Call{Op: op.Builtin().Lookup("if"), Results: make([]*ir.Value, 1)}
	c.Args = []ir.Operand{{Value: d.weight(op.Type{DType: dtype.Bool, Shape: shape.Scalar()}, []byte{byte(d.n(0, 1))}, bound{})}}
	if !d.one(3) { // known when the program runs only
		positive := d.add(&ir.Call{Op: op.Builtin().Lookup("reduce_max"), Attrs: op.Attrs{attr("keepdims", int64(0))}, Results: make([]*ir.Value, 1)}, d.recent())
		zero := d.weight(op.Type{DType: dtype.F32, Shape: shape.Scalar()}, make([]byte, 4), bound{})
		if positive != nil {
			condition := d.add(&ir.Call{Op: op.Builtin().Lookup("greater"), Results: make([]*ir.Value, 1)}, positive[0], zero)
			c.Args[0].Value = condition[0]
			d.visible = d.visible[:len(d.visible)-1]
		}
	}
	c.Regions = []*ir.Block{d.region(nil, t), d.region(nil, t)}
	if d.add(c) != nil && d.seen["write"] > before {
		d.seen["write in a branch"]++
	}
}

func (d *mutation) loop() {
	x := d.recent()
	before := d.seen["write"]
	i64, truth := op.Type{DType: dtype.I64, Shape: shape.Scalar()}, op.Type{DType: dtype.Bool, Shape: shape.Scalar()}
	rounds := d.weight(i64, binary.LittleEndian.AppendUint64(nil, uint64(d.n(0, 3))), bound{})
	var params []*ir.Value
	for i, t := range []op.Type{i64, truth, x.Type} {
		p := d.program.NewValue(ir.Param, "", t)
		p.Index = i
		params = append(params, p)
	}
	c := &ir.Call{Op: op.Builtin().Lookup("loop"), Results: make([]*ir.Value, 1)}
	c.Args = []ir.Operand{{Value: rounds}, {}}
	region := d.region(params, x.Type)
	region.Results = append([]*ir.Value{params[ir.LoopRuns]}, region.Results...)
	c.Regions = []*ir.Block{region}
	if d.add(c, x) != nil && d.seen["write"] > before {
		d.seen["write in a loop"]++
	}
}

// compareMutation runs the statements, the pure program and its plan.
func (d *mutation) compareMutation(t *rapid.T, pool *compute.Pool, seen map[string]int) {
	for what, n := range d.seen {
		seen[what] += n
	}
	source := d.program
	pure, err := ir.Functionalize(source, ir.Known(d.weights))
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	for round, inputs := range d.inputs {
		want, err := (&mutating{weights: d.weights}).run(source, inputs)
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		d.program = pure
		got, err := d.interpret(inputs)
		if err != nil {
			t.Fatalf("%v\n%s\nwas\n%s", err, pure, source)
		}
		for i := range want {
			if at := (bound{}).differs(want[i], got[i].Data); at != "" || got[i].Type != want[i].Type {
				t.Fatalf("round %d, result %d, %s: %s\n%s\nwas\n%s", round, i, got[i].Type, at, pure, source)
			}
		}
	}
	d.compare(t, pool, seen)
}

// compareMoves compares the bytes that a run moves with those that the source
// moves.
func (d *mutation) compareMoves(t *rapid.T, source *ir.Program, pool *compute.Pool, seen map[string]int) {
	of := &mutating{weights: d.weights}
	if _, err := of.run(source, d.inputs[0]); err != nil {
		t.Fatal(err)
	}
	exe := d.prepare(t, map[string]int{})
	r := &randomRun{randomProgram: d.randomProgram, exe: exe, runner: modeltest.Must(exe.NewRunner())}
	r.attach(0xCC)
	moved := 0
	r.runner.Watch = func(k int, _ time.Time, _ time.Duration) {
		c := exe.Call(k)
		if _, written := r.runner.Moved(k); isMove(c.Op.Name) {
			moved += int(written)
			if c.Op.Name == "copy" && slices.Contains(exe.Program.Body.Results, c.Args[0].Value) {
				of.moved += int(written) // the passes found two results equal, which the source computes both
			}
		}
	}
	if err := r.run(pool, nil); err != nil {
		t.Fatal(err)
	}
	r.release(t)
	seen["bytes moved"] += moved
	seen["bytes that the source moves"] += of.moved
	if moved > of.moved {
		t.Fatalf("got %d bytes moved, want at most %d: %+v\n%s\nwas\n%s", moved, of.moved, modeltest.Must(exe.Plan()).Declined, exe.Program, source)
	}
}

// isMove reports whether an operator computes nothing.
func isMove(name string) bool {
	return slices.Contains([]string{"concat", "copy", "expand", "identity", "reshape", "slice", "split", "transpose", "unsqueeze"}, name)
}
