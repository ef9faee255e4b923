package tenure_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestPrepare makes plans, arenas and packed weights before the first run: the
// runs compile nothing and allocate no arena.
func TestPrepare(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, digits), tenure.WithMaxConcurrent(3), tenure.WithThreads(1))
	ctx := t.Context()
	if got := s.Stats(); got != (tenure.SessionStats{}) {
		t.Errorf("at the beginning: got %+v", got)
	}
	shapes := []tenure.Shapes{{"image": {4, 1, 8, 8}}, {"image": {1, 1, 8, 8}}}
	before := memory.Stats()
	if err := s.Prepare(ctx, shapes...); err != nil {
		t.Fatal(err)
	}
	after := memory.Stats()
	if got := s.Stats(); got.Compiled != 2 || got.Plans != 2 || got.Forgotten != 0 {
		t.Errorf("after Prepare: got %+v, want 2 plans compiled and kept", got)
	}
	p := modeltest.Must(s.Plan(ctx, shapes[0]))
	for purpose, want := range map[memory.Purpose]int64{memory.Activations: p.ArenaBytes, memory.Scratch: p.ScratchBytes} {
		if got := after.Of(purpose).Current - before.Of(purpose).Current; got != 3*want {
			t.Errorf("%v: got %d bytes, want %d for each of 3 runs at a time: those of the first plan", purpose, got, want)
		}
	}
	weights := s.Model().WeightMemory()
	x := []*tensor.Tensor{modeltest.Of(t, modeltest.Ramp(256), 4, 1, 8, 8), modeltest.Of(t, modeltest.Ramp(64), 1, 1, 8, 8)}
	var all sync.WaitGroup
	for k := range 6 {
		all.Go(func() {
			out, err := s.Run(ctx, tenure.Inputs{"image": x[k%2]})
			if err := errors.Join(err, out.Release()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := s.Stats(); got.Compiled != 2 || got.Found < 6 {
		t.Errorf("after runs: got %+v, want that they compiled nothing", got)
	}
	if got := s.Model().WeightMemory(); got != weights {
		t.Errorf("after runs: got weights of %+v, want %+v as after Prepare", got, weights)
	}
}

// TestPrepareFor prepares for a state that is given up, which has a plan of its
// own, and for an input whose value decides a size.
func TestPrepareFor(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, state := modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	given, kept := tenure.Inputs{"state": state.Donate(), "x": x}, tenure.Inputs{"state": state, "x": x}
	if err := s.PrepareFor(t.Context(), given, kept); err != nil {
		t.Fatal(err)
	}
	if !state.IsExclusive() {
		t.Error("PrepareFor has consumed an input")
	}
	modeltest.Run(t, s, kept)
	modeltest.Run(t, s, given)
	if got := s.Stats(); got.Compiled != 2 {
		t.Errorf("got %+v, want that the runs compiled nothing", got)
	}

	s = modeltest.Session(t, modeltest.Load(t, "testdata/reshape.onnx"))
	sizes := tenure.Inputs{"x": modeltest.Of(t, modeltest.Ramp(6), 6), "sizes": modeltest.Of(t, []int64{2, 3}, 2)}
	if err := s.PrepareFor(t.Context(), sizes); err != nil {
		t.Fatal(err)
	}
	modeltest.Run(t, s, sizes)
	if got := s.Stats(); got.Compiled != 1 {
		t.Errorf("got %+v, want that the run compiled nothing", got)
	}
	err := s.Prepare(t.Context(), tenure.Shapes{"x": {6}})
	wantMisuse(t, "by shapes alone", err, tenure.ErrUnsupported, "prepare:", `input "sizes"`)
}

// TestPrepareMisuse prepares what cannot be.
func TestPrepareMisuse(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, digits)
	s := modeltest.Session(t, m, tenure.WithPlans(2))
	at := func(n int) tenure.Shapes { return tenure.Shapes{"image": {n, 1, 8, 8}} }
	wantMisuse(t, "too many", s.Prepare(t.Context(), at(1), at(2), at(3)), tenure.ErrInput, "got 3 sets of shapes, want at most the 2 plans")
	wantMisuse(t, "no sizes", s.Prepare(t.Context()), tenure.ErrInput, "got no shape for image")
	wantMisuse(t, "another input", s.Prepare(t.Context(), tenure.Shapes{"picture": {1}}), tenure.ErrInput, `"picture"`)
	wantMisuse(t, "no value", s.PrepareFor(t.Context(), tenure.Inputs{}), tenure.ErrInput, "got no value for image")
	var none context.Context
	wantMisuse(t, "nil context", s.Prepare(none, at(1)), nil, "got a nil context")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	wantMisuse(t, "ended", s.Prepare(ended, at(1)), context.Canceled)
	if err := s.Prepare(t.Context(), at(1), at(2)); err != nil {
		t.Fatal(err)
	}
	modeltest.Must(s.Plan(t.Context(), at(3)))
	if got := s.Stats(); got.Compiled < 3 || got.Plans != 2 || got.Forgotten != got.Compiled-2 {
		t.Errorf("got %+v, want 2 plans and the others forgotten", got)
	}
	modeltest.Must(0, s.Close())
	wantMisuse(t, "closed", s.Prepare(t.Context(), at(1)), tenure.ErrClosed)
	wantMisuse(t, "no session", (*tenure.Session)(nil).PrepareFor(t.Context()), tenure.ErrClosed)
	if (*tenure.Session)(nil).Stats() != (tenure.SessionStats{}) {
		t.Error("stats of no session: got some")
	}
}

// TestPrepareBesideRuns prepares from many goroutines while others run.
func TestPrepareBesideRuns(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, digits), tenure.WithMaxConcurrent(2), tenure.WithThreads(1))
	x := modeltest.Of(t, modeltest.Ramp(128), 2, 1, 8, 8)
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			for range 10 {
				if g%2 == 0 {
					if err := s.Prepare(context.Background(), tenure.Shapes{"image": {1 + g, 1, 8, 8}}); err != nil {
						t.Error(err)
					}
					continue
				}
				out, err := s.Run(context.Background(), tenure.Inputs{"image": x})
				if err := errors.Join(err, out.Release()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := s.Stats(); got.Compiled != 4 {
		t.Errorf("got %+v, want 4 plans compiled, each once", got)
	}
}
