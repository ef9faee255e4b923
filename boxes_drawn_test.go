package tenure_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/randomprogram"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestPromiseInBoxes makes promises for drawn programs with open dimensions, by
// expressions where it can, and compares them with the plans of all sizes, and
// with the promises that are made of these.
func TestPromiseInBoxes(t *testing.T) {
	memorytest.Check(t)
	programs, byExpressions, reached := 150, 0, 0
	if invariant.Enabled || testing.Short() {
		programs = 40
	}
	for n := range programs {
		rapid.Custom(func(rt *rapid.T) int {
			d := randomprogram.DrawOpen(rt)
			dims := openDimsOf(d)
			opts := []tenure.SessionOption{tenure.WithThreads(2)}
			for i, name := range dims {
				most := []int{60, 14, 6, 3}[min(len(dims)-1, 3)]
				opts = append(opts, tenure.WithUpTo(name, rapid.IntRange(1, most).Draw(rt, fmt.Sprint("most", i))))
			}
			m, err := tenure.LoadProgram(d.Program, d.Weights)
			if err != nil {
				return 0
			}
			defer m.Close()
			r, fault, err := tenure.CompareBoxes(t, m, rapid.SampledFrom([]int{1, 2, 5}).Draw(rt, "few"), opts...)
			if err != nil && strings.Contains(err.Error(), "BUG:") {
				fault = err.Error()
			}
			if fault != "" {
				t.Fatalf("program %d: %s\n%s", n, fault, d.Program)
			}
			if r != nil {
				byExpressions += r.ByExpressions
				if r.ByExpressions > 0 && !r.Scratch.Bound {
					reached++
				}
			}
			return 0
		}).Example(n)
	}
	t.Logf("%d sizes by expressions; each figure is reached in %d programs", byExpressions, reached)
	if byExpressions < 5*programs || reached < programs/5 {
		t.Errorf("got %d sizes proved by expressions, each figure reached in %d of %d programs, want more", byExpressions, reached, programs)
	}
}

// openDimsOf lists the open dimensions of a drawn program.
func openDimsOf(d *randomprogram.Open) []string {
	var names []string
	for _, p := range d.Program.Body.Params {
		for axis, dim := range p.Type.Shape.Dims() {
			if _, ok := dim.Size(); ok {
				continue
			}
			name, ok := dim.Symbol()
			if !ok {
				name = fmt.Sprintf("%s[%d]", p.Name, axis)
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
