package main

import (
	"bufio"
	"errors"
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
	scaled    bool // --scale was given
	mean, std []float64
	used      bool // a picture was read
}

// told reports whether the flags say anything.
func (f *imageFlags) told() bool { return f.scaled || len(f.mean)+len(f.std) > 0 }

func (f *imageFlags) check() error {
	if f.scaled && f.scale == 0 {
		return usagef("--scale: got 0, want a number that leaves something of the picture")
	}
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

// scaleFor returns what the pixels are multiplied with for an input.
func (f *imageFlags) scaleFor(info tenure.Info) (float64, error) {
	dt := info.DType
	_, holds := limits[dt]
	switch {
	case info.Text || !holds:
		return 0, fmt.Errorf("input %s: got a picture, want an input of f16, bf16, f32, f64 or integers of 8 bits and more: %w", info, tenure.ErrDType)
	case f.scaled:
		return f.scale, nil
	case dt.IsFloat():
		return 1.0 / 255, nil
	case dt == dtype.I8:
		return 0, usagef("input %s: got a picture, whose pixels of 0 to 255 i8 does not hold; want --scale, such as --scale 1 --mean 128", info)
	case f.told():
		return 0, usagef("--mean, --std: input %s gets the pixels 0 to 255 as they are; want --scale too where it shall not, such as --scale 1", info)
	}
	return 1, nil
}

// checkChannels wants one number of --mean and --std, or one per channel.
func (f *imageFlags) checkChannels(info tenure.Info, channels int) error {
	want := "1"
	if channels > 1 {
		want = fmt.Sprintf("1 or %d", channels)
	}
	for _, flag := range []struct {
		name string
		list []float64
	}{{"--mean", f.mean}, {"--std", f.std}} {
		if n := len(flag.list); n > 1 && n != channels {
			return usagef("%s: got %s, want %s: input %s has %s", flag.name, countText(n, "number", "numbers"), want, info, countText(channels, "channel", "channels"))
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

// read decodes a picture into a tensor for the input, of which more may be
// known than what the model declares.
func (f *imageFlags) read(path string, info tenure.Info, declared *shape.Shape) (*tensor.Tensor, error) {
	img, err := decode(path)
	if err != nil {
		return nil, err
	}
	f.used = true
	scale, err := f.scaleFor(info)
	if err != nil {
		return nil, err
	}
	fr, err := frameOf(info, declared, img.Bounds())
	if err != nil {
		return nil, err
	}
	if err := f.checkChannels(info, fr.channels); err != nil {
		return nil, err
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
	if err := f.fill(t, fr, scaled, scale); err != nil {
		_ = t.Release() // the first error is the one to know
		return nil, fmt.Errorf("input %s: %w", info, err)
	}
	return t, nil
}

var errPicture = errors.New("got no PNG or JPEG picture")

func decode(path string) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	config, _, err := image.DecodeConfig(bufio.NewReader(file))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPicture, err)
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
// or width is the picture's. Where the declared dimensions say which one is
// the channels', a height or width that is given later does not change it.
func frameOf(info tenure.Info, declared *shape.Shape, b image.Rectangle) (frame, error) {
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
	isColour := func(i int) bool { n, ok := declared.Dim(i).Size(); return ok && (n == 1 || n == 3) }
	if declared == nil || declared.Rank() != rank || !isColour(rank-3) && !isColour(rank-1) {
		declared = info.Shape
	}
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
	if fr.height == 0 || fr.width == 0 {
		return frame{}, wrong
	}
	if fr.height > maxPixels/fr.width {
		return frame{}, fmt.Errorf("input %s: got %dx%d pixels to fill, want at most %d: %w", info, fr.width, fr.height, maxPixels, tenure.ErrLimit)
	}
	return fr, nil
}

// fill writes the pixels of img, which has the frame's size.
func (f *imageFlags) fill(t *tensor.Tensor, fr frame, img *image.RGBA64, scale float64) error {
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
				v := (rgb[c]*scale - at(f.mean, c, 0)) / at(f.std, c, 1)
				if !put(i, v) {
					return usagef("--scale, --mean, --std: got %.6g of a pixel of %.6g, want what %s holds, %.6g to %.6g",
						v, rgb[c], t.DType(), limits[t.DType()].low, limits[t.DType()].high)
				}
			}
		}
	}
	return nil
}

// limits are the numbers that an input for pictures holds.
var limits = map[dtype.DType]struct{ low, high float64 }{
	dtype.F16:  {-65504, 65504},
	dtype.BF16: {-0x1.fep127, 0x1.fep127},
	dtype.F32:  {-math.MaxFloat32, math.MaxFloat32},
	dtype.F64:  {-math.MaxFloat64, math.MaxFloat64},
	dtype.U8:   {0, math.MaxUint8},
	dtype.U16:  {0, math.MaxUint16},
	dtype.U32:  {0, math.MaxUint32},
	dtype.U64:  {0, 1 << 53}, // every whole number up to here is a float64
	dtype.I8:   {math.MinInt8, math.MaxInt8},
	dtype.I16:  {math.MinInt16, math.MaxInt16},
	dtype.I32:  {math.MinInt32, math.MaxInt32},
	dtype.I64:  {-1 << 53, 1 << 53},
}

// writer gives element-wise access to a new tensor. put reports false of a
// number that the type does not hold.
func writer(t *tensor.Tensor) (put func(i int, v float64) bool, end func(), err error) {
	switch t.DType() {
	case dtype.F16:
		return elements(t, func(v float64) dtype.Float16 { return dtype.Float16FromFloat32(dtype.RoundToOdd(v)) })
	case dtype.BF16:
		return elements(t, func(v float64) dtype.BFloat16 { return dtype.BFloat16FromFloat32(dtype.RoundToOdd(v)) })
	case dtype.F32:
		return elements(t, func(v float64) float32 { return float32(v) })
	case dtype.F64:
		return elements(t, func(v float64) float64 { return v })
	case dtype.U8:
		return elements(t, func(v float64) uint8 { return uint8(v) })
	case dtype.U16:
		return elements(t, func(v float64) uint16 { return uint16(v) })
	case dtype.U32:
		return elements(t, func(v float64) uint32 { return uint32(v) })
	case dtype.U64:
		return elements(t, func(v float64) uint64 { return uint64(v) })
	case dtype.I8:
		return elements(t, func(v float64) int8 { return int8(v) })
	case dtype.I16:
		return elements(t, func(v float64) int16 { return int16(v) })
	case dtype.I32:
		return elements(t, func(v float64) int32 { return int32(v) })
	case dtype.I64:
		return elements(t, func(v float64) int64 { return int64(v) })
	}
	panic("BUG: tenure: a picture for elements of " + t.DType().String())
}

// elements is writer for one Go type. Numbers for integers are rounded before
// they are looked at and converted.
func elements[T dtype.Element](t *tensor.Tensor, convert func(float64) T) (put func(i int, v float64) bool, end func(), err error) {
	view, err := tensor.Write[T](t)
	if err != nil {
		return nil, nil, err
	}
	limit, whole := limits[t.DType()], !t.DType().IsFloat()
	put = func(i int, v float64) bool {
		if whole {
			v = math.Round(v)
		}
		if !(limit.low <= v && v <= limit.high) {
			return false
		}
		view.Data[i] = convert(v)
		return true
	}
	return put, func() { view.Release() }, nil
}
