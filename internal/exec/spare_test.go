package exec_test

import (
	"context"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

const spares = `func @f(donate %x: f32[SIZE], %y: f32[256]) -> (f32[256]) {
  %s = reduce_sum(%x) {keepdims = 1}
  %b = add(%y, %s)
  %c = softmax(%b) {axis = 0}
  %d = softmax(%c) {axis = 0}
  %e = add(%b, %c)
  %g = add(%e, %d)
  return %g
}`

// Values lie in the bytes of a donated input that nothing needs any more, if
// that takes bytes off the arena.
func TestSpares(t *testing.T) {
	for _, c := range []struct {
		name, size string
		apart      bool
		arena      int64 // bytes
	}{
		{"room for all", "1024", false, 64},
		{"room for one", "300", false, 3 << 10},
		{"room for none", "200", false, 4 << 10},
		{"sizes share one arena", "1024", true, 4 << 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, strings.NewReplacer("SIZE", c.size).Replace(spares))
			if !c.apart {
				runBoth(t, p, 1)
			} else if err := ir.Infer(p, nil); err != nil {
				t.Fatal(err)
			}
			e, err := exec.Compile(context.Background(), p, nil, exec.Options{Apart: c.apart})
			if err != nil {
				t.Fatal(err)
			}
			if e.ArenaBytes != c.arena {
				t.Errorf("got an arena of %d bytes, want %d", e.ArenaBytes, c.arena)
			}
			for i := range p.Body.Results {
				if in := e.OutputInInput(i); in >= 0 {
					t.Errorf("got output %d in input %d, want a buffer of its own", i, in)
				}
			}
		})
	}
}

// Values that are put into the bytes of a donated input that is needed, or over
// each other, are found.
func TestSparesAreProved(t *testing.T) {
	in := func(name string, offset int64) func(*plan.Plan) {
		return func(d *plan.Plan) {
			x := entry(d, name)
			x.Space, x.Arg, x.Offset = plan.SpaceInput, 0, offset
			d.Peak.Live = nil
		}
	}
	for _, c := range []struct {
		name, size string
		want       check.Rule // "" for a plan that holds
		harm       func(d *plan.Plan)
	}{
		{"as made", "1024", "", func(*plan.Plan) {}},
		{"over the operand", "1024", check.Alias, func(d *plan.Plan) { in("s", 0)(d) }},
		{"over a value that is needed", "1024", check.Alias, func(d *plan.Plan) { in("c", entry(d, "b").Offset+64)(d) }},
		{"behind the end", "1024", check.Place, func(d *plan.Plan) { in("c", 4096-512)(d) }},
		{"not aligned", "1024", check.Place, func(d *plan.Plan) { in("c", 2)(d) }},
		{"in an input that is not donated", "1024", check.Write, func(d *plan.Plan) {
			in("c", 0)(d)
			entry(d, "c").Arg = 1
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := parse(t, strings.NewReplacer("SIZE", c.size).Replace(spares))
			if err := ir.Infer(p, nil); err != nil {
				t.Fatal(err)
			}
			exe, _, _ := start(t, p, nil)
			wantFault(t, exe, nil, breaks(c.want), c.harm)
		})
	}
}
