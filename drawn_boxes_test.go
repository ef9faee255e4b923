package tenure

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory/memorytest"
)

var (
	shapePrograms = flag.Int("shapes", 200, "drawn programs whose values decide shapes")
	firstShapes   = flag.Int("shape", 0, "number of the first one")
)

// TestPromiseOfDrawnShapes makes promises for drawn programs whose values
// decide shapes, for all sizes up to a bound or for listed ones, by expressions
// and size by size, and compares them with the plans of all sizes, in order and
// in random order.
func TestPromiseOfDrawnShapes(t *testing.T) {
	memorytest.Check(t)
	programs := *shapePrograms
	if invariant.Enabled || testing.Short() {
		programs = min(programs, 20)
	}
	drawn, promised, sizes, byExpressions := 0, 0, 0, 0
	for n := *firstShapes; n < *firstShapes+programs; n++ {
		p, w, err := drawShapes(uint64(n))
		if err != nil {
			continue
		}
		m, err := LoadProgram(p, w)
		if err != nil {
			continue
		}
		drawn++
		r, fault := promiseFor(t, m, rand.New(rand.NewPCG(uint64(n), 5)))
		if fault != "" {
			t.Errorf("program %d: %s\n%s", n, fault, p)
		}
		if r != nil {
			promised, sizes, byExpressions = promised+1, sizes+r.sizes, byExpressions+r.byExpressions
		}
		m.Close()
	}
	t.Logf("%d programs, %d promises for %d sizes, %d by expressions", drawn, promised, sizes, byExpressions)
	if promised < programs/2 || byExpressions < programs {
		t.Errorf("got %d promises, %d sizes by expressions, for %d programs, want more", promised, byExpressions, programs)
	}
}

// promisedSizes counts the sizes of a promise.
type promisedSizes struct{ sizes, byExpressions int }

// promiseFor draws bounds for a program, and compares its promise with the
// plans. It returns nil where there is no promise.
func promiseFor(t *testing.T, m *Model, r *rand.Rand) (counts *promisedSizes, fault string) {
	opts := []SessionOption{WithThreads(1 + r.IntN(8))}
	if r.IntN(4) == 0 {
		opts = append(opts, WithGiveBack())
	}
	names := symbolsOf(m)
	for _, name := range names {
		if _, err := m.dimension(name); err != nil {
			return nil, ""
		}
		most := []int{40, 10, 5}[len(names)-1]
		if r.IntN(4) > 0 {
			opts = append(opts, WithUpTo(name, 1+r.IntN(most)))
			continue
		}
		var list []int
		for range 1 + r.IntN(8) {
			list = append(list, r.IntN(most+1))
		}
		opts = append(opts, WithSizes(name, list...))
	}
	figures, fault, err := CompareBoxes(t, m, []int{1, 2, 5}[r.IntN(3)], opts...)
	switch {
	case fault != "":
		return nil, fault
	case err != nil && strings.Contains(err.Error(), "BUG:"):
		return nil, err.Error()
	case err != nil:
		return nil, "" // both refuse
	}
	return &promisedSizes{figures.Sizes, figures.ByExpressions}, shuffledPlans(t, m, r, append(opts, inBoxes(1)))
}

// symbolsOf lists the names of the open dimensions of a model's inputs.
func symbolsOf(m *Model) (names []string) {
	for _, in := range m.Inputs() {
		for _, d := range in.Shape.Dims() {
			s, _ := d.Symbol()
			for _, part := range strings.Split(s, " + ") {
				if part != "" && part != "1" && !slices.Contains(names, part) {
					names = append(names, part)
				}
			}
		}
	}
	return names
}

// shuffledPlans plans the sizes of a new promise in random order, as runs of a
// session meet them.
func shuffledPlans(t *testing.T, m *Model, r *rand.Rand, opts []SessionOption) string {
	p, o, err := promiseOf(t, m, opts...)
	if err != nil {
		return err.Error()
	}
	p.capacity.Fixed = true
	var all [][]int
	for at := range p.sizes.all() {
		all = append(all, slices.Clone(at))
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, at := range all {
		types, err := p.sizes.types(at)
		if err != nil {
			continue
		}
		exe, err := m.planSize(t.Context(), types, o)
		if err != nil {
			return fmt.Sprint(at, err)
		}
		if exe == nil {
			continue
		}
		if !p.holds(exe) {
			return fmt.Sprintf("%v takes %d of arena and %d of scratch, promised %+v", at, exe.ArenaBytes, exe.ScratchBytes, p.figures)
		}
		exe.Yield()
	}
	return ""
}

// compiles reports whether the program so far loads and has a plan at some
// sizes.
func (d *shapesDrawer) compiles(at []int) bool {
	d.block.Results = nil
	for _, c := range d.block.Calls {
		d.block.Results = append(d.block.Results, c.Results[0])
	}
	defer func() { d.block.Results = nil }()
	if len(d.block.Results) == 0 {
		return true
	}
	m, err := LoadProgram(d.program, d.weights)
	if err != nil {
		return false
	}
	defer m.Close()
	var bounds []bounded
	for i, name := range []string{"a", "b", "c"} {
		if _, err := m.dimension(name); err == nil {
			bounds = append(bounds, bounded{name: name, sizes: []int{at[i]}})
		}
	}
	s, err := m.sizesOf(bounds)
	if err != nil {
		return true
	}
	var most []int
	for _, dim := range s.dims {
		most = append(most, dim.most)
	}
	types, err := s.types(most)
	if err != nil {
		return false
	}
	o, _ := configure(nil)
	exe, err := m.planSize(context.Background(), types, o)
	if exe != nil {
		exe.Yield()
	}
	return exe != nil && err == nil
}
