package quantised

import (
	"github.com/tenure-go/tenure/internal/kernel"
)

// The panels of places of a block. The last places take a half or a quarter of
// a panel, where the machine has kernels for that.

// tiles computes n filters at the places [from, to): panels, and then parts of
// panels. It returns how far it has come: where exact is set, no results of
// places behind the last one are written, and the last part takes places again
// before them, if there are enough.
func (k *convBlock) tiles(out []byte, first, n, from, to, size int, exact bool) (done int) {
	width, at := k.c.v.Bytes.Width, from
	if panels := (to - at) / width; panels > 0 {
		k.panels(out, first, n, at, panels, width, size)
		at += panels * width
	}
	for at < to {
		part := k.part(to - at)
		start := at
		if exact && at+part > to {
			if start = to - part; start < from {
				return at
			}
		}
		k.panels(out[(start-from)*size:], first, n, start, 1, part, size)
		at = start + part
	}
	return at
}

// part is the width of the panel that comes next where n places are left, fewer
// than a panel has.
func (k *convBlock) part(n int) int {
	width := k.c.v.Bytes.Width
	switch {
	case k.c.v.Bytes.HalfFilters == nil || k.asymmetric || n > width*3/4:
		return width
	case n > width/4:
		return width / 2
	}
	return width / 4
}

// panels computes n filters at panels of places of some width.
func (k *convBlock) panels(out []byte, first, n, from, panels, width, size int) {
	v, call, step := &k.c.v.Bytes, k.call, k.c.filters.step
	loop := v.Filters
	switch width {
	case v.Width / 2:
		loop = v.HalfFilters
	case v.Width / 4:
		loop = v.QuarterFilters
	}
	call.Panels, call.XNext, call.OutNext = panels, width*step, width*size
	call.X, call.Out = &k.scratch[from*step], &out[0]
	if !k.asymmetric {
		loop(call, n)
		return
	}
	call.Panels = 1
	for i := range panels {
		call.X, call.Out = &k.scratch[(from+i*width)*step], &out[i*width*size]
		k.lessColumns(&call, first, n)
		loop(call, n)
	}
}

// lessColumns lets a tile begin with the terms of the zeros of its filters,
// which depend on the sums of the input.
func (k *convBlock) lessColumns(call *kernel.ByteConvTile, first, n int) {
	width := k.c.v.Bytes.Width
	columns := kernel.View[int32](k.scratch[k.l.columns:][:4*width])
	from := kernel.View[int32](k.scratch[k.l.from:][:4*n*width])
	columns[0] = 0 // the addend
	sums := kernel.ByteConvTile{Offsets: call.Offsets, Depth: call.Depth, X: call.X, Weights: &k.scratch[k.l.ones], Out: &k.scratch[k.l.columns], Add: &columns[0], Panels: 1}
	k.c.v.Bytes.Filters(sums, 1)
	for i := range n {
		zw := k.zeroOfW(first + i)
		for j, sum := range columns {
			from[i*width+j] = -zw * sum
		}
	}
	call.From, call.FromStep = &from[0], 4*width
}
