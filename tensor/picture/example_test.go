package picture_test

import (
	"fmt"
	"image"
	"image/color"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor/picture"
)

func ExampleTensor() {
	img := image.NewGray(image.Rect(0, 0, 4, 4))
	for i := range img.Pix {
		img.Pix[i] = 51
	}
	img.SetGray(0, 0, color.Gray{Y: 255})
	x, err := picture.Tensor(img, dtype.F32, shape.MustOf(1, 1, 4, 4), picture.Scaling{Mean: []float64{0.1}, Std: []float64{0.5}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer x.Release()
	fmt.Printf("%.1f\n", x)
	// Output:
	// f32[1,1,4,4]
	// [[[[1.8 0.2 0.2 0.2]
	//    [0.2 0.2 0.2 0.2]
	//    [0.2 0.2 0.2 0.2]
	//    [0.2 0.2 0.2 0.2]]]]
}
