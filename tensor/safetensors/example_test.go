package safetensors_test

import (
	"bytes"
	"fmt"
	"log"

	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/safetensors"
)

func Example() {
	x, err := tensor.Of([]float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Release()
	var out bytes.Buffer
	if err := safetensors.Write(&out, map[string]string{"made by": "an example"}, safetensors.Entry{Name: "w", Tensor: x}); err != nil {
		log.Fatal(err)
	}
	f, err := safetensors.Parse(out.Bytes())
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for _, i := range f.Tensors() {
		w, err := f.Tensor(i.Name)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(i.Name, w)
		w.Release()
	}
	// Output:
	// w f32[2,2]
	// [[1. 2.]
	//  [3. 4.]]
}
