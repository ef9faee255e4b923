package conv

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// halfBox is a box of an image, whose copy in scratch lies in one piece.
type halfBox struct{ at, n [MaxSpatial]int }

// pieces calls f with the pieces of channels [first, first+n) that lie in one
// piece in the image, too: where they begin in the copy and in the image.
func (b *halfBox) pieces(s *Steps, first, n int, f func(copied, at, n int)) {
	row, plane := b.n[2], b.n[1]*b.n[2]
	channel := b.n[0] * plane
	begin := s.at(b.at[0], b.at[1], b.at[2])
	wholePlane := b.n[1] == 1 || s.Row == row
	wholeChannel := wholePlane && (b.n[0] == 1 || s.Plane == plane)
	switch {
	case channel == 0:
	case wholeChannel && s.Channel == channel:
		f(first*channel, begin+first*channel, n*channel)
	case wholeChannel:
		for ch := first; ch < first+n; ch++ {
			f(ch*channel, begin+ch*s.Channel, channel)
		}
	default:
		length, rows := row, b.n[1]
		if wholePlane {
			length, rows = plane, 1
		}
		for ch := first; ch < first+n; ch++ {
			for z := range b.n[0] {
				for y := range rows {
					f(ch*channel+z*plane+y*row, begin+ch*s.Channel+z*s.Plane+y*s.Row, length)
				}
			}
		}
	}
}

func (b *halfBox) widen(v *kernel.Variant, dt dtype.DType, dst []float32, src []uint16, s *Steps, first, n int) {
	b.pieces(s, first, n, func(copied, at, n int) {
		elementwise.Widen(v, dt, dst[copied:copied+n], src[at:at+n], 0, 1)
	})
}

func (b *halfBox) round(v *kernel.Variant, dt dtype.DType, dst []uint16, src []float32, s *Steps, first, n int) {
	b.pieces(s, first, n, func(copied, at, n int) {
		elementwise.Narrow(v, dt, dst[at:at+n], 0, 1, src[copied:copied+n])
	})
}
