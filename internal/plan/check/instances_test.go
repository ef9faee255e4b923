package check_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// resized returns the program for parameters and weights of other sizes, nil
// where they do not fit. Sizes of 1 stay, since they may broadcast.
func resized(p *ir.Program, size func(int) int) *ir.Program {
	q := p.Clone()
	resize := func(list []*ir.Value) {
		for _, v := range list {
			sizes := slices.Clone(v.Type.Shape.Sizes())
			for i, n := range sizes {
				if n > 1 && n < 1<<20 {
					sizes[i] = size(n)
				}
			}
			v.Type = op.Type{DType: v.Type.DType, Shape: shape.MustOf(sizes...)}
		}
	}
	resize(q.Body.Params)
	resize(q.Weights)
	if ir.Infer(q, nil) != nil {
		return nil
	}
	static := true
	q.Walk(func(_ *ir.Block, c *ir.Call) {
		for _, r := range c.Results {
			static = static && (r == nil || r.Type.IsStatic())
		}
	})
	if !static {
		return nil // a branch that returns two sizes then
	}
	return q
}

// others are the sizes at which a structure was met before that of a test.
var others = map[string]func(int) int{
	"larger":  func(n int) int { return 2 * n },
	"one":     func(int) int { return 1 },
	"nothing": func(int) int { return 0 },
}

// proverOf returns a prover of the program's calls that has proved a plan for
// other sizes; nil where these do not fit.
func proverOf(p *ir.Program, size func(int) int) (*ir.Program, *check.Prover) {
	first := resized(p, size)
	if first == nil || first.String() == p.String() {
		return nil, nil
	}
	prover := check.NewProver(first)
	l, _ := layoutOf(first, planOf(first, nil, saveMost))
	_ = prover.Prove(ir.TypesOf(first), l, nil)
	return first, prover
}

// TestMutantsOfInstances makes each change to the plan of an instance: of a
// program that was met at other sizes before, whose prover has proved these.
// The checker finds the same faults as in a program that has met no other
// sizes. Facts about the earlier sizes do not hold for those of the instance.
func TestMutantsOfInstances(t *testing.T) {
	instances, stale := 0, 0
	for _, m := range allMutants {
		for how, size := range others {
			t.Run(m.name+", "+how, func(t *testing.T) {
				if m.choose == nil {
					m.choose = saveMost
				}
				p := parse(t, m.in)
				first, prover := proverOf(p, size)
				if first == nil {
					return
				}
				instances++
				instance := first.With(ir.TypesOf(p))
				if got, want := instance.String(), p.String(); got != want {
					t.Fatalf("got the instance\n%s\nwant\n%s", got, want)
				}
				d := &draft{planOf(p, nil, m.choose), t}
				before := planOf(p, nil, m.choose)
				m.change(d)
				if !m.keep {
					honest(instance, d.Plan, nil)
				}
				want := check.Check(p, d.Plan, nil)
				if (want == nil) != (m.rule == "") {
					t.Fatalf("got %v, want rule %s", want, m.rule)
				}
				for range 2 {
					proved(t, prover, instance, before, nil, check.Check(p, before, nil))
					got := check.Check(instance, d.Plan, nil)
					if (got == nil) != (want == nil) || got != nil && got.Error() != want.Error() {
						t.Fatalf("got %v for the instance, want %v", got, want)
					}
					proved(t, prover, instance, d.Plan, nil, got)
				}
				if m.broken {
					return
				}
				old, _ := layoutOf(first, planOf(first, nil, m.choose))
				var v *check.Violation
				if err := prover.Prove(ir.TypesOf(instance), old, nil); !errors.As(err, &v) {
					t.Errorf("got %v for the layout of other sizes, want a violation", err)
				}
				stale++
			})
		}
	}
	if instances < len(allMutants) || stale < len(allMutants)/2 {
		t.Errorf("got %d instances and %d layouts of other sizes, want at least one for most of %d mutants", instances, stale, len(allMutants))
	}
}
