package exec_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Compile refuses a program that is not well-formed with the verifier's error.
func TestCompileVerifies(t *testing.T) {
	vector := op.Type{DType: dtype.F32, Shape: shape.MustOf(4)}
	built := func(make func(b *ir.Builder) *ir.Value) *ir.Program {
		b := ir.NewBuilder("main", op.Builtin())
		b.Return(make(b))
		p, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	c1 := built(func(b *ir.Builder) *ir.Value {
		x := b.Call("neg", nil, b.Param("x", vector))
		return b.Call("add", nil, b.Call("relu", nil, x), x)
	})
	relu := c1.Body.Calls[1]
	relu.Args[0].Donate = true // and add reads it afterwards
	typed := built(func(b *ir.Builder) *ir.Value { return b.Call("neg", nil, b.Param("x", vector)) })
	typed.Body.Results[0].Type = op.Type{DType: dtype.F32, Shape: shape.MustOf(5)}
	early := built(func(b *ir.Builder) *ir.Value {
		return b.Call("neg", nil, b.Call("relu", nil, b.Param("x", vector)))
	})
	early.Body.Calls[0], early.Body.Calls[1] = early.Body.Calls[1], early.Body.Calls[0]
	circle := parse(t, `func @main(%x: f32[4], %n: i64[]) -> (f32[4]) {
		%y = loop(%n, _, %x) (%i: i64[], %c: bool[], %a: f32[4]) {
			%d = identity(%c)
			%b = neg(%a)
			return %d, %b
		}
		return %y
	}`)
	identity := circle.Body.Calls[0].Regions[0].Calls[0]
	identity.Args[0].Value = identity.Results[0]
	for name, c := range map[string]struct {
		p         *ir.Program
		invariant int
	}{
		"no program":            {nil, 1},
		"no body":               {&ir.Program{}, 1},
		"donated and read":      {c1, 15},
		"a type that cannot be": {typed, 8},
		"used before it is":     {early, 5},
		"used by what gives it": {circle, 5},
	} {
		_, err := exec.Compile(context.Background(), c.p, nil, exec.Options{Threads: 1})
		var v *ir.Violation
		if !errors.As(err, &v) || v.Invariant != c.invariant || strings.Contains(err.Error(), "BUG:") {
			t.Errorf("%s: got %v, want a violation of V%d", name, err, c.invariant)
		}
	}
}

// Compile refuses a program whose results have no bytes of their own, which no
// rule of the verifier forbids.
func TestCompileWantsFinalPrograms(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"input": {`func @main(%x: f32[4]) -> (f32[4]) {
			return %x
		}`, "result 0, %x: the output is an input that was not donated"},
		"weight": {`func @main() -> (f32[1,4]) {
			weight @w: f32[4]
			%y = flatten(@w) {axis = 0}
			return %y
		}`, "%y: the output is a weight"},
		"twice": {`func @main(%x: f32[4]) -> (f32[4], f32[4]) {
			%y = neg(%x)
			return %y, %y
		}`, "result 1, %y: the output shares its bytes with another output"},
		"twice, and its size depends on data": {`func @main(%x: f32[4]) -> (i64[1,"?n"], i64[1,"?n"]) {
			%y = non_zero(%x)
			return %y, %y
		}`, "%y: the output shares its bytes with another output"},
		"part": {`func @main(donate %x: f32[4]) -> (f32[2]) {
			%y, %z = split(%x) {axis = 0}
			return %z
		}`, "%z: the output is a part of a larger value"},
		"outer value": {`func @main(%x: f32[4], %c: bool[]) -> (f32[4]) {
			%y = if(%c) {
				return %x
			} {
				%q = neg(%x)
				return %q
			}
			return %y
		}`, "%x: the region does not compute what it returns"},
		"view": {`func @main(%x: f32[4], %c: bool[]) -> (f32[1,4]) {
			%y = if(%c) {
				%p = neg(%x)
				%r = flatten(%p) {axis = 0}
				return %r
			} {
				%q = neg(%x)
				%s = flatten(%q) {axis = 0}
				return %s
			}
			return %y
		}`, "%r: the region returns a view"},
		"given twice": {`func @main(%x: f32[4], %c: bool[]) -> (f32[4], f32[4]) {
			%y, %z = if(%c) {
				%p = neg(%x)
				return %p, %p
			} {
				%q, %r = split(%x) {axis = 0}
				%s = concat(%q, %r) {axis = 0}
				%t = neg(%x)
				return %s, %t
			}
			return %y, %z
		}`, "%p: the region returns a value twice"},
		"carried where another value is": {`func @main(%x: f32[4], %y: f32[4], %n: i64[]) -> (f32[4], f32[4]) {
			%p, %q = loop(%n, _, %x, %y) (%i: i64[], %c: bool[], %a: f32[4], %b: f32[4]) {
				return %c, %b, %a
			}
			return %p, %q
		}`, "{...}, %b: the loop carries %b in its bytes"},
		"carried as a view of another value": {`func @main(%x: f32[1,4], %y: f32[4], %n: i64[]) -> (f32[1,4], f32[4]) {
			%p, %q = loop(%n, _, %x, %y) (%i: i64[], %c: bool[], %a: f32[1,4], %b: f32[4]) {
				%d = neg(donate %b)
				%e = flatten(%d) {axis = 0}
				%f = exp(%y)
				return %c, %e, %f
			}
			return %p, %q
		}`, "%e: the loop carries %b in its bytes"},
	} {
		p := parse(t, c.text)
		if err := ir.Verify(p); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_, err := exec.Compile(context.Background(), p, weightsFor(p), exec.Options{Threads: 1})
		if !errors.Is(err, op.ErrUnsupported) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "BUG:") {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// A weight without bytes in the table is an error of the table's maker.
func TestWeightWithoutBytes(t *testing.T) {
	p := parse(t, `func @main(%x: f32[4]) -> (f32[4]) {
		weight @w: f32[4]
		%y = add(%x, @w)
		return %y
	}`)
	for name, weights := range map[string]ir.Weights{"no table": nil, "no weight": ir.WeightMap{}, "too short": ir.WeightMap{"w": make([]byte, 8)}} {
		e, err := exec.Compile(context.Background(), p, weights, exec.Options{Threads: 1})
		if err == nil {
			_, err = e.NewRunner()
		}
		if err == nil || !strings.Contains(err.Error(), `weight "w"`) || strings.Contains(err.Error(), "BUG:") {
			t.Errorf("%s: got %v, want an error that names the weight", name, err)
		}
	}
}
