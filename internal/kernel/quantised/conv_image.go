package quantised

import "github.com/tenure-go/tenure/internal/kernel"

// The image of a block is what its places read: channels side by side in
// groups, with pads, so that a tap lies at one distance from each place. Where
// places are some elements apart, the elements that one tap reads follow each
// other: the image has a plane for each remainder of a position by the stride.
//
// An image is indexed by the tap of the outermost axis, the group of channels,
// the plane by rows and by columns, the row, and the column.

// convAxis is a spatial axis of a convolution.
type convAxis struct {
	in, out, kernel, stride, dilation, pad int

	planes int // remainders of positions that taps read
	reach  int // of the last tap in its plane
}

func (a *convAxis) resolve() {
	x, y := a.stride, a.dilation
	for y != 0 {
		x, y = y, x%y
	}
	a.planes = min(a.kernel, a.stride/x)
	a.reach = (a.kernel - 1) * a.dilation / a.stride
}

// plane returns the plane of a tap, and how far into it the tap is.
func (a *convAxis) plane(tap int) (plane, at int) {
	return tap % a.planes, tap * a.dilation / a.stride
}

// from returns the position of element i of a plane, for a block that begins at
// a place.
func (a *convAxis) from(plane, place, i int) int {
	return (place+i)*a.stride - a.pad + plane*a.dilation%a.stride
}

// setAxes sets the axes to the convolution's, of which it drops what makes no
// difference.
func (c *IntConv) setAxes() {
	inner := true // a row of places reads a row of elements
	for i := range c.axes {
		c.axes[i] = convAxis{in: 1, out: 1, kernel: 1, stride: 1, dilation: 1}
		if j := i - maxIntAxes + len(c.In); j >= 0 {
			c.axes[i] = convAxis{in: c.In[j], out: c.Out[j], kernel: c.Kernel[j], stride: c.Stride[j], dilation: c.Dilation[j], pad: c.Pad[j]}
		}
		a := &c.axes[i]
		inner = inner && a.in == a.out && a.kernel == 1 && a.stride == 1 && a.pad == 0
	}
	unit := convAxis{in: 1, out: 1, kernel: 1, stride: 1, dilation: 1}
	if inner {
		c.axes = [3]convAxis{unit, unit, {in: c.area, out: c.outArea, kernel: 1, stride: 1, dilation: 1}}
	}
	if a := c.axes[2]; a.in == 1 && a.out == 1 && a.kernel == 1 && a.pad == 0 && c.axes[0].kernel == 1 {
		c.axes = [3]convAxis{unit, c.axes[0], c.axes[1]}
	}
	for i := range c.axes {
		c.axes[i].resolve()
	}
}

// image is the sizes of an image.
type image struct {
	rows, pitch int // of a plane
	plane       int // places of all planes of a group of channels
	gap         int // of these, places that are not used
}

func (c *IntConv) imageOf(rows, cols int) (m image) {
	m.rows, m.pitch = rows+c.axes[1].reach, cols+c.axes[2].reach
	m.plane = c.axes[1].planes * c.axes[2].planes * m.rows * m.pitch
	// Groups that are some powers of two apart would meet in few sets of the
	// first-level cache.
	if m.plane*c.filters.step%256 == 0 {
		m.gap = 64 / c.filters.step
		m.plane += m.gap
	}
	return m
}

// imageBytes is the size of an image, with what kernels read and write behind
// it.
func (c *IntConv) imageBytes(m image) int {
	return (c.axes[0].kernel*c.filters.channelGroups()*m.plane + c.v.Bytes.Width + 2*interleaved) * c.filters.step
}

// offsets sets where the inputs of each row of a panel lie in an image.
func (c *IntConv) offsets(dst []int32, m image) {
	z, y, x := &c.axes[0], &c.axes[1], &c.axes[2]
	i := 0
	for group := range z.kernel * c.filters.channelGroups() {
		for ty := range y.kernel {
			planeY, row := y.plane(ty)
			for tx := range x.kernel {
				planeX, col := x.plane(tx)
				at := group*m.plane + ((planeY*x.planes+planeX)*m.rows+row)*m.pitch + col
				dst[i] = int32(at * c.filters.step)
				i++
			}
		}
	}
}

// interleaved is how many places the kernels that write images take at once.
const interleaved = 16

// writeImage writes the image of a block of places from (z, row, col) on. Rows
// are written in order, so that what one writes too much the next overwrites.
func (c *IntConv) writeImage(dst []byte, m image, x []byte, first, z, row, col int, pad byte) {
	az, ay, ax := &c.axes[0], &c.axes[1], &c.axes[2]
	flip := byte(0)
	if c.SignedX {
		flip = 0x80
	}
	width, step := m.pitch*c.filters.step, c.filters.step
	for tz := range az.kernel {
		inZ := z*az.stride - az.pad + tz*az.dilation
		for ch := 0; ch < c.Channels; ch += step {
			planes := (first+ch)*c.area + inZ*ay.in*ax.in
			for planeY := range ay.planes {
				for planeX := range ax.planes {
					for i := range m.rows {
						inY := ay.from(planeY, row, i)
						if inZ < 0 || inZ >= az.in || inY < 0 || inY >= ay.in {
							fill(dst[:width], pad^flip)
						} else {
							c.imageRow(dst, m.pitch, x, planes+inY*ax.in, min(step, c.Channels-ch), ax.from(planeX, col, 0), pad, flip)
						}
						dst = dst[width:]
					}
				}
			}
			dst = dst[m.gap*step:]
		}
	}
}

// imageRow writes a row of an image, whose first element is at a position of
// the rows of n channels, of which the first begins at row.
func (c *IntConv) imageRow(dst []byte, pitch int, x []byte, row, n, pos int, pad, flip byte) {
	ax, step := &c.axes[2], c.filters.step
	lo := 0
	if pos < 0 {
		lo = min(kernel.CeilDiv(-pos, ax.stride), pitch)
	}
	hi := max(lo, min(pitch, kernel.CeilDiv(ax.in-pos, ax.stride)))
	fill(dst[:lo*step], pad^flip)
	if lo < hi {
		var at [4]int
		for i := range at {
			at[i] = row + min(i, n-1)*c.area + pos + lo*ax.stride
		}
		c.interleave(dst[lo*step:], x, at, hi-lo, flip)
	}
	fill(dst[hi*step:pitch*step], pad^flip)
}

// interleave lays n elements of rows side by side. It may write up to a whole
// vector.
func (c *IntConv) interleave(dst, x []byte, at [4]int, n int, flip byte) {
	stride, step, done := c.axes[2].stride, c.filters.step, 0
	if stride <= 2 {
		// Whole vectors are read, too.
		vectors := min(kernel.CeilDiv(n, interleaved), (len(x)-at[step-1])/(interleaved*stride))
		if vectors > 0 {
			loop := c.v.Bytes.Interleave1
			if stride == 2 {
				loop = c.v.Bytes.Interleave2
			}
			_ = dst[vectors*interleaved*step-1]
			loop(vectors, &dst[0], &x[at[0]], &x[at[1]], &x[at[2]], &x[at[3]], uint64(flip)*0x0101010101010101)
			done = vectors * interleaved
		}
	}
	if done >= n {
		return
	}
	for i, from := range at[:step] {
		from += done * stride
		for j := done; j < n; j++ {
			dst[j*step+i] = x[from] ^ flip
			from += stride
		}
	}
}

func fill(dst []byte, v byte) {
	for i := range dst {
		dst[i] = v
	}
}
