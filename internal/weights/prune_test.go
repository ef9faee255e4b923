package weights

import (
	"testing"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestPrune drops the weights that a program does not have: their buffers go
// back, and bytes that another weight shares stay.
func TestPrune(t *testing.T) {
	memorytest.Check(t)
	s := New(Options{})
	kept, part := weightOf("kept", 100), weightOf("part", 10)
	for _, name := range []string{"kept", "dropped", "whole"} {
		if err := s.Derive(weightOf(name, 100), nil, 0, func(dst, _ []byte) { dst[80] = 7 }); err != nil {
			t.Fatal(err)
		}
	}
	mustView(t, s, part, weightOf("whole", 100), 80)
	before := memory.Stats().Of(memory.Weights)
	if err := s.Prune(programOf(kept, part)); err != nil {
		t.Fatal(err)
	}
	after := memory.Stats().Of(memory.Weights)
	if got := before.Buffers - after.Buffers; got != 1 {
		t.Errorf("got %d buffers back, want 1: whole's bytes are part's too", got)
	}
	if got := s.Figures().Derived; got != 400 {
		t.Errorf("got %d bytes counted as derived, want the 400 of kept", got)
	}
	if data, ok := s.Bytes(part); !ok || data[0] != 7 {
		t.Errorf("got %v, %v for the shared part, want its bytes", data, ok)
	}
	if _, ok := s.Bytes(weightOf("dropped", 100)); ok {
		t.Error("a dropped weight still has bytes")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
