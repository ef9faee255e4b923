package tenure_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// errEnded is what a caller's code panics with in the middle of a run.
var errEnded = errors.New("ended")

// endings end a run behind its call of a number, by the context or by a panic
// of the caller's code. They return the error of the run.
var endings = map[string]func(st *tenure.States, in tenure.Inputs, after int) error{
	"a context": func(st *tenure.States, in tenure.Inputs, after int) error {
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		n := 0
		out, err := st.Run(ctx, in, tenure.Watch(func(*ir.Call, time.Duration) {
			if n++; n > after {
				cancel(errEnded)
			}
		}))
		out.Release()
		return err
	},
	"a panic": func(st *tenure.States, in tenure.Inputs, after int) (err error) {
		defer func() { err, _ = recover().(error) }()
		n := 0
		out, _ := st.Run(context.Background(), in, tenure.Watch(func(*ir.Call, time.Duration) {
			if n++; n > after {
				panic(errEnded)
			}
		}))
		out.Release()
		return nil
	},
}

// callsOf counts the calls that a run makes.
func callsOf(t *testing.T, st *tenure.States, in tenure.Inputs) (n int) {
	t.Helper()
	f, err := st.Fork()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out, err := f.Run(context.Background(), in, tenure.Watch(func(*ir.Call, time.Duration) { n++ }))
	if err != nil {
		t.Fatal(err)
	}
	out.Release()
	return n
}

// TestFailedRunsLeaveAppendedStates ends runs behind each call of the plan: the
// states stay those of the runs that succeeded, over growth and in windows.
func TestFailedRunsLeaveAppendedStates(t *testing.T) {
	memorytest.Check(t)
	for name, text := range map[string]string{"joining": joining, "attending": attending, "packed": packed} {
		of := func(seed uint64, n int) tenure.Inputs {
			if name == "packed" {
				return tenure.Inputs{"x": drawn(t, seed, 1, n, 8)}
			}
			return tenure.Inputs{"x": drawn(t, seed, 1, 2, n, 4)}
		}
		for how, end := range endings {
			none := modeltest.Of(t, []float32{}, 1, 2, 0, 4)
			b := newBothWays(t, text, 4, tenure.Inputs{"past_k": none, "past_v": none}, tenure.WithGrowth(128))
			if err := b.run(t, of(1, 3)); err != nil {
				t.Fatal(err)
			}
			calls := callsOf(t, b.st, of(2, 2))
			for after := range calls - 1 {
				before := b.st.Len()
				if err := end(b.st, of(uint64(after), 2), after); !errors.Is(err, errEnded) || errors.Is(err, tenure.ErrPartlyWritten) {
					t.Fatalf("%s, %s behind call %d of %d: got error %v, want that nothing is lost", name, how, after, calls, err)
				}
				if b.st.Len() != before {
					t.Fatalf("%s, %s behind call %d: got %d rows, want %d", name, how, after, b.st.Len(), before)
				}
				if err := b.run(t, of(uint64(after), 1)); err != nil {
					t.Fatalf("%s, %s behind call %d: %v", name, how, after, err)
				}
			}
		}
	}
}

// TestFailedRunInAWindow drops rows for a run that then fails: those that are
// left are as they were.
func TestFailedRunInAWindow(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()))
	st, never := statesOf(t, s, 5, tenure.WithWindow(3)), statesOf(t, s, 5, tenure.WithWindow(3))
	x := func(seed uint64) *tensor.Tensor { return drawn(t, seed, 1, 2, 1, 4) }
	for i := range 5 {
		wantNear(t, runStates(t, st, x(uint64(i))), runStates(t, never, x(uint64(i))), 0)
	}
	for after := range callsOf(t, st, tenure.Inputs{"x": x(6)}) - 1 {
		if err := endings["a context"](st, tenure.Inputs{"x": x(7)}, after); !errors.Is(err, errEnded) || st.Len() != 3 {
			t.Fatalf("got %d rows, error %v, want the 3 of the window", st.Len(), err)
		}
	}
	wantNear(t, runStates(t, st, x(8)), runStates(t, never, x(8)), 0)
}

// lateFailure returns a model with a state of each kind but replaced, which
// ends with an operator of the caller's that fails with the returned error.
func lateFailure(t *testing.T) (*tenure.Model, *error) {
	t.Helper()
	cause := new(error)
	registry, err := op.Builtin().With(modeltest.ScaleOperator(func(*op.Call) error { return *cause }))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ir.Parse(`func @f(%x: f32[1,1,4], %at: i64[1], %past: f32[1,m,4], %h: f32[1,4], %cache_in: f32[1,rows,4]) {
		%present = concat(%past, %x) {axis = 1}
		%axis = constant() {dtype = i64, dims = [1], ints = [1]}
		%sum = reduce_sum(%present, %axis) {keepdims = 0}
		%hn = add(%h, %sum)
		%cache_out = tensor_scatter(%cache_in, %x, %at) {axis = 1}
		%all = reduce_max(%cache_out, %axis) {keepdims = 0}
		%z = mul(%all, %hn)
		%y = acme.scale(%z) {factor = 2}
		return %y, %present, %hn, %cache_out }`, registry)
	if err != nil {
		t.Fatal(err)
	}
	m, err := tenure.LoadProgram(p, nil, tenure.WithOperators(registry), tenure.WithStates())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m, cause
}

// TestStatesOfNoRun says what may be done after a run that failed when it had
// written over states that are not appended.
func TestStatesOfNoRun(t *testing.T) {
	memorytest.Check(t)
	m, cause := lateFailure(t)
	s := modeltest.Session(t, m)
	st, never := statesOf(t, s, 8), statesOf(t, s, 8)
	in := func(i int) tenure.Inputs {
		return tenure.Inputs{"x": drawn(t, uint64(i), 1, 1, 4), "at": modeltest.Of(t, []int64{int64(i)}, 1)}
	}
	run := func(st *tenure.States, i int) []float32 {
		t.Helper()
		out, err := st.Run(context.Background(), in(i))
		if err != nil {
			t.Fatal(err)
		}
		defer out.Release()
		return modeltest.Values(t, out["y"])
	}
	ctx := context.Background()
	first := run(st, 0)
	wantNear(t, first, run(never, 0), 0)
	file := filepath.Join(t.TempDir(), "states")
	if err := st.Save(file); err != nil {
		t.Fatal(err)
	}
	*cause = errors.New("boom")
	_, err := st.Run(ctx, in(1))
	if !errors.Is(err, tenure.ErrPartlyWritten) || !errors.Is(err, *cause) || !strings.Contains(err.Error(), "the contents of h, cache_in are lost") {
		t.Fatalf("got error %v, want ErrPartlyWritten with the states that are lost", err)
	}
	*cause = nil
	_, running := st.Run(ctx, in(1))
	_, forking := st.Fork()
	for _, err := range []error{running, forking, st.Save(filepath.Join(t.TempDir(), "states"))} {
		if !errors.Is(err, tenure.ErrPartlyWritten) || !strings.Contains(err.Error(), "no contents of h, cache_in") || !strings.Contains(err.Error(), "Reset begins anew") {
			t.Errorf("got error %v, want ErrPartlyWritten and what to do", err)
		}
	}
	if st.Len() != 1 {
		t.Errorf("got %d rows, want the one that was there", st.Len())
	}
	if err := st.Load(file); err != nil {
		t.Fatal(err)
	}
	wantNear(t, run(st, 1), run(never, 1), 0)
	if err := st.Reset(); err != nil {
		t.Fatal(err)
	}
	wantNear(t, run(st, 0), first, 0)
	rows := drawn(t, 1, 1, 2)
	if _, err := st.Run(ctx, in(1), tenure.Into("states.rows", rows)); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("an output of the states elsewhere: got error %v, want ErrInput", err)
	}
}

// TestOnlyWhatWasWrittenIsLost ends runs behind each call: a state is lost if
// a call that writes over it has run, and not sooner.
func TestOnlyWhatWasWrittenIsLost(t *testing.T) {
	memorytest.Check(t)
	m, cause := lateFailure(t)
	s := modeltest.Session(t, m)
	never := statesOf(t, s, 64)
	in := func(i int) tenure.Inputs {
		return tenure.Inputs{"x": drawn(t, uint64(i), 1, 1, 4), "at": modeltest.Of(t, []int64{int64(i)}, 1)}
	}
	for _, rollback := range []bool{false, true} {
		var opts []tenure.StatesOption
		if rollback {
			opts = append(opts, tenure.WithRollback())
		}
		if err := never.Reset(); err != nil {
			t.Fatal(err)
		}
		st := statesOf(t, s, 64, opts...)
		calls, lost := callsOf(t, st, in(0)), 0
		for i := range 2 * calls {
			after := i % calls
			saved, err := st.Fork()
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "states")
			if err := saved.Save(file); err != nil {
				t.Fatal(err)
			}
			saved.Close()
			if *cause = nil; after == calls-1 {
				*cause = errEnded
			}
			err = endings["a context"](st, in(i), after)
			*cause = nil
			switch {
			case !errors.Is(err, errEnded):
				t.Fatalf("behind call %d: got error %v, want the cause", after, err)
			case errors.Is(err, tenure.ErrPartlyWritten):
				lost++
				if text := err.Error(); !strings.Contains(text, "the contents of h") && !strings.Contains(text, "the contents of cache_in") || strings.Contains(text, "of past") {
					t.Errorf("behind call %d: got error %v, want the states that are lost", after, err)
				}
				if err := st.Load(file); err != nil {
					t.Fatal(err)
				}
			}
			got, err := st.Run(context.Background(), in(i))
			if err != nil {
				t.Fatalf("behind call %d: %v", after, err)
			}
			want, err := never.Run(context.Background(), in(i))
			if err != nil {
				t.Fatal(err)
			}
			wantNear(t, modeltest.Values(t, got["y"]), modeltest.Values(t, want["y"]), 0)
			got.Release()
			want.Release()
		}
		if rollback && lost > 0 || !rollback && (lost == 0 || lost >= 2*calls) {
			t.Errorf("rollback %v: got %d of %d runs that lost states", rollback, lost, 2*calls)
		}
	}
}

// TestRollbackOfOtherStates keeps states that are no buffers in two tensors
// each, which take turns.
func TestRollbackOfOtherStates(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, `func @f(%x: f32[1,4], %h: f32[1,4], %r: f32[n,4]) {
		%hn = add(%h, %x)
		%rn = concat(%x, %r) {axis = 0}
		%y = neg(%hn)
		return %y, %hn, %rn }`, tenure.WithStates())
	s := modeltest.Session(t, m)
	st, plain := statesOf(t, s, 1, tenure.WithRollback()), statesOf(t, s, 1)
	for i := range 5 {
		x := drawn(t, uint64(i), 1, 4)
		for after := range 2 {
			if err := endings["a context"](st, tenure.Inputs{"x": x}, after); !errors.Is(err, errEnded) || errors.Is(err, tenure.ErrPartlyWritten) {
				t.Fatalf("got error %v, want that nothing is lost", err)
			}
		}
		wantNear(t, runStates(t, st, x), runStates(t, plain, x), 0)
	}
	copied, err := st.Copied()
	if err != nil || len(copied) != 2 || !strings.Contains(copied[0].Reason, "kept until the run has succeeded") {
		t.Errorf("got copies %v, %v, want both states with the reason", copied, err)
	}
	if got, want := st.Bytes(), int64(2*16+5*16+4*16); got != want {
		t.Errorf("got %d bytes, want %d", got, want)
	}
}

// TestCallersDonationIsLost leaves the states after a failed run, but not an
// input that the caller gave up to it.
func TestCallersDonationIsLost(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, `func @f(%x: f32[1,1,4], %z: f32[1,1,4], %past: f32[1,m,4]) {
		%present = concat(%past, %x) {axis = 1}
		%a = exp(%z)
		%y = tanh(%a)
		return %y, %present }`, tenure.WithStates())
	st := statesOf(t, modeltest.Session(t, m), 8)
	x := drawn(t, 1, 1, 1, 4)
	died := 0
	for after := range callsOf(t, st, tenure.Inputs{"x": x, "z": x}) - 1 {
		z, err := x.Copy(memory.IO)
		if err != nil {
			t.Fatal(err)
		}
		err = endings["a context"](st, tenure.Inputs{"x": x, "z": z.Donate()}, after)
		if dead := !z.Alive(); !errors.Is(err, errEnded) || errors.Is(err, tenure.ErrPartlyWritten) != dead || st.Len() != 0 {
			t.Errorf("behind call %d: got error %v, %d rows, the input dead: %v", after, err, st.Len(), dead)
		}
		if z.Alive() {
			z.Release()
		} else {
			died++
		}
	}
	if died == 0 {
		t.Error("got no run that consumed the input")
	}
	out, err := st.Run(context.Background(), tenure.Inputs{"x": x, "z": x})
	if err != nil || st.Len() != 1 {
		t.Fatalf("got %d rows, %v, want one", st.Len(), err)
	}
	out.Release()
}
