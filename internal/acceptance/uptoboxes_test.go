package acceptance

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/plan"
)

// boxCase is a model with bounds of more sizes than are planned one by one.
type boxCase struct {
	name   string
	model  func(t testing.TB) *tenure.Model
	bounds map[string]int
	fixed  map[string]int
	sizes  int // that the promise has, refused ones aside; 0 for any
	most   int // that may be planned one by one
	takes  func(sizes map[string]int) bool
}

func boxCases() []boxCase {
	shared := func(name string) func(t testing.TB) *tenure.Model {
		return func(t testing.TB) *tenure.Model {
			return modeltest.Load(t, filepath.Join(modeltest.SharedDir(t, "models/"+name), "model.onnx"))
		}
	}
	layers := 6
	if invariant.Race {
		layers = 1 // all others run the same code
	}
	return []boxCase{
		{name: "encoder", model: func(t testing.TB) *tenure.Model { return transformer(t, layers, 64, 4, false, true) },
			bounds: map[string]int{"batch": 10, "tokens": 450}, sizes: 11 * 451, most: 600},
		{name: "decoder", model: func(t testing.TB) *tenure.Model { return transformer(t, 2, 64, 4, true, false) },
			bounds: map[string]int{"past": 2047, "tokens": 64}, sizes: 2048 * 65, most: 200},
		{name: "bert_tiny", model: shared("bert_tiny"), bounds: map[string]int{"batch": 64, "sequence": 512}, sizes: 65 * 65, most: 1000,
			takes: func(sizes map[string]int) bool { return sizes["sequence"] > 0 && sizes["sequence"] <= 64 }}, // it has as many positions, and reads the first
		{name: "gpt2_tiny", model: shared("gpt2_tiny"), bounds: map[string]int{"past_sequence": 2047, "sequence": 64}, fixed: map[string]int{"batch": 1}, most: 2000,
			takes: func(sizes map[string]int) bool {
				return sizes["sequence"] > 0 && sizes["past_sequence"]+sizes["sequence"] <= 64
			}},
		{name: "unet_tiny", model: shared("unet_tiny"), bounds: map[string]int{"batch": 2, "height": 56, "width": 56}, most: 2500,
			takes: func(sizes map[string]int) bool {
				return sizes["batch"] > 0 && sizes["height"] > 5 && sizes["width"] > 5
			}},
	}
}

// TestUpToInBoxes makes promises for tens of thousands of sizes, and runs some:
// those that the promise names, their neighbours and drawn ones. No run takes
// more than the promise, and each figure is reached.
func TestUpToInBoxes(t *testing.T) {
	for _, c := range boxCases() {
		t.Run(c.name, func(t *testing.T) {
			if (invariant.Enabled || testing.Short()) && c.most >= 1000 {
				t.Skip("plans more than 1000 sizes one by one")
			}
			memorytest.Check(t)
			m := c.model(t)
			var opts []tenure.SessionOption
			for _, name := range slices.Sorted(maps.Keys(c.bounds)) {
				opts = append(opts, tenure.WithUpTo(name, c.bounds[name]))
			}
			for name, size := range c.fixed {
				opts = append(opts, tenure.WithSizes(name, size))
			}
			began := time.Now()
			before := memory.Stats()
			s := modeltest.Session(t, m, append(opts, tenure.WithThreads(2))...)
			r := s.Promise()
			t.Logf("%v: %d sizes, %d in %d boxes, %d refused; %d structures; arena %d at %s; scratch %d (a bound: %v); one by one: %+v", time.Since(began),
				r.Sizes, r.ByExpressions, r.Boxes, r.Refused, r.Structures, r.Arena.Bytes, r.Where(r.Arena.At), r.Scratch.Bytes, r.Scratch.Bound, r.OneByOne)
			if alone := r.Sizes - r.ByExpressions; alone > c.most || c.sizes > 0 && r.Sizes != c.sizes || r.Scratch.Bound {
				t.Errorf("got %d sizes, %d of them planned one by one, scratch a bound: %v; want %d, at most %d and no bound", r.Sizes, alone, r.Scratch.Bound, c.sizes, c.most)
			}
			c.runSome(t, s, r, before)
		})
	}
}

// runSome runs sizes and compares the memory that they take with the promise.
func (c *boxCase) runSome(t *testing.T, s *tenure.Session, r *plan.Range, before memory.Figures) {
	random := rand.New(rand.NewPCG(5, 6))
	drawn := 25
	if invariant.Enabled || testing.Short() {
		drawn = 5
	}
	var list []map[string]int
	at := func(of func(i int) int) {
		sizes := map[string]int{}
		for i, d := range r.Dims {
			sizes[d.Name] = of(i)
		}
		list = append(list, sizes)
	}
	for _, f := range []plan.RangeFigure{r.Arena, r.Scratch, r.IO} {
		at(func(i int) int { return f.At[i] })
		at(func(i int) int { return max(f.At[i]-1, 1) })
	}
	for len(list) < drawn {
		at(func(i int) int {
			most := r.Dims[i].Most
			if random.IntN(2) == 0 {
				most = min(most, 70) // large ones take long
			}
			return random.IntN(most + 1)
		})
	}
	var most plan.Range
	runs := 0
	for _, sizes := range list {
		for name, size := range c.fixed {
			sizes[name] = size
		}
		if c.takes != nil && !c.takes(sizes) {
			continue
		}
		runs++
		scratch, io := c.measure(t, s, r, sizes, before)
		most.Scratch.Raise(scratch, nil)
		most.IO.Raise(io, nil)
	}
	if runs < 3 || most.IO.Bytes != r.IO.Bytes {
		t.Errorf("got %d runs, which take at most %d bytes of inputs and outputs, promised %d", runs, most.IO.Bytes, r.IO.Bytes)
	}
}

// measure runs a size.
func (c *boxCase) measure(t *testing.T, s *tenure.Session, r *plan.Range, sizes map[string]int, then memory.Figures) (scratch, io int64) {
	t.Helper()
	in := inputsOf(t, s.Model(), sizes)
	memory.ResetPeak()
	out, err := s.Run(t.Context(), in)
	if err != nil {
		t.Fatalf("%v: %v", sizes, err)
	}
	now := memory.Stats()
	arena := now.Of(memory.Activations).Peak - then.Of(memory.Activations).Current
	scratch = now.Of(memory.Scratch).Peak - then.Of(memory.Scratch).Current
	io = now.Of(memory.IO).Peak - then.Of(memory.IO).Current
	if arena != r.Arena.Bytes || scratch != r.Scratch.Bytes || io > r.IO.Bytes {
		t.Errorf("%v: measured %d of arena, %d of scratch, %d of inputs and outputs, promised %d, %d and %d", sizes, arena, scratch, io, r.Arena.Bytes, r.Scratch.Bytes, r.IO.Bytes)
	}
	p, err := s.Plan(t.Context(), shapesOf(in))
	if err != nil || p.ArenaBytes > r.Arena.Bytes || p.ScratchBytes > r.Scratch.Bytes {
		t.Errorf("%v: got a plan of %+v, %v, want one within the promise", sizes, p, err)
	}
	if err := out.Release(); err != nil {
		t.Error(err)
	}
	for _, x := range in {
		if err := x.Tensor().Release(); err != nil {
			t.Error(err)
		}
	}
	return scratch, io
}

func shapesOf(in tenure.Inputs) tenure.Shapes {
	shapes := tenure.Shapes{}
	for name, x := range in {
		shapes[name] = x.Tensor().Shape().Sizes()
	}
	return shapes
}

// TestPlanUpToInBoxes makes the promise for 65,536 sizes of an encoder and
// compares the size that it names with a plan that is made for it alone.
func TestPlanUpToInBoxes(t *testing.T) {
	m := transformer(t, 6, 64, 4, false, true)
	began := time.Now()
	r := modeltest.Must(m.PlanUpTo(t.Context(), tenure.WithUpTo("batch", 32), tenure.WithUpTo("tokens", 2048), tenure.WithThreads(2)))
	t.Logf("%v: %d sizes, %d in %d boxes; one by one: %+v", time.Since(began), r.Sizes, r.ByExpressions, r.Boxes, r.OneByOne)
	if r.Sizes != 33*2049 || r.Sizes-r.ByExpressions > 300 || r.Scratch.Bound {
		t.Errorf("got %d sizes, %d of them planned one by one, scratch a bound: %v", r.Sizes, r.Sizes-r.ByExpressions, r.Scratch.Bound)
	}
	for _, f := range []struct {
		figure plan.RangeFigure
		of     func(p *plan.Plan) int64
	}{
		{r.Scratch, func(p *plan.Plan) int64 { return p.ScratchBytes }}, {r.IO, func(p *plan.Plan) int64 { return p.IOBytes }},
		{r.Arena, func(p *plan.Plan) int64 { return p.ArenaBytes }},
	} {
		p := modeltest.Must(m.Plan(t.Context(), tenure.Shapes{"x": {f.figure.At[0], f.figure.At[1], 64}}, tenure.WithThreads(2)))
		if f.of(p) != f.figure.Bytes {
			t.Errorf("%s: got %d bytes in the plan, promised %d", r.Where(f.figure.At), f.of(p), f.figure.Bytes)
		}
	}
}
