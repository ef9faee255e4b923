package gemm

import (
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// A panel has gemmNR columns of a block of B, row after row: the inner loop's
// order of reading. The last panel of a matrix is filled up with zeros.

// PanelWidth is how many columns of B a panel holds.
func PanelWidth(v *kernel.Variant) int { return v.Gemm.Width }

// PackedBFloats is the size of what PackB writes.
func (g *Gemm) PackedBFloats(v *kernel.Variant) int {
	g.v = v
	return g.K * kernel.CeilDiv(g.N, v.Gemm.Width) * v.Gemm.Width
}

// PackB packs a whole constant B, of K x N or N x K as the fields say, for a
// Gemm with PackedB. Alpha is in it.
func (g *Gemm) PackB(v *kernel.Variant, dst, b []float32) {
	packAll(g, v, dst, b)
	if panels := dst[:g.PackedBFloats(v)]; g.Alpha != 1 {
		elementwise.BinaryRowVS(v, kernel.Mul, panels, panels, g.Alpha)
	}
}

// packAll packs a whole B without Alpha.
func packAll[T float32 | uint16](g *Gemm, v *kernel.Variant, dst, b []T) {
	g.v = v
	g.defaults()
	g.nr = v.Gemm.Width
	width := kernel.CeilDiv(g.N, g.nr) * g.nr
	block := blockOf(g.K)
	for k := 0; k < g.K; k += block {
		packColumns(g, dst[k*width:], b, k, min(block, g.K-k), 0, g.N)
	}
}

// UnpackB is the reverse of PackB where Alpha is 1. dst is a whole B whose rows
// follow each other.
func (g *Gemm) UnpackB(v *kernel.Variant, dst, panels []float32) { unpackAll(g, v, dst, panels) }

func unpackAll[T float32 | uint16](g *Gemm, v *kernel.Variant, dst, panels []T) {
	g.v = v
	width := kernel.CeilDiv(g.N, v.Gemm.Width) * v.Gemm.Width
	block := blockOf(g.K)
	for k := range g.K {
		depth := min(block, g.K-k/block*block)
		rows := panels[k/block*block*width:]
		for j := range g.N {
			x := rows[j/v.Gemm.Width*v.Gemm.Width*depth+k%block*v.Gemm.Width+j%v.Gemm.Width]
			if g.TransB {
				dst[j*g.K+k] = x
			} else {
				dst[k*g.N+j] = x
			}
		}
	}
}

// packBlock packs rows [k, k+depth) and columns [col, col+cols) of B, times
// Alpha.
func (g *Gemm) packBlock(dst, b []float32, k, depth, col, cols int) {
	packColumns(g, dst, b, k, depth, col, cols)
	if n := kernel.CeilDiv(cols, g.nr) * g.nr * depth; g.Alpha != 1 {
		elementwise.BinaryRowVS(g.v, kernel.Mul, dst[:n], dst[:n], g.Alpha)
	}
}

func packColumns[T float32 | uint16](g *Gemm, dst, b []T, k, depth, col, cols int) {
	for j := 0; j < cols; j += g.nr {
		panel, n := dst[j*depth:(j+g.nr)*depth], min(g.nr, cols-j)
		if g.TransB {
			PackPanelRows(panel, b[(col+j)*g.LDB+k:], g.LDB, depth, n, g.nr)
		} else {
			PackPanel(panel, b[k*g.LDB+col+j:], g.LDB, depth, n, g.nr)
		}
	}
}

// PackPanel takes n columns of depth rows that are ld apart.
func PackPanel[T float32 | uint16](dst, src []T, ld, depth, n, nr int) {
	for k := range depth {
		row := dst[k*nr : (k+1)*nr]
		copy(row, src[k*ld:][:n])
		clear(row[n:])
	}
}

// PackPanelRows takes n columns that are stored as rows, ld apart.
func PackPanelRows[T float32 | uint16](dst, src []T, ld, depth, n, nr int) {
	for j := range nr {
		d := dst[j:]
		if j >= n {
			for k := range depth {
				d[k*nr] = 0
			}
			continue
		}
		for k, v := range src[j*ld:][:depth] {
			d[k*nr] = v
		}
	}
}

// PackColumns transposes n columns of depth rows that are ld apart into n rows.
func PackColumns(dst, src []float32, ld, depth, n int) {
	for k := range depth {
		for i, v := range src[k*ld:][:n] {
			dst[i*depth+k] = v
		}
	}
}
