package tenure

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// tenInputs returns a session that knows plans for ten inputs at so many
// batch sizes, and their targets.
func tenInputs(plans int) (*Session, []target) {
	s := &Session{}
	var targets []target
	for batch := range plans {
		t := target{donated: make([]bool, 10)}
		c := &cached{donated: t.donated, exe: &exec.Executable{}}
		for i := range 10 {
			sizes := shape.MustOf(1+batch, 3+i, 64, 64)
			t.types = append(t.types, op.Type{DType: dtype.F32, Shape: sizes})
			c.shapes = append(c.shapes, sizes)
		}
		s.plans = append(s.plans, c)
		targets = append(targets, t)
	}
	return s, targets
}

// A plan for ten inputs is found among several without an allocation; it is
// the one of those very shapes.
func TestPlanLookup(t *testing.T) {
	s, targets := tenInputs(4)
	want := map[int]*exec.Executable{}
	for i, c := range s.plans {
		want[i] = c.exe
	}
	i := 0
	if n := testing.AllocsPerRun(100, func() {
		i = (i + 3) % len(targets)
		if s.find(targets[i]) != want[i] {
			t.Fatalf("target %d: got another plan", i)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
	targets[0].types[9].Shape = shape.MustOf(1, 12, 64, 65)
	if s.find(targets[0]) != nil {
		t.Error("got a plan for a shape that none was made for")
	}
}

// Lookup of ten known shapes by sizes: the cost for a caller that has only
// sizes.
func BenchmarkPlanLookup(b *testing.B) {
	s, targets := tenInputs(4)
	b.Run("by shapes, the last one used", func(b *testing.B) {
		for b.Loop() {
			if s.find(targets[1]) == nil {
				b.Fatal("got no plan")
			}
		}
	})
	b.Run("by shapes, four in turn", func(b *testing.B) {
		i := 0
		for b.Loop() {
			if s.find(targets[i&3]) == nil {
				b.Fatal("got no plan")
			}
			i++
		}
	})
	b.Run("by sizes", func(b *testing.B) {
		t := target{types: make([]op.Type, 10), donated: make([]bool, 10)}
		for b.Loop() {
			for i := range t.types {
				sizes, err := shape.Of(2, 3+i, 64, 64)
				if err != nil {
					b.Fatal(err)
				}
				t.types[i].Shape = sizes
			}
			if s.find(t) == nil {
				b.Fatal("got no plan")
			}
		}
	})
}
