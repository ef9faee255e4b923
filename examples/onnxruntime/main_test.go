//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package main

import (
	"os"
	"testing"

	"github.com/tenure-go/tenure/memory/memorytest"
)

// TestBoth compares the two answers where there is an ONNX Runtime.
func TestBoth(t *testing.T) {
	library := os.Getenv("TENURE_ONNXRUNTIME")
	if library == "" {
		t.Skip("ONNX Runtime is not called: TENURE_ONNXRUNTIME names no libonnxruntime.so (pip install onnxruntime has one in onnxruntime/capi)")
	}
	memorytest.Check(t)
	ours, theirs, err := both(library, "../digits/digits.onnx")
	if err != nil {
		t.Fatal(err)
	}
	if len(ours) != 10 || len(theirs) != len(ours) {
		t.Fatalf("got %d and %d probabilities, want 10", len(ours), len(theirs))
	}
	for i := range ours {
		if d := ours[i] - theirs[i]; d > 1e-5 || d < -1e-5 {
			t.Errorf("probability %d: got %v, ONNX Runtime has %v", i, ours[i], theirs[i])
		}
	}
	if _, _, err := both(library, "main.go"); err == nil {
		t.Error("a model that is none: got no error")
	}
	if _, err := open(library, "nowhere.onnx"); err == nil {
		t.Error("a model that is not there: got no error of ONNX Runtime's")
	}
}
