package main

import (
	"bytes"
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/bench/internal/engine"
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
	err = run([]string{"-python", self, "-ort", "", "-sizes", "1x3072x768,256x256x256", "-threads", "1", "-turns", "1", "-ms", "1", "-peak", "1", "-json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range r.Rows {
		got = append(got, row.Size+" "+row.B)
		if row.Difference != 0 || row.Tenure <= 0 || row.ORT <= 0 || row.Peak <= 0 || row.Threads != 1 || row.CPU == "" {
			t.Errorf("got row %+v, want speeds and no difference", row)
		}
		if (row.Read > 0) != strings.HasPrefix(row.Size, "1x") {
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

func TestTable(t *testing.T) {
	r := report{Machine: "test machine", When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ORT: "ONNX Runtime 1",
		Rows: []row{{Size: "1x2x3", B: "constant", CPU: "avx2", Threads: 2, Tenure: 90e9, ORT: 100e9, Peak: 180e9, Read: 120e9, Difference: 1e-6}}}
	var b bytes.Buffer
	if err := r.table(&b); err != nil {
		t.Fatal(err)
	}
	const want = `test machine, 2026-01-02T03:04:05Z
ONNX Runtime 1

  MxNxK         B   set  threads  Tenure GFLOP/s    ORT  Tenure/ORT   peak  Tenure/peak  of reading b  difference  others
  1x2x3  constant  avx2        2            90.0  100.0        0.90  180.0         0.50          0.75     1.0e-06     0.0
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
