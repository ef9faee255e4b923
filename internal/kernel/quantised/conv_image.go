package quantised

import (
	"encoding/binary"

	"github.com/tenure-go/tenure/internal/kernel"
)

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

// inside returns the elements [lo, hi) of n of a plane that are no pads, for a
// block that begins at a place.
func (a *convAxis) inside(plane, place, n int) (lo, hi int) {
	first := a.from(plane, place, 0)
	if first < 0 {
		lo = min(n, kernel.CeilDiv(-first, a.stride))
	}
	return lo, max(lo, min(n, kernel.CeilDiv(a.in-first, a.stride)))
}

// isIn reports whether a position is none of a pad.
func (a *convAxis) isIn(pos int) bool { return pos >= 0 && pos < a.in }

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

// image is the sizes of an image. The pads behind a row are those before the
// next one, too.
type image struct {
	rows, pitch int // of a plane
	shared      int // pads behind the last row, which has no next one
	plane       int // places of all planes of a group of channels
	gap         int // of these, places that are not used
}

func (c *IntConv) imageOf(rows, cols int) (m image) {
	m.rows, m.pitch = rows+c.axes[1].reach, cols+c.axes[2].reach
	if ax := &c.axes[2]; rows > 1 && cols == ax.out && ax.planes == 1 && ax.stride == 1 {
		m.shared = max(0, min(ax.pad, ax.out+ax.reach-ax.pad-ax.in, ax.reach)) // all places of a row stay
		m.pitch -= m.shared
	}
	m.plane = c.axes[1].planes*c.axes[2].planes*m.rows*m.pitch + m.shared
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
	done := 0
	if y := ay.from(0, row, 0); az.kernel*ay.planes*ax.planes*m.rows == 1 && c.Channels >= step && az.isIn(az.from(0, z, 0)) && ay.isIn(y) {
		// The rows of all whole groups of channels.
		groups := c.Channels / step
		done = groups * step
		c.imageRows(dst, imageRows{groups, m.plane * step, step * c.area}, m.pitch, x, first*c.area+(az.from(0, z, 0)*ay.in+y)*ax.in, step, ax.from(0, col, 0), pad, flip)
		dst = dst[groups*m.plane*step:]
	}
	for tz := range az.kernel {
		inZ := z*az.stride - az.pad + tz*az.dilation
		for ch := done; ch < c.Channels; ch += step {
			planes := (first+ch)*c.area + inZ*ay.in*ax.in
			for planeY := range ay.planes {
				for planeX := range ax.planes {
					lo, hi := ay.inside(planeY, row, m.rows)
					if !az.isIn(inZ) {
						lo, hi = m.rows, m.rows
					}
					fill(dst[:lo*width], pad^flip)
					at := planes + ay.from(planeY, row, lo)*ax.in
					c.imageRows(dst[lo*width:], imageRows{hi - lo, width, ay.stride * ax.in}, m.pitch, x, at, min(step, c.Channels-ch), ax.from(planeX, col, 0), pad, flip)
					fill(dst[hi*width:m.rows*width], pad^flip)
					dst = dst[m.rows*width:]
				}
			}
			fill(dst[:m.shared*step], pad^flip)
			dst = dst[(m.shared+m.gap)*step:]
		}
	}
}

// imageRows is some rows of an image, and the bytes from each to the next one, in
// the image and in the input.
type imageRows struct{ n, step, xStep int }

// imageRows writes rows of an image, of which the first one's first element is at
// a position of the rows of n channels, of which the first begins at row.
func (c *IntConv) imageRows(dst []byte, rows imageRows, pitch int, x []byte, row, n, pos int, pad, flip byte) {
	ax, step := &c.axes[2], c.filters.step
	lo := 0
	if pos < 0 {
		lo = min(kernel.CeilDiv(-pos, ax.stride), pitch)
	}
	hi := max(lo, min(pitch, kernel.CeilDiv(ax.in-pos, ax.stride)))
	var at [4]int
	for i := range at {
		at[i] = row + min(i, n-1)*c.area + pos + lo*ax.stride
	}
	if vectors := kernel.CeilDiv(hi-lo, interleaved); vectors > 0 && ax.stride <= 2 && rows.n > 0 {
		// Whole vectors are read, too.
		room := len(x) - at[step-1] - vectors*interleaved*ax.stride
		if done := min(rows.n, 1+room/max(1, rows.xStep)); room >= 0 && done > 0 {
			call := kernel.ByteImage{Rows: done, DstStep: rows.step, XStep: rows.xStep, Left: lo * step, RightAt: hi * step, Right: (pitch - hi) * step, Pad: repeated(pad ^ flip)}
			c.interleave(&call, dst, x, at, vectors, flip)
			dst, rows.n = dst[min(done*rows.step, len(dst)):], rows.n-done
			for i := range at {
				at[i] += done * rows.xStep
			}
		}
	}
	for ; rows.n > 0; rows.n-- {
		fill(dst[:lo*step], pad^flip)
		c.imageRow(dst[lo*step:], x, at, hi-lo, flip)
		fill(dst[hi*step:pitch*step], pad^flip)
		dst = dst[min(rows.step, len(dst)):]
		for i := range at {
			at[i] += rows.xStep
		}
	}
}

// imageRow lays n elements of rows side by side. It may write up to a whole
// vector.
func (c *IntConv) imageRow(dst, x []byte, at [4]int, n int, flip byte) {
	stride, step, done := c.axes[2].stride, c.filters.step, 0
	if n == 0 {
		return
	}
	if stride <= 2 {
		if vectors := min(kernel.CeilDiv(n, interleaved), (len(x)-at[step-1])/(interleaved*stride)); vectors > 0 {
			c.interleave(&kernel.ByteImage{Rows: 1}, dst, x, at, vectors, flip)
			done = vectors * interleaved
		}
	}
	for i, from := range at[:step] {
		from += done * stride
		for j := done; j < n; j++ {
			dst[j*step+i] = x[from] ^ flip
			from += stride
		}
	}
}

// interleave writes rows with so many vectors each.
func (c *IntConv) interleave(call *kernel.ByteImage, dst, x []byte, at [4]int, vectors int, flip byte) {
	_ = dst[(call.Rows-1)*call.DstStep+call.Left+vectors*interleaved*c.filters.step-1]
	_ = x[(call.Rows-1)*call.XStep+at[c.filters.step-1]+vectors*interleaved*c.axes[2].stride-1]
	call.Dst, call.Vectors, call.Flip = &dst[0], vectors, repeated(flip)
	for i := range c.filters.step {
		call.X[i] = &x[at[i]]
	}
	if c.axes[2].stride == 1 {
		c.v.Bytes.Interleave1(*call)
	} else {
		c.v.Bytes.Interleave2(*call)
	}
}

// repeated is eight bytes of a kind.
func repeated(b byte) uint64 { return uint64(b) * 0x0101010101010101 }

func fill(dst []byte, v byte) {
	for word := repeated(v); len(dst) >= 8; dst = dst[8:] {
		binary.LittleEndian.PutUint64(dst, word)
	}
	for i := range dst {
		dst[i] = v
	}
}
