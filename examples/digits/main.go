// Command digits reads handwritten digits: the model is part of the program.
//
//	go run ./examples/digits examples/digits/samples/7.png
//
// It shows a program that carries its model ([embed]), turns a picture into a
// tensor, runs and reads the answer. The model holds its 39 KiB of weights, the
// session an arena of 3 KiB; each call of read makes two small tensors and
// releases them. A reader may be used from many goroutines: the session runs
// one picture at a time.
package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"os"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/tensor"
)

//go:embed digits.onnx
var files embed.FS

// side is the height and width of the model's input.
const side = 8

func main() {
	log.SetFlags(0)
	if len(os.Args) < 2 {
		log.Fatal("usage: digits PICTURE.png...")
	}
	if err := run(os.Args[1:]); err != nil {
		log.Fatal("digits: ", err)
	}
}

func run(paths []string) error {
	r, err := newReader()
	if err != nil {
		return err
	}
	defer r.close()
	for _, path := range paths {
		img, err := open(path)
		if err != nil {
			return err
		}
		digit, p, err := r.read(context.Background(), img)
		if err != nil {
			return err
		}
		fmt.Printf("%s: %d (%.1f%%)\n", path, digit, 100*p)
	}
	return nil
}

func open(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return png.Decode(f)
}

// reader reads digits. Its owner closes it.
type reader struct {
	model   *tenure.Model
	session *tenure.Session
}

func newReader() (*reader, error) {
	m, err := tenure.LoadFS(files, "digits.onnx")
	if err != nil {
		return nil, err
	}
	s, err := m.NewSession()
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return &reader{m, s}, nil
}

func (r *reader) close() error { return errors.Join(r.session.Close(), r.model.Close()) }

// read returns the digit that a white-on-black picture shows, and how probable
// that is.
func (r *reader) read(ctx context.Context, img image.Image) (digit int, probability float32, err error) {
	x, err := tensor.Of(pixels(img), 1, 1, side, side)
	if err != nil {
		return 0, 0, err
	}
	defer x.Release()
	out, err := r.session.Run(ctx, tenure.Inputs{"image": x})
	if err != nil {
		return 0, 0, err
	}
	defer out.Release()
	y, err := out.Get("probabilities")
	if err != nil {
		return 0, 0, err
	}
	view, err := tensor.Read[float32](y)
	if err != nil {
		return 0, 0, err
	}
	defer view.Release()
	for i, p := range view.Data {
		if p > probability {
			digit, probability = i, p
		}
	}
	return digit, probability, nil
}

// pixels returns the brightness, 0 to 1, of 8x8 points of a picture: each the
// mean of the cell of the picture around it.
func pixels(img image.Image) []float32 {
	data := make([]float32, 0, side*side)
	b := img.Bounds()
	for i := range side {
		for j := range side {
			cell := image.Rect(b.Min.X+j*b.Dx()/side, b.Min.Y+i*b.Dy()/side, b.Min.X+(j+1)*b.Dx()/side, b.Min.Y+(i+1)*b.Dy()/side)
			data = append(data, brightness(img, cell))
		}
	}
	return data
}

func brightness(img image.Image, cell image.Rectangle) float32 {
	sum := 0
	for y := cell.Min.Y; y < cell.Max.Y; y++ {
		for x := cell.Min.X; x < cell.Max.X; x++ {
			sum += int(color.Gray16Model.Convert(img.At(x, y)).(color.Gray16).Y)
		}
	}
	return float32(sum) / float32(max(cell.Dx()*cell.Dy(), 1)*0xffff)
}
