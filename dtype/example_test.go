package dtype_test

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/dtype"
)

func Example() {
	d, err := dtype.FromONNX(10)
	if err != nil {
		fmt.Println(err)
		return
	}
	bytes, err := d.ByteLen(1000)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d, bytes, dtype.Of[dtype.Float16]() == d)

	_, err = dtype.Parse("float")
	fmt.Println(errors.Is(err, dtype.ErrDType))
	// Output:
	// f16 2000 true
	// true
}

func ExampleFloat16FromFloat32() {
	h := dtype.Float16FromFloat32(1.0 / 3)
	fmt.Printf("%#04x %v\n", uint16(h), h.Float32())
	// Output: 0x3555 0.33325195
}

func ExampleFloat8E4M3FNFromFloat32() {
	saturated := dtype.Float8E4M3FNFromFloat32(1000, true)
	unbounded := dtype.Float8E4M3FNFromFloat32(1000, false)
	fmt.Println(saturated.Float32(), unbounded.Float32())
	// Output: 448 NaN
}
