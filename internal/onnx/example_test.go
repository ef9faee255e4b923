package onnx_test

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/internal/onnx"
	"github.com/tenure-go/tenure/op"
)

func Example() {
	m, err := onnx.Load("testdata/written/external.onnx", onnx.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	fmt.Print(m.Program)
	fmt.Printf("%+v\n", m.Weights.Figures())
	// Output:
	// func @external(%i: i64[n]) -> (f32[n], i64[8]) {
	//   weight @a: f32[8]
	//   weight @b: i64[8]
	//   %y: f32[n] = gather(@a, %i) "Gather#0"
	//   return %y, @b
	// }
	// {Mapped:0 Copied:96 Derived:0 Shared:0}
}

// The operators of a model that are not supported are listed when it is read.
func ExampleUnsupportedError() {
	_, err := onnx.Load("testdata/written/unsupported.onnx", onnx.Options{})
	var missing *onnx.UnsupportedError
	if errors.As(err, &missing) {
		for _, it := range missing.Items {
			fmt.Printf("%s: %s, %d times\n", it.Op, it.Reason, len(it.Nodes))
		}
	}
	fmt.Println(errors.Is(err, op.ErrUnsupported))
	// Output:
	// Frobnicate: no such operator, 2 times
	// com.vendor::Gadget: no such operator, 1 times
	// true
}
