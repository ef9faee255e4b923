package eager_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/eager"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

func TestScopeOwnsItsTemporaries(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1, -2)
	s := eager.NewScope()
	a := s.Neg(x)
	b := s.Relu(a)
	y := s.Keep(s.Add(a.Donate(), b))
	parts := s.Split(y, 0, 1, 1)
	if len(parts) != 2 {
		t.Fatal(s.Err())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for _, gone := range []*tensor.Tensor{a, b, parts[0], parts[1]} {
		if gone.Alive() {
			t.Errorf("%s lives on after the scope", gone)
		}
	}
	want(t, y, -1, 4)
	wantErr(t, "second close", s.Close(), nil)
	if s.Neg(x) != nil || !errors.Is(s.Err(), tensor.ErrReleased) {
		t.Errorf("an operation after the end: got %v", s.Err())
	}
	if got := s.Stats(); got.Calls != 4 || got.InPlace != 1 || got.Fresh != 2 || got.FreshBytes != 16 || got.Views != 2 {
		t.Errorf("got %+v", got)
	}
	release(t, x, y)
}

func TestScopeCountsByOperation(t *testing.T) {
	memorytest.Check(t)
	s := eager.NewScope(eager.ByOperation())
	x := s.Adopt(tensor.Of(make([]float32, 12), 3, 4))
	w := s.Adopt(tensor.Of(make([]float32, 20), 4, 5))
	transposed := s.Adopt(x.Transpose())
	s.Relu(s.Neg(s.MatMul(x, w).Donate()).Donate())
	s.Relu(transposed)
	s.Reshape(x, 12)
	want := []eager.OperationStats{
		{Operation: "matmul", Stats: eager.Stats{Calls: 1, Fresh: 1, FreshBytes: 60, ReadBytes: 48 + 80, WrittenBytes: 60}},
		{Operation: "relu", Stats: eager.Stats{Calls: 2, InPlace: 1, Fresh: 1, FreshBytes: 48, CopiedBytes: 48, ReadBytes: 60 + 48, WrittenBytes: 60 + 48}},
		{Operation: "neg", Stats: eager.Stats{Calls: 1, InPlace: 1, ReadBytes: 60, WrittenBytes: 60}},
		{Operation: "reshape", Stats: eager.Stats{Calls: 1, Views: 1, ReadBytes: 0}},
	}
	got := s.Operations()
	slices.SortFunc(want, func(a, b eager.OperationStats) int { return int(b.MovedBytes() - a.MovedBytes()) })
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	wantErr(t, "close", s.Close(), nil)
}

func TestScopeKeepsTheFirstError(t *testing.T) {
	memorytest.Check(t)
	x, y := vector(t, 1, 2), vector(t, 1, 2, 3)
	s := eager.NewScope()
	a := s.Add(x, y)
	if a != nil || !errors.Is(s.Err(), tensor.ErrShape) {
		t.Fatalf("got %v, want ErrShape", s.Err())
	}
	first := s.Err()
	b := s.Relu(a.Donate())
	c := s.Neg(x.Donate())
	_ = s.Split(c, 0, 1, 1)
	if s.Keep(b) != nil || s.Err() != first || !x.Alive() {
		t.Errorf("got %v and x alive %v, want the first error and nothing done", s.Err(), x.Alive())
	}
	wantErr(t, "close", s.Close(), tensor.ErrShape)
	release(t, x, y)
}

func TestScopeForgetsWhatDied(t *testing.T) {
	memorytest.Check(t)
	s := eager.NewScope()
	y := s.Adopt(tensor.Of([]float32{1}, 1))
	for range 1000 {
		y = s.Neg(y.Donate())
	}
	want(t, y, 1)
	if got := s.Stats(); got.InPlace != 1000 || got.FreshBytes != 0 {
		t.Errorf("got %+v, want 1000 results in place", got)
	}
	wantErr(t, "close", s.Close(), nil)
	if y.Alive() {
		t.Error("the last one lives on")
	}
}

func TestKeepAndAdoptRefuse(t *testing.T) {
	memorytest.Check(t)
	x := vector(t, 1)
	s := eager.NewScope()
	if s.Keep(x) != nil {
		t.Error("kept a tensor that is not the scope's")
	}
	wantErr(t, "keep", s.Err(), tensor.ErrReleased, "does not own")
	if s.Adopt(x, nil) != nil || x.Alive() {
		t.Error("a scope with an error must release what it is given")
	}
	wantErr(t, "close", s.Close(), tensor.ErrReleased)

	s = eager.NewScope()
	if s.Adopt(nil, nil) != nil {
		t.Error("adopted nothing")
	}
	wantErr(t, "adopt", s.Err(), tensor.ErrNoTensor)

	s = eager.NewScope()
	cause := errors.New("no tensor today")
	s.Adopt(nil, cause)
	wantErr(t, "adopt an error", s.Close(), cause)
	s.Keep(nil)
	s.Adopt(nil, nil)
}

// counted is a source that counts the buffers that it allocates.
type counted struct{ buffers int }

func (c *counted) Alloc(bytes int) (*memory.Buffer, error) {
	c.buffers++
	return memory.Alloc(bytes, memory.Scratch)
}

func TestScopeTakesFromItsSource(t *testing.T) {
	memorytest.Check(t)
	for _, keep := range []eager.KeepPolicy{eager.CopyOut, eager.HoldOpen} {
		src := new(counted)
		s := eager.NewScope(eager.From(src, keep))
		x := vector(t, 1, -2)
		y := s.Relu(x)
		at := address(y)
		z := s.Keep(y)
		if src.buffers != 1 || (address(z) == at) != (keep == eager.HoldOpen) {
			t.Errorf("policy %d: got %d buffers of the source, kept in place %v", keep, src.buffers, address(z) == at)
		}
		wantErr(t, "close", s.Close(), nil)
		want(t, z, 1, 0)
		release(t, x, z)
	}
}

// In an arena a scope reuses the same few buffers for its temporaries, and a
// kept result outlives the arena or holds it open.
func TestScopeInAnArena(t *testing.T) {
	memorytest.Check(t)
	for _, keep := range []eager.KeepPolicy{eager.CopyOut, eager.HoldOpen} {
		arena, err := memory.NewArena(1<<16, memory.Activations)
		if err != nil {
			t.Fatal(err)
		}
		x := of(t, make([]float32, 1000), 1000)
		var kept *tensor.Tensor
		for range 5 {
			s := eager.NewScope(eager.From(arena, keep))
			y := s.AddScalar(x, 1)
			for range 20 {
				next := s.AddScalar(y, 1)
				wantErr(t, "release", y.Release(), nil)
				y = next
			}
			if kept != nil {
				release(t, kept)
			}
			kept = s.Keep(y)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		got := arena.Stats()
		if got.Fresh > 3 || got.Reused < 90 {
			t.Errorf("got %+v, want at most 3 buffers taken for 105 results", got)
		}
		if err := arena.Clear(); (err != nil) != (keep == eager.HoldOpen) {
			t.Errorf("policy %d: clear with a tensor kept: got %v", keep, err)
		}
		if v, err := tensor.Values[float32](kept); err != nil || v[999] != 21 {
			t.Errorf("kept: got %v and %v, want 21", v[999], err)
		}
		release(t, x, kept)
		wantErr(t, "close", arena.Close(), nil)
	}
}
