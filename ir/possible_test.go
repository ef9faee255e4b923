package ir_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// The possible values of a value follow from the results of branches, through
// shape rules and further branches, until there are too many.
func TestPossibleOf(t *testing.T) {
	p, err := ir.Parse(`func @f(%x: f32[64], %c: bool[], %d: bool[]) -> (f32[?], f32[?], i64[1,?], f32[1], f32[?]) {
		%h, %i = split(%x) {axis = 0}
		%w = if(%c) {
			%a = neg(%h)
			return %a
		} {
			%b = exp(%x)
			return %b
		}
		%v = concat(%w, %h) {axis = 0}
		%u = if(%d) {
			%e = neg(%v)
			return %e
		} {
			%f = abs(%w)
			return %f
		}
		%s = add(%u, %w)
		%n = non_zero(%u)
		%m = reduce_sum(%u)
		%z = if(%d) {
			%k = gather(%x, %n) {axis = 0}
			%l = flatten(%k) {axis = 0}
			%q = neg(%w)
			return %q
		} {
			%r = neg(%w)
			return %r
		}
		return %u, %s, %n, %m, %z
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Infer(p, nil); err != nil {
		t.Fatal(err)
	}
	possible := ir.PossibleOf(p, nil)
	got := map[string]string{}
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for v := range c.Defs() {
			if what := possible.Of(v); what.Bytes >= 0 {
				got[v.Name] = strings.ReplaceAll(fmt.Sprint(what.Types, " ", what.Bytes), "f32", "")
			}
		}
	})
	for name, want := range map[string]string{
		"w": "[[32] [64]] 256",
		"v": "[[64] [96]] 384",
		"u": "[[64] [96] [32]] 384",
		"s": "[[32] [64]] 256", // where they do not broadcast a run fails
		"n": "[] 768",          // its bound
		"k": "",                // nothing is known of its operand's type
		"m": "",                // is of static type
		"z": "[[32] [64]] 256",
	} {
		if got[name] != want {
			t.Errorf("%s: got %q, want %q", name, got[name], want)
		}
	}
}

// Values of too many types, and calls with too many combinations, are not
// followed.
func TestPossibleOfTooMany(t *testing.T) {
	var text strings.Builder
	text.WriteString("func @f(%x: f32[512], %c: bool[]) -> (f32[?], f32[?]) {\n%h, %i = split(%x) {axis = 0}\n%w0 = neg(%h)\n")
	for i := range 9 {
		fmt.Fprintf(&text, "%%w%d = if(%%c) {\n%%a%d = concat(%%w%d, %%h) {axis = 0}\nreturn %%a%d\n} {\n%%b%d = neg(%%w%d)\nreturn %%b%d\n}\n", i+1, i, i, i, i, i, i)
	}
	text.WriteString("%j = concat(%w7, %w6) {axis = 0}\n%k = neg(%w9)\nreturn %j, %k\n}")
	p, err := ir.Parse(text.String(), op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Infer(p, nil); err != nil {
		t.Fatal(err)
	}
	possible := ir.PossibleOf(p, nil)
	p.Walk(func(_ *ir.Block, c *ir.Call) {
		for v := range c.Defs() {
			if what := possible.Of(v); len(what.Types) > 8 {
				t.Errorf("%s: got %d types, want at most 8", v, len(what.Types))
			}
		}
	})
	for _, v := range p.Body.Results {
		if what := possible.Of(v); what.Types != nil || what.Bytes >= 0 {
			t.Errorf("%s: got %v, want nothing", v, what)
		}
	}
}
