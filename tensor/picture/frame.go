package picture

import (
	"fmt"
	"image"

	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Layout says which axis of a shape is the channels'.
type Layout int

const (
	Auto          Layout = iota // the first axis behind N that has size 1 or 3, else the last axis
	ChannelsFirst               // [N,C,H,W]
	ChannelsLast                // [N,H,W,C]
)

// LayoutOf returns the layout that a shape leaves no doubt about, and Auto for
// any other.
func LayoutOf(s *shape.Shape) Layout {
	switch {
	case s == nil || s.Rank() < 3 || s.Rank() > 4:
		return Auto
	case isChannels(s, s.Rank()-3):
		return ChannelsFirst
	case isChannels(s, s.Rank()-1):
		return ChannelsLast
	}
	return Auto
}

func isChannels(s *shape.Shape, axis int) bool {
	n, ok := s.Dim(axis).Size()
	return ok && (n == 1 || n == 3)
}

// Frame is where the pixels of one picture go in a tensor.
type Frame struct {
	Shape                   *shape.Shape // all sizes known
	Channels, Height, Width int          // Height and Width in pixels
	ChannelsLast            bool
}

// Fit matches a shape with a picture of the given bounds: an open N is 1, an
// open height or width is the picture's. A shape that is not one of those in
// the package's documentation is [tensor.ErrShape], one of more than
// [MaxPixels] pixels [tensor.ErrLimit].
func Fit(s *shape.Shape, layout Layout, bounds image.Rectangle) (Frame, error) {
	wrong := fmt.Errorf("got a picture, want an input [N,C,H,W] or [N,H,W,C] with 1 or 3 channels: %w", tensor.ErrShape)
	if s == nil || s.Rank() < 3 || s.Rank() > 4 {
		return Frame{}, wrong
	}
	if layout == Auto {
		layout = LayoutOf(s)
	}
	first := s.Rank() - 3 // the axis behind N
	channels, height := first, first+1
	switch layout {
	case ChannelsFirst:
	case ChannelsLast:
		channels, height = s.Rank()-1, first
	default:
		return Frame{}, wrong
	}
	f := Frame{Height: sizeOf(s, height, bounds.Dy()), Width: sizeOf(s, height+1, bounds.Dx()), ChannelsLast: layout == ChannelsLast}
	if f.Channels = sizeOf(s, channels, 0); f.Channels != 1 && f.Channels != 3 {
		return Frame{}, wrong
	}
	sizes := []int{f.Channels, f.Height, f.Width}
	if f.ChannelsLast {
		sizes = []int{f.Height, f.Width, f.Channels}
	}
	if first == 1 {
		if n := sizeOf(s, 0, 1); n != 1 {
			return Frame{}, fmt.Errorf("got one picture, want a batch of %d: %w", n, tensor.ErrShape)
		}
		sizes = append([]int{1}, sizes...)
	}
	if f.Height == 0 || f.Width == 0 {
		return Frame{}, wrong
	}
	if f.Height > MaxPixels/f.Width {
		return Frame{}, fmt.Errorf("got %dx%d pixels to fill, want at most %d: %w", f.Width, f.Height, MaxPixels, tensor.ErrLimit)
	}
	var err error
	f.Shape, err = shape.Of(sizes...)
	return f, err
}

// sizeOf returns the size of an axis, or another where it is open.
func sizeOf(s *shape.Shape, axis, open int) int {
	if n, ok := s.Dim(axis).Size(); ok {
		return n
	}
	return open
}
