package check_test

import (
	"errors"
	"math"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// A generator draws programs over short vectors.
type generator struct {
	t     *rapid.T
	b     *ir.Builder
	seen  []*ir.Value // in scope
	conds []*ir.Value
	depth int
}

func vector(dt dtype.DType, n int) op.Type { return op.Type{DType: dt, Shape: shape.MustOf(n)} }

func attr(name string, v any) op.Attr { return op.Attr{Name: name, Value: v} }

func (g *generator) below(n int) int { return rapid.IntRange(0, n-1).Draw(g.t, "n") }

// any returns a value in scope, f32 where asked for.
func (g *generator) any(onlyF32 bool) *ir.Value {
	list := g.seen
	if onlyF32 {
		list = slices.DeleteFunc(slices.Clone(list), func(v *ir.Value) bool { return v.Type.DType != dtype.F32 })
	}
	// The latest values are likelier: chains are where bytes are reused.
	if len(list) > 3 && g.below(3) > 0 {
		list = list[len(list)-3:]
	}
	return list[g.below(len(list))]
}

func (g *generator) add(vs ...*ir.Value) {
	for _, v := range vs {
		if v != nil {
			g.seen = append(g.seen, v)
		}
	}
}

func program(t *rapid.T) *ir.Program {
	g := &generator{t: t, b: ir.NewBuilder("random", testOps)}
	for i := range 1 + g.below(3) {
		if typ := vector(dtype.F32, 1+g.below(6)); g.below(2) == 0 || i == 0 {
			g.add(g.b.DonatedParam("", typ))
		} else {
			g.add(g.b.Param("", typ))
		}
	}
	for range g.below(3) {
		g.add(g.b.Weight("", vector(dtype.F32, 1+g.below(6))))
	}
	g.conds = append(g.conds, g.b.Param("", op.Type{DType: dtype.Bool, Shape: shape.Scalar()}))
	g.calls(1 + g.below(9))
	var results []*ir.Value
	for range 1 + g.below(2) {
		results = append(results, g.fresh())
	}
	g.b.Return(results...)
	p, err := g.b.Build()
	if err != nil {
		t.Fatalf("generator: %v", err)
	}
	return p
}

// fresh returns a value of its own, with no other use: the result of some
// call, or a copy.
func (g *generator) fresh() *ir.Value {
	if g.below(2) == 0 {
		return g.b.Call("neg", nil, g.any(true))
	}
	return g.b.Call("copy", nil, g.any(false))
}

func (g *generator) calls(n int) {
	for range n {
		g.call()
	}
}

func (g *generator) call() {
	b, x := g.b, g.any(true)
	n := x.Type.Shape.NumElements()
	switch g.below(16) {
	case 0, 1:
		g.add(b.Call("relu", nil, x))
	case 2, 3:
		y := x
		for _, v := range g.seen {
			if v.Type == x.Type && g.below(2) == 0 {
				y = v
			}
		}
		g.add(b.Call("add", nil, x, y))
	case 4: // broadcast
		one := b.Call("test.part", op.Attrs{attr("from", int64(g.below(n))), attr("size", int64(1))}, g.any1(x))
		if g.below(2) == 0 {
			g.add(one, b.Call("add", nil, x, one))
		} else {
			g.add(one, b.Call("max", nil, one, x, one))
		}
	case 5:
		to := rapid.SampledFrom([]dtype.DType{dtype.I32, dtype.F64, dtype.I8}).Draw(g.t, "to")
		g.add(b.Call("cast", op.Attrs{attr("to", to)}, x))
	case 6:
		v := g.any(false)
		g.add(b.Call("cast", op.Attrs{attr("to", dtype.F32)}, v))
	case 7:
		if n >= 2 {
			parts := b.CallN(2, "split", op.Attrs{attr("axis", int64(0))}, x)
			if g.below(4) == 0 {
				b.Drop(parts[0])
				parts = parts[1:]
			}
			g.add(parts...)
		}
	case 8:
		from := g.below(n)
		g.add(b.Call("test.part", op.Attrs{attr("from", int64(from)), attr("size", int64(1+g.below(n-from)))}, x))
	case 9:
		name := rapid.SampledFrom([]string{"identity", "copy", "test.silent", "test.print"}).Draw(g.t, "name")
		g.add(b.Call(name, nil, g.any(false)))
	case 10:
		name := rapid.SampledFrom([]string{"test.accumulate", "test.update", "test.scale"}).Draw(g.t, "name")
		g.add(b.Call(name, nil, x, g.any(true)))
	case 11:
		g.add(b.Call("test.mix", op.Attrs{attr("size", int64(1+g.below(6)))}, x, g.any(false)))
	case 12:
		g.add(b.CallN(2, "test.twins", nil, x)...)
	case 13:
		if g.depth < 2 {
			g.branch()
		}
	default:
		args := []ir.Arg{x, g.any(true)}
		if g.below(3) == 0 {
			args = append(args, g.any(true))
		}
		if n <= 12 {
			g.add(b.Call("concat", op.Attrs{attr("axis", int64(0))}, args...))
		}
	}
}

// any1 returns x: its parts are drawn by its size.
func (g *generator) any1(x *ir.Value) *ir.Value { return x }

func (g *generator) branch() {
	var types []op.Type
	region := func() []*ir.Value {
		outer := g.seen
		defer func() { g.seen = outer; g.depth-- }()
		g.depth++
		g.seen = slices.Clone(outer)
		g.calls(g.below(4))
		results := []*ir.Value{g.fresh()}
		if types == nil {
			types = []op.Type{results[0].Type}
			return results
		}
		// The second region returns the type of the first.
		for _, v := range g.seen {
			if v.Type == types[0] {
				return []*ir.Value{g.b.Call("copy", nil, v)}
			}
		}
		out := g.b.Call("test.mix", op.Attrs{attr("size", int64(types[0].Shape.NumElements()))}, results[0])
		if types[0].DType != dtype.F32 {
			out = g.b.Call("cast", op.Attrs{attr("to", types[0].DType)}, out)
		}
		return []*ir.Value{out}
	}
	g.add(g.b.If(g.conds[0], region, region)...)
}

// mutate changes a plan at random.
func mutate(t *rapid.T, p *ir.Program, d *plan.Plan) {
	defer func() {
		for i := range d.Values {
			if d.Values[i].Space == plan.SpaceConstant {
				d.Values[i].Strides = nil // or the document is malformed
			}
		}
	}()
	below := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "m") }
	fixed := len(p.Body.Params) + len(p.Weights)
	v, u := &d.Values[fixed+below(len(d.Values)-fixed)], &d.Values[below(len(d.Values))]
	if below(20) == 0 {
		v = &d.Values[below(len(d.Values))]
	}
	if larger := slices.Collect(func(yield func(*plan.Value) bool) {
		for i := range d.Values {
			if x := &d.Values[i]; x != v && x.Size >= v.Size && x.Space != plan.SpaceWeight && !yield(x) {
				return
			}
		}
	}); len(larger) > 0 && below(8) > 0 {
		u = larger[below(len(larger))]
	}
	need := []int64{4, 4, 4, 8, 1}[below(5)]
	move := func(to *plan.Value, offset int64) { v.Space, v.Arg, v.Offset = to.Space, to.Arg, offset }
	if v.Strides != nil && below(2) == 0 {
		mutateStrides(v, u, below)
		return
	}
	switch below(8) {
	case 0:
		v.Offset = max(0, v.Offset+int64(below(9)-4)*need)
	case 1, 2:
		move(u, u.Offset)
	case 3:
		move(u, u.Offset+int64(below(4))*need)
	case 4:
		v.Space, u.Space = u.Space, v.Space
		v.Arg, u.Arg = u.Arg, v.Arg
		v.Offset, u.Offset = u.Offset, v.Offset
	case 5:
		if below(3) > 0 {
			move(&d.Values[below(len(p.Body.Params))], 0)
			return
		}
		v.Space = rapid.SampledFrom([]plan.Space{plan.SpaceArena, plan.SpaceInput, plan.SpaceOutput, plan.SpaceWeight, plan.SpaceConstant}).Draw(t, "space")
	case 6:
		v.Arg = below(3)
	case 7:
		if len(d.Steps) > 1 {
			i := below(len(d.Steps) - 1)
			j := min(i+1+below(3), len(d.Steps)-1)
			d.Steps[i], d.Steps[j] = d.Steps[j], d.Steps[i]
		}
	}
}

// byteRules are the rules that the simulator knows of.
var byteRules = []check.Rule{check.Order, check.Place, check.Read, check.Alias, check.Write, check.Branch, check.Output}

// fataler is a test of any kind.
type fataler interface {
	Helper()
	Fatalf(string, ...any)
}

// agree: Check accepts only plans in which the simulator finds nothing, and all
// of them where no value has strides. It returns what both say.
func agree(t fataler, p *ir.Program, d *plan.Plan) (accepted, harmless bool) {
	t.Helper()
	got, harm := check.Check(p, d, nil), simulate(p, d, nil)
	proved(t, check.NewProver(p), p, d, nil, got)
	for _, size := range others {
		if first, prover := proverOf(p, size); prover != nil {
			proved(t, prover, first.With(ir.TypesOf(p)), d, nil, got)
		}
	}
	if (got == nil) != (harm == nil) && (got == nil || !hasStrides(d)) {
		t.Fatalf("check: %v\nsimulator: %v\n%s%s", got, harm, p, describe(d))
	}
	var v *check.Violation
	if errors.As(got, &v) && !slices.Contains(byteRules, v.Rule) {
		t.Fatalf("check: %v, want a rule of bytes: %v\n%s%s", got, harm, p, describe(d))
	}
	return got == nil, harm == nil
}

func hasStrides(d *plan.Plan) bool {
	return slices.ContainsFunc(d.Values, func(v plan.Value) bool { return v.Strides != nil })
}

func describe(d *plan.Plan) string {
	text, err := d.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// rounds is how many times the hundred cases of a property are drawn.
func rounds(t *testing.T, property func(*rapid.T)) {
	n := 12
	if testing.Short() {
		n = 1
	}
	for range n {
		rapid.Check(t, property)
	}
}

func TestPlansOfThePlannerHold(t *testing.T) {
	rounds(t, func(t *rapid.T) {
		p := program(t)
		d := planOf(p, nil, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
		if err := simulate(p, d, nil); err != nil {
			t.Fatalf("the planner of the tests is wrong: %v\n%s%s", err, p, describe(d))
		}
		if err := check.Check(p, d, nil); err != nil {
			t.Fatalf("%v\n%s%s", err, p, describe(d))
		}
	})
}

func mutants(t *rapid.T) {
	p := program(t)
	d := planOf(p, nil, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
	for range rapid.IntRange(1, 3).Draw(t, "mutations") {
		mutate(t, p, d)
	}
	honest(p, d, nil)
	agree(t, p, d)
}

func TestCheckAgreesWithSimulator(t *testing.T) { rounds(t, mutants) }

// One number or text of the document changes to any other: Check does not
// panic, and accepts only harmless changes.
func anyField(t *rapid.T) {
	draw := program
	if rapid.Bool().Draw(t, "boxes") {
		draw = boxProgram
	}
	p := draw(t)
	d := planOf(p, nil, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") })
	for range rapid.IntRange(1, 2).Draw(t, "fields") {
		setAnyField(t, reflect.ValueOf(d).Elem())
	}
	err := check.Check(p, d, nil)
	proved(t, check.NewProver(p), p, d, nil, err)
	if err != nil {
		return
	}
	if err := simulate(p, d, nil); err != nil {
		t.Fatalf("check accepts, the simulator finds: %v\n%s%s", err, p, describe(d))
	}
	figures := [...]int64{d.IOBytes, d.WeightBytes, d.Peak.Bytes}
	arena, bound := d.ArenaBytes, d.LowerBoundBytes
	honest(p, d, nil)
	if figures != [...]int64{d.IOBytes, d.WeightBytes, d.Peak.Bytes} || arena < d.ArenaBytes || bound > arena {
		t.Fatalf("check accepts %d, arena %d, lower bound %d, but true is\n%s", figures, arena, bound, describe(d))
	}
}

func setAnyField(t *rapid.T, v reflect.Value) {
	below := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "f") }
	switch v.Kind() {
	case reflect.Struct:
		setAnyField(t, v.Field(below(v.NumField())))
	case reflect.Slice:
		if v.Len() == 0 || below(8) == 0 {
			v.Set(reflect.Append(v, reflect.New(v.Type().Elem()).Elem()))
			return
		}
		if below(8) == 0 {
			v.SetLen(v.Len() - 1)
			return
		}
		setAnyField(t, v.Index(below(v.Len())))
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "arena", "input", "output", "weight", "constant", "same", "view", "neg", "1", "\n"}).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(rapid.OneOf(rapid.Int64Range(-2, 8), rapid.Int64Range(0, 1<<9), rapid.SampledFrom([]int64{
			math.MinInt64, math.MaxInt64, plan.MaxBytes, plan.MaxBytes - 1, 1 << 40, -1 << 40})).Draw(t, "number"))
	}
}

func TestAnyField(t *testing.T) { rounds(t, anyField) }

func FuzzAnyField(f *testing.F) { f.Fuzz(rapid.MakeFuzz(anyField)) }

func FuzzCheckAgreesWithSimulator(f *testing.F) { f.Fuzz(rapid.MakeFuzz(mutants)) }
