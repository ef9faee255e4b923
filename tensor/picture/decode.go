package picture

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // decoders that image.Decode knows
	_ "image/png"
	"io"
	"os"

	"github.com/tenure-go/tenure/tensor"
)

// MaxPixels bounds the pictures that are decoded and the tensors that are
// filled: a small file may claim a huge picture.
const MaxPixels = 1 << 26

// ErrFormat is data that is no PNG or JPEG picture. It is also
// [tensor.ErrCorrupt].
var ErrFormat = fmt.Errorf("got no PNG or JPEG picture: %w", tensor.ErrCorrupt)

// ReadFile decodes a PNG or JPEG file. A file of another format is [ErrFormat],
// a damaged one [tensor.ErrCorrupt], and a picture of more than [MaxPixels]
// pixels [tensor.ErrLimit].
func ReadFile(path string) (image.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	img, err := Decode(file)
	return img, errors.Join(err, file.Close())
}

// Decode decodes a PNG or JPEG picture, with the errors of [ReadFile]. It reads
// from where r stands, and does not say how far.
func Decode(r io.ReadSeeker) (image.Image, error) {
	start, err := r.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	config, _, err := image.DecodeConfig(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	if int64(config.Width)*int64(config.Height) > MaxPixels {
		return nil, fmt.Errorf("got a picture of %dx%d, want at most %d pixels: %w", config.Width, config.Height, MaxPixels, tensor.ErrLimit)
	}
	if _, err := r.Seek(start, io.SeekStart); err != nil {
		return nil, err
	}
	img, _, err := image.Decode(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, tensor.ErrCorrupt)
	}
	return img, nil
}
