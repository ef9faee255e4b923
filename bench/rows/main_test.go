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
	err = run([]string{"-python", self, "-ort", "", "-elements", "65536", "-threads", "1", "-turns", "1", "-ms", "1", "-peak", "1", "-json"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != len(operators) {
		t.Fatalf("got %d rows, want %d", len(r.Rows), len(operators))
	}
	for i, row := range r.Rows {
		op := operators[i]
		if row.Operator != op.name || row.Form != op.form() || row.Difference != 0 || row.Tenure <= 0 || row.ORT <= 0 || row.Ordinary <= 0 {
			t.Errorf("got row %+v, want %s %s with times and no difference", row, op.name, op.form())
		}
		if (row.Streaming > 0) == op.given {
			t.Errorf("%s %s: got %d ns of streaming, want some out of place only", op.name, op.form(), row.Streaming)
		}
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

func TestTable(t *testing.T) {
	r := report{Machine: "test machine", When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), ORT: "ONNX Runtime 1", Elements: 64 << 20, Rows: []row{
		{Operator: "add", Form: "into", Threads: 1, Tenure: 60e6, ORT: 64e6, Ordinary: 57e6, Streaming: 36e6, Difference: 1e-7},
		{Operator: "add", Form: "given", Threads: 2, Tenure: 18e6, ORT: 18e6, Ordinary: 17e6},
	}}
	var b bytes.Buffer
	if err := r.table(&b); err != nil {
		t.Fatal(err)
	}
	const want = `test machine, 2026-01-02T03:04:05Z
ONNX Runtime 1; 67108864 elements

  operator   form  threads  Tenure ms  ORT ms  Tenure/ORT  limit ms  of limit  streaming ms  of streaming  difference  others
       add   into        1      60.00   64.00        0.94     57.00      0.95         36.00          0.60     1.0e-07     0.0
       add  given        2      18.00   18.00        1.00     17.00      0.94             -             -     0.0e+00     0.0
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
