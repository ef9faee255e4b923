package tenure_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func operands(x [5]*tensor.Tensor) []tensor.Operand {
	return []tensor.Operand{x[0], x[1], x[2], x[3], x[4]}
}

// wantWide compares results with those of a run by names.
func wantWide(t *testing.T, what string, s *tenure.Session, x [5]*tensor.Tensor, got []*tensor.Tensor) {
	t.Helper()
	want := modeltest.Run(t, s, tenure.Inputs{"a": x[0], "b": x[1], "c": x[2], "d": x[3], "state": x[4]})
	for i, info := range s.Model().Outputs() {
		if a, b := modeltest.Values(t, got[i]), modeltest.Values(t, want[info.Name]); !slices.Equal(a, b) || got[i].Shape() != want[info.Name].Shape() {
			t.Errorf("%s: output %q: got %v%v, want %v%v", what, info.Name, got[i].Shape(), a, want[info.Name].Shape(), b)
		}
	}
	if err := want.Release(); err != nil {
		t.Error(err)
	}
}

// TestRunInto makes the outputs that are nil, writes into the others, and
// changes nothing where it fails.
func TestRunInto(t *testing.T) {
	memorytest.Check(t)
	s := wide(t)
	x, ctx := wideInputs(t, 3), context.Background()
	mine := modeltest.Of(t, make([]float32, 12), 3, 4)
	out := []*tensor.Tensor{nil, mine, nil, nil}
	for k := range 3 {
		before := slices.Clone(out)
		if err := s.RunInto(ctx, operands(x), out); err != nil {
			t.Fatal(err)
		}
		wantWide(t, "run", s, x, out)
		if out[1] != mine || k > 0 && !slices.Equal(out, before) {
			t.Errorf("run %d: got other tensors than those that were given", k)
		}
	}
	before := slices.Clone(out)
	other := modeltest.Of(t, make([]float32, 8), 2, 4)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, c := range map[string]struct {
		ctx  context.Context
		in   []tensor.Operand
		out  []*tensor.Tensor
		kind error
		text string
	}{
		"few inputs":   {ctx, operands(x)[:4], out, tenure.ErrInput, "got 4 inputs, want 5 (a, b, c, d, state)"},
		"many inputs":  {ctx, append(operands(x), x[0]), out, tenure.ErrInput, "got 6 inputs"},
		"a nil input":  {ctx, []tensor.Operand{x[0], x[1], nil, x[3], x[4]}, out, tenure.ErrInput, `input "c": got no tensor`},
		"a nil tensor": {ctx, []tensor.Operand{x[0], x[1], (*tensor.Tensor)(nil), x[3], x[4]}, out, tenure.ErrNoTensor, `input "c"`},
		"few outputs":  {ctx, operands(x), out[:2], tenure.ErrInput, "got 2 outputs, want 4 (ab, cd, sum, next; nil for one that the run makes)"},
		"zero output":  {ctx, operands(x), []*tensor.Tensor{{}, nil, nil, nil}, tenure.ErrNoTensor, `output "ab"`},
		"wrong shape":  {ctx, operands(x), []*tensor.Tensor{nil, nil, other, nil}, tenure.ErrShape, `Into("sum"): got f32[2,4], want f32[3,4]`},
		"twice":        {ctx, operands(x), []*tensor.Tensor{mine, mine, nil, nil}, nil, `it takes output "ab" of the same run`},
		"an input":     {ctx, operands(x), []*tensor.Tensor{nil, x[1], nil, nil}, tenure.ErrShared, `it is input "b" of the same run`},
		"ended":        {ended, operands(x), out, context.Canceled, ""},
	} {
		wantMisuse(t, name, s.RunInto(c.ctx, c.in, c.out), c.kind, c.text)
		if !slices.Equal(out, before) {
			t.Errorf("%s: the failed run changed the outputs", name)
		}
	}
	wantMisuse(t, "given twice", s.RunInto(ctx, operands(x), out, tenure.Into("cd", other)), tenure.ErrInput, "given twice")
	wantMisuse(t, "no session", (*tenure.Session)(nil).RunInto(ctx, operands(x), out), tenure.ErrClosed)
	wantWide(t, "after the failures", s, x, []*tensor.Tensor{out[0], out[1], out[2], out[3]})
	for _, y := range out {
		if y != mine {
			if err := y.Release(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestStateStaysItsTensor donates a state and requests its successor in the
// same tensor, by name and by position.
func TestStateStaysItsTensor(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, state := modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, make([]float32, 64), 1, 64)
	first := modeltest.Address(state)
	step := map[string]func() error{
		"Into": func() error {
			out, err := s.Run(t.Context(), tenure.Inputs{"state": state.Donate(), "x": x}, tenure.Into("next", state))
			if err == nil && (len(out) != 1 || out["y"] == nil) {
				t.Errorf("got outputs %v, want y alone", out)
			}
			return errors.Join(err, out.Release())
		},
		"Into, reused": func() error {
			out, err := s.Run(t.Context(), tenure.Inputs{"state": state.Reuse(), "x": x}, tenure.Into("next", state))
			return errors.Join(err, out.Release())
		},
		"RunInto": func() error {
			out := []*tensor.Tensor{state, nil}
			err := s.RunInto(t.Context(), []tensor.Operand{state.Donate(), x}, out)
			if err == nil && out[0] != state {
				t.Error("got another tensor for the state")
			}
			return errors.Join(err, out[1].Release())
		},
	}
	k := 0
	for name, f := range step {
		for range 2 {
			if err := f(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			k++
			if got, want := modeltest.Values(t, state)[9], float32(k)*9/8; got != want || modeltest.Address(state) != first {
				t.Errorf("%s, run %d: got %v, want %v in the same bytes", name, k, got, want)
			}
			if !state.IsExclusive() {
				t.Errorf("%s: the state is still in use after the run", name)
			}
		}
	}
	// A run with another shape fails before it begins, and the state is
	// unchanged.
	_, err := s.Run(t.Context(), tenure.Inputs{"state": state.Donate(), "x": modeltest.Of(t, modeltest.Ramp(32), 1, 32)}, tenure.Into("next", state))
	wantMisuse(t, "another shape", err, nil)
	// Where the bytes take another value than the output's, too.
	_, err = s.Run(t.Context(), tenure.Inputs{"state": state.Donate(), "x": x}, tenure.Into("y", state))
	wantMisuse(t, "another output", err, tenure.ErrShape)
	if !state.IsExclusive() {
		t.Error("a run that failed before its first write has consumed the state")
	}
}

// TestFailedRunEndsTheState stops a run after its first write into a donated
// state that was to stay: it is dead.
func TestFailedRunEndsTheState(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"), tenure.WithThreads(1))
	x, state := modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, make([]float32, 64), 1, 64)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := s.RunInto(ctx, []tensor.Operand{state.Donate(), x}, []*tensor.Tensor{state, nil}, tenure.Watch(func(*ir.Call, time.Duration) { cancel() }))
	wantMisuse(t, "stopped", err, tenure.ErrPartlyWritten)
	if !errors.Is(err, context.Canceled) || state.Alive() {
		t.Errorf("got %v and a state that is alive: %v", err, state.Alive())
	}

	// A run of a binding that ends before its first write leaves the state in
	// the set.
	b := modeltest.Must(s.Bind())
	defer b.Close()
	fresh := modeltest.Of(t, make([]float32, 64), 1, 64)
	out := modeltest.Must(b.Run(t.Context(), fresh, x))
	_, err = b.Run(ctx, out[0].Donate(), x)
	wantMisuse(t, "ended before the run", err, context.Canceled)
	if got := modeltest.Values(t, out[0])[9]; got != 9.0/8 {
		t.Errorf("got %v after a run that did not begin, want the state as it was", got)
	}
}

// TestBinding runs many times into one set, with shapes that change, tensors
// that are in use, and a state.
func TestBinding(t *testing.T) {
	memorytest.Check(t)
	s := wide(t)
	b := modeltest.Must(s.Bind())
	small, large := wideInputs(t, 2), wideInputs(t, 5)
	var last []*tensor.Tensor
	for k, x := range [][5]*tensor.Tensor{small, small, large, small, large, large} {
		before := slices.Clone(last)
		out, err := b.Run(t.Context(), operands(x)...)
		if err != nil {
			t.Fatal(err)
		}
		wantWide(t, "binding", s, x, out)
		if same := slices.Equal(before, out); same != (k == 1 || k == 5) {
			t.Errorf("run %d: got the same tensors: %v", k, same)
		}
		last = out
	}

	// A result that is read or shared is not overwritten.
	read := modeltest.Must(tensor.Read[float32](last[0]))
	view := modeltest.Must(last[1].View())
	values := slices.Clone(read.Data)
	kept := modeltest.Values(t, view)
	for _, x := range []*tensor.Tensor{large[0], large[1], large[2], large[3]} {
		fill(t, x, 7)
	}
	out := modeltest.Must(b.Run(t.Context(), operands(large)...))
	wantWide(t, "results in use", s, large, out)
	if !slices.Equal(read.Data, values) || !slices.Equal(modeltest.Values(t, view), kept) {
		t.Error("a run has overwritten results that were in use")
	}
	read.Release()
	if err := view.Release(); err != nil {
		t.Error(err)
	}

	// A result that the caller takes is the caller's; one that it releases is
	// made again.
	mine := modeltest.Must(b.Take(2))
	if err := out[0].Release(); err != nil {
		t.Error(err)
	}
	fill(t, large[0], 8)
	sum := modeltest.Values(t, mine)
	out = modeltest.Must(b.Run(t.Context(), operands(large)...))
	wantWide(t, "taken and released", s, large, out)
	if out[2] == mine || !slices.Equal(modeltest.Values(t, mine), sum) {
		t.Error("a run has written into a result that was taken")
	}
	if err := mine.Release(); err != nil {
		t.Error(err)
	}

	// A result may be an operand: borrowed, it is another tensor afterwards;
	// donated as the state, it is the same.
	x := large
	x[0] = out[0]
	want := modeltest.Values(t, x[0])[3] + modeltest.Values(t, x[1])[3]
	out = modeltest.Must(b.Run(t.Context(), operands(x)...))
	if got := modeltest.Values(t, out[0])[3]; got != want {
		t.Errorf("a result as an operand: got %v, want %v", got, want)
	}
	for range 3 {
		state := out[3]
		address, old := modeltest.Address(state), modeltest.Values(t, state)
		out = modeltest.Must(b.Run(t.Context(), large[0], large[1], large[2], large[3], state.Donate()))
		if got := modeltest.Values(t, out[3])[3]; out[3] != state || modeltest.Address(state) != address || got != old[3]+modeltest.Values(t, out[2])[3] {
			t.Errorf("a donated result: got %v in another tensor: %v", got, out[3] != state)
		}
	}
	// The caller's own state is given up like everywhere.
	own := modeltest.Of(t, modeltest.Ramp(20), 5, 4)
	out = modeltest.Must(b.Run(t.Context(), large[0], large[1], large[2], large[3], own.Donate()))
	if own.Alive() || out[3] == own {
		t.Error("a donated tensor of the caller is alive after the run")
	}
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Error(err)
	}
}

func fill(t *testing.T, x *tensor.Tensor, v float32) {
	t.Helper()
	w := modeltest.Must(tensor.Write[float32](x))
	defer w.Release()
	for i := range w.Data {
		w.Data[i] = v
	}
}

// TestBindingInto writes an output into the caller's tensor until it is told
// otherwise.
func TestBindingInto(t *testing.T) {
	memorytest.Check(t)
	s := wide(t)
	b := modeltest.Must(s.Bind())
	defer b.Close()
	x := wideInputs(t, 2)
	mine, small := modeltest.Of(t, make([]float32, 8), 2, 4), modeltest.Of(t, make([]float32, 4), 1, 4)
	for _, given := range []*tensor.Tensor{nil, mine, mine, nil} {
		if err := b.Into(1, given); err != nil {
			t.Fatal(err)
		}
		out := modeltest.Must(b.Run(t.Context(), operands(x)...))
		wantWide(t, "into", s, x, out)
		if (out[1] == mine) != (given == mine) {
			t.Errorf("got the caller's tensor: %v, want %v", out[1] == mine, given == mine)
		}
	}
	if err := b.Into(1, small); err != nil {
		t.Fatal(err)
	}
	_, err := b.Run(t.Context(), operands(x)...)
	wantMisuse(t, "wrong shape", err, tenure.ErrShape, `Into("cd"): got f32[1,4], want f32[2,4]`)
	_, err = b.Take(1)
	wantMisuse(t, "take the caller's", err, tenure.ErrInput, `output "cd"`, "tensor of the caller")
	// The state in the caller's tensor stays there.
	if err := errors.Join(b.Into(1, nil), b.Into(3, mine)); err != nil {
		t.Fatal(err)
	}
	fill(t, mine, 1)
	for range 2 {
		out := modeltest.Must(b.Run(t.Context(), x[0], x[1], x[2], x[3], mine.Donate()))
		if out[3] != mine || !mine.IsExclusive() {
			t.Error("the state did not stay in the caller's tensor")
		}
	}
	_, err = b.Run(t.Context(), x[0], x[1], x[2], x[3], x[4].Donate())
	wantMisuse(t, "another state", err, tenure.ErrNotReusable, `donated input "state"`)
	if !x[4].IsExclusive() {
		t.Error("a run that was refused has consumed its state")
	}
}

// TestBindOptions sets options for all runs of a binding.
func TestBindOptions(t *testing.T) {
	memorytest.Check(t)
	s := wide(t)
	x := wideInputs(t, 2)
	mine := modeltest.Of(t, make([]float32, 8), 2, 4)
	var p tenure.Profile
	b := modeltest.Must(s.Bind(tenure.WithProfile(&p), tenure.Into("sum", mine)))
	defer b.Close()
	for range 3 {
		out := modeltest.Must(b.Run(t.Context(), operands(x)...))
		wantWide(t, "options", s, x, out)
		if out[2] != mine {
			t.Error("got another tensor than that of Into")
		}
	}
	if runs, _ := p.Time(); runs != 3 {
		t.Errorf("got %d profiled runs, want 3", runs)
	}
	_, err := s.Bind(nil)
	wantMisuse(t, "nil option", err, nil, "bind: option 0 is nil")
	_, err = s.Bind(tenure.Into("total", mine))
	wantMisuse(t, "unknown output", err, tenure.ErrInput, `bind: Into("total"): want one of the model's outputs ab, cd, sum, next`)
	_, err = s.Bind(tenure.Into("sum", mine), tenure.Into("sum", mine))
	wantMisuse(t, "twice", err, tenure.ErrInput, "given twice")
}

// TestBindingMisuse calls a binding wrongly.
func TestBindingMisuse(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, "testdata/state.onnx")
	s := modeltest.Must(m.NewSession())
	ctx, x, state := t.Context(), modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	b := modeltest.Must(s.Bind())
	run := func(in ...tensor.Operand) error { _, err := b.Run(ctx, in...); return err }
	wantMisuse(t, "no inputs", run(), tenure.ErrInput, "got 0 inputs, want 2 (state, x)")
	wantMisuse(t, "a nil input", run(state, nil), tenure.ErrInput, `input "x"`)
	var none context.Context
	_, err := b.Run(none, state, x)
	wantMisuse(t, "nil context", err, nil, "got a nil context")
	integers := modeltest.Of(t, make([]int32, 64), 1, 64)
	wantMisuse(t, "another type", run(state, integers), tenure.ErrDType, `input "x"`, "got i32[1,64], want f32[n,64]")
	gone := modeltest.Must(tensor.Of(make([]float32, 64), 1, 64))
	if err := gone.Release(); err != nil {
		t.Fatal(err)
	}
	wantMisuse(t, "a released input", run(gone, x), tenure.ErrReleased, `input "state"`)
	_, err = b.Take(0)
	wantMisuse(t, "take before a run", err, tenure.ErrNoTensor, `output "next"`)
	for _, i := range []int{-1, 2} {
		_, err = b.Take(i)
		wantMisuse(t, "take another", err, tenure.ErrInput, "want 0 to 1 (next, y)")
		wantMisuse(t, "into another", b.Into(i, x), tenure.ErrInput, "want 0 to 1 (next, y)")
	}
	wantMisuse(t, "into a zero tensor", b.Into(0, &tensor.Tensor{}), tenure.ErrNoTensor, `output "next"`)

	if err := run(state, x); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), m.Close()); err != nil {
		t.Error(err)
	}
	wantMisuse(t, "closed session", run(state, x), tenure.ErrClosed, "the session is closed")
	_, err = s.Bind()
	wantMisuse(t, "bind of a closed session", err, tenure.ErrClosed)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	wantMisuse(t, "closed binding", run(state, x), tenure.ErrClosed, "the binding is closed")
	_, err = b.Take(0)
	wantMisuse(t, "take of a closed binding", err, tenure.ErrClosed)
	wantMisuse(t, "into of a closed binding", b.Into(0, nil), tenure.ErrClosed)
	for _, b := range []*tenure.Binding{nil, {}} {
		_, err = b.Run(ctx, state, x)
		wantMisuse(t, "no binding", err, tenure.ErrClosed)
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestBindingInUse calls a binding while its run is under way: the run waits
// for the only arena, which another one has.
func TestBindingInUse(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modeltest.Load(t, "testdata/state.onnx"))
	x, state := modeltest.Of(t, modeltest.Ramp(64), 1, 64), modeltest.Of(t, modeltest.Ramp(64), 1, 64)
	b := modeltest.Must(s.Bind())
	modeltest.Must(b.Run(t.Context(), state, x))
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	once := false
	out, err := s.Run(t.Context(), tenure.Inputs{"state": state, "x": x}, tenure.Watch(func(*ir.Call, time.Duration) {
		if once {
			return
		}
		once = true
		waiting.Go(func() {
			_, err := b.Run(ctx, state, x)
			for errors.Is(err, tenure.ErrBusy) { // a Take below has the binding
				_, err = b.Run(ctx, state, x)
			}
			wantMisuse(t, "a run that waits", err, context.Canceled)
		})
		for { // until that run has the binding
			_, err := b.Take(5)
			if errors.Is(err, tenure.ErrBusy) {
				break
			}
			runtime.Gosched()
		}
		_, err := b.Run(t.Context(), state, x)
		wantMisuse(t, "run", err, tenure.ErrBusy, "use one binding for each goroutine")
		wantMisuse(t, "into", b.Into(0, nil), tenure.ErrBusy, "into")
		wantMisuse(t, "close", b.Close(), tenure.ErrBusy, "close")
		cancel()
		waiting.Wait()
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(out.Release(), b.Close()); err != nil {
		t.Error(err)
	}
}

// TestBindingsShareASession runs many bindings and names at once.
func TestBindingsShareASession(t *testing.T) {
	memorytest.Check(t)
	s := wide(t, tenure.WithMaxConcurrent(2), tenure.WithThreads(1))
	var all sync.WaitGroup
	for g := range 6 {
		all.Go(func() {
			b := modeltest.Must(s.Bind())
			x := [2][5]*tensor.Tensor{}
			for i := range x {
				for k := range x[i] {
					x[i][k] = modeltest.Must(tensor.Full(float32(g+k), i+1, 4))
				}
			}
			for k := range 50 {
				out, err := b.Run(context.Background(), operands(x[k/5%2])...)
				if err != nil {
					t.Error(err)
					break
				}
				if got, want := modeltest.Must(tensor.At[float32](out[2], 0, 3)), float32(g+g+1+(g+2)*(g+3)); got != want {
					t.Errorf("goroutine %d: got %v, want %v", g, got, want)
				}
			}
			for _, list := range x {
				for _, y := range list {
					_ = y.Release()
				}
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
