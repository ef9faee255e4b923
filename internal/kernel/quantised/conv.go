package quantised

import (
	"github.com/tenure-go/tenure/internal/kernel"
)

// IntConv is the convolution of bytes x [Batch, Group*Channels, In...] by w
// [Group*Filters, Channels, Kernel...], each less its zero.
type IntConv struct {
	Batch, Group, Channels, Filters int
	In, Out, Kernel                 []int
	Stride, Dilation, Pad           []int // Pad: before the first element
	SignedX, SignedW                bool
	PackedW                         bool // w is what FilterPanels.Pack wrote

	v                           *kernel.Variant // of Prepare
	area, outArea, taps, places int

	// With kernels for them, places are computed in blocks; see conv_block.go.
	blocks  bool
	axes    [3]convAxis
	filters FilterPanels
	block   blockSizes

	// Depthwise ones have kernels of their own.
	deeply bool
	deep   depthwise
	picks  bool // their taps are picked from vectors
	picked taps
}

// KeepSpace takes over the memory of another one's tables, which nothing uses
// any more. It comes before Prepare.
func (c *IntConv) KeepSpace(of *IntConv) { c.picked = of.picked }

// maxIntAxes is how many spatial axes the kernels of blocks take.
const maxIntAxes = 3

// Prepare works out the tiles.
func (c *IntConv) Prepare(v *kernel.Variant) {
	c.v = v
	c.area, c.outArea, c.taps = kernel.Product(c.In), kernel.Product(c.Out), kernel.Product(c.Kernel)
	c.places = max(1, kernel.PlainFlops/max(1, 2*c.Filters*c.Channels*c.taps))
	c.filters, c.blocks = c.FilterPanels(v)
	if c.blocks = c.blocks && c.Batch*c.outArea > 0; c.blocks {
		c.prepareBlocks()
	}
	if c.deeply = c.isDepthwise(v) && c.Batch*c.outArea > 0; c.deeply {
		c.prepareDepthwise()
	}
}

// Tiles returns the number of tiles: each is some places of the output in one
// group.
func (c *IntConv) Tiles() int {
	if c.deeply {
		return c.deep.tiles(c.Batch * c.Group)
	}
	if c.blocks {
		return c.Batch * c.Group * c.axes[0].out * c.block.count()
	}
	return kernel.CeilDiv(c.Batch*c.Group*c.outArea, c.places)
}

// ScratchBytes returns the size of a worker's scratch.
func (c *IntConv) ScratchBytes() int {
	if c.deeply {
		return c.deepLayout().bytes
	}
	if c.blocks {
		return c.layout().bytes
	}
	return 4 * c.Channels * c.taps
}

// IntConvTile computes part t into an int32 result, or with r into the bytes of
// r's type. zeroX is one, zeroW one or one per filter; both may be absent, and
// so may the bias, of one per filter.
func IntConvTile[X, W Byte](c *IntConv, t int, dst []byte, x []X, w []W, zeroX, zeroW Numbers, bias []int32, r *Requant, scratch []int32) {
	if c.blocks || c.deeply {
		args := convArgs{dst: dst, x: kernel.BytesOf(x), w: kernel.BytesOf(w), zeroX: zeroX, zeroW: zeroW, bias: bias}
		if r != nil {
			args.narrow, args.r = true, *r
		}
		if c.deeply {
			c.depthwiseTile(t, &args, kernel.BytesOf(scratch))
			return
		}
		c.blockTile(t, args, kernel.BytesOf(scratch))
		return
	}
	window := scratch[:c.Channels*c.taps]
	zx := int32(one(zeroX, 0))
	for p := t * c.places; p < min((t+1)*c.places, c.Batch*c.Group*c.outArea); p++ {
		place, plane := p%c.outArea, p/c.outArea
		total := intWindow(c, window, x[plane*c.Channels*c.area:], place, zx)
		first := plane % c.Group * c.Filters
		for f := first; f < first+c.Filters; f++ {
			sum := -total * int32(one(zeroW, f))
			if bias != nil {
				sum += bias[f]
			}
			for k, v := range w[f*len(window):][:len(window)] {
				sum += window[k] * int32(v)
			}
			at := (plane*c.Filters+f-first)*c.outArea + place
			if r == nil {
				kernel.View[int32](dst)[at] = sum
			} else {
				dst[at] = byte(int32(r.apply(sum, 0, f)))
			}
		}
	}
}

// intWindow gathers the elements of the window at one place of the output, and
// returns their sum. Pads stand for zero.
func intWindow[X Byte](c *IntConv, window []int32, x []X, place int, zero int32) (total int32) {
	for tap := range c.taps {
		at, inside := 0, true
		rest, o, step := tap, place, 1
		for i := len(c.In) - 1; i >= 0; i-- {
			pos := o%c.Out[i]*c.Stride[i] - c.Pad[i] + rest%c.Kernel[i]*c.Dilation[i]
			o, rest = o/c.Out[i], rest/c.Kernel[i]
			inside = inside && pos >= 0 && pos < c.In[i]
			at += pos * step
			step *= c.In[i]
		}
		for ch := range c.Channels {
			v := int32(0)
			if inside {
				v = int32(x[ch*c.area+at]) - zero
			}
			window[ch*c.taps+tap] = v
			total += v
		}
	}
	return total
}
