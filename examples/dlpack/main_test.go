//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package main

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/memory"
)

// TestRun runs the program where there is a Python with numpy 2.
func TestRun(t *testing.T) {
	executable := os.Getenv("TENURE_PYTHON")
	if executable == "" {
		executable = "python3"
	}
	if err := exec.Command(executable, "-c", "import numpy; assert int(numpy.__version__.split('.')[0]) >= 2").Run(); err != nil {
		t.Skipf("%s has no numpy 2 (TENURE_PYTHON names one that has): %v", executable, err)
	}
	if _, err := capi.FindPython(context.Background(), executable); err != nil {
		t.Skip(err)
	}
	before := memory.Stats().Total.Current
	if err := run(executable); err != nil {
		t.Fatal(err)
	}
	if got := memory.Stats().Total.Current; got != before {
		t.Errorf("at the end: got %d bytes left, want none", got-before)
	}
}
