package quantised

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/kernel"
)

// A panel of bytes holds byteNR columns of B, byteStep rows of a column side by
// side, and behind them the sums of the columns. Its bytes are signed: 128 less
// where those of B are not, and their zeros as well. Those of A are unsigned in
// the same way. Rows are filled up with zeros, which add nothing.

// PackedBBytes is the size of what PackB writes.
func (g *IntGemm) PackedBBytes(v *kernel.Variant) int {
	g.v = v
	g.layout()
	return kernel.CeilDiv(g.N, g.nr) * g.panelBytes()
}

// PackB packs a whole constant B for an IntGemm with PackedB.
func (g *IntGemm) PackB(v *kernel.Variant, dst, b []byte) {
	g.v = v
	g.layout()
	for j := 0; j < g.N; j += g.nr {
		g.packPanel(dst[j/g.nr*g.panelBytes():][:g.panelBytes()], b, j, min(g.nr, g.N-j), false)
	}
}

// PackedLayout names what PackB makes: equal names, equal panels of equal
// matrices of the same type.
func (g *IntGemm) PackedLayout(v *kernel.Variant) string {
	g.v = v
	return fmt.Sprintf("%dx%d in panels of %d by %d", g.K, g.N, v.Bytes.Width, v.Bytes.Step)
}

// UnpackB is the reverse of PackB.
func (g *IntGemm) UnpackB(v *kernel.Variant, dst, panels []byte) {
	g.v = v
	g.layout()
	flip := g.flipB()
	for j := range g.N {
		panel := panels[j/g.nr*g.panelBytes():]
		for k := range g.K {
			dst[k*g.N+j] = panel[(k/v.Bytes.Step*g.nr+j%g.nr)*v.Bytes.Step+k%v.Bytes.Step] ^ flip
		}
	}
}

func (g *IntGemm) flipB() byte {
	if g.SignedB {
		return 0
	}
	return 0x80
}

// packPanel packs n columns. With spill the panel's other columns may hold
// bytes after those, whose sums are not read.
func (g *IntGemm) packPanel(dst, b []byte, col, n int, spill bool) {
	size := g.panelBytes() - 4*g.nr
	panel, sums := dst[:size], kernel.View[int32](dst[size:])
	flip, k := g.flipB(), 0
	if spill || n == g.nr {
		k = byteGroups(g.v, panel, b[min(col, len(b)):], g.N, g.K/g.v.Bytes.Step, flip, sums) * g.v.Bytes.Step
	}
	clear(panel[k*g.nr:])
	if k == 0 {
		clear(sums)
	}
	for ; k < g.K; k++ {
		row := panel[k/g.v.Bytes.Step*g.nr*g.v.Bytes.Step+k%g.v.Bytes.Step:]
		for j, v := range b[k*g.N+col:][:n] {
			v ^= flip
			row[j*g.v.Bytes.Step] = v
			sums[j] += int32(int8(v))
		}
	}
}

// byteWork is the scratch of a part.
type byteWork struct {
	rows   []byte  // of A, as the kernels want them
	totals []int32 // of these rows
	sums   []int32 // rows of a panel's width
	from   []int32 // the addend of every row
	scale  []int32 // float32 by column, as bits
	panel  []byte
}

func (g *IntGemm) work(scratch []int32) (w byteWork) {
	take := func(n int) []int32 {
		s := scratch[:n:n]
		scratch = scratch[n:]
		return s
	}
	w.rows = kernel.BytesOf(take(g.rows * g.lda / 4))
	w.totals = take(g.rows)
	w.sums, w.from, w.scale = take(g.rows*g.nr), take(g.nr), take(g.nr)
	if !g.PackedB {
		w.panel = kernel.BytesOf(take(g.panelBytes() / 4))
	}
	return w
}

// panelTile computes a rectangle of one matrix.
func (g *IntGemm) panelTile(t int, dst, a, b []byte, zeroA, zeroB Numbers, r *Requant, scratch []int32) {
	col := t % g.colTiles * g.cols
	row := t / g.colTiles % g.rowTiles * g.rows
	batch := t / g.colTiles / g.rowTiles
	offA, offB := kernel.BatchOffsets(batch, g.Batch, g.BatchA, g.BatchB)
	w := g.work(scratch)
	rows, end := min(g.rows, g.M-row), min(col+g.cols, g.N)
	left, lda := w.rows, g.lda
	uniform := !g.needsTotals(zeroA, zeroB, col, end)
	if g.inPlace() && uniform {
		left, lda = a[offA+row*g.K:], g.K
	} else {
		for i := range rows {
			w.totals[i] = g.rowOfA(left[i*lda:][:lda], a[offA+(row+i)*g.K:][:g.K])
		}
	}
	first := (batch*g.M + row) * g.N
	for ; col < end; col += g.nr {
		panel := w.panel
		if g.PackedB {
			panel = b[col/g.nr*g.panelBytes():][:g.panelBytes()]
		} else {
			g.packPanel(panel, b[offB:], col, min(g.nr, end-col), true)
		}
		p := bytePart{row: row, rows: rows, col: col, cols: min(g.nr, end-col), at: first + col}
		clear(w.from)
		if uniform {
			za := g.zeroOfA(zeroA, 0)
			for j, total := range kernel.View[int32](panel[len(panel)-4*g.nr:]) {
				w.from[j] = -za * total
			}
		}
		r.addBias(w.from[:p.cols], col)
		if r == nil && uniform {
			bytePanel(g.v, rows, g.depth, left, lda, panel, kernel.View[int32](dst)[p.at:], g.N, p.cols, w.from, 0)
			continue
		}
		bytePanel(g.v, rows, g.depth, left, lda, panel, w.sums, g.nr, p.cols, w.from, 0)
		if !uniform {
			g.lessZeros(&w, &p, panel, zeroA, zeroB)
		}
		if r == nil {
			for i := range rows {
				copy(kernel.View[int32](dst)[p.at+i*g.N:][:p.cols], w.sums[i*g.nr:])
			}
		} else {
			r.rows(g.v, &w, &p, g, dst)
		}
	}
}

// bytePart is a part of a result as wide as a panel.
type bytePart struct {
	row, rows, col, cols, at int
}

// zero is the zero of A or B, moved as the bytes are.
func (g *IntGemm) zeroOfA(zero Numbers, row int) int32 {
	z := int32(one(zero, row))
	if g.SignedA {
		z += 128
	}
	return z
}

func (g *IntGemm) zeroOfB(zero Numbers, col int) int32 {
	z := int32(one(zero, col))
	if !g.SignedB {
		z -= 128
	}
	return z
}

// inPlace reports whether the kernels read rows of A where they lie.
func (g *IntGemm) inPlace() bool { return g.v.Bytes.Step == 4 && !g.SignedA && g.K%4 == 0 }

// needsTotals reports whether the term of the zeros in a sum of the columns
// [col, end) depends on its row, too. Zeros per column are often all the same.
func (g *IntGemm) needsTotals(zeroA, zeroB Numbers, col, end int) bool {
	if len(zeroA.Data) > 1 {
		return true
	}
	if len(zeroB.Data) <= 1 {
		return g.zeroOfB(zeroB, 0) != 0
	}
	none := g.flipB()
	return slices.ContainsFunc(zeroB.Data[col:end], func(z byte) bool { return z != none })
}

// lessZeros subtracts the terms of the zeros from the sums.
func (g *IntGemm) lessZeros(w *byteWork, p *bytePart, panel []byte, zeroA, zeroB Numbers) {
	totals := kernel.View[int32](panel[len(panel)-4*g.nr:])
	for j := range p.cols {
		w.from[j] = g.zeroOfB(zeroB, p.col+j)
	}
	for i := range p.rows {
		za, sums := g.zeroOfA(zeroA, p.row+i), w.sums[i*g.nr:][:p.cols]
		rest := int32(g.K)*za - w.totals[i]
		for j, zb := range w.from[:p.cols] {
			sums[j] += zb*rest - za*totals[j]
		}
	}
}

// rowOfA writes a row as the kernels want it, filled up with zeros, and returns
// its sum.
func (g *IntGemm) rowOfA(dst, src []byte) (total int32) {
	flip := uint64(0)
	if g.SignedA {
		flip = 0x8080808080808080
	}
	if g.v.Bytes.Step == 2 {
		done := 0
		if n := len(src) / 16; n > 0 && g.v.Bytes.Widen != nil {
			done = 16 * n
			_ = dst[2*done-1]
			total = int32(g.v.Bytes.Widen(n, &dst[0], &src[0], flip))
		}
		return total + widenRow(dst[2*done:], src[done:], byte(flip))
	}
	const odd = 0x00ff00ff00ff00ff
	i := 0
	for ; i+8 <= len(src); i += 8 {
		x := binary.LittleEndian.Uint64(src[i:]) ^ flip
		binary.LittleEndian.PutUint64(dst[i:], x)
		x = x&odd + x>>8&odd // four sums of 16 bits
		total += int32(x * 0x0001000100010001 >> 48)
	}
	for ; i < len(src); i++ {
		dst[i] = src[i] ^ byte(flip)
		total += int32(dst[i])
	}
	clear(dst[len(src):])
	return total
}

// widenRow is rowOfA for rows of 16 bits.
func widenRow(dst, src []byte, flip byte) (total int32) {
	i := 0
	for ; i+4 <= len(src); i += 4 {
		x := uint64(binary.LittleEndian.Uint32(src[i:]) ^ uint32(flip)*0x01010101)
		x = (x | x<<16) & 0x0000ffff0000ffff
		x = (x | x<<8) & 0x00ff00ff00ff00ff
		binary.LittleEndian.PutUint64(dst[2*i:], x)
		total += int32(x * 0x0001000100010001 >> 48)
	}
	for ; i < len(src); i++ {
		v := src[i] ^ flip
		binary.LittleEndian.PutUint16(dst[2*i:], uint16(v))
		total += int32(v)
	}
	clear(dst[2*len(src):])
	return total
}

// rows requantises the sums of a part.
func (r *Requant) rows(v *kernel.Variant, w *byteWork, p *bytePart, g *IntGemm, dst []byte) {
	scale := kernel.View[float32](kernel.BytesOf(w.scale))[:p.cols]
	if len(r.A.Data) <= r.A.DType.Size() {
		r.columns(scale, p.row, p.col)
		r.narrow(v, p.rows, dst[p.at:], g.N, w.sums, g.nr, scale)
		return
	}
	for i := range p.rows {
		r.columns(scale, p.row+i, p.col)
		r.narrow(v, 1, dst[p.at+i*g.N:], g.N, w.sums[i*g.nr:], g.nr, scale)
	}
}

// columns sets the factors of the columns from col on, for the sums of a row.
func (r *Requant) columns(scale []float32, row, col int) {
	a, y := float32(one(r.A, row)), float32(one(r.Y, 0))
	if len(r.B.Data) <= r.B.DType.Size() {
		kernel.Repeat(scale, a*float32(one(r.B, col))/y)
		return
	}
	for j := range scale {
		scale[j] = a * float32(r.B.At(col+j)) / y
	}
}

// narrow requantises rows of sums by a factor per column.
func (r *Requant) narrow(v *kernel.Variant, rows int, dst []byte, ldd int, sums []int32, lds int, scale []float32) {
	lo, hi := IntRange(r.Zero.DType)
	zero, done := one(r.Zero, 0), 0
	if areFinite(scale) {
		done = narrowRows(v, rows, dst, ldd, sums, lds, scale, lo, hi, zero)
	}
	for i := range rows {
		for j := done; j < len(scale); j++ {
			dst[i*ldd+j] = byte(saturate(float32(sums[i*lds+j])*scale[j], zero, lo, hi))
		}
	}
}

func areFinite(x []float32) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
