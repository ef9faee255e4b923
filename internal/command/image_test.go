package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/internal/wholefile"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// pictures are of 2x1 pixels, the JPEG ones of one colour.
var pictures = map[string]func(io.Writer) error{
	"grey.png": func(w io.Writer) error {
		return png.Encode(w, &image.Gray{Pix: []byte{7, 255}, Stride: 2, Rect: image.Rect(0, 0, 2, 1)})
	},
	"rgb.png": func(w io.Writer) error {
		return png.Encode(w, &image.NRGBA{Pix: []byte{10, 20, 30, 255, 255, 0, 128, 255}, Stride: 8, Rect: image.Rect(0, 0, 2, 1)})
	},
	"rgba.png": func(w io.Writer) error {
		return png.Encode(w, &image.NRGBA{Pix: []byte{10, 20, 30, 255, 255, 0, 51, 0}, Stride: 8, Rect: image.Rect(0, 0, 2, 1)})
	},
	"grey16.png": func(w io.Writer) error {
		img := image.NewGray16(image.Rect(0, 0, 2, 1))
		img.SetGray16(0, 0, color.Gray16{Y: 0x8000}) // 127.502 of 255
		img.SetGray16(1, 0, color.Gray16{Y: 0x0140}) // 1.245
		return png.Encode(w, img)
	},
	"rgb16.png": func(w io.Writer) error {
		img := image.NewNRGBA64(image.Rect(0, 0, 2, 1))
		img.SetNRGBA64(0, 0, color.NRGBA64{R: 257, G: 0x0140, B: 0xffff, A: 0xffff})
		img.SetNRGBA64(1, 0, color.NRGBA64{R: 0xffff, G: 257 * 9, B: 0, A: 0xffff})
		return png.Encode(w, img)
	},
	"grey.jpg": func(w io.Writer) error {
		img := image.NewGray(image.Rect(0, 0, 2, 1))
		for i := range img.Pix {
			img.Pix[i] = 100
		}
		return jpeg.Encode(w, img, &jpeg.Options{Quality: 100})
	},
	"rgb.jpg": func(w io.Writer) error {
		img := image.NewRGBA(image.Rect(0, 0, 2, 1))
		for i := range img.Pix {
			img.Pix[i] = []byte{200, 100, 50, 255}[i%4]
		}
		return jpeg.Encode(w, img, &jpeg.Options{Quality: 100})
	},
}

// elems are ONNX's numbers of element types.
var elems = map[string]int{"f32": 1, "u8": 2, "i8": 3, "u16": 4, "i16": 5, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11, "u32": 12, "u64": 13, "bf16": 16}

// TestPictures gives pictures of every kind to inputs of every type.
func TestPictures(t *testing.T) {
	memorytest.Check(t)
	dir := t.TempDir()
	for name, write := range pictures {
		if err := wholefile.Write(filepath.Join(dir, name), write); err != nil {
			t.Fatal(err)
		}
	}
	flat := []any{1, 1, 1, 2}
	planes, pixels := []any{1, 3, 1, 2}, []any{1, "h", "w", 3}
	type test struct {
		picture, elem string
		dims          []any
		flags         string
		want          []float64
	}
	tests := []test{
		{"rgb.png", "u8", planes, "", []float64{10, 255, 20, 0, 30, 128}},
		{"rgb.png", "u8", pixels, "", []float64{10, 20, 30, 255, 0, 128}},
		{"rgb.png", "f32", pixels, "", []float64{10 / 255., 20 / 255., 30 / 255., 1, 0, 128 / 255.}},
		{"rgb.png", "u8", flat, "", []float64{math.Round(0.299*10 + 0.587*20 + 0.114*30), math.Round(0.299*255 + 0.114*128)}},
		{"rgba.png", "u8", pixels, "", []float64{10, 20, 30, 255, 255, 255}},
		{"rgb16.png", "u16", pixels, "", []float64{1, 1, 255, 255, 9, 0}},
		{"rgb16.png", "f32", pixels, "--scale 1", []float64{1, 0x140 / 257., 255, 255, 9, 0}},
		{"grey16.png", "u8", flat, "", []float64{128, 1}},
		{"grey16.png", "f64", flat, "", []float64{0x8000 / 65535., 0x140 / 65535.}},
		{"grey.jpg", "u8", flat, "", []float64{100, 100}},
		{"grey.jpg", "u8", pixels, "", []float64{100, 100, 100, 100, 100, 100}},
		{"rgb.jpg", "u8", pixels, "", []float64{200, 100, 50, 200, 100, 50}},
		{"grey.png", "i8", flat, "--scale 1 --mean 128", []float64{-121, 127}},
		{"grey.png", "i8", flat, "--scale 0.498", []float64{3, 127}}, // of 3.486 and 126.99
		{"grey.png", "u8", flat, "--scale 0.1", []float64{1, 26}},
		{"grey.png", "f32", flat, "--scale 1 --mean 127.5 --std 127.5", []float64{7/127.5 - 1, 1}},
		{"rgb.png", "f32", pixels, "--mean 0,0.5,1 --std 2", []float64{10 / 510., 20/510. - 0.25, 30/510. - 0.5, 0.5, -0.25, 128/510. - 0.5}},
	}
	for elem := range elems {
		switch elem {
		case "bool", "i8":
		case "f16", "bf16", "f32", "f64":
			tests = append(tests, test{"grey.png", elem, flat, "", []float64{7 / 255., 1}})
		default:
			tests = append(tests, test{"grey.png", elem, flat, "", []float64{7, 255}})
		}
	}
	for _, tc := range tests {
		name := fmt.Sprintf("%s to %s%v %s", tc.picture, tc.elem, tc.dims, tc.flags)
		got, stderr := runPicture(t, dir, tc.elem, tc.dims, tc.picture, tc.flags)
		if len(got) != len(tc.want) {
			t.Errorf("%s: got %v, want %v: %s", name, got, tc.want, stderr)
			continue
		}
		tolerance := 1e-6
		switch {
		case tc.elem == "bf16":
			tolerance = 1. / 512
		case tc.elem == "f16":
			tolerance = 1. / 4096
		case strings.HasSuffix(tc.picture, ".jpg"):
			tolerance = 2
		}
		for i := range got {
			if math.Abs(got[i]-tc.want[i]) > tolerance {
				t.Errorf("%s: got %v, want %v", name, got, tc.want)
				break
			}
		}
	}
}

// runPicture runs a model that gives its input as f32 on a picture, and
// returns the elements in order, none after an error.
func runPicture(t *testing.T, dir, elem string, dims []any, picture, flags string) (values []float64, stderr string) {
	t.Helper()
	model := filepath.Join(dir, "m.onnx")
	if err := wholefile.Write(model, castModel(elems[elem], dims...)); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	args := append([]string{"run", model, "-i", filepath.Join(dir, picture), "--json"}, strings.Fields(flags)...)
	if code := static.execute(context.Background(), args, &out, &errs); code != 0 {
		return nil, errs.String()
	}
	var a struct{ Outputs []struct{ Values []float64 } }
	if err := json.Unmarshal(out.Bytes(), &a); err != nil {
		t.Fatal(err)
	}
	return a.Outputs[0].Values, errs.String()
}

// TestPictureFaults gives pictures to inputs that do not hold them.
func TestPictureFaults(t *testing.T) {
	memorytest.Check(t)
	dir := t.TempDir()
	for name, write := range pictures {
		if err := wholefile.Write(filepath.Join(dir, name), write); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		elem        string
		dims        []any
		flags, want string
	}{
		{"i8", []any{1, 1, 1, 2}, "", "whose pixels of 0 to 255 i8 does not hold; want --scale, such as --scale 1 --mean 128"},
		{"bool", []any{1, 1, 1, 2}, "", "input x: bool[1,1,1,2]: got a picture, want an input of f16"},
		{"u8", []any{1, 1, 1, 2}, "--mean 3", "--mean, --std: input x: u8[1,1,1,2] gets the pixels 0 to 255 as they are; want --scale too"},
		{"u8", []any{1, 1, 1, 2}, "--scale 1 --mean 128", "got -121 of a pixel of 7, want what u8 holds, 0 to 255"},
		{"i8", []any{1, 1, 1, 2}, "--scale 1", "got 255 of a pixel of 255, want what i8 holds, -128 to 127"},
		{"f16", []any{1, 1, 1, 2}, "--scale 1000", "got 255000 of a pixel of 255, want what f16 holds"},
		{"f32", []any{1, 1, 1, 2}, "--mean 1,2,3", "--mean: got 3 numbers, want 1: input x: f32[1,1,1,2] has 1 channel"},
		{"f32", []any{1, 3, 1, 2}, "--std 1,2", "--std: got 2 numbers, want 1 or 3: input x: f32[1,3,1,2] has 3 channels"},
		{"f32", []any{1, 3, 1, 2}, "--scale 0", "--scale: got 0, want a number"},
		{"f32", []any{1, 3, "h", "w"}, "--shape h=10000 --shape w=20000", "got 20000x10000 pixels to fill, want at most"},
		{"f32", []any{1, 3, "h", "w"}, "--shape h=1000000000 --shape w=1000000000", "--shape: input x: f32[1,3,h,w]: shape: [1,3,1000000000,1000000000] has more than 2^58 elements"},
		{"f32", []any{4, 3, 1, 2}, "", "got one picture, want a batch of 4"},
		{"f32", []any{4, 4, 4}, "", "want an input [N,C,H,W] or [N,H,W,C]"},
	} {
		got, stderr := runPicture(t, dir, tc.elem, tc.dims, "grey.png", tc.flags)
		if got != nil || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s%v %s: got %v and %q, want an error with %q", tc.elem, tc.dims, tc.flags, got, stderr, tc.want)
		}
	}
}

// TestPictureSize stretches a picture to sizes that --shape gives.
func TestPictureSize(t *testing.T) {
	memorytest.Check(t)
	dir := t.TempDir()
	if err := wholefile.Write(filepath.Join(dir, "grey.png"), pictures["grey.png"]); err != nil {
		t.Fatal(err)
	}
	if got, stderr := runPicture(t, dir, "u8", []any{1, "h", "w", 3}, "grey.png", "--shape h=1 --shape w=3"); len(got) != 9 || got[0] != got[1] {
		t.Errorf("channels last: got %v, want three pixels of three equal channels: %s", got, stderr)
	}
	for flags, want := range map[string]int{"": 2, "--shape h=3": 6, "--shape h=3 --shape w=5": 15, "--shape x=1,1,4,4": 16} {
		got, stderr := runPicture(t, dir, "u8", []any{"n", 1, "h", "w"}, "grey.png", flags)
		if len(got) != want {
			t.Errorf("%s: got %d elements, want %d: %s", flags, len(got), want, stderr)
		}
	}
}
