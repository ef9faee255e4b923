package ir_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

func TestBuilder(t *testing.T) {
	b := ir.NewBuilder("step", testOps)
	x := b.Param("x", typ(dtype.F32, 1, 8))
	cache := b.DonatedParam("cache", typ(dtype.F32, 16, 8))
	w := b.Weight("w", typ(dtype.F32, 8, 8))
	b.Node("k_proj")
	k := b.Name(b.Call("matmul", nil, x, w), "k")
	b.Node("")
	next := b.Call("put", op.Attrs{{Name: "offset", Value: int64(3)}}, ir.Donate(cache), k)
	halves := b.CallN(2, "halves", nil, b.Call("flat", nil, k))
	b.Drop(halves[1])
	r := b.If(b.Call("is_positive", nil, k), func() []*ir.Value {
		return []*ir.Value{b.Call("relu", nil, halves[0])}
	}, func() []*ir.Value { return []*ir.Value{halves[0]} })
	m := b.Call("mystery", nil, x, nil, k)
	b.Return(next, r[0], m)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	const want = `func @step(%x: f32[1,8], donate %cache: f32[16,8]) -> (f32[16,8], f32[4], f32[1,8]) {
  weight @w: f32[8,8]
  %k: f32[1,8] = matmul(%x, @w) "k_proj"
  %5: f32[16,8] = put(donate %cache, %k) {offset = 3}
  %6: f32[8] = flat(%k)
  %7: f32[4], _ = halves(%6)
  %9: bool[] = is_positive(%k)
  %11: f32[4] = if(%9) {
    %10: f32[4] = relu(%7)
    return %10
  } {
    return %7
  }
  %12: f32[1,8] = mystery(%x, _, %k)
  return %5, %11, %12
}
`
	if got := p.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	checkFixedPoint(t, want, testOps)
}

func TestBuilderNames(t *testing.T) {
	b := ir.NewBuilder("names", testOps)
	x := b.Param("x", typ(dtype.F32, 2))
	y := b.Call("relu", nil, x) // called 2
	z := b.Name(b.Call("relu", nil, y), "2")
	b.Name(b.Call("neg", nil, z), "5")
	b.Call("neg", nil, z)
	b.Call("neg", nil, z) // would be called 5
	b.Return(z)
	p, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if z.Name != "2" || y.Name == "2" {
		t.Errorf("got names %q and %q, want the chosen name 2 to go to the second", y.Name, z.Name)
	}
	checkFixedPoint(t, p.String(), testOps)
}

func TestBuilderErrorsStick(t *testing.T) {
	f32 := typ(dtype.F32, 2)
	cases := []struct {
		name, want string
		build      func(b *ir.Builder)
	}{
		{"operator", `ir: @f: operator "nothing" is not in the table: not supported`, func(b *ir.Builder) {
			v := b.Call("nothing", nil, b.Param("x", f32))
			b.Return(b.Call("neg", nil, v))
		}},
		{"types", `ir: @f: node "n" (add): add: `, func(b *ir.Builder) {
			b.Node("n")
			b.Call("add", nil, b.Param("x", f32), b.Param("y", typ(dtype.F32, 3)))
		}},
		{"arity", `ir: @f: add: got 1 operands, want 2`, func(b *ir.Builder) { b.Call("add", nil, b.Param("x", f32)) }},
		{"name", `ir: @f: the name x is given twice`, func(b *ir.Builder) { b.Weight("w", f32); b.Param("x", f32); b.Param("x", f32) }},
		{"rename", `ir: @f: the name w is given twice`, func(b *ir.Builder) {
			b.Weight("w", f32)
			b.Name(b.Call("neg", nil, b.Param("x", f32)), "w")
		}},
		{"attribute", `ir: @f: rows: attribute "from": got a int, want int64`, func(b *ir.Builder) {
			b.Call("rows", op.Attrs{{Name: "from", Value: 1}}, b.Param("x", f32))
		}},
		{"inner parameter", `ir: @f: parameter y is declared inside a region`, func(b *ir.Builder) {
			x := b.Param("x", f32)
			b.If(b.Call("is_positive", nil, x), func() []*ir.Value { return []*ir.Value{b.Param("y", f32)} }, func() []*ir.Value { return nil })
		}},
		{"drop", `ir: @f: drop: %x is no result of a call`, func(b *ir.Builder) { b.Drop(b.Param("x", f32)) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := ir.NewBuilder("f", testOps)
			c.build(b)
			p, err := b.Build()
			if p != nil || err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if b.Err() == nil {
				t.Error("Err() is nil after an error")
			}
		})
	}
}

func TestCloneSharesNothingThatChanges(t *testing.T) {
	p := mustParse(t, `func @f(donate %x: f32[batch,2], %c: bool[]) {
  weight @w: f32[2]
  %y = add(donate %x, @w)
  %r = if(%c) { %t = neg(%y) return %t } { return %y }
  return %r, %r
}`)
	before := p.String()
	c := p.Clone()
	if c.String() != before || c.Hash() != p.Hash() {
		t.Fatalf("the clone prints as:\n%s\nwant:\n%s", c, before)
	}
	if err := c.Bind(typ(dtype.F32, 3, 2), typ(dtype.Bool)); err != nil {
		t.Fatal(err)
	}
	if err := ir.Infer(c, nil); err != nil {
		t.Fatal(err)
	}
	c.Walk(func(b *ir.Block, call *ir.Call) {
		for i, v := range call.Results {
			if v.Def != call || v.Index != i {
				t.Errorf("%s: Def and Index lead to %v", v, v.Def)
			}
			v.Name += "_new"
		}
		for i := range call.Args {
			call.Args[i].Donate = false
		}
		b.Results = b.Results[:1]
	})
	c.Weights[0].Name = "other"
	if got := p.String(); got != before {
		t.Errorf("the original became:\n%s", got)
	}
	if p.Hash() == c.Hash() {
		t.Error("different programs have one hash")
	}
	const want = `func @f(donate %x: f32[3,2], %c: bool[]) -> (f32[3,2]) {
  weight @other: f32[2]
  %y_new: f32[3,2] = add(%x, @other)
  %r_new: f32[3,2] = if(%c) {
    %t_new: f32[3,2] = neg(%y_new)
    return %t_new
  } {
    return %y_new
  }
  return %r_new
}
`
	if got := c.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestBindErrors(t *testing.T) {
	const text = "func @f(%x: f32[batch,2], %y: f32[batch], %z: f32[...]) { return %x }"
	scalar := typ(dtype.F32)
	cases := []struct {
		types []op.Type
		want  string
		kind  error
	}{
		{[]op.Type{scalar}, "ir: @f: got 1 inputs, want 3", nil},
		{[]op.Type{typ(dtype.F32, 3, 4), typ(dtype.F32, 3), scalar}, "input \"x\": got f32[3,4], want f32[batch,2]", shape.ErrShape},
		{[]op.Type{typ(dtype.F64, 3, 2), typ(dtype.F32, 3), scalar}, "input \"x\": got f64[3,2], want f32[batch,2]", dtype.ErrDType},
		{[]op.Type{typ(dtype.F32, 3, 2), typ(dtype.F32, 4), scalar}, "input \"y\": got f32[4], want f32[batch] with batch = 3 as in input \"x\"", shape.ErrShape},
	}
	for _, c := range cases {
		p := mustParse(t, text)
		before := p.String()
		err := p.Bind(c.types...)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("got %v, want %s of the kind %v", err, c.want, c.kind)
		}
		if p.String() != before {
			t.Error("a refused Bind changed the program")
		}
	}
}

func TestInferKnowsWeights(t *testing.T) {
	p := mustParse(t, "func @f(%x: f32[6]) {\n weight @s: i64[2]\n %y: f32[?,2] = reshape(%x, @s)\n %z = neg(%y)\n return %z\n}")
	if err := ir.Infer(p, ir.Known(ir.WeightMap{"s": i64Bytes(3, 2)})); err != nil {
		t.Fatal(err)
	}
	if got := p.Body.Results[0].Type; got != typ(dtype.F32, 3, 2) {
		t.Errorf("got %s, want f32[3,2]", got)
	}
	if err := ir.Infer(p, ir.Known(nil)); err != nil {
		t.Fatal(err)
	}
	if got := p.Body.Results[0].Type; got.Shape != nil {
		t.Errorf("got %s without the weight, want an unknown rank", got)
	}
	p.Body.Params[0].Type = op.Type{DType: dtype.I64, Shape: shape.Scalar()}
	p.Body.Calls[1].Args[0].Value = p.Body.Params[0]
	p.Body.Calls = append(p.Body.Calls, &ir.Call{Op: testOps.Lookup("rows"), Args: p.Body.Calls[1].Args, Results: []*ir.Value{nil}})
	if err := ir.Infer(p, nil); err == nil || err.Error() != `ir: _ = rows(%x): rows: attribute "from" is missing` {
		t.Errorf("got %v", err)
	}
}

func TestPrintMalformed(t *testing.T) {
	self := &ir.Block{}
	loop := &ir.Call{Op: testOps.Lookup("repeat"), Regions: []*ir.Block{self, nil}, Attrs: op.Attrs{{Name: "a b", Value: 7}}}
	self.Calls = []*ir.Call{loop}
	p := &ir.Program{Weights: []*ir.Value{nil, {}}, Body: &ir.Block{
		Params:  []*ir.Value{nil, {Name: "x", Kind: ir.Param, Type: op.Type{DType: dtype.F32}}},
		Calls:   []*ir.Call{nil, {Args: []ir.Operand{{Donate: true}}, Results: []*ir.Value{nil, {Name: "y z"}}}, loop},
		Results: []*ir.Value{nil},
	}}
	const want = `func @""(??: ??, %x: f32[...]) -> (??) {
  weight _: ??
  weight %"": ??
  ??
  _, %"y z": ?? = ??(donate _)
  repeat() {
    repeat() {??} {??} {"a b" = ??}
    return
  } {??} {"a b" = ??}
  return ??
}
`
	if got := p.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := (*ir.Program)(nil).String(); got != "??\n" {
		t.Errorf("got %q for no program", got)
	}
}
