// Package picture turns pictures into tensors, as the inputs of image models
// want them: decoded, scaled to a size, and normalised.
//
//	img, err := picture.ReadFile("cat.jpg")
//	if err != nil {
//		return err
//	}
//	x, err := picture.Tensor(img, dtype.F32, shape.MustOf(1, 3, 224, 224), picture.Scaling{
//		Factor: 1. / 255, Mean: []float64{0.485, 0.456, 0.406}, Std: []float64{0.229, 0.224, 0.225},
//	})
//	if err != nil {
//		return err
//	}
//	defer x.Release()
//
// # Shapes
//
// A tensor for one picture is [N,C,H,W] or [N,H,W,C], or either without N, with
// 1 or 3 channels and N 1. Height and width are in pixels; where the shape
// leaves them open they are the picture's. [Fit] finds the axes, as a [Frame].
//
// # Values
//
// A pixel has a red, a green and a blue value from 0 to 255, not whole for
// pictures of 16 bits. One channel is their luma by ITU-R BT.601, as in JPEG.
// Transparent parts are white. An element is (value*Factor - Mean) / Std,
// rounded to nearest for integers.
//
// # Ownership
//
// The caller owns the tensors that are returned; pictures are read only.
//
// # Concurrency
//
// All functions may be called from any goroutine.
package picture
