package main

import (
	"bufio"
	"fmt"
	"image"
	_ "image/jpeg" // decoders that image.Decode knows
	_ "image/png"
	"math"
	"os"
	"slices"

	"golang.org/x/image/draw"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// maxPixels bounds the pictures that are decoded: a small file may claim a
// huge one.
const maxPixels = 1 << 26

// imageFlags say how pixels become numbers: (pixel*scale - mean) / std.
type imageFlags struct {
	scale     float64
	mean, std []float64
}

func (f *imageFlags) check() error {
	for _, s := range f.std {
		if s == 0 {
			return usagef("--std: got 0, want numbers to divide by")
		}
	}
	for _, v := range slices.Concat([]float64{f.scale}, f.mean, f.std) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return usagef("--scale, --mean, --std: got %v, want finite numbers", v)
		}
	}
	return nil
}

// frame is where the pixels go in an input: [N,C,H,W] or [N,H,W,C], or either
// without N.
type frame struct {
	shape                   []int
	channels, height, width int
	last                    bool // channels are the last dimension
}

// read decodes a picture into a tensor for the input.
func (f *imageFlags) read(path string, info tenure.Info) (*tensor.Tensor, error) {
	img, err := decode(path)
	if err != nil {
		return nil, err
	}
	if info.DType != dtype.F32 && info.DType != dtype.U8 {
		return nil, fmt.Errorf("input %s: got a picture, want an input of f32 or u8: %w", info, tenure.ErrDType)
	}
	fr, err := frameOf(info, img.Bounds())
	if err != nil {
		return nil, err
	}
	if n := len(f.mean); n > 1 && n != fr.channels {
		return nil, usagef("--mean: got %d numbers, want 1 or %d", n, fr.channels)
	}
	if n := len(f.std); n > 1 && n != fr.channels {
		return nil, usagef("--std: got %d numbers, want 1 or %d", n, fr.channels)
	}
	// Transparent parts are white, as on a page; 16 bits keep what 16-bit pictures hold.
	scaled := image.NewRGBA64(image.Rect(0, 0, fr.width, fr.height))
	draw.Draw(scaled, scaled.Bounds(), image.White, image.Point{}, draw.Src)
	draw.CatmullRom.Scale(scaled, scaled.Bounds(), img, img.Bounds(), draw.Over, nil)
	s, err := shape.Of(fr.shape...)
	if err != nil {
		return nil, err
	}
	t, err := tensor.New(info.DType, s)
	if err != nil {
		return nil, err
	}
	if err := f.fill(t, fr, scaled); err != nil {
		_ = t.Release() // the first error is the one to know
		return nil, err
	}
	return t, nil
}

func decode(path string) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	config, _, err := image.DecodeConfig(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("got no PNG or JPEG picture: %w", err)
	}
	if int64(config.Width)*int64(config.Height) > maxPixels {
		return nil, fmt.Errorf("got a picture of %dx%d, want at most %d pixels: %w", config.Width, config.Height, maxPixels, tenure.ErrLimit)
	}
	if _, err := file.Seek(0, 0); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(bufio.NewReader(file))
	return img, err
}

// frameOf matches the input's dimensions; an open batch is 1, an open height
// or width is the picture's.
func frameOf(info tenure.Info, b image.Rectangle) (frame, error) {
	wrong := fmt.Errorf("input %s: got a picture, want an input [N,C,H,W] or [N,H,W,C] with 1 or 3 channels: %w", info, tenure.ErrShape)
	if info.Shape == nil || info.Shape.Rank() < 3 || info.Shape.Rank() > 4 {
		return frame{}, wrong
	}
	rank := info.Shape.Rank()
	size := func(i, open int) int {
		if n, ok := info.Shape.Dim(i).Size(); ok {
			return n
		}
		return open
	}
	isColour := func(i int) bool { n, ok := info.Shape.Dim(i).Size(); return ok && (n == 1 || n == 3) }
	var fr frame
	switch c := rank - 3; {
	case isColour(c):
		fr = frame{channels: size(c, 0), height: size(c+1, b.Dy()), width: size(c+2, b.Dx())}
		fr.shape = []int{fr.channels, fr.height, fr.width}
	case isColour(rank - 1):
		fr = frame{channels: size(rank-1, 0), height: size(c, b.Dy()), width: size(c+1, b.Dx()), last: true}
		fr.shape = []int{fr.height, fr.width, fr.channels}
	default:
		return frame{}, wrong
	}
	if rank == 4 {
		if n := size(0, 1); n != 1 {
			return frame{}, fmt.Errorf("input %s: got one picture, want a batch of %d: %w", info, n, tenure.ErrShape)
		}
		fr.shape = append([]int{1}, fr.shape...)
	}
	if fr.height == 0 || fr.width == 0 || int64(fr.height)*int64(fr.width) > maxPixels {
		return frame{}, wrong
	}
	return fr, nil
}

func (f *imageFlags) fill(t *tensor.Tensor, fr frame, img *image.RGBA64) error {
	put, end, err := writer(t)
	if err != nil {
		return err
	}
	defer end()
	at := func(list []float64, c int, or float64) float64 {
		switch len(list) {
		case 0:
			return or
		case 1:
			return list[0]
		}
		return list[c]
	}
	for y := range fr.height {
		for x := range fr.width {
			p := img.RGBA64At(x, y)
			rgb := [3]float64{float64(p.R) / 257, float64(p.G) / 257, float64(p.B) / 257} // 0 to 255
			if fr.channels == 1 {
				rgb[0] = 0.299*rgb[0] + 0.587*rgb[1] + 0.114*rgb[2] // luma of Rec. 601, as in JPEG
			}
			for c := range fr.channels {
				i := (c*fr.height+y)*fr.width + x
				if fr.last {
					i = (y*fr.width+x)*fr.channels + c
				}
				put(i, (rgb[c]*f.scale-at(f.mean, c, 0))/at(f.std, c, 1))
			}
		}
	}
	return nil
}

// writer gives element-wise access to a new tensor of f32 or u8.
func writer(t *tensor.Tensor) (put func(i int, v float64), end func(), err error) {
	if t.DType() == dtype.U8 {
		v, err := tensor.Write[uint8](t)
		return func(i int, x float64) { v.Data[i] = uint8(min(max(x+0.5, 0), 255)) }, func() { v.Release() }, err
	}
	v, err := tensor.Write[float32](t)
	return func(i int, x float64) { v.Data[i] = float32(x) }, func() { v.Release() }, err
}
