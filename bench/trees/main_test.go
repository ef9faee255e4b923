package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
)

// The test binary plays both engines.
func TestMain(m *testing.M) {
	engine.ServeIfAsked()
	os.Exit(m.Run())
}

// Tenure stands on both sides, and agrees with leaves.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident sizes are read from /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "trees.json")
	args := []string{"-python", self, "-ort", "", "-turns", "1", "-ms", "1", "-trees", "20", "-depth", "5", "-rows", "1,17", "-threads", "2", "-results", file}
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "leaves µs") {
		t.Errorf("got output %q, want a table", &out)
	}
	row, ok := r.Find("17", "2")
	if !ok || row.Figures["difference"].Median != 0 || row.Figures["of"].Median == 0 || row.Figures["leaves µs"].Median <= 0 {
		t.Errorf("got %v, want equal results of 17 rows, which are not 0", row)
	}
	for _, bad := range [][]string{{"-rows", "0"}, {"-rows", "x"}, {"-threads", "0"}} {
		if err := run(bad, &out); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}
