package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/bench/internal/contest"
)

// Whoever may not write into the input takes a buffer for the output at least,
// and no engine here takes one for each ReLU.
func TestChains(t *testing.T) {
	python := filepath.Join(contest.DefaultVenv(), "bin", "python")
	for name, chain := range map[string]func() (taken, error){
		"gomlx": gomlxChain, "ONNX Runtime": func() (taken, error) { return ortChain(python) },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(python); err != nil && name != "gomlx" {
				t.Skipf("needs an interpreter with onnxruntime (python3 ort.py install): %v", err)
			}
			got, err := chain()
			if err != nil {
				t.Fatal(err)
			}
			if one := int64(4 * side * side); got.Input != one || got.Taken < one || got.Taken > count*one/2 {
				t.Errorf("got %+v, want an input of %d bytes, and one to %d times that taken", got, one, count/2)
			}
		})
	}
}
