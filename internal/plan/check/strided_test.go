package check_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// Everything here counts bytes one by one, or asks package shape, and knows
// nothing of boxes.

// offsets returns where in its space each byte of a value is, in row-major
// order.
func offsets(v *plan.Value) []int64 {
	out := make([]int64, 0, v.Size)
	if v.Strides == nil {
		for k := range v.Size {
			out = append(out, v.Offset+k)
		}
		return out
	}
	sizes := sizesOf(v)
	elements := int64(1)
	for _, n := range sizes {
		elements *= n
	}
	for e := range elements {
		at, left := v.Offset, e
		for d := len(sizes) - 1; d >= 0; d-- {
			at += left % sizes[d] * v.Strides[d] * (v.Size / elements)
			left /= sizes[d]
		}
		for b := range v.Size / elements {
			out = append(out, at+b)
		}
	}
	return out
}

// shareBytes reports whether two values share bytes.
func shareBytes(a, b *plan.Value) bool {
	if !share(a, b) || a.Strides == nil && b.Strides == nil {
		return share(a, b)
	}
	of := map[int64]bool{}
	for _, at := range offsets(a) {
		of[at] = true
	}
	return slices.ContainsFunc(offsets(b), func(at int64) bool { return of[at] })
}

func sizesOf(v *plan.Value) (sizes []int64) {
	_, text, _ := strings.Cut(strings.TrimSuffix(v.Type, "]"), "[")
	for _, s := range strings.Split(text, ",") {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			sizes = append(sizes, n)
		}
	}
	return sizes
}

// inBox returns, for each byte of a value of type t, the byte of a value of
// type of whose box it is, from the index at on; nil if it is none.
func inBox(of, t op.Type, at []int) []int64 {
	from, sizes := of.Shape.Sizes(), t.Shape.Sizes()
	if len(at) != len(sizes) || len(from) != len(sizes) || of.DType.Size() != t.DType.Size() || of.DType.Size() == 0 {
		return nil
	}
	for d := range sizes {
		if at[d] < 0 || at[d]+sizes[d] > from[d] {
			return nil
		}
	}
	out, size := []int64{}, t.DType.Size()
	for e := range t.Shape.NumElements() {
		left, k := e, 0
		for d := len(sizes) - 1; d >= 0; d-- {
			k += (left%sizes[d] + at[d]) * of.Shape.Strides()[d]
			left /= sizes[d]
		}
		for b := range size {
			out = append(out, int64(k*size+b))
		}
	}
	return out
}

// boxOf returns for each byte of result r the byte of operand i whose box it
// is; nil if it is none.
func boxOf(c *ir.Call, sig *op.Sig, i, r int) []int64 {
	at := make([]int, c.Results[r].Type.Shape.Rank())
	if !sig.IsStatic() || sig.BoxOf(r, at) != i {
		return nil
	}
	return inBox(c.Args[i].Value.Type, c.Results[r].Type, at)
}

// partOf returns for each byte of operand i the byte of the result that it is;
// nil if it is no part.
func partOf(c *ir.Call, sig *op.Sig, i int) []int64 {
	at := sig.Parts(nil)
	if at == nil || c.Args[i].Value == nil || bytesOf(c.Args[i].Value) == 0 {
		return nil
	}
	rank := c.Results[0].Type.Shape.Rank()
	return inBox(c.Results[0].Type, c.Args[i].Value.Type, at[i*rank:(i+1)*rank])
}

// sameSpace reports whether two values lie in one buffer.
func sameSpace(x, y *plan.Value) bool {
	return x.Space == y.Space && (x.Arg == y.Arg || x.Space == plan.SpaceArena)
}

// liesAt reports whether each byte k of x is byte image[k] of y.
func liesAt(x, y *plan.Value, image func(k int) int64) bool {
	if !sameSpace(x, y) {
		return false
	}
	own, other := offsets(x), offsets(y)
	for k, at := range own {
		if n := image(k); n < 0 || n >= int64(len(other)) || other[n] != at {
			return false
		}
	}
	return true
}

// kindIn returns how result r of a call lies in the bytes of operand i, 0 where
// it does not as the operator has it.
func kindIn(c *ir.Call, sig *op.Sig, i, r int, x, y *plan.Value) op.AliasKind {
	kind, offset := sig.AliasOf(i, r)
	if kind == 0 {
		kind = sig.AliasAlone(i, r)
	}
	straight := x.Strides == nil && y.Strides == nil
	switch {
	case kind != 0 && straight:
		if sameSpace(x, y) && x.Offset == y.Offset+int64(offset) {
			return kind
		}
		return 0
	case kind == op.Permute, kind == op.Narrow:
		return 0
	case kind != 0 && liesAt(x, y, func(k int) int64 { return int64(offset + k) }):
		return kind
	}
	box := boxOf(c, sig, i, r)
	if kind == 0 && len(box) > 0 && liesAt(x, y, func(k int) int64 { return box[k] }) {
		return op.View
	}
	return 0
}

// liesInPart reports whether operand i lies where it is a part of the result.
func liesInPart(c *ir.Call, sig *op.Sig, i int, x, y *plan.Value) bool {
	part := partOf(c, sig, i)
	return part != nil && liesAt(y, x, func(k int) int64 { return part[k] })
}

// stridesIn returns the strides of the values whose bytes at is, for the type t
// of a view of all of them; false if it has none.
func stridesIn(at *plan.Value, of, t op.Type) ([]int64, bool) {
	if at.Strides == nil {
		return nil, true
	}
	var strides []int
	for _, n := range at.Strides {
		strides = append(strides, int(n))
	}
	l, err := shape.Strided(of.Shape, strides...)
	if err != nil || of.DType.Size() != t.DType.Size() {
		return nil, false
	}
	l, ok := l.Reshape(t.Shape)
	if !ok {
		return nil, false
	}
	return stridesOf(l), true
}

// stridesOf returns the strides of a document for a layout.
func stridesOf(l *shape.Layout) (list []int64) {
	if l.IsContiguous() || isRowMajor(l.Shape().Sizes(), l.Strides()) {
		return nil
	}
	for d, n := range l.Strides() {
		if l.Shape().Size(d) == 1 {
			n = max(n, 1)
		}
		list = append(list, int64(n))
	}
	return list
}

// isRowMajor reports whether the strides are those of a contiguous value: axes
// of one index may have any.
func isRowMajor(sizes, strides []int) bool {
	inner := 1
	for d := len(sizes) - 1; d >= 0; d-- {
		if sizes[d] != 1 && strides[d] != inner {
			return false
		}
		inner *= sizes[d]
	}
	return true
}

// within returns the place of a value of type t that is the box of x, a value
// of type of, from the index at on.
func within(x plan.Value, of, t op.Type, at []int) plan.Value {
	strides := x.Strides
	if strides == nil {
		for _, n := range of.Shape.Strides() {
			strides = append(strides, int64(n))
		}
	}
	list := make([]int, len(strides))
	for d, n := range strides {
		x.Offset += int64(at[d]) * n * int64(t.DType.Size())
		list[d] = int(n)
	}
	if x.Strides = slices.Clone(strides); isRowMajor(t.Shape.Sizes(), list) {
		x.Strides = nil
	}
	return x
}

// boxProgram draws a program over values of few axes, of which calls make
// boxes.
func boxProgram(t *rapid.T) *ir.Program {
	g := &generator{t: t, b: ir.NewBuilder("boxes", testOps)}
	b := g.b
	for i := range 1 + g.below(2) {
		typ := op.Type{DType: dtype.F32, Shape: shape.MustOf(1+g.below(2), 1+g.below(3), 1+g.below(3))}
		if g.below(2) == 0 || i == 0 {
			g.add(b.DonatedParam("", typ))
		} else {
			g.add(b.Param("", typ))
		}
	}
	g.conds = append(g.conds, b.Param("", op.Type{DType: dtype.Bool, Shape: shape.Scalar()}))
	g.boxCalls(2 + g.below(8))
	var results []*ir.Value
	for range 1 + g.below(2) {
		results = append(results, g.freshBox())
	}
	b.Return(results...)
	p, err := b.Build()
	if err != nil {
		t.Fatalf("generator: %v", err)
	}
	return p
}

func (g *generator) freshBox() *ir.Value { return g.b.Call("neg", nil, g.any(true)) }

func (g *generator) boxCalls(n int) {
	for range n {
		g.boxCall()
	}
}

// boxCall draws a call that makes boxes, or reads and writes them.
func (g *generator) boxCall() {
	b, x := g.b, g.any(true)
	sizes := x.Type.Shape.Sizes()
	axis := g.below(len(sizes))
	along := func(more ...op.Attr) op.Attrs { return append(op.Attrs{attr("axis", int64(axis))}, more...) }
	switch g.below(16) {
	case 0, 1:
		g.add(b.Call("relu", nil, x))
	case 2:
		y := x
		for _, v := range g.seen {
			if v.Type == x.Type && g.below(2) == 0 {
				y = v
			}
		}
		g.add(b.Call("add", nil, x, y))
	case 3:
		if sizes[axis] >= 2 {
			parts := b.CallN(2, "split", along(), x)
			if g.below(4) == 0 {
				b.Drop(parts[0])
				parts = parts[1:]
			}
			g.add(parts...)
		}
	case 4:
		from := g.below(sizes[axis])
		g.add(b.Call("test.box", along(attr("from", int64(from)), attr("size", int64(1+g.below(sizes[axis]-from)))), x))
	case 5, 6:
		if x.Type.Shape.NumElements() <= 40 {
			g.add(b.Call("test.frame", along(attr("before", int64(g.below(2))), attr("after", int64(g.below(3)))), g.own(x)))
		}
	case 7:
		if len(sizes) > 1 {
			at := g.below(len(sizes) - 1)
			g.add(b.Call("test.merge", op.Attrs{attr("axis", int64(at))}, x))
		}
	case 8:
		g.add(b.Call(rapid.SampledFrom([]string{"identity", "copy", "test.silent"}).Draw(g.t, "name"), nil, x))
	case 9:
		g.add(b.Call(rapid.SampledFrom([]string{"test.update", "test.scale", "test.accumulate"}).Draw(g.t, "name"), nil, x, g.any(true)))
	case 10:
		if g.depth < 1 {
			g.boxBranch()
		}
	default:
		args := []ir.Arg{g.own(x)}
		for _, v := range g.seen {
			if len(args) < 3 && v.Type.DType == x.Type.DType && fitsBeside(x.Type.Shape, v.Type.Shape, axis) && g.below(2) == 0 {
				args = append(args, g.own(v))
			}
		}
		if len(args) == 1 {
			args = append(args, g.own(x))
		}
		if x.Type.Shape.NumElements() <= 40 {
			g.add(b.Call("concat", along(), args...))
		}
	}
}

// own returns x, or what is computed from it: that may be computed where it is
// a part.
func (g *generator) own(x *ir.Value) *ir.Value {
	if g.below(3) == 0 {
		return x
	}
	y := g.b.Call("relu", nil, x)
	g.add(y)
	return y
}

func fitsBeside(a, b *shape.Shape, axis int) bool {
	if a.Rank() != b.Rank() {
		return false
	}
	for d := range a.Rank() {
		if d != axis && a.Size(d) != b.Size(d) {
			return false
		}
	}
	return true
}

// boxBranch draws a branch whose regions read boxes from outside.
func (g *generator) boxBranch() {
	x := g.any(true)
	region := func() []*ir.Value {
		outer := g.seen
		defer func() { g.seen = outer; g.depth-- }()
		g.depth++
		g.seen = slices.Clone(outer)
		g.boxCalls(g.below(3))
		of := x
		for _, v := range g.seen {
			if v.Type == x.Type && g.below(2) == 0 {
				of = v
			}
		}
		return []*ir.Value{g.b.Call("neg", nil, of)}
	}
	g.add(g.b.If(g.conds[0], region, region)...)
}

// mutateStrides changes how a value with strides lies.
func mutateStrides(v, u *plan.Value, below func(int) int) {
	axis := below(len(v.Strides))
	old := *v
	switch below(5) {
	case 0: // along an axis
		v.Offset = max(0, v.Offset+int64(1-2*below(2))*v.Strides[axis]*4)
	case 1: // by an element
		v.Offset = max(0, v.Offset+int64(1-2*below(2))*4)
	case 2:
		v.Strides = slices.Clone(v.Strides)
		v.Strides[axis] += int64(1 - 2*below(2))
	case 3: // as another value
		if len(u.Strides) == len(v.Strides) {
			v.Strides, v.Space, v.Arg, v.Offset = u.Strides, u.Space, u.Arg, u.Offset
		}
	case 4:
		v.Strides = nil
	}
	// What the document's own rules refuse says nothing about bytes.
	d := plan.Plan{Format: plan.Format, Threads: 1, MaxConcurrent: 1, ArenaBytes: 1 << 40, Values: []plan.Value{*v}}
	d.Values[0].Start, d.Values[0].End = 1, 2
	if d.Steps = make([]plan.Step, 1); d.Validate() != nil {
		*v = old
	}
}

// tallies count what became of mutants.
type tallies struct{ strided, inPlace, parts, accepted, rejected, refused int }

// mutantsOfBoxes proves a plan with boxes, and that what is wrong with it after
// a change is found.
func (n *tallies) mutantsOfBoxes(t *rapid.T) {
	p := boxProgram(t)
	d := planOf(p, nil, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
	if err := simulate(p, d, nil); err != nil {
		t.Fatalf("the planner of the tests is wrong: %v\n%s%s", err, p, describe(d))
	}
	if err := check.Check(p, d, nil); err != nil {
		t.Fatalf("%v\n%s%s", err, p, describe(d))
	}
	if !hasStrides(d) {
		return
	}
	n.strided++
	for _, x := range d.InPlace {
		if x.Kind == plan.AliasPart {
			n.parts++
		} else {
			n.inPlace++
		}
	}
	for range rapid.IntRange(1, 2).Draw(t, "mutations") {
		mutate(t, p, d)
	}
	honest(p, d, nil)
	switch ok, harmless := agree(t, p, d); {
	case ok:
		n.accepted++
	case harmless:
		n.refused++
	default:
		n.rejected++
	}
}

func TestBoxesAgreeWithSimulator(t *testing.T) {
	var n tallies
	rounds(t, n.mutantsOfBoxes)
	t.Logf("%d plans with strides, %d results and %d parts in place; of mutants %d accepted, %d rejected, %d refused without harm",
		n.strided, n.inPlace, n.parts, n.accepted, n.rejected, n.refused)
	// With -short there are too few for rates.
	if !testing.Short() && (n.strided < 300 || n.parts < 300 || n.accepted < 75 || n.rejected < 150 || n.refused > n.accepted/5) {
		t.Errorf("got %+v, want more of what is accepted and rejected, and less that is refused without harm", n)
	}
}

func FuzzBoxes(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) { new(tallies).mutantsOfBoxes(t) }))
}
