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
	file := filepath.Join(t.TempDir(), "fewbits.json")
	err = run([]string{"-python", self, "-ort", "", "-layers", "1", "-width", "64", "-bits", "2,8", "-levels", "4", "-rows", "1,9", "-threads", "1",
		"-turns", "1", "-ms", "1", "-peak", "1", "-results", file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, strings.Join(row.Case, " "))
		for _, name := range []string{"Tenure ms", "ONNX Runtime ms", "ratio", "of reading", "peak / weights and promise"} {
			if row.Figures[name].Median <= 0 {
				t.Errorf("%q: got %s %+v, want more than 0", row.Case, name, row.Figures[name])
			}
		}
		if row.Figures["difference"].Median != 0 || row.Figures["of"].Median <= 0 {
			t.Errorf("%q: got difference %+v of %+v, want none of some", row.Case, row.Figures["difference"], row.Figures["of"])
		}
	}
	if want := "2 4 1 1, 2 4 9 1, 8 4 1 1, 8 4 9 1"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if err := run([]string{"-bits", "x"}, &out); err == nil || !strings.Contains(err.Error(), `got "x", want whole numbers`) {
		t.Errorf("got error %v, want one about numbers", err)
	}
}
