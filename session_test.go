package tenure_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

const digits = "examples/digits/digits.onnx"

// TestPromise compares the bytes that the memory package counts at the peak of
// a run with the plan's promise, on run 1, 2 and 100.
func TestPromise(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, digits)
	s := modeltest.Session(t, m, tenure.WithThreads(2))
	for _, batch := range []int{16, 3} {
		p, err := s.Plan(context.Background(), tenure.Shapes{"image": {batch, 1, 8, 8}})
		if err != nil {
			t.Fatal(err)
		}
		if p.ArenaBytes == 0 || p.ArenaBytes != p.LowerBoundBytes {
			t.Errorf("batch %d: got an arena of %d bytes, want its lower bound %d", batch, p.ArenaBytes, p.LowerBoundBytes)
		}
		before := memory.Stats().Of(memory.IO).Current
		x := modeltest.Of(t, modeltest.Ramp(batch*64), batch, 1, 8, 8)
		for k := 1; k <= 100; k++ {
			memory.ResetPeak()
			out := modeltest.Run(t, s, tenure.Inputs{"image": x})
			now := memory.Stats()
			if err := out.Release(); err != nil {
				t.Fatal(err)
			}
			if k > 2 && k < 100 {
				continue
			}
			got := [3]int64{now.Of(memory.Activations).Peak, now.Of(memory.Scratch).Peak, now.Of(memory.IO).Peak - before}
			// The slot frees a larger arena before it allocates the new one, so
			// a peak never contains both.
			want := [3]int64{p.ArenaBytes, p.ScratchBytes, p.IOBytes}
			if k == 1 && batch == 3 {
				got[0], got[1] = now.Of(memory.Activations).Current, now.Of(memory.Scratch).Current
			}
			if got != want {
				t.Errorf("batch %d, run %d: got arena, scratch, io of %v bytes, want %v", batch, k, got, want)
			}
		}
	}
}

// TestDonatedState feeds a state to itself: it comes back in the same bytes.
func TestDonatedState(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x := modeltest.Of(t, modeltest.Ramp(128), 2, 64)
	state := modeltest.Of(t, make([]float32, 128), 2, 64)
	address := func(x *tensor.Tensor) *byte {
		b, err := x.Use()
		if err != nil {
			t.Fatal(err)
		}
		defer b.Release()
		return &b.Data[0]
	}
	first := address(state)
	for k := 1; k <= 3; k++ {
		out := modeltest.Run(t, s, tenure.Inputs{"state": state.Donate(), "x": x})
		if _, err := state.Use(); !errors.Is(err, tenure.ErrDonated) || !strings.Contains(err.Error(), "run") {
			t.Errorf("use of the donated state: got %v, want ErrDonated that names run", err)
		}
		state = out["next"]
		if address(state) != first {
			t.Errorf("step %d: the state moved to other bytes", k)
		}
		if got, want := modeltest.Values(t, state)[9], float32(k)*9/8; got != want {
			t.Errorf("step %d: got %v, want %v", k, got, want)
		}
		out["y"].Release()
	}
	state.Release()
}

// TestReusedState keeps the state shared: the run computes into fresh bytes.
func TestReusedState(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, state := modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	view, err := state.View()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Release()
	if _, err := s.Run(context.Background(), tenure.Inputs{"state": state.Donate(), "x": x}); !errors.Is(err, tenure.ErrShared) {
		t.Errorf("donating a shared state: got %v, want ErrShared", err)
	}
	modeltest.Run(t, s, tenure.Inputs{"state": state.Reuse(), "x": x})
	if got := modeltest.Values(t, view)[3]; got != 3.0/8 {
		t.Errorf("the view of a reused input reads %v, want it untouched", got)
	}
	if _, err := state.Use(); !errors.Is(err, tenure.ErrDonated) {
		t.Errorf("use of the reused state: got %v, want ErrDonated", err)
	}
}

// TestUselessDonation refuses a donation that no operator can use, and leaves
// the tensor as it was.
func TestUselessDonation(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/long.onnx"))
	x := modeltest.Of(t, modeltest.Ramp(64), 8, 8)
	_, err := s.Run(context.Background(), tenure.Inputs{"x": x.Donate()})
	if !errors.Is(err, tenure.ErrNotReusable) || !strings.Contains(err.Error(), `"x" is donated`) {
		t.Errorf("got %v, want ErrUnsupported that names x", err)
	}
	if got := modeltest.Values(t, x)[1]; got != 1.0/8 {
		t.Errorf("got %v from the tensor, want it alive and intact", got)
	}
}

// TestOutputsAreTheirOwn runs a model whose outputs would all alias something.
func TestOutputsAreTheirOwn(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/alias.onnx"))
	x := modeltest.Of(t, modeltest.Ramp(8), 8)
	out := modeltest.Run(t, s, tenure.Inputs{"x": x})
	for name, y := range out {
		if !y.IsExclusive() {
			t.Errorf("output %q: %v", name, y.WhyNotWritable())
		}
		v, err := tensor.Write[float32](y)
		if err != nil {
			t.Fatal(err)
		}
		for i := range v.Data {
			v.Data[i] = -1
		}
		v.Release()
	}
	if got := modeltest.Values(t, x)[1]; got != 1.0/8 {
		t.Errorf("writing the outputs changed the input: got %v", got)
	}
	again := modeltest.Run(t, s, tenure.Inputs{"x": x})
	if got := modeltest.Values(t, again["weight"])[3]; got != 3 {
		t.Errorf("writing the outputs changed a weight: got %v, want 3", got)
	}
	p, err := s.Plan(context.Background(), nil)
	if err != nil || len(p.Copies) != 3 {
		t.Errorf("got %d copies in the plan (%v), want 3: %v", len(p.Copies), err, p.Copies)
	}
	out.Release()
	again.Release()
}

// TestIntoTheCallersSlice writes an output, and then a donated state, into
// slices of the caller's.
func TestIntoTheCallersSlice(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	done := func(xs ...*tensor.Tensor) {
		t.Helper()
		for _, x := range xs {
			if err := x.Release(); err != nil {
				t.Error(err)
			}
		}
	}
	x, state, next := make([]float32, 64), make([]float32, 64), make([]float32, 64)
	for i := range x {
		x[i], state[i] = 1, float32(i)
	}
	in := must(tensor.Wrap(x, 1, 64))
	from := must(tensor.WrapWritable(state, 1, 64))
	into := must(tensor.WrapWritable(next, 1, 64))
	out := must(s.Run(context.Background(), tenure.Inputs{"state": from, "x": in}, tenure.Into("next", into)))
	done(out["y"], into)
	if next[63] != 64 || state[63] != 63 {
		t.Errorf("got %v and the state %v, want one more, and the state as it was", next[63], state[63])
	}
	out = must(s.Run(context.Background(), tenure.Inputs{"state": from.Donate(), "x": in}))
	done(out["y"], out["next"])
	if state[63] != 64 {
		t.Errorf("got %v in the slice of a donated state, want the next one, 64", state[63])
	}
	_, err := s.Run(context.Background(), tenure.Inputs{"state": from, "x": in})
	if !errors.Is(err, tenure.ErrDonated) {
		t.Errorf("got %v, want that the state was donated", err)
	}
	done(in)
}

// TestInto writes an output into the caller's tensor.
func TestInto(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, y := modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, make([]float32, 64), 1, 64)
	out := modeltest.Run(t, s, tenure.Inputs{"state": x, "x": x}, tenure.Into("next", y))
	if got := modeltest.Values(t, y)[2]; got != 0.5 || out["next"] != nil {
		t.Errorf("got %v in the caller's tensor and %v among the outputs, want 0.5 and nothing", got, out["next"])
	}
	small := modeltest.Of(t, make([]float32, 32), 32)
	for name, c := range map[string]struct {
		opt  tenure.RunOption
		want error
	}{
		"shape": {tenure.Into("next", small), tenure.ErrShape},
		"name":  {tenure.Into("nobody", y), tenure.ErrInput},
		"input": {tenure.Into("next", x), tenure.ErrShared},
		"nil":   {tenure.Into("next", nil), tenure.ErrInput},
	} {
		if _, err := s.Run(context.Background(), tenure.Inputs{"state": x, "x": x}, c.opt); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}

func TestInputErrors(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	wrong := modeltest.Of(t, modeltest.Ramp(128), 2, 64)
	flat := modeltest.Of(t, modeltest.Ramp(64), 64)
	ints := modeltest.Of(t, make([]int64, 64), 1, 64)
	for name, c := range map[string]struct {
		in   tenure.Inputs
		want error
		says string
	}{
		"missing": {tenure.Inputs{"x": x}, tenure.ErrInput, `state: f32[n,64]`},
		"typo":    {tenure.Inputs{"x": x, "State": x}, tenure.ErrInput, `run: got no value for state: f32[n,64], but one for "State", which is no input of the model`},
		"unknown": {tenure.Inputs{"x": x, "state": x, "z": x}, tenure.ErrInput, `"z"`},
		"symbol":  {tenure.Inputs{"x": x, "state": wrong}, tenure.ErrShape, "n = 2"},
		"rank":    {tenure.Inputs{"x": flat, "state": x}, tenure.ErrShape, "f32[64]"},
		"dtype":   {tenure.Inputs{"x": ints, "state": x}, tenure.ErrDType, "i64[1,64]"},
	} {
		_, err := s.Run(context.Background(), c.in)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %v that says %s", name, err, c.want, c.says)
		}
		if !errors.Is(err, tenure.ErrInput) {
			t.Errorf("%s: got %v, want ErrInput as well: it is the caller's fault", name, err)
		}
	}
	for name, shapes := range map[string]tenure.Shapes{
		`plan: got a shape for "a", "z", want inputs of the model: state, x`: {"x": {1, 64}, "state": {1, 64}, "z": {1}, "a": {}},
		`plan: got no shape for state: f32[n,64]`:                            {"x": {1, 64}},
		`plan: input "x": got f32[1,63], want f32[n,64]`:                     {"x": {1, 63}, "state": {1, 64}},
	} {
		_, one := s.Plan(context.Background(), shapes)
		_, two := s.Model().Plan(context.Background(), shapes)
		for _, err := range []error{one, two} {
			if !errors.Is(err, tenure.ErrInput) || !strings.HasPrefix(err.Error(), name) {
				t.Errorf("got %v, want ErrInput that says %s", err, name)
			}
		}
	}
}

// TestRefusalsNameTheInput passes operands that cannot be given up: a number
// would not identify them.
func TestRefusalsNameTheInput(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	wrapped, err := tensor.Wrap(modeltest.Ramp(64), 1, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer wrapped.Release()
	for want, in := range map[string]tenure.Inputs{
		`run: input "state": f32[1,64]: bytes are shared: the bytes are imported`:  {"x": x, "state": wrapped.Donate()},
		`run: f32[1,64] is donated as input "state" and listed again as input "x"`: {"x": x, "state": x.Donate()},
	} {
		if _, err := s.Run(context.Background(), in); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestConcurrentSessions runs two sessions on one model from 8 goroutines.
func TestConcurrentSessions(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, digits)
	one, two := modeltest.Session(t, m, tenure.WithMaxConcurrent(3)), modeltest.Session(t, m, tenure.WithThreads(1))
	want := map[int][]float32{}
	for batch := 1; batch <= 4; batch++ {
		x := modeltest.Of(t, modeltest.Ramp(batch*64), batch, 1, 8, 8)
		out := modeltest.Run(t, two, tenure.Inputs{"image": x})
		want[batch] = modeltest.Values(t, out["probabilities"])
		out.Release()
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			s := one
			if g%2 == 1 {
				s = two
			}
			batch := g/2 + 1
			x, err := tensor.Of(modeltest.Ramp(batch*64), batch, 1, 8, 8)
			if err != nil {
				t.Error(err)
				return
			}
			defer x.Release()
			for range 10 {
				out, err := s.Run(context.Background(), tenure.Inputs{"image": x})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := tensor.Values[float32](out["probabilities"])
				if err != nil {
					t.Error(err)
				}
				for i := range got {
					if math.Float32bits(got[i]) != math.Float32bits(want[batch][i]) {
						t.Errorf("goroutine %d: got %v, want %v", g, got[i], want[batch][i])
						break
					}
				}
				out.Release()
			}
		})
	}
	wg.Wait()
}

// TestPlansAreKept replans only for shapes that the session does not hold.
func TestPlansAreKept(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, digits), tenure.WithPlans(2))
	plan := func(batch int) any {
		p, err := s.Plan(context.Background(), tenure.Shapes{"image": {batch, 1, 8, 8}})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	a, b := plan(1), plan(2)
	if plan(1) != a || plan(2) != b {
		t.Error("a plan that the session keeps was made again")
	}
	plan(3) // 1 leaves: it was used longest ago
	if plan(2) != b {
		t.Error("the plan used last but one left")
	}
	if plan(1) == a {
		t.Error("a plan beyond the number kept is still there")
	}
}

// TestCancel stops a run before it begins, while it waits, and in one step.
func TestCancel(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/long.onnx"))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	small := modeltest.Of(t, modeltest.Ramp(64), 8, 8)
	if _, err := s.Run(ended, tenure.Inputs{"x": small}); !errors.Is(err, context.Canceled) {
		t.Errorf("ended context: got %v, want context.Canceled", err)
	}
	const n = 3000 // a product of 54 billion operations
	x, err := tensor.New(dtype.F32, shape.MustOf(n, n))
	if err != nil {
		t.Fatal(err)
	}
	defer x.Release()
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer stop()
	running := make(chan error)
	go func() {
		_, err := s.Run(ctx, tenure.Inputs{"x": x})
		running <- err
	}()
	err = <-running
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("stopped in a step: got %v, want context.DeadlineExceeded and nothing else", err)
	}
	if err != nil && !strings.Contains(err.Error(), `node "product"`) {
		t.Errorf("got %v, want an error that names the step", err)
	}
	gone := errors.New("the client went away")
	caused, away := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { away(gone) })
	if _, err := s.Run(caused, tenure.Inputs{"x": x}); !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
		t.Errorf("stopped for a cause: got %v, want context.Canceled and the cause", err)
	}
	out, err := s.Run(context.Background(), tenure.Inputs{"x": small})
	if err != nil {
		t.Fatalf("the session is of no use after a stopped run: %v", err)
	}
	out.Release()
}

func TestClosed(t *testing.T) {
	memorytest.Check(t)
	m, err := tenure.Load(digits)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.NewSession(); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("new session on a closed model: got %v, want ErrClosed", err)
	}
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 1, 8, 8)
	out, err := s.Run(context.Background(), tenure.Inputs{"image": x})
	if err != nil {
		t.Fatalf("an open session of a closed model: %v", err)
	}
	out.Release()
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(context.Background(), tenure.Inputs{"image": x}); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("run on a closed session: got %v, want ErrClosed", err)
	}
}

// TestWeightsAreReadOnRequest leaves nothing mapped.
func TestWeightsAreReadOnRequest(t *testing.T) {
	memorytest.Check(t)
	before := memory.Stats().Files
	m := modeltest.Load(t, digits, tenure.WithWeights(tenure.Read))
	if got := memory.Stats().Files; got != before {
		t.Errorf("got %d bytes mapped, want none", got-before)
	}
	n := modeltest.Load(t, filepath.Clean(digits))
	if got := memory.Stats().Files; got == before {
		t.Error("got nothing mapped, want the model's file")
	}
	if m.Inputs()[0] != n.Inputs()[0] {
		t.Errorf("got inputs %v and %v, want the same", m.Inputs(), n.Inputs())
	}
}

// TestWrongType passes an input of another element type than the model's,
// before and after there is a plan for the shape.
func TestWrongType(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x := modeltest.Of(t, make([]int16, 64), 1, 64)
	for _, planned := range []bool{false, true} {
		if planned {
			if _, err := s.Plan(context.Background(), tenure.Shapes{"state": {1, 64}, "x": {1, 64}}); err != nil {
				t.Fatal(err)
			}
		}
		_, err := s.Run(context.Background(), tenure.Inputs{"state": modeltest.Of(t, modeltest.Ramp(64), 1, 64), "x": x})
		if !errors.Is(err, tenure.ErrDType) || !strings.Contains(err.Error(), `input "x": got i16[1,64], want f32[n,64]`) {
			t.Errorf("planned %v: got %v, want ErrDType that names the input and both types", planned, err)
		}
	}
}

// TestPlanFor plans a model in which an input's value decides a size: shapes
// alone do not do, the run finds the plan that was made.
func TestPlanFor(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/reshape.onnx"))
	ctx := context.Background()
	if _, err := s.Plan(ctx, tenure.Shapes{"x": {6}}); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("plan by shapes: got %v, want ErrUnsupported", err)
	}
	sizes := modeltest.Of(t, []int64{2, 3}, 2)
	in := tenure.Inputs{"x": modeltest.Of(t, modeltest.Ramp(6), 6), "sizes": sizes}
	p, err := s.PlanFor(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(6*4 + 2*8 + 6*4); p.IOBytes != want {
		t.Errorf("got %d bytes of inputs and outputs, want %d", p.IOBytes, want)
	}
	out := modeltest.Run(t, s, in)
	if got := out["y"].Shape().String(); got != "[2,3]" {
		t.Errorf("got y of shape %s, want [2,3]", got)
	}
}

// TestWatch is told of every call, in the order of the program.
func TestWatch(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, "testdata/state.onnx")
	s := modeltest.Session(t, m)
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	in := tenure.Inputs{"state": x, "x": x}
	p, err := m.Specialise(tenure.Shapes{"state": {1, 64}, "x": {1, 64}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, c := range p.Body.Calls {
		want = append(want, c.Op.Name)
	}
	modeltest.Run(t, s, in, tenure.Watch(func(c *ir.Call, took time.Duration) {
		if got = append(got, c.Op.Name); took < 0 {
			t.Errorf("%s: got %v, want a time", c.Op.Name, took)
		}
	}))
	if len(want) == 0 || !slices.Equal(got, want) {
		t.Errorf("got calls %v, want %v", got, want)
	}
	// The next run reports no progress.
	modeltest.Run(t, s, in)
	if len(got) != len(want) {
		t.Errorf("got %d calls after a run without Watch, want %d", len(got), len(want))
	}
}

// TestOutputsFromArena: the next run reuses the bytes of a released output.
func TestOutputsFromArena(t *testing.T) {
	memorytest.Check(t)
	arena, err := memory.NewArena(1<<20, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := arena.Close(); err != nil {
			t.Errorf("got %v, want every output back", err)
		}
	})
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"), tenure.WithOutputsFrom(arena))
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	state := modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	var taken int64
	for i := range 3 {
		out := modeltest.Run(t, s, tenure.Inputs{"state": state, "x": x})
		if got := modeltest.Values(t, out["next"])[2]; got != 2*modeltest.Ramp(64)[2] {
			t.Errorf("run %d: got %v, want %v", i, got, 2*modeltest.Ramp(64)[2])
		}
		a := arena.Stats()
		if a.Buffers != len(out) {
			t.Errorf("run %d: got %d buffers of the arena, want one for each of %d outputs", i, a.Buffers, len(out))
		}
		if i > 0 && a.Class+a.FreeListed != taken {
			t.Errorf("run %d: got an arena of %d bytes, want the %d of the first run", i, a.Class+a.FreeListed, taken)
		}
		taken = a.Class + a.FreeListed
		if err := out.Release(); err != nil {
			t.Fatal(err)
		}
	}
	// An arena that is too small is the run's error.
	small, err := memory.NewArena(64, memory.IO)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { small.Close() })
	tight := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"), tenure.WithOutputsFrom(small))
	if _, err := tight.Run(context.Background(), tenure.Inputs{"state": state, "x": x}); !errors.Is(err, tenure.ErrLimit) {
		t.Errorf("got %v, want ErrLimit", err)
	}
}
