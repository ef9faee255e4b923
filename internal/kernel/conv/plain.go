package conv

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Plain is a convolution of [Batch, InChannels, spatial...] by weights
// [OutChannels, InChannels/Group, kernel...] plus a bias per output channel,
// for the float types that Conv does not serve. A tile is a plane of results.
type Plain struct {
	Batch, Group            int
	InChannels, OutChannels int
	Window
}

// Prepare works out the window.
func (c *Plain) Prepare() {
	c.Resolve()
	c.InSteps.setBatch(c.InChannels)
	c.OutSteps.setBatch(c.OutChannels)
}

// Tiles returns the number of tiles.
func (c *Plain) Tiles() int {
	if c.outArea == 0 {
		return 0
	}
	return c.Batch * c.OutChannels
}

// PlainTile computes part t. bias may be nil.
func PlainTile[T kernel.Float](c *Plain, t int, dst, src, weights, bias []T) {
	batch, m := t/c.OutChannels, t%c.OutChannels
	channels := c.InChannels / c.Group
	first := m / (c.OutChannels / c.Group) * channels
	d := dst[batch*c.OutSteps.Batch+m*c.OutSteps.Channel:]
	var start T
	if bias != nil {
		start = bias[m]
	}
	for z := range c.out[0] {
		for y := range c.out[1] {
			kernel.Repeat(d[c.OutSteps.at(z, y, 0):][:c.out[2]], start)
		}
	}
	if c.inArea == 0 {
		return
	}
	for ch := range channels {
		plane := src[batch*c.InSteps.Batch+(first+ch)*c.InSteps.Channel:]
		w := weights[(m*channels+ch)*c.taps:][:c.taps]
		for k, f := range w {
			plainTap(&c.Window, k, d, plane, f)
		}
	}
}

// plainTap adds one tap of the kernel times the plane to a plane of results.
func plainTap[T kernel.Float](w *Window, k int, dst, src []T, f T) {
	lo, hi, shift := w.overlap(k)
	for z := lo[0]; z < hi[0]; z++ {
		for y := lo[1]; y < hi[1]; y++ {
			row := dst[w.OutSteps.at(z, y, 0):][:w.out[2]]
			from := src[w.InSteps.at(z*w.stride[0]+shift[0], y*w.stride[1]+shift[1], 0):][:w.in[2]]
			for x := lo[2]; x < hi[2]; x++ {
				row[x] += f * from[x*w.stride[2]+shift[2]]
			}
		}
	}
}

// PlainPool is Pool for the number types that it does not serve. A tile is a
// plane. Planes with indices follow each other.
type PlainPool struct {
	Kind             PoolKind
	Planes, Channels int
	Window

	ColumnMajor bool
}

// Prepare works out the window.
func (p *PlainPool) Prepare() {
	p.Resolve()
	p.InSteps.setBatch(p.Channels)
	p.OutSteps.setBatch(p.Channels)
}

// Tiles returns the number of tiles.
func (p *PlainPool) Tiles() int {
	if p.outArea == 0 {
		return 0
	}
	return p.Planes
}

// PlainPoolTile computes part t. indices, of a maximum, may be nil.
func PlainPoolTile[T kernel.Number](p *PlainPool, t int, dst []T, indices []int64, src []T) {
	shape := Pool{Kind: p.Kind, Channels: p.Channels, Window: p.Window, ColumnMajor: p.ColumnMajor}
	in, plane := shape.plane(t)
	from := src[in:]
	for o := range p.outArea {
		z, y, x := o/p.out[2]/p.out[1], o/p.out[2]%p.out[1], o%p.out[2]
		to := plane + p.OutSteps.at(z, y, x)
		if p.Kind != PoolMax {
			dst[to] = plainAverage(&shape, from, z, y, x)
			continue
		}
		at := plainMax(&shape, from, z, y, x)
		dst[to] = least[T]()
		if at >= 0 {
			dst[to] = from[at]
		}
		if indices != nil {
			indices[to] = int64(t*p.inArea + shape.number(max(at, 0)))
		}
	}
}

// least is the maximum of no elements.
func least[T kernel.Number]() T {
	var zero T
	switch any(zero).(type) {
	case float32, float64:
		return T(math.Inf(-1))
	}
	return kernel.Smallest[T]()
}

// eachTap calls f with the number of every tap of an output's window that is
// inside, and the place of its element.
func (w *Window) eachTap(z, y, x int, f func(tap, at int)) {
	zlo, zhi := w.span(0, z)
	ylo, yhi := w.span(1, y)
	xlo, xhi := w.span(2, x)
	for tz := zlo; tz < zhi; tz++ {
		for ty := ylo; ty < yhi; ty++ {
			iz := z*w.stride[0] - w.padBegin[0] + tz*w.dilation[0]
			iy := y*w.stride[1] - w.padBegin[1] + ty*w.dilation[1]
			row, tap := w.InSteps.at(iz, iy, x*w.stride[2]-w.padBegin[2]), (tz*w.kernel[1]+ty)*w.kernel[2]
			for tx := xlo; tx < xhi; tx++ {
				f(tap+tx, row+tx*w.dilation[2])
			}
		}
	}
}

// plainMax returns the place of the largest element of a window, the first of
// equal ones; -1 of none.
func plainMax[T kernel.Number](p *Pool, src []T, z, y, x int) int {
	where := -1
	p.eachTap(z, y, x, func(_, at int) {
		if v := src[at]; where < 0 || v > src[where] || v != v && src[where] == src[where] {
			where = at
		}
	})
	return where
}

func plainAverage[T kernel.Number](p *Pool, src []T, z, y, x int) T {
	sum, count := 0.0, 0
	p.eachTap(z, y, x, func(_, at int) {
		sum += float64(src[at])
		count++
	})
	if p.Kind == PoolAveragePadded {
		count = p.padded(0, z) * p.padded(1, y) * p.padded(2, x)
	}
	if count == 0 {
		return 0
	}
	return T(sum / float64(count))
}
