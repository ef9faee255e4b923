package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/results"
	"github.com/tenure-go/tenure/memory"
)

// TestRun runs every case that this machine can run, once, and checks that all
// of them released their tensors.
func TestRun(t *testing.T) {
	before := memory.Stats().Of(memory.IO).Current
	var out bytes.Buffer
	if err := run(&out, 1, "no such python", results.Output{}); err != nil {
		t.Fatal(err)
	}
	want := []string{"export, cached", "fill"}
	if _, err := exec.LookPath("gcc"); err == nil {
		want = append(want, "delete, from C")
	}
	for _, name := range want {
		if !strings.Contains(out.String(), name) {
			t.Errorf("got no %q in\n%s", name, out.String())
		}
	}
	if got := memory.Stats().Of(memory.IO).Current; got != before {
		t.Errorf("after the benchmark: got %d bytes of tensors left, want none", got-before)
	}
}
