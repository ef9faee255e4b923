package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/results"
)

func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plans.json")
	var out bytes.Buffer
	if err := run([]string{"-models", "mlp", "-results", file}, &out); err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	mlp, ok := r.Find("mlp")
	// Four layers of 1024 by 1024 weights and a bias of 1024, and 32 rows of
	// input and output.
	for name, want := range map[string]float64{"weights MiB": 4 * (4 + 1.0/256), "inputs and outputs MiB": 0.25} {
		if got := mlp.Figures[name].Median; !ok || got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if a, b := mlp.Figures["arena MiB"].Median, mlp.Figures["lower bound MiB"].Median; a < b || b <= 0 {
		t.Errorf("got an arena of %v MiB and a lower bound of %v, want no less than a bound above 0", a, b)
	}
	if !strings.Contains(out.String(), "mlp") {
		t.Errorf("got\n%s\nwant a table", out.String())
	}
	if err := run([]string{"-models", "none"}, &out); err == nil || !strings.Contains(err.Error(), `got "none"`) {
		t.Errorf("got error %v, want one with the name", err)
	}
}
