//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

// Command dlpack hands a tensor to numpy and takes the answer back, in one
// process and without a copy.
//
//	go run ./examples/dlpack [PYTHON]
//
// PYTHON is the interpreter to load, python3 by default; it must have numpy 2.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

func main() {
	executable := "python3"
	if len(os.Args) > 1 {
		executable = os.Args[1]
	}
	if err := run(executable); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// source is what numpy does with the tensor: its eigenvectors, in an array of
// numpy's.
const source = `
import numpy as np
a = np.from_dlpack(matrix)
print("numpy sees", a.tolist(), "writeable:", a.flags.writeable)
values, vectors = np.linalg.eigh(a)
`

func run(executable string) error {
	in, err := capi.FindPython(context.Background(), executable)
	if err != nil {
		return err
	}
	py, err := capi.OpenPython(in)
	if err != nil {
		return err
	}
	defer py.Close()

	matrix, err := tensor.Of([]float64{2, 1, 1, 2}, 2, 2)
	if err != nil {
		return err
	}
	if err := py.Set("matrix", matrix); err != nil {
		return err
	}
	if err := py.Run(source); err != nil {
		return err
	}
	fmt.Println("may Go write?", matrix.WhyNotWritable())
	matrix.Release() // numpy still has it: the bytes stay

	values, err := py.Get("values")
	if err != nil {
		return err
	}
	defer values.Release()
	got, err := tensor.Values[float64](values)
	if err != nil {
		return err
	}
	fmt.Printf("eigenvalues: %.0f\n", got)

	if err := py.Run("print('numpy still sees', a.tolist()); del a"); err != nil {
		return err
	}
	memory.Reclaim()
	fmt.Println("bytes left after numpy let go:", memory.Stats().Total.Current)
	return nil
}
