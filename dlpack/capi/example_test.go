//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dlpack/capi"
	"github.com/tenure-go/tenure/tensor"
)

// A tensor goes to numpy and an array comes back, both in place. (Not run here:
// it needs Python with numpy.)
func ExamplePython() {
	in, err := capi.FindPython(context.Background(), "python3")
	if err != nil {
		fmt.Println(err)
		return
	}
	py, err := capi.OpenPython(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	x, _ := tensor.Of([]float32{1, 2, 3}, 3)
	defer x.Release()
	if err := py.Set("x", x); err != nil {
		fmt.Println(err)
		return
	}
	if err := py.Run("import numpy\ny = numpy.from_dlpack(x) * 2"); err != nil {
		fmt.Println(err)
		return
	}
	y, err := py.Get("y")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer y.Release()
	fmt.Println(tensor.Values[float32](y))
}

// Call runs a deleter as C does.
func ExampleCall() {
	x, _ := tensor.Of([]float32{1, 2, 3}, 3)
	m, _ := dlpack.Export(x)
	fmt.Println(x.IsExclusive())
	m.Delete(capi.Call)
	fmt.Println(x.IsExclusive())
	x.Release()
	// Output:
	// false
	// true
}
