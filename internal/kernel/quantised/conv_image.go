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
	if c.axes[1].planes*c.axes[2].planes > 1 {
		m.gap = 2 * interleaved // of which writing may take some
	}
	// Groups that are some powers of two apart would meet in few sets of the
	// first-level cache.
	if (m.plane+m.gap)*c.filters.step%256 == 0 {
		m.gap += 64 / c.filters.step
	}
	m.plane += m.gap
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

// writeImage writes the image of a block of places from (z, row, col) on: what
// is in the input, plane by plane for all groups of channels, and then the pads
// above and below, since what is written behind a row is not the image's.
func (c *IntConv) writeImage(dst []byte, m image, x []byte, first, z, row, col int, pad byte) {
	az, ay, ax := &c.axes[0], &c.axes[1], &c.axes[2]
	w := imageWriter{c: c, m: m, x: x, pad: pad}
	if c.SignedX {
		w.flip = 0x80
		w.pad ^= w.flip
	}
	step, groups := c.filters.step, c.filters.channelGroups()
	for tz := range az.kernel {
		inZ := z*az.stride - az.pad + tz*az.dilation
		to := dst[tz*groups*m.plane*step:]
		if !az.isIn(inZ) {
			fill(to[:groups*m.plane*step], w.pad)
			continue
		}
		for planeY := range ay.planes {
			lo, hi := ay.inside(planeY, row, m.rows)
			at := (first*az.in+inZ)*ay.in*ax.in + ay.from(planeY, row, lo)*ax.in
			for planeX := range ax.planes {
				begin := (planeY*ax.planes + planeX) * m.rows
				w.plane(to[(begin+lo)*m.pitch*step:], hi-lo, at, ax.from(planeX, col, 0))
			}
		}
		for planeY := range ay.planes {
			lo, hi := ay.inside(planeY, row, m.rows)
			for i := range groups * ax.planes {
				group, planeX := i/ax.planes, i%ax.planes
				p := to[(group*m.plane+(planeY*ax.planes+planeX)*m.rows*m.pitch)*step:][:m.rows*m.pitch*step]
				fill(p[:lo*m.pitch*step], w.pad)
				fill(p[hi*m.pitch*step:], w.pad)
			}
		}
		if m.shared > 0 {
			for group := range groups {
				fill(to[((group+1)*m.plane-m.gap-m.shared)*step:][:m.shared*step], w.pad)
			}
		}
	}
}

// imageWriter writes rows of an image.
type imageWriter struct {
	c         *IntConv
	m         image
	x         []byte
	pad, flip byte // the pad has the flip taken
}

// plane writes rows of one plane of all groups of channels. The first element
// of the first row is at a position of the row of the input that begins at row.
func (w *imageWriter) plane(dst []byte, rows, row, pos int) {
	c, step := w.c, w.c.filters.step
	ax, pitch := &c.axes[2], w.m.pitch
	lo := 0
	if pos < 0 {
		lo = min(kernel.CeilDiv(-pos, ax.stride), pitch)
	}
	hi := max(lo, min(pitch, kernel.CeilDiv(ax.in-pos, ax.stride)))
	if rows == 0 {
		return
	}
	call := kernel.ByteImage{Rows: rows, DstStep: pitch * step, XStep: c.axes[1].stride * ax.in, Left: lo * step, RightAt: hi * step, Right: (pitch - hi) * step,
		Vectors: kernel.CeilDiv(hi-lo, interleaved), Pad: repeated(w.pad), Flip: repeated(w.flip), DstGroup: w.m.plane * step, XGroup: step * c.area}
	row += pos + lo*ax.stride
	for group := 0; group < c.filters.channelGroups(); {
		n := min(step, c.Channels-group*step)
		call.Groups = 1
		if n == step {
			call.Groups = c.Channels/step - group
		}
		// Whole vectors are read, too.
		ends := func(groups int) int {
			return row + (n-1)*c.area + (groups-1)*call.XGroup + (rows-1)*call.XStep + call.Vectors*interleaved*ax.stride
		}
		if over := ends(call.Groups) - len(w.x); over > 0 {
			call.Groups = max(1, call.Groups-kernel.CeilDiv(over, call.XGroup))
		}
		groups := call.Groups
		if ax.stride <= 2 && call.Vectors > 0 && ends(groups) <= len(w.x) {
			w.interleave(call, dst, row, n)
		} else {
			groups = 1
			w.slowly(&call, dst, row, n, hi-lo)
		}
		group += groups
		dst, row = dst[min(groups*call.DstGroup, len(dst)):], row+groups*call.XGroup
	}
}

// slowly writes the rows of one group of n channels where not all vectors can
// be read.
func (w *imageWriter) slowly(all *kernel.ByteImage, dst []byte, row, n, places int) {
	c, step, call := w.c, w.c.filters.step, *all
	ax := &c.axes[2]
	call.Rows, call.Groups, call.Left, call.Right = 1, 1, 0, 0
	for range all.Rows {
		to := dst[:all.DstStep]
		fill(to[:all.Left], w.pad)
		done := 0
		if call.Vectors = min(all.Vectors, (len(w.x)-row-(n-1)*c.area)/(interleaved*ax.stride)); ax.stride <= 2 && call.Vectors > 0 {
			w.interleave(call, dst[all.Left:], row, n)
			done = call.Vectors * interleaved
		}
		for i := range step {
			from := row + min(i, n-1)*c.area + done*ax.stride
			for j := done; j < places; j++ {
				to[all.Left+j*step+i] = w.x[from] ^ w.flip
				from += ax.stride
			}
		}
		fill(to[all.RightAt:], w.pad)
		dst, row = dst[min(all.DstStep, len(dst)):], row+all.XStep
	}
}

// interleave writes rows of n channels, of which the first begins at row.
func (w *imageWriter) interleave(call kernel.ByteImage, dst []byte, row, n int) {
	c, step := w.c, w.c.filters.step
	_ = dst[(call.Groups-1)*call.DstGroup+(call.Rows-1)*call.DstStep+call.Left+call.Vectors*interleaved*step-1]
	for i := range step {
		call.X[i] = &w.x[row+min(i, n-1)*c.area]
	}
	call.Dst = &dst[0]
	if c.axes[2].stride == 1 {
		c.v.Bytes.Interleave1(call)
	} else {
		c.v.Bytes.Interleave2(call)
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
