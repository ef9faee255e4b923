package tenure_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// spiky has a value of 64*(37(n+k) mod 101) elements for n rows: where the
// arena is the largest depends on k alone.
const spiky = `
	func @spiky(%x: f32[n,4]) {
		weight @zero: i64[1]
		weight @k: i64[1]
		weight @factor: i64[1]
		weight @prime: i64[1]
		weight @wide: i64[1]
		weight @axes: i64[2]
		%s = shape(%x)
		%n = gather(%s, @zero) {axis = 0}
		%m = add(%n, @k)
		%f = mul(%m, @factor)
		%r = mod(%f, @prime)
		%w = mul(%r, @wide)
		%h = reduce_sum(%x, @axes) {keepdims = 0}
		%e = expand(%h, %w)
		%a = exp(%e)
		%c = cum_sum(%a, @zero)
		%b = mul(%a, %c)
		%t = reduce_sum(%b, @zero) {keepdims = 1}
		%y = add(%x, %t)
		return %y
	}`

func spikyModel(t testing.TB, k int) *tenure.Model {
	i64 := func(v int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(v)) }
	p := must(ir.Parse(spiky, op.Builtin()))
	m := must(tenure.LoadProgram(p, ir.WeightMap{"zero": i64(0), "k": i64(k), "factor": i64(37), "prime": i64(101), "wide": i64(64), "axes": append(i64(0), i64(1)...)}))
	t.Cleanup(func() { m.Close() })
	return m
}

// TestPromiseOfEverySize compares the promises of models with the plans of all
// sizes, each made by itself. Each size has the largest arena of some model:
// leaving any size out is found.
func TestPromiseOfEverySize(t *testing.T) {
	memorytest.Check(t)
	worst := map[int]bool{}
	step := 1
	if invariant.Enabled || testing.Short() {
		step = 20
	}
	for k := 0; k < 101; k += step {
		m := spikyModel(t, k)
		r := must(m.PlanUpTo(t.Context(), tenure.WithUpTo("n", 100)))
		if n := r.Arena.At[0]; 37*(n+k)%101 != 100 {
			t.Errorf("k = %d: got the largest arena at n = %d, where the value has not the most elements", k, n)
		} else {
			worst[n] = true
		}
		if k%20 != 0 {
			continue
		}
		var want plan.Range
		s := must(m.NewSession())
		for n := 100; n >= 0; n-- {
			p := must(s.Plan(t.Context(), tenure.Shapes{"x": {n, 4}}))
			want.Arena.Raise(p.ArenaBytes, []int{n})
			want.Scratch.Raise(p.ScratchBytes, []int{n})
			want.IO.Raise(p.IOBytes, []int{n})
			want.Worst.Raise(p.PerRun(), []int{n})
			want.WeightBytes = max(want.WeightBytes, p.WeightBytes)
		}
		s.Close()
		if !reflect.DeepEqual([]plan.RangeFigure{r.Arena, r.Scratch, r.IO, r.Worst}, []plan.RangeFigure{want.Arena, want.Scratch, want.IO, want.Worst}) ||
			r.WeightBytes != want.WeightBytes || r.Sizes != 101 || r.Refused != 0 || r.Structures+r.Instances != r.Sizes || r.Structures > 4 {
			t.Errorf("k = %d: got\n%+v\nwant\n%+v", k, *r, want)
		}
	}
	if step == 1 && len(worst) != 101 {
		t.Errorf("%d sizes of 101 had the largest arena", len(worst))
	}
}

// rowsOf makes an input of spiky.
func rowsOf(n int) *tensor.Tensor {
	values := make([]float32, n*4)
	for i := range values {
		values[i] = float32(i%3) / 16
	}
	return must(tensor.Of(values, n, 4))
}

// TestWithUpTo runs every size in mixed order, compares the outputs with those
// of a session without bounds, and the memory with the promise: it is never
// exceeded, and each figure is reached.
func TestWithUpTo(t *testing.T) {
	memorytest.Check(t)
	m := spikyModel(t, 3)
	plain := must(m.NewSession())
	outputs, arenas := make([][]float32, 101), make([]int64, 101)
	for n := range outputs {
		x := rowsOf(n)
		out := must(plain.Run(t.Context(), tenure.Inputs{"x": x}))
		outputs[n], arenas[n] = must(tensor.Values[float32](out["y"])), must(plain.Plan(t.Context(), tenure.Shapes{"x": {n, 4}})).ArenaBytes
		released(t, x, out)
	}
	released(t, closer{plain})
	for _, keeps := range []bool{true, false} {
		t.Run(fmt.Sprintf("keeps %v", keeps), func(t *testing.T) {
			opts := []tenure.SessionOption{tenure.WithUpTo("n", 100), tenure.WithPlans(3)}
			if !keeps {
				opts = append(opts, tenure.WithGiveBack())
			}
			before := memory.Stats()
			s := must(m.NewSession(opts...))
			r := s.Promise()
			if got := arenaSince(before); keeps && got != r.Arena.Bytes || !keeps && got != 0 {
				t.Errorf("a new session has %d bytes of arena, promised %d", got, r.Arena.Bytes)
			}
			var arena, io, run int64
			for _, n := range rand.New(rand.NewPCG(1, 2)).Perm(101) {
				x := rowsOf(n)
				out := must(s.Run(t.Context(), tenure.Inputs{"x": x}))
				if got := must(tensor.Values[float32](out["y"])); !slices.Equal(got, outputs[n]) {
					t.Errorf("n = %d: got %v, want %v", n, got, outputs[n])
				}
				took, tensors := arenaSince(before), int64(x.NumBytes()+out["y"].NumBytes())
				if keeps && took != r.Arena.Bytes || !keeps && (took > r.Arena.Bytes || took > arenas[n]+arenas[n]/50) {
					t.Errorf("n = %d: got an arena of %d bytes, promised %d, planned %d", n, took, r.Arena.Bytes, arenas[n])
				}
				arena, io, run = max(arena, took), max(io, tensors), max(run, took+tensors)
				released(t, x, out)
			}
			want := r.PerRun()
			if !keeps {
				want = r.Worst.Bytes
			}
			if arena != r.Arena.Bytes || io != r.IO.Bytes || run != want {
				t.Errorf("measured %d of arena, %d of inputs and outputs, %d in a run, want %d, %d and %d", arena, io, run, r.Arena.Bytes, r.IO.Bytes, want)
			}
			released(t, closer{s})
		})
	}
}

// arenaSince returns the bytes of arenas and scratch that were taken since
// then.
func arenaSince(then memory.Figures) int64 {
	now := memory.Stats()
	return now.Of(memory.Activations).Current - then.Of(memory.Activations).Current + now.Of(memory.Scratch).Current - then.Of(memory.Scratch).Current
}

// closer releases by Close.
type closer struct{ io.Closer }

func (c closer) Release() error { return c.Close() }

func released(t *testing.T, list ...interface{ Release() error }) {
	t.Helper()
	for _, x := range list {
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
}

// TestUpToConcurrent runs sizes at once: each run has an arena of its own.
func TestUpToConcurrent(t *testing.T) {
	memorytest.Check(t)
	m := spikyModel(t, 3)
	before := memory.Stats()
	s := must(m.NewSession(tenure.WithUpTo("n", 100), tenure.WithMaxConcurrent(3)))
	r := s.Promise()
	if got := arenaSince(before); got != 3*r.Arena.Bytes || r.Total() != r.WeightBytes+3*r.PerRun() {
		t.Errorf("got %d bytes for 3 runs, %d in all, want 3 arenas of %d", got, r.Total(), r.Arena.Bytes)
	}
	if err := s.Prepare(t.Context(), tenure.Shapes{"x": {100, 4}}, tenure.Shapes{"x": {7, 4}}); err != nil {
		t.Error(err)
	}
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for n := i; n <= 100; n += 6 {
				x := rowsOf(n)
				out, err := s.Run(context.Background(), tenure.Inputs{"x": x})
				if err != nil {
					t.Error(err)
				}
				released(t, x, out)
			}
		})
	}
	wg.Wait()
	if got := arenaSince(before); got != 3*r.Arena.Bytes {
		t.Errorf("got %d bytes after the runs, want those of before", got)
	}
	released(t, closer{s})
}

// dimsModel has an input with a dimension without a name, and one whose name is
// a sum.
func dimsModel(t testing.TB) *tenure.Model {
	p := must(ir.Parse(`
	func @dims(%x: f32[past,?], %y: f32["past + 2",?], %z: f32[past,3]) {
		%s = concat(%x, %y) {axis = 0}
		%e = exp(%s)
		%f = mul(%e, %e)
		%g = relu(%z)
		return %f, %g
	}`, op.Builtin()))
	m := must(tenure.LoadProgram(p, nil))
	t.Cleanup(func() { m.Close() })
	return m
}

func TestDimensionsOfBounds(t *testing.T) {
	memorytest.Check(t)
	m := dimsModel(t)
	s := must(m.NewSession(tenure.WithUpTo("past", 5), tenure.WithUpTo("x[1]", 4), tenure.WithSizes("y[1]", 3, 1, 3)))
	defer s.Close()
	r := s.Promise()
	if r.Sizes+r.Refused != 6*5*2 || r.Sizes != 6*2 || len(r.Refusals) == 0 || r.Where(r.Arena.At) != "past=5, x[1]=3, y[1]=3" {
		t.Errorf("got %+v, want 12 sizes: those in which columns agree", *r)
	}
	run := func(past, columns, rows, others int) error {
		x, y, z := must(tensor.Of(make([]float32, past*columns), past, columns)), must(tensor.Of(make([]float32, rows*others), rows, others)), must(tensor.Of(make([]float32, past*3), past, 3))
		out, err := s.Run(t.Context(), tenure.Inputs{"x": x, "y": y, "z": z})
		released(t, x, y, z, out)
		return err
	}
	for _, test := range []struct {
		past, columns, rows, others int
		want                        string
	}{
		{5, 3, 7, 3, ""},
		{0, 1, 2, 1, ""},
		{6, 3, 8, 3, `run: input "x": got f32[6,3], in which dimension "past" has the size 6, want at most 5 (WithUpTo): `},
		{4, 3, 7, 3, `run: input "y": got f32[7,3], in which dimension "past + 2" has the size 7, want 6, the sum that its name says: `},
		{4, 3, 6, 2, `run: input "y": got f32[6,2], in which dimension "y[1]" has the size 2, want one of 2 sizes from 1 to 3 (WithSizes): `},
		{4, 5, 6, 3, `run: input "x": got f32[4,5], in which dimension "x[1]" has the size 5, want at most 4 (WithUpTo): `},
		{4, 1, 6, 3, "run: "}, // the model's own rule
	} {
		err := run(test.past, test.columns, test.rows, test.others)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), test.want) || !errors.Is(err, tenure.ErrShape)) {
			t.Errorf("%+v: got %v", test, err)
		}
		if strings.Contains(test.want, "dimension") && !errors.Is(err, tenure.ErrInput) {
			t.Errorf("%+v: got %v, want ErrInput", test, err)
		}
	}
	if _, err := s.Plan(t.Context(), tenure.Shapes{"x": {6, 3}, "y": {8, 3}, "z": {6, 3}}); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("a plan beyond the bounds: got %v, want ErrInput", err)
	}
}

func TestBoundErrors(t *testing.T) {
	memorytest.Check(t)
	dims, spiky := dimsModel(t), spikyModel(t, 0)
	even := must(tenure.LoadProgram(must(ir.Parse(`
	func @even(%x: f32[n,4]) {
		weight @target: i64[3]
		%y = reshape(%x, @target)
		%z = exp(%y)
		return %z
	}`, op.Builtin())), ir.WeightMap{"target": slices.Concat(binary.LittleEndian.AppendUint64(nil, ^uint64(0)), binary.LittleEndian.AppendUint64(nil, 2), binary.LittleEndian.AppendUint64(nil, 8))}))
	defer even.Close()
	deciding := must(tenure.LoadProgram(must(ir.Parse(`
	func @deciding(%x: f32[n,4], %to: i64[2]) {
		%y = reshape(%x, %to)
		%z = exp(%y)
		return %z
	}`, op.Builtin())), nil))
	defer deciding.Close()
	upTo, of := tenure.WithUpTo, tenure.WithSizes
	for _, test := range []struct {
		m    *tenure.Model
		opts []tenure.SessionOption
		want string
		kind error
	}{
		{spiky, []tenure.SessionOption{upTo("m", 5)}, `got bounds for the dimension "m", want one of "n"`, tenure.ErrInput},
		{spiky, []tenure.SessionOption{upTo("x[1]", 5)}, `dimension "x[1]": got bounds for a dimension whose size is 4 in the model`, tenure.ErrInput},
		{spiky, []tenure.SessionOption{upTo("n", 5), upTo("x[0]", 5)}, `dimension "n": it is given twice`, tenure.ErrInput},
		{spiky, []tenure.SessionOption{upTo("n", 0)}, `dimension "n": got the bound 0, want 1 or more`, tenure.ErrInput},
		{spiky, []tenure.SessionOption{upTo("n", -1)}, `got the bound -1`, tenure.ErrInput},
		{spiky, []tenure.SessionOption{of("n")}, `dimension "n": got the sizes [], want one or more`, tenure.ErrInput},
		{spiky, []tenure.SessionOption{of("n", 3, -1)}, `got the sizes [3 -1]`, tenure.ErrInput},
		{dims, []tenure.SessionOption{upTo("past", 4)}, `got no bounds for "x[1]", "y[1]", want some for every open dimension`, tenure.ErrInput},
		{even, []tenure.SessionOption{of("n", 1, 3, 5)}, `within which the model takes no size: n=5: `, tenure.ErrShape},
		{deciding, []tenure.SessionOption{upTo("n", 4)}, `n=4: the values of input "to" decide the size`, tenure.ErrUnsupported},
	} {
		s, err := test.m.NewSession(test.opts...)
		if s != nil || err == nil || !strings.Contains(err.Error(), test.want) || !errors.Is(err, test.kind) || !strings.HasPrefix(err.Error(), "new session: ") {
			t.Errorf("session: got %v, want %v: %s", err, test.kind, test.want)
		}
		if _, err := test.m.PlanUpTo(t.Context(), test.opts...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("plan: got %v, want %s", err, test.want)
		}
	}
	r := must(even.PlanUpTo(t.Context(), upTo("n", 9)))
	if r.Sizes != 3 || r.Refused != 7 || len(r.Refusals) != 5 || r.Refusals[0].At[0] != 9 || r.Where(r.Arena.At) != "n=8" {
		t.Errorf("got %+v, want the sizes 0, 4 and 8", *r)
	}
	if _, err := spiky.Plan(t.Context(), tenure.Shapes{"x": {2, 4}}, upTo("n", 3)); !errors.Is(err, tenure.ErrInput) || !strings.Contains(err.Error(), "PlanUpTo") {
		t.Errorf("a plan of one set of sizes with bounds: got %v, want ErrInput", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := spiky.PlanUpTo(ended, upTo("n", 3)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	if old := memory.SetLimit(memory.Stats().Total.Current + 100); true {
		_, err := spiky.NewSession(upTo("n", 100))
		memory.SetLimit(old)
		if !errors.Is(err, tenure.ErrLimit) {
			t.Errorf("no memory for the arena: got %v, want ErrLimit", err)
		}
	}
}

// TestCheckRange changes the figures of a promise.
func TestCheckRange(t *testing.T) {
	memorytest.Check(t)
	m := modeltest.Load(t, digits)
	r := modeltest.Must(m.PlanUpTo(t.Context(), tenure.WithUpTo("batch", 4), tenure.WithThreads(2)))
	if err := m.CheckRange(t.Context(), r); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(r *plan.Range){
		"arena: got":                  func(r *plan.Range) { r.Arena.Bytes-- },
		"scratch: got":                func(r *plan.Range) { r.Scratch.Bytes-- },
		"io: got":                     func(r *plan.Range) { r.IO.Bytes-- },
		"worst: got":                  func(r *plan.Range) { r.Worst.Bytes-- },
		"weights: got":                func(r *plan.Range) { r.WeightBytes-- },
		"got 4 sizes that are":        func(r *plan.Range) { r.Sizes-- },
		"for batch=5":                 func(r *plan.Range) { r.Dims[0].Most++ },
		`dimension "rows"`:            func(r *plan.Range) { r.Dims[0].Name = "rows" },
		"threads: got 5000, want":     func(r *plan.Range) { r.Threads = 5000 },
		"open dimension (WithUpTo, W": func(r *plan.Range) { r.Dims = nil },
	} {
		broken := *r
		broken.Dims = slices.Clone(r.Dims)
		change(&broken)
		if err := m.CheckRange(t.Context(), &broken); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	larger := *r
	larger.Arena.Bytes++
	if err := m.CheckRange(t.Context(), &larger); err != nil {
		t.Errorf("a promise of more: %v", err)
	}
	if err := m.CheckRange(t.Context(), nil); !errors.Is(err, tenure.ErrInput) {
		t.Errorf("got %v, want ErrInput", err)
	}
}

// TestPromiseOfParts holds the promise of a program that puts values together
// against the plans of single sizes: parts are computed in place where sizes
// are planned one by one, and copied in the boxes of more.
func TestPromiseOfParts(t *testing.T) {
	memorytest.Check(t)
	p := must(ir.Parse(`
	func @parts(%x: f32[1,n,16]) {
		%a = relu(%x)
		%b = neg(%x)
		%c = concat(%a, %b) {axis = 1}
		%d = softmax(%c) {axis = 1}
		%e = transpose(%d) {perm = [0,2,1]}
		return %e
	}`, op.Builtin()))
	m := must(tenure.LoadProgram(p, nil))
	defer m.Close()
	const most = 100
	alone := must(m.Plan(t.Context(), tenure.Shapes{"x": {1, most, 16}}))
	part := int64(64 * most)
	if alone.ArenaBytes != 2*part {
		t.Errorf("got an arena of %d bytes for the largest size, want %d", alone.ArenaBytes, 2*part)
	}
	each := must(m.PlanUpTo(t.Context(), tenure.WithUpTo("n", most)))
	if each.Arena.Bytes != alone.ArenaBytes {
		t.Errorf("got a promise of %d bytes of arena, want %d as of the largest size", each.Arena.Bytes, alone.ArenaBytes)
	}
	many := must(m.PlanUpTo(t.Context(), tenure.WithUpTo("n", 10000)))
	if want := 4 * int64(64*10000); many.Arena.Bytes != want || many.Boxes == 0 {
		t.Errorf("got a promise of %d bytes of arena and %d boxes, want %d and some", many.Arena.Bytes, many.Boxes, want)
	}
}
