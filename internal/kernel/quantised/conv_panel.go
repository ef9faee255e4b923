package quantised

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/conv"
)

// Convolutions of bytes by the panels of bytegemm_panel.go. The filters are the
// left matrix, whose zeros go by rows, and the patches of neighbouring
// positions the right one, so that results come as the planes that are wanted.
// A pad is the input's zero, from which nothing is left when that is taken off.

// patchBytes bounds the patches of a part, and filterBytes its filters.
const (
	patchBytes  = 256 << 10
	filterBytes = 1 << 20
)

func (c *IntConv) preparePanels() {
	w := &c.window
	// Sizes are given: elements after the last one do not matter.
	*w = conv.Window{In: c.In, Out: c.Out, Kernel: c.Kernel, Stride: c.Stride, Dilation: c.Dilation, PadBegin: c.Pad, PadEnd: c.Pad}
	w.Resolve()
	w.DropUnits()
	c.pointwise = c.taps == 1 && c.area == c.outArea && w.StaysInside()

	g := &c.gemm
	*g = IntGemm{v: c.v, M: c.Filters, K: c.Channels * c.taps, SignedA: c.SignedW, SignedB: c.SignedX}
	g.layout()
	c.cols = min(byteCols, max(2, patchBytes/g.K/g.nr)*g.nr)
	g.rows = min(c.Filters, max(byteRows, filterBytes/g.lda))
	few := func() bool {
		return c.Batch*c.Group*kernel.CeilDiv(c.Filters, g.rows)*kernel.CeilDiv(c.outArea, c.cols) < kernel.WantedTiles
	}
	for c.cols > 2*g.nr && few() {
		c.cols /= 2
	}
	for g.rows > byteRows/4 && few() {
		g.rows = kernel.CeilDiv(g.rows, 2)
	}
	c.cols, g.rows = kernel.EvenTile(c.outArea, c.cols, g.nr), kernel.EvenTile(c.Filters, g.rows, 1)
	g.colTiles, g.rowTiles = kernel.CeilDiv(c.outArea, c.cols), kernel.CeilDiv(c.Filters, g.rows)
	g.N = c.cols
	if c.pointwise { // patches lie as they are wanted
		g.N = c.area
	}
}

func (c *IntConv) panelScratch() int { return c.gemm.ScratchBytes() + 8*c.gemm.rows + c.patchBytes() }

func (c *IntConv) patchBytes() int {
	if c.pointwise {
		return 0
	}
	return c.gemm.K * c.cols
}

// filterWork is the addend and the factor of each filter's sums.
type filterWork struct {
	add    []int32
	factor []float32
}

// panelTile computes part t: some filters of a group at some positions.
func (c *IntConv) panelTile(t int, dst, x, weights []byte, zeroX, zeroW Numbers, bias []int32, r *Requant, scratch []int32) {
	g := &c.gemm
	col := t % g.colTiles * c.cols
	row := t / g.colTiles % g.rowTiles * g.rows
	plane := t / g.colTiles / g.rowTiles
	rows, end := min(g.rows, c.Filters-row), min(col+c.cols, c.outArea)
	w := g.work(scratch)
	last := scratch[:c.panelScratch()/4]
	last = last[len(last)-2*g.rows-c.patchBytes()/4:]
	f := filterWork{last[:rows], kernel.View[float32](kernel.BytesOf(last[g.rows:][:rows]))}
	patches := kernel.BytesOf(last[2*g.rows:])
	clear(w.from)
	uniform := len(zeroW.Data) <= 1
	filter := plane%c.Group*c.Filters + row
	for i := range rows {
		w.totals[i] = g.rowOfA(w.rows[i*g.lda:][:g.lda], weights[(filter+i)*g.K:][:g.K])
	}
	c.filters(&f, filter, w.totals, zeroX, zeroW, bias, r)
	from, at := x[plane*c.Channels*c.area:], col
	if !c.pointwise {
		pad := byte(0)
		if len(zeroX.Data) > 0 {
			pad = zeroX.Data[0]
		}
		c.window.GatherBytes(patches, from, c.Channels, col, end-col, c.cols, pad)
		from, at = patches, 0
	}
	for ; col < end; col, at = col+g.nr, at+g.nr {
		n := min(g.nr, end-col)
		g.packPanel(w.panel, from, at, n, true)
		if uniform {
			zw := g.zeroOfA(zeroW, 0)
			for j, total := range kernel.View[int32](w.panel[len(w.panel)-4*g.nr:]) {
				w.from[j] = -zw * total
			}
		}
		bytePanel(c.v, rows, g.depth, w.rows, g.lda, w.panel, w.sums, g.nr, n, w.from, 0)
		p := bytePart{row: filter, rows: rows, cols: n, at: (plane*c.Filters+row)*c.outArea + col}
		if !uniform {
			c.lessZeros(&w, &p, zeroW)
		}
		c.write(&w, &p, dst, &f, r)
	}
}

// lessZeros subtracts from the sums the terms of the zeros of filters that have
// one each.
func (c *IntConv) lessZeros(w *byteWork, p *bytePart, zeroW Numbers) {
	g := &c.gemm
	totals := kernel.View[int32](w.panel[len(w.panel)-4*g.nr:])[:p.cols]
	for i := range p.rows {
		zw, sums := g.zeroOfA(zeroW, p.row+i), w.sums[i*g.nr:][:p.cols]
		for j, total := range totals {
			sums[j] -= zw * total
		}
	}
}

// filters computes the addend of each filter's sums, its bias less the term of
// the input's zero, and their factor.
func (c *IntConv) filters(f *filterWork, first int, totals []int32, zeroX, zeroW Numbers, bias []int32, r *Requant) {
	g := &c.gemm
	zx := g.zeroOfB(zeroX, 0)
	for i := range f.add {
		f.add[i] = zx * (int32(g.K)*g.zeroOfA(zeroW, first+i) - totals[i])
		if bias != nil {
			f.add[i] += bias[first+i]
		}
		if r != nil {
			f.factor[i] = float32(one(r.A, 0)) * float32(one(r.B, first+i)) / float32(one(r.Y, 0))
		}
	}
}

func (c *IntConv) write(w *byteWork, p *bytePart, dst []byte, f *filterWork, r *Requant) {
	if r != nil {
		r.narrow(c.v, dst[p.at:], c.outArea, w.sums, c.gemm.nr, p.cols, f)
		return
	}
	for i, add := range f.add {
		sums, to := w.sums[i*c.gemm.nr:][:p.cols], kernel.View[int32](dst)[p.at+i*c.outArea:][:p.cols]
		for j, sum := range sums {
			to[j] = sum + add
		}
	}
}
