package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
)

func TestMain(m *testing.M) {
	engine.ServeIfAsked()
	os.Exit(m.Run())
}

// Tenure plays both sides.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident sizes are read from /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	file := filepath.Join(t.TempDir(), "rows.json")
	err = run([]string{"-python", self, "-ort", "", "-elements", "65536", "-threads", "1", "-turns", "1", "-ms", "1", "-peak", "1", "-results", file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(operators) || r.Benchmark != "rows" {
		t.Fatalf("got %d rows of %s, want %d of rows", len(r.Rows), r.Benchmark, len(operators))
	}
	for i, row := range r.Rows {
		op := operators[i]
		if want := []string{op.name, op.form(), "1"}; !slices.Equal(row.Case, want) {
			t.Errorf("got case %q, want %q", row.Case, want)
		}
		for _, name := range []string{"Tenure ms", "ONNX Runtime ms", "ratio", "limit ms", "of the limit"} {
			if row.Figures[name].Median <= 0 || row.Figures[name].Pairs != 1 {
				t.Errorf("%q: got %s %+v, want more than 0 of one turn", row.Case, name, row.Figures[name])
			}
		}
		if d, ok := row.Figures["difference"]; !ok || d.Median != 0 {
			t.Errorf("%q: got difference %v, want 0", row.Case, d)
		}
		if _, streams := row.Figures["streaming ms"]; streams == op.given {
			t.Errorf("%q: got a streaming limit %v, want one out of place only", row.Case, streams)
		}
	}
	if !strings.Contains(out.String(), "of streaming") {
		t.Errorf("got\n%s\nwant a table", out.String())
	}
	for want, args := range map[string][]string{
		`got "cos", want relu`:                  {"-operators", "cos"},
		"got 1000, want a multiple of 1024":     {"-operators", "relu", "-elements", "1000"},
		`-threads: got "-1", want numbers from`: {"-threads", "-1"},
	} {
		if err := run(args, &out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want %q", args, err, want)
		}
	}
}
