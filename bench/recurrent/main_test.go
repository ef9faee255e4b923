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
	file := filepath.Join(t.TempDir(), "recurrent.json")
	err = run([]string{"-python", self, "-ort", "", "-openvino", "", "-cells", "RNN,GRU,LSTM", "-hidden", "3", "-directions", "1,2", "-batch", "2", "-steps", "4",
		"-threads", "1", "-turns", "1", "-ms", "1", "-peak", "1", "-results", file}, &out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, row.Case[0])
		if row.Figures["ratio"].Median <= 0 || row.Figures["difference"].Median != 0 || row.Figures["of"].Median <= 0 {
			t.Errorf("%q: got %+v, want a ratio, and no difference of outputs that are not all zeros", row.Case, row.Figures)
		}
	}
	if want := "rnn-3-2 rnn-3-2-both gru-3-2 gru-3-2-both lstm-3-2 lstm-3-2-both"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for _, args := range [][]string{{"-cells", "X"}, {"-hidden", "0"}, {"-directions", "3"}} {
		if err := run(args, &out); err == nil || !strings.Contains(err.Error(), "got \"") {
			t.Errorf("%v: got error %v, want one that says what was wrong", args, err)
		}
	}
}
