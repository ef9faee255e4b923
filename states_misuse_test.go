package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

// bothWays runs a model with its states, and without them.
type bothWays struct {
	st    *tenure.States
	plain *tenure.Session
	pairs []tenure.StateInfo
	past  tenure.Inputs
}

func newBothWays(t *testing.T, text string, capacity int, past tenure.Inputs, opts ...tenure.StatesOption) *bothWays {
	t.Helper()
	m := modelOf(t, text, tenure.WithStates())
	return &bothWays{statesOf(t, modeltest.Session(t, m), capacity, opts...), modeltest.Session(t, modelOf(t, text)), m.States(), past}
}

// run holds y of both, and returns why the states refused the run.
func (b *bothWays) run(t *testing.T, in tenure.Inputs) error {
	t.Helper()
	before := b.st.Len()
	got, err := b.st.Run(context.Background(), in)
	if err != nil {
		if b.st.Len() != before {
			t.Errorf("a refused run: got %d rows, want %d", b.st.Len(), before)
		}
		return err
	}
	defer got.Release()
	all := tenure.Inputs{}
	for _, list := range []tenure.Inputs{in, b.past} {
		for name, x := range list {
			all[name] = x
		}
	}
	want := modeltest.Run(t, b.plain, all)
	wantNear(t, modeltest.Values(t, got["y"]), modeltest.Values(t, want["y"]), 1e-5)
	for _, p := range b.pairs {
		b.past[p.Input] = want[p.Output]
	}
	return nil
}

// TestRowsOfEachState appends other rows to one state than to another: states
// whose dimensions are not known have lengths of their own, and those that the
// model says have one length are refused.
func TestRowsOfEachState(t *testing.T) {
	memorytest.Check(t)
	const text = `func @f(%x: f32[1,n,4], %z: f32[1,m,4], %past_a: f32[1,PAST,4], %past_b: f32[1,PAST,4]) {
		%present_a = concat(%past_a, %x) {axis = 1}
		%present_b = concat(%past_b, %z) {axis = 1}
		%axis = constant() {dtype = i64, dims = [1], ints = [1]}
		%a = reduce_sum(%present_a, %axis)
		%b = reduce_max(%present_b, %axis)
		%y = add(%a, %b)
		return %y, %present_a, %present_b
	}`
	for past, refused := range map[string]bool{"?": false, "past": true} {
		none := modeltest.Of(t, []float32{}, 1, 0, 4)
		b := newBothWays(t, strings.ReplaceAll(text, "PAST", past), 16, tenure.Inputs{"past_a": none, "past_b": none})
		for i, n := range [][2]int{{2, 2}, {1, 2}, {3, 1}, {1, 1}} {
			err := b.run(t, tenure.Inputs{"x": drawn(t, uint64(i), 1, n[0], 4), "z": drawn(t, uint64(i+9), 1, n[1], 4)})
			if want := refused && n[0] != n[1]; (err != nil) != want || want && !(errors.Is(err, tenure.ErrShape) && strings.Contains(err.Error(), fmt.Sprintf("got %d rows for one, and %d for another", n[0], n[1]))) {
				t.Errorf("%s, %v rows: got error %v, want one: %v", past, n, err, want)
			}
		}
	}
}

// TestRunWithoutRows adds none.
func TestRunWithoutRows(t *testing.T) {
	memorytest.Check(t)
	none := modeltest.Of(t, []float32{}, 1, 2, 0, 4)
	b := newBothWays(t, packed, 8, tenure.Inputs{"past_k": none, "past_v": none})
	for i, n := range []int{0, 2, 0, 1} {
		if err := b.run(t, tenure.Inputs{"x": drawn(t, uint64(i), 1, n, 8)}); err != nil {
			t.Errorf("%d rows behind %d: %v", n, b.st.Len(), err)
		}
	}
}

// TestQueriesOfAnotherNumber has other queries than keys.
func TestQueriesOfAnotherNumber(t *testing.T) {
	memorytest.Check(t)
	const text = `func @f(%x: f32[1,2,q,4], %k: f32[1,2,n,4], %past_k: f32[1,2,past,4], %past_v: f32[1,2,past,4]) {
		%y, %present_k, %present_v = attention(%x, %k, %k, _, %past_k, %past_v) {ATTRS}
		return %y, %present_k, %present_v
	}`
	for attrs, refused := range map[string]bool{"is_causal = 0": false, "is_causal = 1": true, "left_window_size = 2": true, "right_window_size = 0": true} {
		none := modeltest.Of(t, []float32{}, 1, 2, 0, 4)
		b := newBothWays(t, strings.Replace(text, "ATTRS", attrs, 1), 32, tenure.Inputs{"past_k": none, "past_v": none})
		for i, n := range [][2]int{{3, 3}, {1, 1}, {1, 3}, {3, 1}, {2, 2}} {
			err := b.run(t, tenure.Inputs{"x": drawn(t, uint64(i), 1, 2, n[0], 4), "k": drawn(t, uint64(i+9), 1, 2, n[1], 4)})
			if want := refused && n[0] != n[1]; (err != nil) != want || want && !errors.Is(err, tenure.ErrShape) {
				t.Errorf("%s, %v queries and keys: got error %v, want one: %v", attrs, n, err, want)
			}
		}
	}
}

const writing = `func @writing(%x: f32[1,1,4], %at: i64[1], %cache_in: f32[1,rows,4]) {
	%cache_out = tensor_scatter(%cache_in, %x, %at) {axis = 1, mode = "MODE"}
	%axis = constant() {dtype = i64, dims = [1], ints = [1]}
	%y = reduce_sum(%cache_out, %axis)
	return %y, %cache_out
}`

// TestWrittenAnywhere writes rows in another order than from the first on: all
// of the buffer is saved, and zeros after Reset. A ring is never full.
func TestWrittenAnywhere(t *testing.T) {
	memorytest.Check(t)
	zeros := func() *tensor.Tensor { return modeltest.Of(t, make([]float32, 16), 1, 4, 4) }
	at := func(b *bothWays, i uint64, n int64) error {
		return b.run(t, tenure.Inputs{"x": drawn(t, i, 1, 1, 4), "at": modeltest.Of(t, []int64{n}, 1)})
	}
	b := newBothWays(t, strings.Replace(writing, "MODE", "linear", 1), 4, tenure.Inputs{"cache_in": zeros()})
	file := filepath.Join(t.TempDir(), "states")
	if err := errors.Join(at(b, 1, 3), at(b, 2, 1), b.st.Save(file), b.st.Reset()); err != nil || b.st.Len() != 0 {
		t.Fatalf("got %d rows, %v, want none", b.st.Len(), err)
	}
	saved := b.past["cache_in"]
	b.past["cache_in"] = zeros()
	if err := at(b, 3, 0); err != nil {
		t.Fatal(err)
	}
	if err := b.st.Load(file); err != nil || b.st.Len() != 2 {
		t.Fatalf("load: got %d rows, %v, want 2", b.st.Len(), err)
	}
	b.past["cache_in"] = saved
	if err := at(b, 4, 2); err != nil {
		t.Fatal(err)
	}
	ring := newBothWays(t, strings.Replace(writing, "MODE", "circular", 1), 1, tenure.Inputs{"cache_in": zeros()}, tenure.WithStateSize("rows", 4))
	if kind := ring.pairs[0].Kind; kind != tenure.StateSame {
		t.Errorf("a ring: got %s, want %s", kind, tenure.StateSame)
	}
	for i := range 9 {
		if err := at(ring, uint64(i), int64(i)%4); err != nil {
			t.Fatal(err)
		}
	}
	m := modelOf(t, `func @f(%x: f32[1,1,4], %at: i64[1], %cache_in: f32[1,rows,4]) {
		%all = concat(%cache_in, %x) {axis = 1}
		%y = neg(%x)
		%cache_out = tensor_scatter(%all, %y, %at) {axis = 1}
		return %y, %cache_out }`, tenure.WithStates())
	if kind := m.States()[0].Kind; kind != tenure.StateReplaced {
		t.Errorf("rows that are appended, and others written: got %s, want %s", kind, tenure.StateReplaced)
	}
	fixed := modeltest.Session(t, modelOf(t, strings.NewReplacer("MODE", "linear", "rows", "4").Replace(writing), tenure.WithStates()))
	if _, err := fixed.NewStates(5); !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), "got the capacity 5, want the model's 4") {
		t.Errorf("another capacity than the model's: got error %v, want ErrInput", err)
	}
}

// TestWindowOfTwoLengths drops no rows of one state for a run that another
// state has no room for.
func TestWindowOfTwoLengths(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, `func @f(%x: f32[1,n,4], %z: f32[1,m,4], %past_a: f32[1,a,4], %past_b: f32[1,b,4]) {
		%present_a = concat(%past_a, %x) {axis = 1}
		%present_b = concat(%past_b, %z) {axis = 1}
		%axis = constant() {dtype = i64, dims = [1], ints = [1]}
		%y = reduce_sum(%present_a, %axis)
		return %y, %present_a, %present_b }`, tenure.WithStates())
	st := statesOf(t, modeltest.Session(t, m), 4, tenure.WithWindow(1))
	run := func(x, z int) ([]float32, error) {
		out, err := st.Run(context.Background(), tenure.Inputs{"x": modeltest.Of(t, make([]float32, 4*x), 1, x, 4), "z": drawn(t, 2, 1, z, 4)})
		if err != nil {
			return nil, err
		}
		defer out.Release()
		return modeltest.Values(t, out["y"]), nil
	}
	first, err := st.Run(context.Background(), tenure.Inputs{"x": drawn(t, 1, 1, 4, 4), "z": drawn(t, 2, 1, 0, 4)})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	if _, err := run(1, 5); !errors.Is(err, tenure.ErrLimit) {
		t.Fatalf("got error %v, want ErrLimit", err)
	}
	got, err := run(0, 1)
	if err != nil {
		t.Fatal(err)
	}
	wantNear(t, got, modeltest.Values(t, first["y"]), 1e-6)
}

// TestGrowthIsRefused leaves states as they were where the session has bounds.
func TestGrowthIsRefused(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()), tenure.WithSizes("batch", 1), tenure.WithUpTo("tokens", 4), tenure.WithSizes("capacity", 4))
	st := statesOf(t, s, 4, tenure.WithGrowth(8))
	x := drawn(t, 1, 1, 2, 3, 4)
	want := runStates(t, st, x)
	if _, err := st.Run(context.Background(), tenure.Inputs{"x": x}); !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), "growing from 4 to 8 rows") || st.Len() != 3 || st.Cap() != 4 {
		t.Fatalf("got room for %d, error %v, want 4 and ErrShape", st.Cap(), err)
	}
	if err := st.Truncate(0); err != nil {
		t.Fatal(err)
	}
	wantNear(t, runStates(t, st, x), want, 0)
	rows := drawn(t, 2, 1, 2, 5, 4)
	if err := st.Set(map[string]*tensor.Tensor{"past_k": rows, "past_v": rows}); !errors.Is(err, tenure.ErrShape) || !strings.Contains(err.Error(), "growing from 4 to 8 rows") || st.Len() != 3 || st.Cap() != 4 {
		t.Fatalf("set: got %d rows of %d, error %v, want 3 of 4 and ErrShape", st.Len(), st.Cap(), err)
	}
}

// TestSetGrows makes room for rows that are set: states of another length keep
// theirs.
func TestSetGrows(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, `func @f(%x: f32[1,n,4], %z: f32[1,m,4], %past_a: f32[1,a,4], %past_b: f32[1,b,4]) {
		%present_a = concat(%past_a, %x) {axis = 1}
		%present_b = concat(%past_b, %z) {axis = 1}
		%axis = constant() {dtype = i64, dims = [1], ints = [1]}
		%i = reduce_sum(%present_a, %axis)
		%j = reduce_max(%present_b, %axis)
		%y = add(%i, %j)
		return %y, %present_a, %present_b }`, tenure.WithStates())
	st := statesOf(t, modeltest.Session(t, m), 2, tenure.WithGrowth(5))
	run := func(x, z *tensor.Tensor) []float32 {
		t.Helper()
		out, err := st.Run(context.Background(), tenure.Inputs{"x": x, "z": z})
		if err != nil {
			t.Fatal(err)
		}
		defer out.Release()
		return modeltest.Values(t, out["y"])
	}
	b := modeltest.Of(t, []float32{9, 9, 9, 9, 8, 8, 8, 8}, 1, 2, 4)
	run(modeltest.Of(t, make([]float32, 4), 1, 1, 4), b)
	ones := modeltest.Of(t, []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1, 4, 4)
	if err := st.Set(map[string]*tensor.Tensor{"past_a": ones}); err != nil || st.Len() != 4 || st.Cap() != 4 {
		t.Fatalf("got %d rows of %d, error %v, want 4 of 4", st.Len(), st.Cap(), err)
	}
	none := modeltest.Of(t, []float32{}, 1, 0, 4)
	wantNear(t, run(none, none), []float32{13, 13, 13, 13}, 0)
	six := drawn(t, 3, 1, 6, 4)
	if err := st.Set(map[string]*tensor.Tensor{"past_a": six}); !errors.Is(err, tenure.ErrLimit) || st.Cap() != 4 {
		t.Errorf("more rows than states may grow to: got room for %d, error %v, want 4 and ErrLimit", st.Cap(), err)
	}
	wantNear(t, run(none, none), []float32{13, 13, 13, 13}, 0)
}

// TestIncompleteStates refuses files without all states, and sizes of no state.
func TestIncompleteStates(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()))
	st := statesOf(t, s, 8)
	file := filepath.Join(t.TempDir(), "states")
	for _, entries := range [][]safetensors.Entry{nil, {{Name: "past_k", Tensor: drawn(t, 1, 1, 2, 3, 4)}}} {
		if err := safetensors.WriteFile(file, nil, entries...); err != nil {
			t.Fatal(err)
		}
		if err := st.Load(file); !errors.Is(err, tenure.ErrCorrupt) || !strings.Contains(err.Error(), "want one for each state") || st.Len() != 0 {
			t.Errorf("%d states: got error %v, want ErrCorrupt", len(entries), err)
		}
	}
	for _, name := range []string{"nobody", "past", "capacity", "tokens"} {
		if _, err := s.NewStates(8, tenure.WithStateSize(name, 2)); !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), `"batch"`) {
			t.Errorf("size of %q: got error %v, want ErrInput with the names", name, err)
		}
	}
}
