//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

// Command onnxruntime runs a model twice over the same bytes: in Tenure, and in
// ONNX Runtime, which reads the input where Tenure has it and writes its answer
// into a tensor of Tenure's. It calls the C library without cgo.
//
//	go run ./examples/onnxruntime LIBRARY [MODEL]
//
// LIBRARY is libonnxruntime.so; the package onnxruntime for Python has one in
// its folder capi.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/tensor"
)

func main() {
	model := "examples/digits/digits.onnx"
	if len(os.Args) > 2 {
		model = os.Args[2]
	}
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: onnxruntime LIBRARY [MODEL]")
		os.Exit(2)
	}
	ours, theirs, err := both(os.Args[1], model)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("Tenure        %.6f\nONNX Runtime  %.6f\n", ours, theirs)
}

// both returns the answers of both to a picture with a vertical stroke.
func both(library, model string) (ours, theirs []float32, err error) {
	pixels := make([]float32, 64)
	for row := range 8 {
		pixels[8*row+4] = 1
	}
	x, err := tensor.Of(pixels, 1, 1, 8, 8)
	if err != nil {
		return nil, nil, err
	}
	defer x.Release()
	out, err := inTenure(model, x)
	if err != nil {
		return nil, nil, err
	}
	defer out.Release()
	if ours, err = tensor.Values[float32](out); err != nil {
		return nil, nil, err
	}
	y, err := tensor.New(out.DType(), out.Shape())
	if err != nil {
		return nil, nil, err
	}
	defer y.Release()
	if err := inORT(library, model, x, y); err != nil {
		return nil, nil, err
	}
	theirs, err = tensor.Values[float32](y)
	return ours, theirs, err
}

func inTenure(model string, x *tensor.Tensor) (*tensor.Tensor, error) {
	m, err := tenure.Load(model)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	s, err := m.NewSession()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	out, err := s.Run(context.Background(), tenure.Inputs{"image": x})
	if err != nil {
		return nil, err
	}
	return out.Get("probabilities")
}

// inORT lends x for reading and y for writing for as long as the run takes.
func inORT(library, model string, x, y *tensor.Tensor) error {
	r, err := open(library, model)
	if err != nil {
		return err
	}
	defer r.close()
	in, err := dlpack.Export(x)
	if err != nil {
		return err
	}
	defer in.Delete(nil)
	out, err := dlpack.ExportWritable(y)
	if err != nil {
		return err
	}
	defer out.Delete(nil)
	return r.run("image", in.Tensor, "probabilities", out.Tensor)
}
