package tenure_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Decoders of one layer. x is f32[batch,2,tokens,4], or [batch,tokens,8].
const (
	// The keys are joined by concat, and all rows are read by products; the
	// length of the past is read too, and one past itself.
	joining = `func @joining(%x: f32[batch,2,tokens,4], %past_k: f32[batch,2,past,4], %past_v: f32[batch,2,past,4]) {
		%v = mul(%x, %x)
		%present_k = concat(%past_k, %x) {axis = 2}
		%present_v = concat(%past_v, %v) {axis = -2}
		%t = transpose(%present_k) {perm = [0, 1, 3, 2]}
		%scores = matmul(%x, %t)
		%p = softmax(%scores)
		%a = matmul(%p, %present_v)
		%size = shape(%past_k) {start = 2, end = 3}
		%n = cast(%size) {to = f32}
		%b = add(%a, %n)
		%axes = constant() {dtype = i64, dims = [1], ints = [2]}
		%sum = reduce_sum(%past_v, %axes) {keepdims = 1}
		%y = add(%b, %sum)
		return %y, %present_k, %present_v
	}`
	attending = `func @attending(%x: f32[batch,2,tokens,4], %past_k: f32[batch,2,past,4], %past_v: f32[batch,2,past,4]) {
		%v = mul(%x, %x)
		%y, %present_k, %present_v = attention(%x, %x, %v, _, %past_k, %past_v) {is_causal = 1}
		return %y, %present_k, %present_v
	}`
	packed = `func @packed(%x: f32[batch,tokens,8], %past_k: f32[batch,2,past,4], %past_v: f32[batch,2,past,4]) {
		%q = concat(%x, %x) {axis = 2}
		%v = mul(%x, %x)
		%y, %present_k, %present_v = attention(%q, %x, %v, _, %past_k, %past_v) {is_causal = 1, q_num_heads = 4, kv_num_heads = 2, scale = 0.3}
		return %y, %present_k, %present_v
	}`
)

func modelOf(t testing.TB, text string, opts ...tenure.Option) *tenure.Model {
	t.Helper()
	p, err := ir.Parse(text, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := tenure.LoadProgram(p, nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func statesOf(t testing.TB, s *tenure.Session, capacity int, opts ...tenure.StatesOption) *tenure.States {
	t.Helper()
	st, err := s.NewStates(capacity, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	return st
}

// drawn is a tensor of numbers that a seed gives.
func drawn(t testing.TB, seed uint64, dims ...int) *tensor.Tensor {
	t.Helper()
	r, n := rand.New(rand.NewPCG(seed, 1)), 1
	for _, d := range dims {
		n *= d
	}
	values := make([]float32, n)
	for i := range values {
		values[i] = 2*r.Float32() - 1
	}
	return modeltest.Of(t, values, dims...)
}

// plain is the model without states: what a States is compared with.
type plain struct {
	s    *tenure.Session
	past [2]*tensor.Tensor
}

func newPlain(t testing.TB, s *tenure.Session, batch int) *plain {
	return &plain{s, [2]*tensor.Tensor{modeltest.Of(t, []float32{}, batch, 2, 0, 4), modeltest.Of(t, []float32{}, batch, 2, 0, 4)}}
}

func (p *plain) run(t testing.TB, x *tensor.Tensor) []float32 {
	t.Helper()
	out := modeltest.Run(t, p.s, tenure.Inputs{"x": x, "past_k": p.past[0], "past_v": p.past[1]})
	p.past = [2]*tensor.Tensor{out["present_k"], out["present_v"]}
	return modeltest.Values(t, out["y"])
}

// runStates runs x and returns y, which is the only output.
func runStates(t testing.TB, st *tenure.States, x *tensor.Tensor, opts ...tenure.RunOption) []float32 {
	t.Helper()
	out, err := st.Run(context.Background(), tenure.Inputs{"x": x}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	if len(out) != 1 {
		t.Fatalf("got %d outputs, want y alone: %v", len(out), out)
	}
	return modeltest.Values(t, out["y"])
}

func wantNear(t testing.TB, got, want []float32, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d numbers, want %d", len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(float64(got[i]-want[i])) <= tolerance) {
			t.Fatalf("number %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// TestStatesAreThoseOfThePlainModel runs texts of drawn lengths, with buffers
// that grow, and compares every run with the model without states.
func TestStatesAreThoseOfThePlainModel(t *testing.T) {
	memorytest.Check(t)
	for _, c := range []struct {
		name, text string
		sizes      bool // the model reads the length of its past as a size
	}{{"joining", joining, true}, {"attending", attending, false}, {"packed", packed, false}} {
		for _, batch := range []int{1, 3} {
			m, without := modelOf(t, c.text, tenure.WithStates()), modelOf(t, c.text)
			st := statesOf(t, modeltest.Session(t, m), 4, tenure.WithGrowth(64), tenure.WithStateSize("batch", batch))
			p := newPlain(t, modeltest.Session(t, without), batch)
			for _, info := range m.States() {
				if info.Kind != tenure.StateAppended || info.Axis != 2 {
					t.Errorf("%s: got state %s, want one that is appended along axis 2", c.name, info)
				}
			}
			sized := slices.ContainsFunc(m.Inputs(), func(i tenure.Info) bool { return i.Name == "states.sizes" })
			if sized != c.sizes {
				t.Errorf("%s: got an input for the size of the past: %v, want %v (%v)", c.name, sized, c.sizes, m.Inputs())
			}
			r := rand.New(rand.NewPCG(5, uint64(batch)))
			for rows := 0; rows < 40; {
				n := []int{1, 1, 1, 2, 5}[r.IntN(5)]
				dims := []int{batch, 2, n, 4}
				if c.name == "packed" {
					dims = []int{batch, n, 8}
				}
				x := drawn(t, uint64(rows), dims...)
				wantNear(t, runStates(t, st, x), p.run(t, x), 1e-5)
				if rows += n; st.Len() != rows || st.Cap() < rows {
					t.Fatalf("%s: got %d rows and room for %d, want %d", c.name, st.Len(), st.Cap(), rows)
				}
			}
			if copied, err := st.Copied(); err != nil || len(copied) > 0 {
				t.Errorf("%s: got copies %v, %v, want none", c.name, copied, err)
			}
			if want := int64(2 * batch * 2 * st.Cap() * 4 * 4); st.Bytes() != want {
				t.Errorf("%s: got %d bytes, want %d", c.name, st.Bytes(), want)
			}
		}
	}
}

// TestAxes appends along every axis, of caches of several ranks.
func TestAxes(t *testing.T) {
	memorytest.Check(t)
	for rank := 1; rank <= 5; rank++ {
		for axis := range rank {
			var open, rows []string
			dims := make([]int, rank)
			for i := range rank {
				dims[i] = 2 + i%2
				size := fmt.Sprint(dims[i])
				if i == axis {
					size = "n"
				}
				open, rows = append(open, strings.Replace(size, "n", "past", 1)), append(rows, size)
			}
			text := fmt.Sprintf(`func @f(%%x: f32[%s], %%past: f32[%s]) {
				%%present = concat(%%past, %%x) {axis = %d}
				%%y = reduce_sum(%%present) {keepdims = 1}
				%%z = mul(%%present, %%y)
				return %%z, %%present }`, strings.Join(rows, ","), strings.Join(open, ","), axis)
			st := statesOf(t, modeltest.Session(t, modelOf(t, text, tenure.WithStates())), 7)
			plain := modeltest.Session(t, modelOf(t, text))
			dims[axis] = 0
			past := modeltest.Of(t, []float32{}, dims...)
			for _, n := range []int{2, 1, 1, 3} {
				dims[axis] = n
				x := drawn(t, uint64(rank*axis+n), dims...)
				want := modeltest.Run(t, plain, tenure.Inputs{"x": x, "past": past})
				past = want["present"]
				out, err := st.Run(context.Background(), tenure.Inputs{"x": x})
				if err != nil {
					t.Fatalf("rank %d, axis %d: %v", rank, axis, err)
				}
				wantNear(t, modeltest.Values(t, out["z"]), modeltest.Values(t, want["z"]), 0)
				out.Release()
			}
			if copied, err := st.Copied(); err != nil || len(copied) > 0 {
				t.Errorf("rank %d, axis %d: got copies %v, %v, want none", rank, axis, copied, err)
			}
		}
	}
}

// TestOnePlanForAllLengths decodes with attention: one plan serves all lengths,
// buffers stay where they are, and a run takes only the bytes of its output.
func TestOnePlanForAllLengths(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()), tenure.WithThreads(1))
	st := statesOf(t, s, 2049)
	x := drawn(t, 3, 1, 2, 1, 4)
	runStates(t, st, x)
	before, figures := s.Stats().Compiled, memory.Stats().Total.Current
	for range 2048 {
		memory.ResetPeak()
		runStates(t, st, x)
		if got := memory.Stats().Total.Peak - figures; got > 4096 {
			t.Fatalf("row %d: got %d more bytes at the peak of a run, want those of the output", st.Len(), got)
		}
	}
	if got := s.Stats().Compiled - before; got != 0 || st.Len() != 2049 {
		t.Errorf("got %d more plans and %d rows, want none and 2049", got, st.Len())
	}
	if _, err := st.Run(context.Background(), tenure.Inputs{"x": x}); !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), "1 rows behind 2049, want at most 2049") {
		t.Errorf("a row too many: got error %v, want ErrLimit with the figures", err)
	}
	if st.Len() != 2049 {
		t.Errorf("a refused run: got %d rows, want 2049", st.Len())
	}
}

// TestStatesWithinAPromise decodes in a session that has promised its memory
// for all lengths: no run takes more.
func TestStatesWithinAPromise(t *testing.T) {
	memorytest.Check(t)
	for _, text := range []string{joining, attending} {
		m := modelOf(t, text, tenure.WithStates())
		opts := []tenure.SessionOption{tenure.WithThreads(1), tenure.WithSizes("batch", 1), tenure.WithUpTo("tokens", 4), tenure.WithSizes("capacity", 40)}
		if text == joining {
			opts = append(opts, tenure.WithUpTo("past", 39))
		}
		s := modeltest.Session(t, m, opts...)
		st := statesOf(t, s, 40)
		before := memory.Stats()
		memory.ResetPeak()
		x, four := drawn(t, 1, 1, 2, 1, 4), drawn(t, 2, 1, 2, 4, 4)
		runStates(t, st, four)
		for st.Len() < 36 {
			runStates(t, st, x)
		}
		runStates(t, st, four)
		now := memory.Stats()
		for _, purpose := range []memory.Purpose{memory.Activations, memory.Scratch} {
			if got, had := now.Of(purpose).Peak, before.Of(purpose).Current; got != had {
				t.Errorf("%s: got a peak of %d bytes of %s, want the %d that were promised", m.Program().Name, got, purpose, had)
			}
		}
	}
}

// TestStatesAreFull refuses rows also where no plan can be made without room
// for them, and the faults of inputs by their own names.
func TestStatesAreFull(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, joining, tenure.WithStates()))
	st := statesOf(t, s, 4)
	for range 2 {
		runStates(t, st, drawn(t, 1, 1, 2, 2, 4))
	}
	for n := 1; n < 9; n += 3 {
		_, err := st.Run(context.Background(), tenure.Inputs{"x": drawn(t, 1, 1, 2, n, 4)})
		if want := fmt.Sprintf("got %d rows behind 4, want at most 4", n); !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want ErrLimit and %q", err, want)
		}
	}
	if _, err := st.Run(context.Background(), tenure.Inputs{"x": drawn(t, 1, 1, 2, 1, 5)}); !errors.Is(err, tenure.ErrShape) {
		t.Errorf("rows of another size: got error %v, want ErrShape", err)
	}
	if _, err := s.NewStates(4, tenure.WithGrowth(3)); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("growth below the capacity: got error %v, want ErrInput", err)
	}
	if _, err := s.NewStates(0); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("no capacity: got error %v, want ErrInput", err)
	}
	if _, err := s.NewStates(4, tenure.WithWindow(4)); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("a window without room: got error %v, want ErrInput", err)
	}
}

// TestWindow keeps the last rows: a run sees them, and its own.
func TestWindow(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()))
	st := statesOf(t, s, 5, tenure.WithWindow(3))
	without := modeltest.Session(t, modelOf(t, attending))
	var rows []*tensor.Tensor
	for i := range 12 {
		x := drawn(t, uint64(i), 1, 2, 1, 4)
		rows = append(rows, x)
		if st.Len() == 5 { // the run drops two
			rows = rows[2:]
		}
		got, p := runStates(t, st, x), newPlain(t, without, 1)
		var want []float32
		for _, x := range rows {
			want = p.run(t, x)
		}
		wantNear(t, got, want, 1e-5)
		if len(rows) != st.Len() {
			t.Fatalf("run %d: got %d rows, want %d", i, st.Len(), len(rows))
		}
	}
}

// TestTruncateForkSave takes a text back, and goes on with it in a fork and
// from a file.
func TestTruncateForkSave(t *testing.T) {
	memorytest.Check(t)
	for _, text := range []string{joining, attending} {
		s := modeltest.Session(t, modelOf(t, text, tenure.WithStates()))
		st := statesOf(t, s, 8)
		p := newPlain(t, modeltest.Session(t, modelOf(t, text)), 1)
		x := drawn(t, 9, 1, 2, 3, 4)
		wantNear(t, runStates(t, st, x), p.run(t, x), 1e-5)
		runStates(t, st, drawn(t, 10, 1, 2, 2, 4)) // not accepted
		if err := st.Truncate(3); err != nil || st.Len() != 3 {
			t.Fatalf("truncate: got %d rows, %v, want 3", st.Len(), err)
		}
		if err := st.Truncate(4); !errors.Is(err, tenure.ErrInput) {
			t.Errorf("truncate to more rows: got error %v, want ErrInput", err)
		}
		f, err := st.Fork()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		file := filepath.Join(t.TempDir(), "states.safetensors")
		if err := st.Save(file); err != nil {
			t.Fatal(err)
		}
		runStates(t, st, drawn(t, 11, 1, 2, 2, 4))
		loaded := statesOf(t, s, 4)
		if err := loaded.Load(file); err != nil || loaded.Len() != 3 {
			t.Fatalf("load: got %d rows, %v, want 3", loaded.Len(), err)
		}
		next := drawn(t, 12, 1, 2, 1, 4)
		want := p.run(t, next)
		wantNear(t, runStates(t, f, next), want, 1e-5)
		wantNear(t, runStates(t, loaded, next), want, 1e-5)
		if st.Len() != 5 || f.Len() != 4 || loaded.Len() != 4 {
			t.Errorf("got %d, %d and %d rows, want 5, 4 and 4", st.Len(), f.Len(), loaded.Len())
		}
		small := statesOf(t, s, 2)
		if err := small.Load(file); !errors.Is(err, tenure.ErrLimit) || small.Len() != 0 {
			t.Errorf("load into less room: got %d rows, error %v, want ErrLimit", small.Len(), err)
		}
		growing := statesOf(t, s, 2, tenure.WithGrowth(16))
		if err := growing.Load(file); err != nil || growing.Len() != 3 || growing.Cap() != 4 {
			t.Fatalf("load into states that grow: got %d rows of %d, %v, want 3 of 4", growing.Len(), growing.Cap(), err)
		}
		wantNear(t, runStates(t, growing, next), want, 1e-5)
		if err := statesOf(t, s, 1, tenure.WithGrowth(2)).Load(file); !errors.Is(err, tenure.ErrLimit) || !strings.Contains(err.Error(), "got 3 rows, want at most 2") {
			t.Errorf("load of more rows than states may grow to: got error %v, want ErrLimit with the figures", err)
		}
		if err := st.Reset(); err != nil || st.Len() != 0 {
			t.Errorf("reset: got %d rows, %v, want none", st.Len(), err)
		}
		first := newPlain(t, modeltest.Session(t, modelOf(t, text)), 1)
		wantNear(t, runStates(t, st, x), first.run(t, x), 1e-5)
	}
}

// TestSetStates takes rows from elsewhere, of all buffers of one length.
func TestSetStates(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, modelOf(t, attending, tenure.WithStates()))
	st := statesOf(t, s, 8)
	p := newPlain(t, modeltest.Session(t, modelOf(t, attending)), 1)
	p.past = [2]*tensor.Tensor{drawn(t, 1, 1, 2, 3, 4), drawn(t, 2, 1, 2, 3, 4)}
	if err := st.Set(map[string]*tensor.Tensor{"past_k": p.past[0], "past_v": p.past[1]}); err != nil || st.Len() != 3 {
		t.Fatalf("got %d rows, %v, want 3", st.Len(), err)
	}
	x := drawn(t, 3, 1, 2, 1, 4)
	wantNear(t, runStates(t, st, x), p.run(t, x), 1e-5)
	k, v := drawn(t, 1, 1, 2, 3, 4), drawn(t, 2, 1, 2, 2, 4)
	for name, c := range map[string]struct {
		values map[string]*tensor.Tensor
		kind   error
	}{
		"keys alone":        {map[string]*tensor.Tensor{"past_k": k}, tenure.ErrShape},
		"two lengths":       {map[string]*tensor.Tensor{"past_k": k, "past_v": v}, tenure.ErrShape},
		"another name":      {map[string]*tensor.Tensor{"x": k}, tenure.ErrInput},
		"another size":      {map[string]*tensor.Tensor{"past_k": drawn(t, 1, 1, 3, 3, 4), "past_v": v}, tenure.ErrShape},
		"another type":      {map[string]*tensor.Tensor{"past_k": modeltest.Of(t, []int64{1}, 1, 1, 1, 1), "past_v": v}, tenure.ErrDType},
		"more than fits in": {map[string]*tensor.Tensor{"past_k": drawn(t, 1, 1, 2, 9, 4), "past_v": drawn(t, 1, 1, 2, 9, 4)}, tenure.ErrLimit},
	} {
		if err := st.Set(c.values); !errors.Is(err, c.kind) || st.Len() != 4 {
			t.Errorf("%s: got %d rows, error %v, want 4 and %v", name, st.Len(), err, c.kind)
		}
	}
}

// TestOtherStates keeps states that have no rows, ones in whose buffers the
// model itself says where to write, and ones that it replaces.
func TestOtherStates(t *testing.T) {
	memorytest.Check(t)
	m := modelOf(t, `func @recurrent(%x: f32[batch,4], %h0: f32[batch,4], %list: f32[n], %cache_in: f32[1,rows,2], %at: i64[1], %row: f32[1,1,2]) {
		%hn = add(%h0, %x)
		%all = constant() {dtype = i64, dims = [1], ints = [-1]}
		%flat = reshape(%x, %all)
		%list_next = concat(%flat, %list) {axis = 0}
		%cache_out = tensor_scatter(%cache_in, %row, %at) {axis = 1}
		%y = mul(%hn, %x)
		return %y, %hn, %list_next, %cache_out
	}`, tenure.WithStates())
	var kinds []string
	for _, info := range m.States() {
		kinds = append(kinds, info.String())
	}
	want := []string{"h0 -> hn: same", "list -> list_next: replaced (rows are not appended to it: ", "cache_in -> cache_out: written along axis 1"}
	if len(kinds) != 3 || kinds[0] != want[0] || !strings.HasPrefix(kinds[1], want[1]) || kinds[2] != want[2] {
		t.Fatalf("got states %q, want %q", kinds, want)
	}
	st := statesOf(t, modeltest.Session(t, m), 16)
	x := modeltest.Of(t, []float32{1, 2, 3, 4}, 1, 4)
	row := modeltest.Of(t, []float32{5, 6}, 1, 1, 2)
	for i := range 3 {
		out, err := st.Run(context.Background(), tenure.Inputs{"x": x, "at": modeltest.Of(t, []int64{int64(2 * i)}, 1), "row": row})
		if err != nil {
			t.Fatal(err)
		}
		n := float32(i + 1)
		wantNear(t, modeltest.Values(t, out["y"]), []float32{n, 4 * n, 9 * n, 16 * n}, 0)
		out.Release()
	}
	copied, err := st.Copied()
	if err != nil || len(copied) != 1 || copied[0].Input != "list" || copied[0].Bytes != 12*4 || copied[0].Reason == "" {
		t.Errorf("got copies %v, %v, want those of list, with a reason", copied, err)
	}
	if st.Len() != 3 {
		t.Errorf("got %d rows, want the 3 that were written", st.Len())
	}
	if err := st.Truncate(2); !errors.Is(err, tenure.ErrUnsupported) {
		t.Errorf("truncate with a recurrent state: got error %v, want ErrUnsupported", err)
	}
	if err := st.Reset(); err != nil {
		t.Fatal(err)
	}
	out, err := st.Run(context.Background(), tenure.Inputs{"x": x, "at": modeltest.Of(t, []int64{0}, 1), "row": row})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Release()
	wantNear(t, modeltest.Values(t, out["y"]), []float32{1, 4, 9, 16}, 0)
}

// TestStateErrors names what is wrong with pairs, inputs and calls.
func TestStateErrors(t *testing.T) {
	memorytest.Check(t)
	p, err := ir.Parse(attending, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	for want, pairs := range map[string][]tenure.StatePair{
		`got input "k"`:          {{Input: "k", Output: "y"}},
		`got output "k"`:         {{Input: "past_k", Output: "k"}},
		"is in another pair too": {{Input: "past_k", Output: "y"}, {Input: "past_v", Output: "y"}},
	} {
		if _, err := tenure.LoadProgram(p, nil, tenure.WithStates(pairs...)); !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("pairs %v: got error %v, want ErrInput and %q", pairs, err, want)
		}
	}
	if _, err := tenure.Load(digits, tenure.WithStates()); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("a model without states: got error %v, want ErrInput", err)
	}
	if _, err := modeltest.Session(t, modelOf(t, attending)).NewStates(4); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("a model loaded without states: got error %v, want ErrInput", err)
	}
	st := statesOf(t, modeltest.Session(t, modelOf(t, attending, tenure.WithStates())), 4)
	x := drawn(t, 1, 1, 2, 1, 4)
	ctx := context.Background()
	for want, in := range map[string]tenure.Inputs{
		"got a value for past_k, which the states have": {"x": x, "past_k": x},
		"got no value for x":                            {},
		"got a value for \"z\"":                         {"x": x, "z": x},
	} {
		if _, err := st.Run(ctx, in); !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want ErrInput and %q", err, want)
		}
	}
	present := drawn(t, 1, 1, 2, 4, 4)
	if _, err := st.Run(ctx, tenure.Inputs{"x": x}, tenure.Into("present_k", present)); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("a state's output elsewhere: got error %v, want ErrInput", err)
	}
	y := drawn(t, 1, 1, 2, 1, 4)
	if out, err := st.Run(ctx, tenure.Inputs{"x": x}, tenure.Into("y", y)); err != nil || len(out) != 0 {
		t.Errorf("another output elsewhere: got %v, %v, want no outputs", out, err)
	}
	if err := errors.Join(st.Close(), st.Close()); err != nil {
		t.Error(err)
	}
	if _, err := st.Run(ctx, tenure.Inputs{"x": x}); !errors.Is(err, tenure.ErrClosed) {
		t.Errorf("closed states: got error %v, want ErrClosed", err)
	}
	var none *tenure.States
	if none.Len() != 0 || none.Cap() != 0 || none.Bytes() != 0 || none.Close() != nil || !errors.Is(none.Reset(), tenure.ErrClosed) {
		t.Error("no states: got something, want nothing")
	}
}

// Only half of an attention's past, and an attention whose scores are read,
// stay as they are.
func TestStatesThatStayOutside(t *testing.T) {
	memorytest.Check(t)
	half := modelOf(t, attending, tenure.WithStates(tenure.StatePair{Input: "past_k", Output: "present_k"}))
	if info := half.States()[0]; info.Kind != tenure.StateReplaced || !strings.Contains(info.Why, "only keys or only values") {
		t.Errorf("got %s, want a state that is replaced, with the reason", info)
	}
	scored := strings.Replace(strings.Replace(attending, "%present_v = att", "%present_v, %scores = att", 1), "return %y", "return %y, %scores", 1)
	m := modelOf(t, scored, tenure.WithStates())
	if info := m.States()[0]; info.Kind != tenure.StateReplaced || !strings.Contains(info.Why, "scores") {
		t.Errorf("got %s, want a state that is replaced, with the reason", info)
	}
	st := statesOf(t, modeltest.Session(t, m), 8)
	p := newPlain(t, modeltest.Session(t, modelOf(t, attending)), 1)
	for i := range 4 {
		x := drawn(t, uint64(i), 1, 2, 2, 4)
		out, err := st.Run(context.Background(), tenure.Inputs{"x": x})
		if err != nil {
			t.Fatal(err)
		}
		wantNear(t, modeltest.Values(t, out["y"]), p.run(t, x), 1e-5)
		out.Release()
	}
	if copied, err := st.Copied(); err != nil || len(copied) != 2 {
		t.Errorf("got copies %v, %v, want those of both states", copied, err)
	}
}

// TestStatesByName finds pairs by the names that exporters use, and no others.
func TestStatesByName(t *testing.T) {
	memorytest.Check(t)
	for in, out := range map[string]string{
		"past_key_values.0.key": "present.0.key", "past_key_values.11.decoder.value": "present.11.decoder.value", "past_key_values.0.value": "present_key_values.0.value",
		"past_0": "present_0", "past_kv_3": "present_kv_3", "past_key_1": "present_key_1", "h0": "hn", "c_0": "c_n", "state": "stateN", "h": "hn",
		"hidden_in": "hidden_out", "in_cache": "out_cache", "cached_len_0": "new_cached_len_0", "cache_last_time": "cache_last_time_next", "memory": "next_memory",
	} {
		text := fmt.Sprintf("func @f(%%x: f32[2], %%%s: f32[2]) { %%y = neg(%%x) %%%s = add(%%%s, %%x) return %%y, %%%s }", in, out, in, out)
		if got := modelOf(t, text, tenure.WithStates()).States(); len(got) != 1 || got[0].Input != in || got[0].Output != out || got[0].Kind != tenure.StateSame {
			t.Errorf("got states %v, want %s -> %s", got, in, out)
		}
	}
	for _, text := range []string{
		"func @f(%past: i64[2]) { %present = cast(%past) {to = f32} return %present }",
		"func @f(%past: f32[2,1]) { %a = constant() {dtype = i64, dims = [1], ints = [-1]} %present = reshape(%past, %a) return %present }",
		"func @f(%x: f32[2]) { %y = neg(%x) return %y }",
	} {
		p, err := ir.Parse(text, op.Builtin())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tenure.LoadProgram(p, nil, tenure.WithStates()); !errors.Is(err, tenure.ErrInput) {
			t.Errorf("%s: got error %v, want ErrInput", text, err)
		}
	}
}
