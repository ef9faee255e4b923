package exec_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// loopPrograms carry, stack, stop early, nest, read values from outside, and
// change their state's size.
var loopPrograms = map[string]struct {
	text       string
	unpromised []string
}{
	"carried": {`func @f(%x: f32[4], %y: f32[4]) -> (f32[4]) {
		weight @i64_5: i64[]
		weight @yes: bool[]
		%r = loop(@i64_5, _, %x) (%i: i64[], %c: bool[], %a: f32[4]) {
			%b = add(%a, %y)
			%k = identity(@yes)
			%c2 = copy(%k)
			return %c2, %b
		}
		return %r
	}`, nil},
	"in place": {`func @f(%x: f32[4]) -> (f32[4], f32[4]) {
		weight @i64_3: i64[]
		%z = neg(%x)
		%r, %s = loop(@i64_3, _, %z, %x) (%i: i64[], %c: bool[], %a: f32[4], %b: f32[4]) {
			%c2 = copy(%c)
			%m = neg(donate %a)
			%n = abs(donate %b)
			return %c2, %n, %m
		}
		return %r, %s
	}`, nil},
	"stacked": {`func @f(%x: f32[2,3]) -> (f32[4,2,3], f32[2,3]) {
		weight @i64_4: i64[]
		%r, %s = loop(@i64_4, _, %x) (%i: i64[], %c: bool[], %a: f32[2,3]) {
			%c2 = copy(%c)
			%d = cast(%i) {to = f32}
			%b = add(%a, %d)
			%e = neg(%b)
			return %c2, %b, %e
		}
		%q = abs(%s)
		return %q, %r
	}`, nil},
	"no round": {`func @f(%x: f32[2], %c: bool[]) -> (f32[2], f32[0,2]) {
		weight @i64_0: i64[]
		%r, %s = loop(@i64_0, _, %x) (%i: i64[], %c1: bool[], %a: f32[2]) {
			%c2 = copy(%c1)
			%b = neg(%a)
			%d = copy(%b)
			return %c2, %b, %d
		}
		return %r, %s
	}`, nil},
	"condition from outside": {`func @f(%x: f32[2], %c: bool[]) -> (f32[2], f32[?,2]) {
		weight @i64_7: i64[]
		%r, %s = loop(@i64_7, %c, %x) (%i: i64[], %c1: bool[], %a: f32[2]) {
			%lim = cast(%i) {to = bool}
			%c2 = not(%lim)
			%b = neg(%a)
			%d = copy(%b)
			return %c2, %b, %d
		}
		return %r, %s
	}`, []string{"s"}},
	"grows": {`func @f(%x: f32[1,2], %y: f32[1,2]) -> (f32[?,2], i64[3,1]) {
		weight @i64_3: i64[]
		%r, %s = loop(@i64_3, _, %x) (%i: i64[], %c1: bool[], %a: f32[?,2]) {
			%c2 = copy(%c1)
			%b = concat(%a, %y) {axis = 0}
			%n = shape(%b) {start = 0, end = 1}
			return %c2, %b, %n
		}
		return %r, %s
	}`, []string{"r", "a", "b"}},
	"nested": {`func @f(%x: f32[3], %w: f32[3]) -> (f32[3], f32[2,3]) {
		weight @i64_2: i64[]
		weight @i64_3: i64[]
		%o = exp(%w)
		%r, %s = loop(@i64_2, _, %x) (%i: i64[], %c: bool[], %a: f32[3]) {
			%c2 = copy(%c)
			%t = neg(%a)
			%q = loop(@i64_3, _, %t) (%j: i64[], %d: bool[], %b: f32[3]) {
				%d2 = copy(%d)
				%e = add(%b, %o)
				%g = add(%e, %a)
				return %d2, %g
			}
			%u = copy(%q)
			%v = abs(%q)
			return %c2, %u, %v
		}
		return %r, %s
	}`, nil},
	"a branch inside, dynamic values inside": {`func @f(%x: f32[3,4], %k: bool[]) -> (f32[3,4], i64[3]) {
		weight @i64_3: i64[]
		weight @i64_1: i64[1]
		%r, %s = loop(@i64_3, _, %x) (%i: i64[], %c: bool[], %a: f32[3,4]) {
			%c2 = copy(%c)
			%n = non_zero(%a)
			%m = neg(%n)
			%z = size(%m)
			%odd = cast(%i) {to = bool}
			%b = if(%odd) {
				%p = relu(%a)
				return %p
			} {
				%p2 = neg(%a)
				return %p2
			}
			return %c2, %b, %z
		}
		return %r, %s
	}`, []string{"m"}},
}

func TestLoop(t *testing.T) {
	for name, c := range loopPrograms {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(6) {
				d := runBoth(t, parse(t, c.text), seed)
				wantUnpromised(t, d, c.unpromised)
			}
		})
	}
}

// The places of a loop's values are proved for every iteration.
func TestLoopPlanIsProved(t *testing.T) {
	const text = `func @f(%x: f32[16], %y: f32[16]) -> (f32[16], f32[16], f32[3,16]) {
		weight @i64_3: i64[]
		%o = exp(%y)
		%u = neg(%x)
		%r, %s, %k = loop(@i64_3, _, %u, %y) (%i: i64[], %c: bool[], %a: f32[16], %b: f32[16]) {
			%c2 = copy(%c)
			%m = add(%a, %o)
			%n = neg(%b)
			%t = relu(%n)
			return %c2, %t, %m, %n
		}
		%rr = neg(%r)
		%ss = neg(%s)
		%kk = neg(%k)
		return %rr, %ss, %kk
	}`
	for _, c := range []struct {
		name, move, to string
		want           check.Rule // "" for a plan that holds
	}{
		{"as made", "", "", ""},
		{"a value of the body over what it reads from outside", "t", "o", check.Read},
		{"carried values swapped", "t", "b", check.Alias},
		{"a value of the body over what is stacked", "t", "k", check.Branch},
		{"the round over a carried value", "a", "i", check.Alias},
		{"a result elsewhere than it is carried", "r", "k", check.Branch},
		{"carried into the operand", "b", "u", check.Alias},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, text)
			weights := ir.WeightMap{"i64_3": {3, 0, 0, 0, 0, 0, 0, 0}}
			if err := ir.Infer(p, ir.Known(weights)); err != nil {
				t.Fatal(err)
			}
			exe, _, _ := start(t, p, weights)
			wantFault(t, exe, weights, breaks(c.want), func(d *plan.Plan) {
				if c.move != "" {
					d.ArenaBytes += 64 // so that nothing is out of the arena
					from, to := entry(d, c.move), entry(d, c.to)
					from.Offset, from.Space = to.Offset, to.Space
				}
			})
		})
	}
}

// A loop without an end stops with its context.
func TestLoopIsCancelled(t *testing.T) {
	p := parse(t, `func @f(%x: f32[2]) -> (f32[2]) {
		%r = loop(_, _, %x) (%i: i64[], %c: bool[], %a: f32[2]) {
			%c2 = copy(%c)
			%b = neg(%a)
			return %c2, %b
		}
		return %r
	}`)
	_, runner, pool := start(t, p, ir.WeightMap{})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
	defer cancel()
	if err := runner.Run(pool, ctx.Done(), [][]byte{make([]byte, 8)}, [][]byte{make([]byte, 8)}); !errors.Is(err, compute.ErrStopped) {
		t.Fatalf("got %v, want ErrStopped", err)
	}
}
