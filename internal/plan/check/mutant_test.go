package check_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// A mutant is a valid plan with one change. It is rejected by the rule that it
// breaks, with a message that contains text; no rule means that the change does
// no harm.
type mutant struct {
	name   string
	in     string // program
	choose func(int) int
	change func(d *draft)
	broken bool // before the change too: the planner of the tests cannot plan it
	keep   bool // the figures and claims as they were before the change
	rule   check.Rule
	text   string
}

type draft struct {
	*plan.Plan
	t testing.TB
}

// at returns the entry of the value of that name.
func (d *draft) at(name string) *plan.Value {
	for i := range d.Values {
		if d.Values[i].Name == name {
			return &d.Values[i]
		}
	}
	d.t.Fatalf("no value %q", name)
	return nil
}

// move puts value a where b is, n bytes further on.
func (d *draft) move(a, b string, n int64) {
	to := *d.at(b)
	x := d.at(a)
	x.Space, x.Arg, x.Offset = to.Space, to.Arg, to.Offset+n
}

func (d *draft) swap(i, j int) { d.Steps[i], d.Steps[j] = d.Steps[j], d.Steps[i] }

const (
	chain = `func @chain(%x: f32[32]) -> (f32[32]) {
  weight @w: f32[32]
  %a = add(%x, @w) "stem"
  %b = neg(%a)
  %c = relu(%b)
  %d = add(%c, %x)
  return %d
}`
	later = `func @later(%x: f32[32]) -> (f32[32]) {
  %a = neg(%x)
  %b = relu(%a)
  %c = neg(%b)
  %d = add(%a, %c)
  return %d
}`
	views = `func @views(donate %x: f32[32]) -> (f32[32]) {
  %a = neg(%x)
  %h, %t = split(%a) {axis = 0}
  %p = relu(%h)
  %q = add(%p, %t)
  %r = test.print(%a)
  %s = test.accumulate(%r, %q)
  return %s
}`
	broadcast = `func @broadcast(%x: f32[32], %o: f32[1]) -> (f32[32]) {
  %a = neg(%x)
  %b = neg(%o)
  %c = add(%a, %b)
  %d = cast(%c) {to = f16}
  %e = cast(%d) {to = f32}
  return %e
}`
	kinds = `func @kinds(%x: f32[32]) -> (f32[32]) {
  %a = neg(%x)
  %b = test.scale(%a, %a)
  %c = test.accumulate(%b, %b)
  %d = add(%c, %c)
  %e = test.mix(%d) {size = 32}
  %f = copy(%e)
  return %f
}`
	choice = `func @choice(%x: f32[32], %c: bool[]) -> (f32[32]) {
  %a = neg(%x)
  %u = neg(%a)
  %r = if(%c) {
    %m = neg(%a)
    %n = relu(%m)
    return %n
  } {
    %p = relu(%a)
    return %p
  }
  %v = add(%r, %u)
  %w = add(%v, %x)
  return %w
}`
	state = `func @state(donate %s: f32[32], %x: f32[32]) -> (f32[32], f32[32]) {
  weight @w: f32[32]
  %i = identity(@w)
  %n = add(%s, %x)
  %y = neg(%n)
  %z = add(%y, %i)
  return %n, %z
}`
	parts = `func @parts(%x: f32[32]) -> (f32[64]) {
  %a = neg(%x)
  %b = relu(%x)
  %c = concat(%a, %b) {axis = 0}
  %d = relu(%c)
  %e = neg(%d)
  %f = neg(%a)
  %g = add(%f, %a)
  %h = concat(%g, %f) {axis = 0}
  %i = add(%h, %e)
  return %i
}`
	twins = `func @twins(%x: f32[32]) -> (f32[32]) {
  %a, %b = test.twins(%x)
  %c = test.print(%a)
  %d = test.print(%b)
  %e = test.hungry(%d)
  return %e
}`
)

var allMutants = slices.Concat(mutantTable, boxMutants)

func TestMutants(t *testing.T) {
	seen := map[check.Rule]bool{}
	for _, m := range allMutants {
		t.Run(m.name, func(t *testing.T) {
			if m.choose == nil {
				m.choose = saveMost
			}
			p := parse(t, m.in)
			d, prover := &draft{planOf(p, nil, m.choose), t}, check.NewProver(p)
			if err := check.Check(p, d.Plan, nil); (err != nil) != m.broken {
				t.Fatalf("before the change: got %v, broken %v\n%s", err, m.broken, describe(d.Plan))
			}
			proved(t, prover, p, d.Plan, nil, check.Check(p, d.Plan, nil))
			m.change(d)
			if !m.keep {
				honest(p, d.Plan, nil)
			}
			err := check.Check(p, d.Plan, nil)
			proved(t, prover, p, d.Plan, nil, err)
			if m.rule == "" {
				if err != nil {
					t.Fatalf("got %v, want no violation", err)
				}
				if harm := simulate(p, d.Plan, nil); harm != nil {
					t.Fatalf("got no violation, but the simulator finds: %v", harm)
				}
				return
			}
			var v *check.Violation
			if !errors.As(err, &v) || v.Rule != m.rule || !strings.Contains(err.Error(), m.text) {
				t.Fatalf("got %v, want rule %s and %q", err, m.rule, m.text)
			}
			seen[m.rule] = true
		})
	}
	for _, rule := range []check.Rule{check.Document, check.Order, check.Place, check.Read, check.Alias, check.Write, check.Branch, check.Output, check.Figure, check.Claim} {
		if !seen[rule] {
			t.Errorf("rule %s: no mutant breaks it", rule)
		}
	}
}

// Views whose place depends on the value of an operand are views if the value
// is known.
func TestWeightsDecideViews(t *testing.T) {
	p := parse(t, `func @slice(%x: f32[32]) -> (f32[8]) {
  weight @from: i64[1]
  weight @to: i64[1]
  %a = neg(%x)
  %b: f32[8] = slice(%a, @from, @to)
  %c = neg(%b)
  return %c
}`)
	weights := ir.WeightMap{"from": {4, 0, 0, 0, 0, 0, 0, 0}, "to": {12, 0, 0, 0, 0, 0, 0, 0}}
	d := &draft{planOf(p, weights, saveMost), t}
	if a, b := d.at("a"), d.at("b"); b.Offset != a.Offset+16 {
		t.Fatalf("got the slice at %d of %d, want it 16 bytes on", b.Offset, a.Offset)
	}
	if err := check.Check(p, d.Plan, weights); err != nil {
		t.Fatal(err)
	}
	var v *check.Violation
	if err := check.Check(p, d.Plan, nil); !errors.As(err, &v) || v.Rule != check.Alias {
		t.Fatalf("without weights: got %v, want a violation of rule alias", err)
	}
	d.at("b").Offset += 4
	if err := check.Check(p, d.Plan, weights); !errors.As(err, &v) || v.Rule != check.Alias {
		t.Fatalf("at another offset: got %v, want a violation of rule alias", err)
	}
}

func TestTypesHaveToBeStatic(t *testing.T) {
	p, err := ir.Parse("func @f(%x: f32[n]) -> (f32[n]) {\n  %y = neg(%x)\n  return %y\n}", testOps)
	if err != nil {
		t.Fatal(err)
	}
	d := &plan.Plan{Format: plan.Format, Model: p.Hash(), Threads: 1, MaxConcurrent: 1, Shapes: []plan.Shape{{Name: "x", Type: "f32[n]"}},
		Steps: []plan.Step{{Op: "neg"}}}
	var v *check.Violation
	if err := check.Check(p, d, nil); !errors.As(err, &v) || v.Rule != check.Document || v.Value != "%x" {
		t.Fatalf("got %v, want a violation of rule document for %%x", err)
	}
	if d.Threads = 0; !errors.Is(check.Check(p, d, nil), plan.ErrDocument) {
		t.Fatalf("got %v, want plan.ErrDocument", check.Check(p, d, nil))
	}
}
