package main

import (
	"os"
	"path/filepath"

	"github.com/tenure-go/tenure/onnx"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
)

// writeFixtures puts the binary files of the scripts into their folder:
// x.npy, 64 ones as [1,64], and zero.pb, 64 zeros named "state".
func writeFixtures(dir string) error {
	ones := make([]float32, 64)
	for i := range ones {
		ones[i] = 1
	}
	x, err := tensor.Of(ones, 1, 64)
	if err != nil {
		return err
	}
	defer x.Release()
	if err := npy.WriteFile(filepath.Join(dir, "x.npy"), x); err != nil {
		return err
	}
	zero, err := tensor.Of(make([]float32, 64), 1, 64)
	if err != nil {
		return err
	}
	defer zero.Release()
	f, err := os.Create(filepath.Join(dir, "zero.pb"))
	if err != nil {
		return err
	}
	defer f.Close()
	return onnx.WriteTensor(f, "state", zero)
}
