package picture_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
	"github.com/tenure-go/tenure/tensor/picture"
)

var (
	grey = &image.Gray{Pix: []byte{7, 255}, Stride: 2, Rect: image.Rect(0, 0, 2, 1)}
	rgb  = &image.NRGBA{Pix: []byte{10, 20, 30, 255, 255, 0, 128, 255}, Stride: 8, Rect: image.Rect(0, 0, 2, 1)}
)

func TestTensor(t *testing.T) {
	memorytest.Check(t)
	clear := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	deep := image.NewGray16(image.Rect(5, 5, 6, 6)) // not at the origin
	deep.SetGray16(5, 5, color.Gray16{Y: 0x8000})
	unknown := shape.Unknown
	for _, tc := range []struct {
		name string
		img  image.Image
		dt   dtype.DType
		dims []shape.Dim
		how  picture.Scaling
		want []float64
	}{
		{"planes", rgb, dtype.U8, dims(1, 3, 1, 2), picture.Scaling{}, []float64{10, 255, 20, 0, 30, 128}},
		{"pixels", rgb, dtype.U8, []shape.Dim{shape.N(1), unknown, unknown, shape.N(3)}, picture.Scaling{}, []float64{10, 20, 30, 255, 0, 128}},
		{"pixels without N", rgb, dtype.I16, []shape.Dim{unknown, unknown, shape.N(3)}, picture.Scaling{}, []float64{10, 20, 30, 255, 0, 128}},
		{"floats", grey, dtype.F64, dims(1, 1, 2), picture.Scaling{}, []float64{7. / 255, 1}},
		{"normalised", rgb, dtype.F32, dims(3, 1, 2), picture.Scaling{Factor: 1, Mean: []float64{10, 20, 30}, Std: []float64{2}}, []float64{0, 122.5, 0, -10, 0, 49}},
		{"luma", rgb, dtype.U8, dims(1, 1, 1, 2), picture.Scaling{}, []float64{math.Round(0.299*10 + 0.587*20 + 0.114*30), math.Round(0.299*255 + 0.114*128)}},
		{"transparent", clear, dtype.U8, dims(3, 1, 1), picture.Scaling{}, []float64{255, 255, 255}},
		{"16 bits", deep, dtype.F64, []shape.Dim{shape.N(1), unknown, unknown}, picture.Scaling{Factor: 257. / 65535}, []float64{0x8000 / 65535.}},
		{"open N", grey, dtype.U8, []shape.Dim{unknown, shape.N(1), shape.N(1), unknown}, picture.Scaling{}, []float64{7, 255}},
	} {
		x, err := picture.Tensor(tc.img, tc.dt, fromDims(t, tc.dims...), tc.how)
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		got, err := tensor.Float64s(x)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }) {
			t.Errorf("%s: got %v, want %v", tc.name, got, tc.want)
		}
		if err := x.Release(); err != nil {
			t.Error(err)
		}
	}
}

func fromDims(t *testing.T, dims ...shape.Dim) *shape.Shape {
	t.Helper()
	s, err := shape.FromDims(dims...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func dims(sizes ...int) []shape.Dim {
	list := make([]shape.Dim, len(sizes))
	for i, n := range sizes {
		list[i] = shape.N(n)
	}
	return list
}

func TestLayouts(t *testing.T) {
	both := shape.MustOf(1, 1, 2, 3) // one channel of 2x3 pixels, or 1x2 pixels of three channels
	for _, tc := range []struct {
		s      *shape.Shape
		layout picture.Layout
		want   picture.Frame
	}{
		{both, picture.Auto, picture.Frame{Shape: both, Channels: 1, Height: 2, Width: 3}},
		{both, picture.ChannelsLast, picture.Frame{Shape: both, Channels: 3, Height: 1, Width: 2, ChannelsLast: true}},
		{shape.MustOf(8, 6, 3), picture.Auto, picture.Frame{Shape: shape.MustOf(8, 6, 3), Channels: 3, Height: 8, Width: 6, ChannelsLast: true}},
	} {
		if got, err := picture.Fit(tc.s, tc.layout, grey.Rect); err != nil || got != tc.want {
			t.Errorf("%s, layout %d: got %+v, %v, want %+v", tc.s, tc.layout, got, err, tc.want)
		}
	}
}

func TestFaults(t *testing.T) {
	memorytest.Check(t)
	flat := shape.MustOf(1, 1, 1, 2)
	for _, tc := range []struct {
		dt   dtype.DType
		s    *shape.Shape
		how  picture.Scaling
		want error
		text string
	}{
		{dtype.Bool, flat, picture.Scaling{}, tensor.ErrDType, "got element type bool"},
		{dtype.F32, nil, picture.Scaling{}, tensor.ErrShape, "want an input [N,C,H,W]"},
		{dtype.F32, shape.MustOf(4, 4, 4), picture.Scaling{}, tensor.ErrShape, "want an input [N,C,H,W]"},
		{dtype.F32, shape.MustOf(1, 0, 2), picture.Scaling{}, tensor.ErrShape, "want an input [N,C,H,W]"},
		{dtype.F32, shape.MustOf(4, 3, 1, 2), picture.Scaling{}, tensor.ErrShape, "want a batch of 4"},
		{dtype.F32, shape.MustOf(1, 1<<14, 1<<14), picture.Scaling{}, tensor.ErrLimit, "16384x16384 pixels"},
		{dtype.I8, flat, picture.Scaling{}, picture.ErrRange, "got 255 of a pixel of 255, want what i8 holds, -128 to 127"},
		{dtype.F32, flat, picture.Scaling{Factor: math.NaN()}, picture.ErrRange, "got NaN"},
		{dtype.F32, flat, picture.Scaling{Mean: []float64{1, 2}}, nil, "got 2 means, want 1 or one for each of 1 channels"},
		{dtype.F32, flat, picture.Scaling{Std: []float64{0}}, nil, "got a deviation of 0"},
	} {
		_, err := picture.Tensor(grey, tc.dt, tc.s, tc.how)
		if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s %s %+v: got %v, want an error with %q", tc.dt, tc.s, tc.how, err, tc.text)
		}
	}
}

func TestDecode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grey.png")
	var data bytes.Buffer
	if err := png.Encode(&data, grey); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if img, err := picture.ReadFile(path); err != nil || img.Bounds() != grey.Rect {
		t.Errorf("got %v, %v, want a picture of %v", img, err, grey.Rect)
	}
	if _, err := picture.ReadFile(path + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v, want fs.ErrNotExist", err)
	}
	huge := slices.Clone(data.Bytes())
	huge[18], huge[22] = 0xff, 0xff // 65,282 by 65,281 pixels; the checksum of the header is wrong as well
	for name, bad := range map[string][]byte{"empty": nil, "text": []byte("a picture"), "cut off": data.Bytes()[:data.Len()-20], "huge": huge} {
		if _, err := picture.Decode(bytes.NewReader(bad)); errors.Is(err, picture.ErrFormat) == (name == "cut off") || !errors.Is(err, tensor.ErrCorrupt) {
			t.Errorf("%s: got %v, want ErrCorrupt, and ErrFormat unless it is cut off", name, err)
		}
	}
	// Bytes before the picture are skipped.
	r := bytes.NewReader(append([]byte("xx"), data.Bytes()...))
	if _, err := r.Seek(2, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := picture.Decode(r); err != nil {
		t.Error(err)
	}
}

// FuzzDecode holds the decoder to its errors.
func FuzzDecode(f *testing.F) {
	var data bytes.Buffer
	if err := png.Encode(&data, rgb); err != nil {
		f.Fatal(err)
	}
	f.Add(data.Bytes())
	f.Fuzz(func(t *testing.T, data []byte) {
		img, err := picture.Decode(bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, tensor.ErrCorrupt) && !errors.Is(err, tensor.ErrLimit) {
				t.Errorf("got %v, want ErrCorrupt or ErrLimit", err)
			}
			return
		}
		b := img.Bounds()
		if b.Dx()*b.Dy() > 1<<16 {
			return
		}
		x, err := picture.Tensor(img, dtype.U8, fromDims(t, shape.N(3), shape.Unknown, shape.Unknown), picture.Scaling{})
		if err != nil {
			t.Fatal(err)
		}
		_ = x.Release()
	})
}
