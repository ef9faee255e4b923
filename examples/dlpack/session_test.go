//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package main

import (
	"context"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestOutlivesSession lends an output, closes everything in Go that made it,
// and reads it afterwards as its consumer does.
func TestOutlivesSession(t *testing.T) {
	memorytest.Check(t)
	m, want, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	got, err := dlpack.Import(m, nil)
	if err != nil {
		t.Fatal(err)
	}
	values, err := tensor.Values[float32](got)
	if err != nil || !slices.Equal(values, want) || len(values) == 0 {
		t.Errorf("after the session's end: got %v and %v, want %v", values, err, want)
	}
	if err := got.Release(); err != nil {
		t.Error(err)
	}
}

// answer runs a model and returns an export of its output, and the output's
// elements.
func answer() (*dlpack.DLManagedTensorVersioned, []float32, error) {
	m, err := tenure.Load("../digits/digits.onnx")
	if err != nil {
		return nil, nil, err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return nil, nil, err
	}
	defer s.Close()
	x, err := tensor.Of(make([]float32, 64), 1, 1, 8, 8)
	if err != nil {
		return nil, nil, err
	}
	defer x.Release()
	out, err := s.Run(context.Background(), tenure.Inputs{"image": x})
	if err != nil {
		return nil, nil, err
	}
	defer out.Release()
	values, err := tensor.Values[float32](out["probabilities"])
	if err != nil {
		return nil, nil, err
	}
	lent, err := dlpack.Export(out["probabilities"])
	return lent, values, err
}
