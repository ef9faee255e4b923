package picture

import (
	"errors"
	"fmt"
	"image"

	"golang.org/x/image/draw"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Scaling says how the values of pixels become elements: (value*Factor - Mean)
// / Std.
type Scaling struct {
	Factor    float64   // of the values 0 to 255; 0 stands for 1/255 where elements are floats, and for 1 where they are integers
	Mean, Std []float64 // one number, or one per channel; none stands for 0 and 1
}

// ErrRange is a pixel whose element the type does not hold.
var ErrRange = errors.New("out of the range of the element type")

// Supports reports whether pictures can become tensors of an element type: f16,
// bf16, f32, f64, or integers of whole bytes.
func Supports(dt dtype.DType) bool { _, ok := limits[dt]; return ok }

// Tensor scales a picture to the size that a shape names and returns it as a
// tensor of that shape. Errors are those of [Fit] and [Frame.Tensor].
func Tensor(img image.Image, dt dtype.DType, s *shape.Shape, how Scaling) (*tensor.Tensor, error) {
	f, err := Fit(s, Auto, img.Bounds())
	if err != nil {
		return nil, err
	}
	return f.Tensor(img, dt, how)
}

// Tensor scales a picture to the size of the frame, by Catmull-Rom
// interpolation, and returns it as a tensor. An element type that [Supports]
// does not know is [tensor.ErrDType]; a number of means or deviations other
// than 1 and the channels', or a deviation of 0, is an error; an element that
// the type does not hold is [ErrRange].
func (f Frame) Tensor(img image.Image, dt dtype.DType, how Scaling) (*tensor.Tensor, error) {
	if !Supports(dt) {
		return nil, fmt.Errorf("got element type %s, want f16, bf16, f32, f64 or integers of 8 bits and more: %w", dt, tensor.ErrDType)
	}
	if how.Factor == 0 {
		how.Factor = 1
		if dt.IsFloat() {
			how.Factor = 1. / 255
		}
	}
	norm, err := how.channels(f.Channels)
	if err != nil {
		return nil, err
	}
	// 16 bits keep what 16-bit pictures hold.
	scaled := image.NewRGBA64(image.Rect(0, 0, f.Width, f.Height))
	draw.Draw(scaled, scaled.Bounds(), image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(scaled, scaled.Bounds(), img, img.Bounds(), draw.Over, nil)
	t, err := tensor.New(dt, f.Shape)
	if err != nil {
		return nil, err
	}
	if err := f.fill(t, scaled, how.Factor, norm); err != nil {
		_ = t.Release() // the first error is the one to know
		return nil, err
	}
	return t, nil
}

// affine is what happens to the values of one channel after the factor.
type affine struct{ mean, std float64 }

func (how Scaling) channels(n int) ([]affine, error) {
	norm := make([]affine, n)
	for _, list := range []struct {
		name   string
		values []float64
	}{{"means", how.Mean}, {"deviations", how.Std}} {
		if k := len(list.values); k > 1 && k != n {
			return nil, fmt.Errorf("got %d %s, want 1 or one for each of %d channels", k, list.name, n)
		}
	}
	at := func(list []float64, c int, or float64) float64 {
		switch len(list) {
		case 0:
			return or
		case 1:
			return list[0]
		}
		return list[c]
	}
	for c := range norm {
		norm[c] = affine{at(how.Mean, c, 0), at(how.Std, c, 1)}
		if norm[c].std == 0 {
			return nil, errors.New("got a deviation of 0, want numbers to divide by")
		}
	}
	return norm, nil
}

// fill writes the pixels of img, which has the frame's size.
func (f Frame) fill(t *tensor.Tensor, img *image.RGBA64, factor float64, norm []affine) error {
	put, end, err := writer(t)
	if err != nil {
		return err
	}
	defer end()
	for y := range f.Height {
		for x := range f.Width {
			p := img.RGBA64At(x, y)
			rgb := [3]float64{float64(p.R) / 257, float64(p.G) / 257, float64(p.B) / 257} // 0 to 255
			if f.Channels == 1 {
				rgb[0] = 0.299*rgb[0] + 0.587*rgb[1] + 0.114*rgb[2] // luma of ITU-R BT.601
			}
			for c := range f.Channels {
				i := (c*f.Height+y)*f.Width + x
				if f.ChannelsLast {
					i = (y*f.Width+x)*f.Channels + c
				}
				v := (rgb[c]*factor - norm[c].mean) / norm[c].std
				if !put(i, v) {
					limit := limits[t.DType()]
					return rangeError{fmt.Sprintf("got %.6g of a pixel of %.6g, want what %s holds, %.6g to %.6g", v, rgb[c], t.DType(), limit.low, limit.high)}
				}
			}
		}
	}
	return nil
}

// rangeError is ErrRange with the number and the limits.
type rangeError struct{ text string }

func (e rangeError) Error() string        { return e.text }
func (e rangeError) Is(target error) bool { return target == ErrRange }
