package acceptance_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// picker returns a model that outputs the places of x's elements that are not
// zero, those elements, and their number.
func picker(t *testing.T) *tenure.Model {
	t.Helper()
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n", 100)
	g.Node("NonZero", []string{"x"}, []string{"at"})
	g.Node("Transpose", []string{"at"}, []string{"tuples"}, onnxtest.Ints("perm", 1, 0))
	g.Node("GatherND", []string{"x", "tuples"}, []string{"found"})
	g.Node("Relu", []string{"found"}, []string{"positive"})
	g.Node("Size", []string{"positive"}, []string{"count"})
	g.Output("at")
	g.Output("positive")
	g.Output("count")
	return modeltest.LoadBytes(t, g.File())
}

// Values whose size depends on data are there for as long as a run needs
// them, outside the promise, and outputs among them go to the caller.
func TestSizesThatDependOnData(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, picker(t))
	p, err := s.Plan(context.Background(), tenure.Shapes{"x": {20, 100}})
	if err != nil {
		t.Fatal(err)
	}
	var unpromised []string
	for _, u := range p.Unpromised {
		unpromised = append(unpromised, u.Value)
	}
	if want := []string{"at", "tuples", "found", "positive"}; !slices.Equal(unpromised, want) {
		t.Fatalf("unpromised: got %q, want %q", unpromised, want)
	}
	var baseline int64
	for round, count := range []int{1200, 3, 0, 2000, 1200} {
		data := make([]float32, 2000)
		for i := range count {
			data[i] = float32(i + 1)
		}
		x := modeltest.Of(t, data, 20, 100)
		out := modeltest.Run(t, s, tenure.Inputs{"x": x})
		positive := modeltest.Values(t, out["positive"])
		if !slices.Equal(positive, data[:count]) {
			t.Fatalf("got %d elements, want the first %d of x", len(positive), count)
		}
		if at, _ := tensor.Values[int64](out["at"]); len(at) != 2*count || count > 101 && (at[101] != 1 || at[count+101] != 1) {
			t.Fatalf("at: got %v, want [2,%d] places in order", out["at"].Shape(), count)
		}
		if !out["positive"].IsExclusive() || !out["at"].IsExclusive() {
			t.Fatal("got an output that has another holder")
		}
		if err := errors.Join(out.Release(), x.Release()); err != nil {
			t.Fatal(err)
		}
		now := memory.Stats().Total.Current
		if round == 0 {
			baseline = now
		}
		if now != baseline {
			t.Fatalf("round %d: got %d bytes held after the run, want %d as after the first", round, now, baseline)
		}
	}
}

func TestIntoAnOutputWithoutASize(t *testing.T) {
	memorytest.Check(t)
	s := modeltest.Session(t, picker(t))
	x, y := modeltest.Of(t, make([]float32, 100), 1, 100), modeltest.Of(t, make([]float32, 4), 4)
	_, err := s.Run(context.Background(), tenure.Inputs{"x": x}, tenure.Into("positive", y))
	if !errors.Is(err, tenure.ErrUnsupported) || !strings.Contains(err.Error(), "depends on data") {
		t.Fatalf("got %v, want ErrUnsupported that says why", err)
	}
}

// The promise counts every run that may be under way.
func TestPromiseOfConcurrentRuns(t *testing.T) {
	memorytest.Check(t)
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "n")
	g.Node("Relu", []string{"x"}, []string{"y"})
	g.Node("Exp", []string{"y"}, []string{"z"})
	g.Output("z")
	m := modeltest.LoadBytes(t, g.File())
	plans := map[int]int64{}
	for _, n := range []int{1, 3} {
		p, err := modeltest.Session(t, m, tenure.WithMaxConcurrent(n)).Plan(context.Background(), tenure.Shapes{"x": {1000}})
		if err != nil {
			t.Fatal(err)
		}
		if p.MaxConcurrent != n || p.Total() != p.WeightBytes+int64(n)*p.PerRun() {
			t.Fatalf("got a total of %d for %d runs, want %d + %d * %d", p.Total(), p.MaxConcurrent, p.WeightBytes, n, p.PerRun())
		}
		plans[n] = p.PerRun()
	}
	if plans[1] != plans[3] {
		t.Fatalf("got %d and %d bytes per run, want the same", plans[1], plans[3])
	}
}
