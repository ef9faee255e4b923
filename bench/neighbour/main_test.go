package main

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tenure-go/tenure/bench/internal/engine"
	"github.com/tenure-go/tenure/bench/internal/results"
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
	file := filepath.Join(t.TempDir(), "neighbour.json")
	if err := run([]string{"-python", self, "-ort", "", "-models", "mlp", "-turns", "2", "-results", file}, &out); err != nil {
		t.Fatal(err)
	}
	r, err := results.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 2 || r.Note != "beside a busy process" {
		t.Fatalf("got %+v, want a row per engine", r)
	}
	for i, name := range []string{"Tenure", "ONNX Runtime"} {
		row := r.Rows[i]
		one, two := row.Figures["1 thread ms"], row.Figures["2 threads ms"]
		if row.Case[0] != "mlp" || row.Case[1] != name || one.Median <= 0 || two.Median <= 0 || one.Pairs != 2 || row.Figures["ratio"].Median <= 0 {
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
