package solve_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/internal/plan/solve"
	"github.com/tenure-go/tenure/plan"
)

// benchmarks returns the packing benchmarks of the shared data folder.
func benchmarks(t testing.TB) map[string]*plan.Problem {
	t.Helper()
	shared := os.Getenv("TENURE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "..", "..", "shared")
	}
	files, err := filepath.Glob(filepath.Join(shared, "planner", "*.csv"))
	if err != nil || len(files) == 0 {
		t.Skipf("no packing benchmarks in %s/planner; TENURE_SHARED names another folder", shared)
	}
	problems := map[string]*plan.Problem{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.ReadCSV(file)
		file.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		problems[filepath.Base(name)] = p
	}
	return problems
}

// ratios are multiples of the lower bound: the best that greedy packing is
// known to reach on the benchmarks, by size or in order of time, and the best
// that the default effort reaches.
var ratios = map[string]struct{ greedy, reached float64 }{
	"A": {1.290, 1.091}, "B": {1.347, 1}, "C": {1.364, 1}, "D": {1.309, 1.114}, "E": {1.369, 1.185}, "F": {1.222, 1},
	"G": {1.219, 1.089}, "H": {1.173, 1}, "I": {1.410, 1.109}, "J": {1.318, 1.159}, "K": {1.290, 1.144},
}

func TestBenchmarks(t *testing.T) {
	problems := benchmarks(t)
	if p := problems["input.12.csv"]; p != nil {
		if a := solved(t, p, solve.Options{}); a.Size != 12 {
			t.Errorf("input.12: got %d, want 12", a.Size)
		}
	}
	for name, ratio := range ratios {
		p := problems[name+".1048576.csv"]
		if p == nil {
			t.Errorf("%s: got no such file beside %d others", name, len(problems))
			continue
		}
		bound := p.LowerBound().Bytes
		a := solved(t, p, solve.Options{})
		got := float64(a.Size) / float64(bound)
		if want := min(ratio.reached, ratio.greedy); got > want {
			t.Errorf("%s: got %.4f of the lower bound, want at most %.3f", name, got, want)
		}
		first := solved(t, p, solve.Options{Effort: -1})
		t.Logf("%s: %d bytes, %.4f of the lower bound, by %s; %.4f by %s", name, a.Size, got, a.Method,
			float64(first.Size)/float64(bound), first.Method)
	}
}

func BenchmarkSolve(b *testing.B) {
	for name, p := range map[string]*plan.Problem{"densenet121": densenet(false, false), "densenet121-inplace": densenet(true, false),
		"densenet121-joined": densenet(true, true), "resnet50-inplace": resnet()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := solve.Solve(context.Background(), p, solve.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
