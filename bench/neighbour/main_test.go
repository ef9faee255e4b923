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
	countIfAsked()
	os.Exit(m.Run())
}

// Tenure plays both engines.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("resident sizes are read from /proc")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run([]string{"-python", self, "-ort", "", "-models", "mlp", "-turns", "2", "-json"}, &out); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Runs != 2 || r.Alone {
		t.Fatalf("got %+v, want a row per engine", r)
	}
	for i, name := range []string{"Tenure", "ONNX Runtime"} {
		if row := r.Rows[i]; row.Engine != name || row.Model != "mlp" || row.One <= 0 || row.Two <= 0 {
			t.Errorf("got %+v, want times of %s", row, name)
		}
	}
	if err := run([]string{"-models", "none"}, &out); err == nil || !strings.Contains(err.Error(), `got "none"`) {
		t.Errorf("got error %v, want one with the name", err)
	}
}

// The busy process is busy, and ends when it is told to.
func TestBusy(t *testing.T) {
	end, err := busy()
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- end() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("got %v, want no error", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("got a process that goes on, want its end")
	}
}

func TestTable(t *testing.T) {
	r := report{Machine: "test machine", When: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Runs: 30, Rows: []row{{Model: "mlp", Engine: "Tenure", One: 2e6, Two: 2.1e6}}}
	var b bytes.Buffer
	if err := r.table(&b); err != nil {
		t.Fatal(err)
	}
	const want = `test machine, 2026-01-02T03:04:05Z
beside one busy process, medians of 30 runs

  model  engine  1 thread ms  2 threads ms  ratio
    mlp  Tenure        2.000         2.100   1.05
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}
