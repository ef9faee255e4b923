package onnx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tenure-go/tenure/ir"
)

// sharedDir returns the folder of optional test data, "" where there is none.
func sharedDir(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("TENURE_SHARED"); dir != "" {
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no go.mod above the working directory")
		}
	}
	return filepath.Join(dir, "..", "shared")
}

func TestSharedModels(t *testing.T) {
	paths, _ := filepath.Glob(filepath.Join(sharedDir(t), "models", "*", "model.onnx"))
	if len(paths) == 0 {
		t.Skip("the optional models are not imported: they are not in ../shared/models (TENURE_SHARED names another folder than ../shared)")
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			m, err := Load(path, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := ir.VerifyKnown(m.Program, ir.Known(m.Weights)); err != nil {
				t.Error(err)
			}
			for _, w := range m.Program.Weights {
				data, ok := m.Weights.Bytes(w)
				if n, err := w.Type.Bytes(); !ok || err != nil || len(data) != n {
					t.Errorf("weight %s: got %d bytes, %v, %v, want %d", w, len(data), ok, err, n)
				}
			}
			t.Logf("%d calls, %d weights, %+v, %d notes", len(m.Program.Body.Calls), len(m.Program.Weights), m.Weights.Figures(), len(m.Notes))
			for _, n := range m.Notes {
				t.Log(n)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
