package npy_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/npy"
)

func Example() {
	x, err := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	var file bytes.Buffer
	if err := npy.Write(&file, x); err != nil {
		log.Fatal(err)
	}
	y, err := npy.Read(&file)
	if err != nil {
		log.Fatal(err)
	}
	defer y.Release()
	fmt.Println(y)
	// Output:
	// f32[2,2]
	// [[1. 2.]
	//  [3. 4.]]
}
