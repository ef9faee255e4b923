package tenure_test

import (
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/memory"
)

// TestTrim wants the bytes of arena and scratch back after a run, and the same
// answer from a run that takes them again.
func TestTrim(t *testing.T) {
	m := modeltest.Load(t, "examples/digits/digits.onnx")
	s := modeltest.Session(t, m, tenure.WithMaxConcurrent(3))
	x := modeltest.Of(t, modeltest.Ramp(64), 1, 1, 8, 8)
	first := modeltest.Values(t, modeltest.Run(t, s, tenure.Inputs{"image": x})["probabilities"])
	held := func() int64 {
		f := memory.Stats()
		return f.Of(memory.Activations).Current + f.Of(memory.Scratch).Current
	}
	p := modeltest.Must(s.Plan(t.Context(), tenure.Shapes{"image": {1, 1, 8, 8}}))
	before := held()
	if got, want := s.Trim(), p.ArenaBytes+p.ScratchBytes; got != want || before-held() != want {
		t.Errorf("got %d bytes, and %d less in use, want %d", got, before-held(), want)
	}
	if got := s.Trim(); got != 0 {
		t.Errorf("a second time: got %d bytes, want 0", got)
	}
	again := modeltest.Values(t, modeltest.Run(t, s, tenure.Inputs{"image": x})["probabilities"])
	for i := range first {
		if first[i] != again[i] {
			t.Fatalf("got %v after the arena was returned, want %v", again, first)
		}
	}
	bounded := modeltest.Session(t, m, tenure.WithUpTo("batch", 2))
	if got := bounded.Trim(); got != 0 {
		t.Errorf("with bounds: got %d bytes, want 0: they are promised", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := s.Trim() + (*tenure.Session)(nil).Trim(); got != 0 {
		t.Errorf("closed: got %d bytes, want 0", got)
	}
}
