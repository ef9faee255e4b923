package pass_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// given is an input: the sizes of floats, or integers of which a bool or a
// tensor of rank 0 or 1 consists.
type given struct{ sizes, values []int }

// aloneWithValues are programs in which one kind of guard tells two sets of
// sizes and values apart, as in alone, where values of inputs decide sizes, a
// branch does not fit, or there is a loop.
var aloneWithValues = []struct {
	kind          string
	besides       []string
	text          string
	first, second []given
}{
	{"operator's error", []string{"possible types"}, `
		func @fits(%x: f32[n], %y: f32[m], %c: bool[]) {
			%r = if(%c) {
				%a = add(%x, %y)
				%d = concat(%a, %x) {axis = 0}
				return %d
			} {
				%b = concat(%x, %y) {axis = 0}
				return %b
			}
			return %r
		}`, []given{{sizes: []int{3}}, {sizes: []int{5}}, {values: []int{0}}}, []given{{sizes: []int{4}}, {sizes: []int{4}}, {values: []int{0}}}},
	{"elements", nil, `
		func @target(%x: f32[n], %p: i64[m]) {
			weight @i64_1: i64[1]
			%t = gather(%p, @i64_1) {axis = 0}
			%e = expand(%x, %t)
			%r = exp(%e)
			return %r
		}`, []given{{sizes: []int{1}}, {values: []int{3, 5, 7}}}, []given{{sizes: []int{1}}, {values: slices.Repeat([]int{5}, 70)}}},
	{"value", nil, `
		func @chosen(%x: f32[n], %t: i64[2]) {
			weight @i64_1: i64[]
			weight @i64_2: i64[]
			%k = gather(%t, @i64_1) {axis = 0}
			%c = greater(%k, @i64_2)
			%r = if(%c) {
				%a = exp(%x)
				return %a
			} {
				%b = abs(%x)
				return %b
			}
			%o = expand(%r, %t)
			%q = exp(%o)
			return %q
		}`, []given{{sizes: []int{1}}, {values: []int{4, 3}}}, []given{{sizes: []int{1}}, {values: []int{4, 2}}}},
	{"rank", []string{"view", "alias", "same type", "empty"}, `
		func @grows(%x: f32[n,2], %y: f32[m,2], %k: i64[]) {
			%r = loop(%k, _, %x) (%i: i64[], %c: bool[], %a: f32[?,2]) {
				%d = copy(%c)
				%b = concat(%a, %y) {axis = 0}
				return %d, %b
			}
			%z = exp(%r)
			return %z
		}`, []given{{sizes: []int{3, 2}}, {sizes: []int{2, 2}}, {values: []int{2}}}, []given{{sizes: []int{3, 2}}, {sizes: []int{0, 2}}, {values: []int{2}}}},
	// With sizes 1 and 1 the last result has one of six types, with 1 and 10
	// one of more than are followed.
	{"possible types", nil, `
		func @branches(%x: f32[n], %g: f32[m], %h: f32[k], %c: bool[]) {
			%w1 = if(%c) {
				%a1 = concat(%x, %g) {axis = 0}
				return %a1
			} {
				%b1 = neg(%x)
				return %b1
			}
			%w2 = if(%c) {
				%a2 = concat(%w1, %g) {axis = 0}
				return %a2
			} {
				%b2 = neg(%w1)
				return %b2
			}
			%w3 = if(%c) {
				%a3 = concat(%w2, %g) {axis = 0}
				return %a3
			} {
				%b3 = neg(%w2)
				return %b3
			}
			%w4 = if(%c) {
				%a4 = concat(%w3, %h) {axis = 0}
				return %a4
			} {
				%b4 = neg(%w3)
				return %b4
			}
			%w5 = if(%c) {
				%a5 = concat(%w4, %h) {axis = 0}
				return %a5
			} {
				%b5 = neg(%w4)
				return %b5
			}
			return %w5
		}`, []given{{sizes: []int{3}}, {sizes: []int{1}}, {sizes: []int{1}}, {values: []int{1}}}, []given{{sizes: []int{3}}, {sizes: []int{1}}, {sizes: []int{10}}, {values: []int{1}}}},
}

// TestEachGuardAloneWithValues is TestEachGuardAlone for these.
func TestEachGuardAloneWithValues(t *testing.T) {
	for _, c := range aloneWithValues {
		t.Run(c.kind, func(t *testing.T) {
			if fault := meetValues(t, c.text, c.besides, c.first, c.second); fault != "" {
				t.Errorf("with the guards of kind %q: %s", c.kind, fault)
			}
			if fault := meetValues(t, c.text, append(slices.Clone(c.besides), c.kind), c.first, c.second); fault == "" {
				t.Errorf("without the guards of kind %q: got no fault, want one", c.kind)
			}
		})
	}
}

// meetValues makes a structure for the first inputs without some kinds of
// guards, and returns the fault for the second ones.
func meetValues(t *testing.T, text string, without []string, first, second []given) (fault string) {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	table := ir.WeightMap{}
	for _, w := range p.Weights {
		table[w.Name] = binary.LittleEndian.AppendUint64(nil, uint64(w.Name[len(w.Name)-1]-'0'))
	}
	base := &weights.Overlay{Base: table}
	if err := pass.Run(&pass.Context{Program: p, Constants: base, MaxFold: 1 << 10}, pass.Load, nil); err != nil {
		t.Fatal(err)
	}
	types, value := inputs(p, first)
	ctx, err := specialise(p, base, types, value, 0)
	if err != nil {
		t.Fatal(err)
	}
	s, reason := ctx.Structure()
	if s == nil {
		t.Fatalf("got no structure: %s", reason)
	}
	s.Ignore(without)
	defer func() {
		if broken := recover(); broken != nil {
			fault = fmt.Sprint(broken)
		}
	}()
	types, value = inputs(p, second)
	over := &weights.Overlay{Base: s.Constants()}
	values := s.Types(types, value, over)
	if values == nil {
		return ""
	}
	fresh, err := specialise(p, base, types, value, 0)
	if err != nil {
		return fmt.Sprintf("got an instance, want the error %v", err)
	}
	return differs(s.Program().With(values), over, fresh)
}

// inputs returns the types of inputs, and their values.
func inputs(p *ir.Program, list []given) (types []op.Type, value func(int) []byte) {
	var data [][]byte
	for i, g := range list {
		typ := p.Body.Params[i].Type
		var bytes []byte
		switch {
		case g.sizes != nil:
			typ.Shape = shape.MustOf(g.sizes...)
			bytes = randomprogram.SmallFloats(typ, i)
		case typ.DType == dtype.Bool:
			bytes = []byte{byte(g.values[0])}
		default:
			if typ.Shape.Rank() > 0 {
				typ.Shape = shape.MustOf(len(g.values))
			}
			for _, n := range g.values {
				bytes = binary.LittleEndian.AppendUint64(bytes, uint64(n))
			}
		}
		types, data = append(types, typ), append(data, bytes)
	}
	return types, func(i int) []byte { return data[i] }
}

// specialise runs the passes for inputs of these types and values.
func specialise(p *ir.Program, base pass.Constants, types []op.Type, value func(int) []byte, allowance int64) (*pass.Context, error) {
	ctx := &pass.Context{Program: p.Clone(), Constants: &weights.Overlay{Base: base}, Bound: true, MaxFold: 1 << 10}
	if err := ctx.Program.Bind(types...); err != nil {
		return nil, err
	}
	ctx.Record()
	allow(ctx, allowance)
	for {
		if err := pass.Run(ctx, []pass.Pass{pass.Fold}, nil); err != nil {
			return nil, err
		}
		list := pass.Deciders(ctx)
		for _, v := range list {
			if err := pass.Freeze(ctx, v, value(v.Index)); err != nil {
				return nil, err
			}
		}
		if len(list) == 0 {
			break
		}
	}
	if err := errors.Join(ctx.Suspended...); err != nil {
		return nil, err
	}
	return ctx, pass.Run(ctx, pass.Specialise, nil)
}
