package tenure_test

import (
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// A model whose file is read reports that, and its first session that weights
// are packed: each stage from nothing to all of it. A second session finds them
// packed.
func TestProgress(t *testing.T) {
	memorytest.Check(t)
	var calls []tenure.Progress
	m, err := tenure.Load("examples/digits/digits.onnx", tenure.WithWeights(tenure.Read), tenure.WithProgress(func(p tenure.Progress) { calls = append(calls, p) }))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	want := func(stage tenure.Stage) {
		t.Helper()
		if len(calls) < 2 || calls[0].Done != 0 || calls[len(calls)-1].Done != calls[0].Total {
			t.Fatalf("got %v, want calls from nothing to all", calls)
		}
		for i, c := range calls {
			if c.Stage != stage || c.Total != calls[0].Total || i > 0 && c.Done < calls[i-1].Done {
				t.Errorf("got %v, want more and more of one %q", calls, stage)
			}
		}
		calls = nil
	}
	want(tenure.ReadingFile)
	for i := range 2 {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Plan(t.Context(), tenure.Shapes{"image": {1, 1, 8, 8}}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			want(tenure.PackingWeights)
		} else if len(calls) > 0 {
			t.Errorf("second session: got %v, want no calls", calls)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The function may ignore the progress.
func TestProgressOfNobody(t *testing.T) {
	memorytest.Check(t)
	m, err := tenure.Load("examples/digits/digits.onnx", tenure.WithWeights(tenure.Read), tenure.WithProgress(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}
