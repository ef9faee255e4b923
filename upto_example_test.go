package tenure_test

import (
	"context"
	"fmt"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

// One promise holds for every batch of up to 16 pictures.
func ExampleWithUpTo() {
	m := must(tenure.Load("examples/digits/digits.onnx"))
	defer m.Close()
	s := must(m.NewSession(tenure.WithUpTo("batch", 16)))
	defer s.Close()
	p := s.Promise()
	fmt.Printf("%d bytes of arena for %s, the most at %s\n", p.Arena.Bytes, p.Dims[0], p.Where(p.Arena.At))

	x := must(tensor.Of(make([]float32, 17*64), 17, 1, 8, 8))
	defer x.Release()
	_, err := s.Run(context.Background(), tenure.Inputs{"image": x})
	fmt.Println(err)
	// Output:
	// 49152 bytes of arena for batch up to 16, the most at batch=16
	// run: input "image": got f32[17,1,8,8], in which dimension "batch" has the size 17, want at most 16 (WithUpTo): shape does not fit
}
