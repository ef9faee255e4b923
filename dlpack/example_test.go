package dlpack_test

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/tensor"
)

// A struct of another library becomes a tensor; its deleter is called when the
// last holder lets go.
func ExampleImport() {
	elements, dims, strides := []float32{1, 2, 3, 4, 5, 6}, []int64{3, 2}, []int64{1, 3}
	m := &dlpack.DLManagedTensorVersioned{
		Version: dlpack.Version{Major: 1, Minor: 3},
		Deleter: 0x10000, // the address of a C function
		Flags:   dlpack.FlagReadOnly,
		Tensor: dlpack.DLTensor{
			Data:   uintptr(unsafe.Pointer(&elements[0])),
			Device: dlpack.Device{Type: dlpack.CPU},
			NDim:   2, DType: dlpack.DataType{Code: dlpack.Float, Bits: 32, Lanes: 1},
			Shape: uintptr(unsafe.Pointer(&dims[0])), Strides: uintptr(unsafe.Pointer(&strides[0])),
		},
	}
	call := func(fn, self uintptr) { fmt.Printf("deleter at %#x\n", fn) } // capi.Call does it in C

	x, err := dlpack.Import(m, call)
	if err != nil {
		fmt.Println(err)
		return
	}
	values, _ := tensor.Values[float32](x)
	fmt.Println(x.DType(), x.Shape(), values)
	fmt.Println(x.WhyNotWritable())
	x.Release()
	// Output:
	// f32 [3,2] [1 4 2 5 3 6]
	// write: f32[3,2]: bytes are shared: the bytes are imported
	// deleter at 0x10000
}

// A tensor is lent to a consumer, which calls the deleter when it is done.
func ExampleExport() {
	x, _ := tensor.Of([]float32{1, 2, 3}, 3)
	m, err := dlpack.Export(x)
	if err != nil {
		fmt.Println(err)
		x.Release()
		return
	}
	x.Release() // the bytes stay: an export is out
	fmt.Println(m.Version, m.Tensor.NDim, m.Flags == dlpack.FlagReadOnly)

	y, _ := dlpack.Import(m, nil) // the consumer: here it is Go as well
	values, _ := tensor.Values[float32](y)
	fmt.Println(values)
	y.Release() // calls the deleter
	// Output:
	// {1 3} 1 true
	// [1 2 3]
}
