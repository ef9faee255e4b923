package check_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// layoutOf returns the numbers of a document, and whether it has all of them,
// with its steps in the program's order.
func layoutOf(p *ir.Program, d *plan.Plan) (*check.Layout, bool) {
	calls := 0
	p.Walk(func(*ir.Block, *ir.Call) { calls++ })
	l := &check.Layout{Values: make([]check.Position, p.NumIDs()), Scratch: make([]int64, calls),
		ScratchPerThread: d.ScratchPerThread, ArenaBytes: d.ArenaBytes}
	for k, s := range d.Steps {
		if k >= calls || s.Call != k {
			return nil, false
		}
		l.Scratch[k] = s.Scratch
	}
	for _, v := range d.Values {
		if v.ID < 1 || v.ID >= len(l.Values) {
			return nil, false
		}
		at := check.Position{Space: v.Space, Arg: v.Arg, Offset: v.Offset, Size: v.Size, End: v.End}
		for _, n := range v.Strides {
			at.Strides = append(at.Strides, int(n))
		}
		l.Values[v.ID] = at
	}
	return l, len(d.Steps) == calls
}

// proved compares the proof of a document's numbers with that of the document,
// whose error is err. What only a document has may be wrong for the one and
// right for the other.
func proved(t fataler, prover *check.Prover, p *ir.Program, d *plan.Plan, weights ir.Weights, err error) {
	t.Helper()
	l, ok := layoutOf(p, d)
	if !ok {
		return
	}
	got := prover.Prove(ir.TypesOf(p), l, weights)
	if err == nil && got != nil {
		t.Fatalf("got %v for the numbers of a document that holds", got)
	}
	var v, w *check.Violation
	if !errors.As(err, &v) || slices.Contains([]check.Rule{check.Document, check.Figure, check.Claim}, v.Rule) {
		return
	}
	if !errors.As(got, &w) || w.Rule != v.Rule || w.Step != v.Step || w.Error() != v.Error() {
		t.Fatalf("got %v for the numbers of a document, want %v", got, err)
	}
}

// The numbers of a layout are proved as those of a document are.
func TestLayoutFigures(t *testing.T) {
	p := parse(t, chain)
	prover, types := check.NewProver(p), ir.TypesOf(p)
	l, _ := layoutOf(p, planOf(p, nil, shareNothing))
	if err := prover.Prove(types, l, nil); err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func(l *check.Layout){
		"a larger arena":       func(l *check.Layout) { l.ArenaBytes += 64 },
		"a smaller arena":      func(l *check.Layout) { l.ArenaBytes -= 64 },
		"scratch of no step":   func(l *check.Layout) { l.ScratchPerThread++ },
		"too little scratch":   func(l *check.Layout) { l.Scratch[0]++ },
		"a step missing":       func(l *check.Layout) { l.Scratch = l.Scratch[1:] },
		"a place missing":      func(l *check.Layout) { l.Values = l.Values[:2] },
		"no space":             func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Space = "" },
		"a size of other type": func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Size = 64 },
		"a negative offset":    func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Offset = -64 },
		"strides of few":       func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Strides = []int{} },
		"strides of many":      func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Strides = []int{2, 1} },
		"strides of one":       func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Strides = []int{1} },
		"strides backwards":    func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Strides = []int{-1} },
		"strides past all":     func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Strides = []int{math.MaxInt} },
		"a negative number":    func(l *check.Layout) { l.Values[p.Body.Results[0].ID].Arg = -1 },
	} {
		other := *l
		other.Values, other.Scratch = slices.Clone(l.Values), slices.Clone(l.Scratch)
		harm(&other)
		if err := prover.Prove(types, &other, nil); err == nil {
			t.Errorf("%s: got no violation", name)
		}
	}
	if err := prover.Prove(types, l, nil); err != nil {
		t.Errorf("after violations: %v", err)
	}
}
