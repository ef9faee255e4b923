package conv

import "github.com/tenure-go/tenure/internal/kernel"

// PlainTranspose is a transposed convolution of x [N,C,in...] with w
// [C,M/Groups,kernel...], plus a bias [M]: element i of the operand adds
// w[k]*x[i] to result i*Stride - PadBefore + k*Dilation along each axis.
// It serves the types and ranks that Transpose does not. A tile is a plane
// of results.
type PlainTranspose struct {
	Batch, Channels, Out, Groups int
	Axes                         []TransposeAxis
}

// Tiles returns the number of tiles: one per plane of results.
func (c *PlainTranspose) Tiles() int { return c.Batch * c.Out }

func (c *PlainTranspose) areas() (in, out, kernel int) {
	in, out, kernel = 1, 1, 1
	for _, a := range c.Axes {
		in, out, kernel = in*a.In, out*a.Out, kernel*a.Kernel
	}
	return in, out, kernel
}

// PlainTransposeTile computes one plane. bias may be nil.
func PlainTransposeTile[T kernel.Float](c *PlainTranspose, tile int, dst, x, w, bias []T) {
	n, m := tile/c.Out, tile%c.Out
	in, out, taps := c.areas()
	perGroup, channels := c.Out/c.Groups, c.Channels/c.Groups
	group := m / perGroup
	d := dst[tile*out : (tile+1)*out]
	first := T(0)
	if bias != nil {
		first = bias[m]
	}
	for i := range d {
		d[i] = first
	}
	for ch := range channels {
		plane := group*channels + ch
		src := x[(n*c.Channels+plane)*in:][:in]
		filter := w[(plane*perGroup+m%perGroup)*taps:][:taps]
		scatterPlane(c.Axes, d, src, filter)
	}
}

// scatterPlane adds one operand plane, seen through one filter, to a plane of
// results.
func scatterPlane[T kernel.Float](axes []TransposeAxis, dst, src, filter []T) {
	a := axes[0]
	if len(axes) == 1 {
		for k, f := range filter {
			shift := k*a.Dilation - a.PadBefore
			for i, v := range src {
				if o := i*a.Stride + shift; o >= 0 && o < a.Out {
					dst[o] += f * v
				}
			}
		}
		return
	}
	in, out, taps := len(src)/max(a.In, 1), len(dst)/a.Out, len(filter)/a.Kernel
	for i := range a.In {
		for k := range a.Kernel {
			o := i*a.Stride - a.PadBefore + k*a.Dilation
			if o < 0 || o >= a.Out {
				continue
			}
			scatterPlane(axes[1:], dst[o*out:(o+1)*out], src[i*in:(i+1)*in], filter[k*taps:(k+1)*taps])
		}
	}
}
