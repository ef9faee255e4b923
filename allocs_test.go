package tenure_test

import (
	"context"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// wideText has more inputs than a tensor.Taken holds without allocating,
// several outputs, and a state.
const wideText = `
	func @wide(%a: f32[n,4], %b: f32[n,4], %c: f32[n,4], %d: f32[n,4], donate %state: f32[n,4]) {
		%ab = add(%a, %b)
		%cd = mul(%c, %d)
		%sum = add(%ab, %cd)
		%next = add(%state, %sum)
		return %ab, %cd, %sum, %next
	}`

// wide returns a session of wideText and its inputs: row sizes, of the values 0
// to 2.
func wide(t testing.TB, opts ...tenure.SessionOption) *tenure.Session {
	p, err := ir.Parse(wideText, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := tenure.LoadProgram(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return modeltest.Session(t, m, opts...)
}

func wideInputs(t testing.TB, rows int) [5]*tensor.Tensor {
	var in [5]*tensor.Tensor
	for i := range in {
		in[i] = modeltest.Of(t, modeltest.Ramp(4*rows), rows, 4)
	}
	return in
}

// fewestAllocs is testing.AllocsPerRun without the allocations of the runtime's
// own goroutines during one try.
func fewestAllocs(f func()) float64 {
	n := testing.AllocsPerRun(100, f)
	for range 9 {
		n = min(n, testing.AllocsPerRun(100, f))
	}
	return n
}

func skipWhereRunsAllocate(t *testing.T) {
	t.Helper()
	if invariant.Enabled || invariant.Race {
		t.Skip("skipped: this build remembers call sites, or the race detector allocates")
	}
}

// TestRunAllocations counts the allocations of a run: those of tensor.Make for
// each output that it makes, and a map.
func TestRunAllocations(t *testing.T) {
	skipWhereRunsAllocate(t)
	memorytest.Check(t)
	s := wide(t, tenure.WithThreads(1))
	x := wideInputs(t, 2)
	release := func(x *tensor.Tensor) {
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
	source := memory.Process(memory.IO)
	each := fewestAllocs(func() { release(modeltest.Must(tensor.Make(source, x[0].DType(), x[0].Shape()))) })
	in := tenure.Inputs{"a": x[0], "b": x[1], "c": x[2], "d": x[3], "state": x[4]}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := fewestAllocs(func() {
		out, err := s.Run(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		if err := out.Release(); err != nil {
			t.Error(err)
		}
	})
	if want := 4*each + 2; got != want {
		t.Errorf("borrowed: got %v allocations, want %v: 4 outputs of %v, and 2 for their map", got, want, each)
	}
	state := modeltest.Must(x[4].Copy(memory.IO))
	got = fewestAllocs(func() {
		in["state"] = state.Donate()
		out, err := s.Run(ctx, in)
		if err != nil {
			t.Fatal(err)
		}
		state = out["next"]
		delete(out, "next")
		if err := out.Release(); err != nil {
			t.Error(err)
		}
	})
	if want := 3*each + 1 + 2; got != want {
		t.Errorf("donated: got %v allocations, want %v: 3 outputs of %v, a tensor in the donated bytes, and 2 for their map", got, want, each)
	}
	release(state)
}

// TestBoundRunsAllocateNothing runs into the tensors of the run before.
func TestBoundRunsAllocateNothing(t *testing.T) {
	skipWhereRunsAllocate(t)
	memorytest.Check(t)
	for _, threads := range []int{1, 2} {
		s := wide(t, tenure.WithThreads(threads))
		x := wideInputs(t, 300)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		none := func(name string, f func() error) {
			t.Helper()
			if got := fewestAllocs(func() {
				if err := f(); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}); got != 0 {
				t.Errorf("%d threads, %s: got %v allocations, want none", threads, name, got)
			}
		}

		out := make([]*tensor.Tensor, 4)
		in := []tensor.Operand{x[0], x[1], x[2], x[3], x[4]}
		none("RunInto", func() error { return s.RunInto(ctx, in, out) })
		none("RunInto with a donated state", func() error {
			in[4] = out[3].Donate()
			return s.RunInto(ctx, in, out)
		})
		none("RunInto, operands listed in the call", func() error {
			return s.RunInto(ctx, []tensor.Operand{x[0], x[1], x[2], x[3], x[4]}, out)
		})
		for _, y := range out {
			if err := y.Release(); err != nil {
				t.Error(err)
			}
		}

		b := modeltest.Must(s.Bind())
		none("Binding", func() error {
			_, err := b.Run(ctx, x[0], x[1], x[2], x[3], x[4])
			return err
		})
		last, err := b.Run(ctx, x[0], x[1], x[2], x[3], x[4])
		if err != nil {
			t.Fatal(err)
		}
		none("Binding with a donated state", func() error {
			var err error
			last, err = b.Run(ctx, x[0], x[1], x[2], x[3], last[3].Donate())
			return err
		})
		mine := modeltest.Of(t, make([]float32, 1200), 300, 4)
		if err := b.Into(2, mine); err != nil {
			t.Fatal(err)
		}
		none("Binding with an output of the caller", func() error {
			_, err := b.Run(ctx, x[0], x[1], x[2], x[3], x[4])
			return err
		})
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}
