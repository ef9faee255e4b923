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
	file := filepath.Join(t.TempDir(), "sgemm.json")
	err = run([]string{"-python", self, "-ort", "", "-sizes", "1x3072x768,256x256x256", "-threads", "1", "-turns", "1", "-ms", "1", "-peak", "1", "-results", file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, row.Case[0]+" "+row.Case[1])
		for _, name := range []string{"Tenure GFLOP/s", "ONNX Runtime GFLOP/s", "speed ratio", "peak GFLOP/s", "of the peak"} {
			if row.Figures[name].Median <= 0 {
				t.Errorf("%q: got %s %+v, want more than 0", row.Case, name, row.Figures[name])
			}
		}
		if row.Figures["difference"].Median != 0 || row.Case[2] == "" || row.Case[3] != "1" {
			t.Errorf("got row %+v, want an instruction set, one thread and no difference", row)
		}
		if _, reads := row.Figures["of reading b"]; reads != strings.HasPrefix(row.Case[0], "1x") {
			t.Errorf("got row %+v, want how fast memory is read for one row alone", row)
		}
	}
	if want := "1x3072x768 constant, 1x3072x768 dynamic, 256x256x256 constant, 256x256x256 dynamic"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if err := run([]string{"-sizes", "1x1x1"}, &out); err == nil || !strings.Contains(err.Error(), `got "1x1x1", want some of [256x256x256 `) {
		t.Errorf("got error %v, want one with the sizes", err)
	}
}
