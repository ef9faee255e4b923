package main

import "fmt"

// The tiles of a convolution with few products or few output channels: vectors
// are neighbouring positions of a row, and the packed weights are broadcast.
// Results leave as rows of positions, as they are wanted.
//
// Arguments come in a struct, whose fields are read at these offsets.
const (
	rowTileOffsets = 8 * iota
	rowTileDepth
	rowTileX
	rowTileWeights
	rowTileWeightStep
	rowTileOut
	rowTileOutStep
	rowTileAdd
	rowTileAddStep
	rowTileBias
	rowTileCols
	rowTileLow
	rowTileHigh = rowTileLow + 4
)

// rowTileRows is how many channels fit: besides their sums there are two
// vectors of input, one weight and, without mask registers, masks.
func (a *assembler) rowTileRows() int {
	if a.masks {
		return a.rows
	}
	return a.rows - 1
}

func (a *assembler) convRowTiles() {
	for vectors := 1; vectors <= 2; vectors++ {
		for n := 1; n <= a.rowTileRows(); n++ {
			a.convRowTile(n, vectors)
		}
	}
	a.tilesByName("convRowTiles", "ConvRowTile", a.rowTileRows())
	a.set("RowTiles", "convRowTiles"+a.suffix)
	a.set("Channels", a.rowTileRows())
}

// convRowTile sums for n channels and one or two vectors of positions, of which
// the last may be a part.
func (a *assembler) convRowTile(n, vectors int) {
	call := param{"call", "*kernel.ConvRowTile"}
	a.function(fmt.Sprintf("convRowTile%dx%dx", n, vectors), fmt.Sprintf("is a tile of %d channels and up to %d positions.", n, vectors*a.lanes), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	x, weight := a.rowTileRows()*2, a.rowTileRows()*2+2
	masks := a.rowMasks(vectors)
	for _, f := range []struct {
		at  int
		reg string
	}{{rowTileOffsets, "R8"}, {rowTileDepth, "R9"}, {rowTileX, "R10"}, {rowTileWeights, "DI"}, {rowTileWeightStep, "R11"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	for i := range n * vectors {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
	a.label("next")
	a.op("MOVLQSX (R8), BX")
	a.op("ADDQ R10, BX")
	for v := range vectors {
		a.loadMasked(fmt.Sprintf("%d(BX)", v*a.bytes()), masks[v], a.v(x+v))
	}
	for i := range n {
		w := a.v(weight)
		if a.masks {
			w = a.v(weight + i%2)
		}
		a.op("VBROADCASTSS %d(DI), %s", 4*i, w)
		for v := range vectors {
			a.op("VFMADD231PS %s, %s, %s", a.v(x+v), w, a.v(i*vectors+v))
		}
	}
	a.op("ADDQ $4, R8")
	a.op("ADDQ R11, DI")
	a.op("DECQ R9")
	a.op("JNZ next")
	a.rowTileLeave(n, vectors, x, masks)
	a.ret()
}

// rowMasks makes masks of the positions that there are, in K1 and K2 or the
// last two vectors.
func (a *assembler) rowMasks(vectors int) []string {
	a.op("MOVQ %d(AX), CX", rowTileCols)
	if a.masks {
		a.op("MOVQ $1, BX")
		a.op("SHLQ CX, BX")
		a.op("DECQ BX")
		a.op("KMOVW BX, K1")
		a.op("SHRQ $16, BX")
		a.op("KMOVW BX, K2")
		return []string{"K1", "K2"}
	}
	a.op("NEGQ CX")
	for v := range vectors {
		a.op("LEAQ lanes%s<>+%d(SB), BX", a.suffix, 8*a.lanes+4*v*a.lanes)
		a.op("VMOVUPS (BX)(CX*4), %s", a.v(14+v))
	}
	return []string{a.v(14), a.v(15)}
}

func (a *assembler) loadMasked(from, mask, to string) {
	if a.masks {
		a.op("VMOVUPS.Z %s, %s, %s", from, mask, to)
		return
	}
	a.op("VMASKMOVPS %s, %s, %s", from, mask, to)
}

// rowTileLeave adds what belongs to an output or a channel, holds the results
// between the bounds, and stores them. The vectors of input are free.
func (a *assembler) rowTileLeave(n, vectors, free int, masks []string) {
	a.op("MOVQ %d(AX), BX", rowTileAdd)
	a.op("TESTQ BX, BX")
	a.op("JZ bias")
	a.op("MOVQ %d(AX), CX", rowTileAddStep)
	for i := range n {
		for v := range vectors {
			a.loadMasked(fmt.Sprintf("%d(BX)", v*a.bytes()), masks[v], a.v(free))
			a.op("VADDPS %s, %s, %s", a.v(free), a.v(i*vectors+v), a.v(i*vectors+v))
		}
		a.op("ADDQ CX, BX")
	}
	a.label("bias")
	a.op("MOVQ %d(AX), BX", rowTileBias)
	a.op("TESTQ BX, BX")
	a.op("JZ clamp")
	for i := range n {
		a.op("VBROADCASTSS %d(BX), %s", 4*i, a.v(free))
		for v := range vectors {
			a.op("VADDPS %s, %s, %s", a.v(free), a.v(i*vectors+v), a.v(i*vectors+v))
		}
	}
	a.label("clamp")
	a.op("VBROADCASTSS %d(AX), %s", rowTileLow, a.v(free))
	a.op("VBROADCASTSS %d(AX), %s", rowTileHigh, a.v(free+1))
	for i := range n * vectors {
		a.op("VMAXPS %s, %s, %s", a.v(i), a.v(free), a.v(i))
		a.op("VMINPS %s, %s, %s", a.v(i), a.v(free+1), a.v(i))
	}
	a.op("MOVQ %d(AX), BX", rowTileOut)
	a.op("MOVQ %d(AX), DX", rowTileOutStep)
	a.op("CMPQ %d(AX), $%d", rowTileCols, vectors*a.lanes)
	a.op("JNE part")
	for i := range n {
		for v := range vectors {
			a.op("VMOVUPS %s, %d(BX)", a.v(i*vectors+v), v*a.bytes())
		}
		a.op("ADDQ DX, BX")
	}
	a.ret()
	a.label("part")
	write := "VMASKMOVPS %s, %s, %d(BX)"
	if a.masks {
		write = "VMOVUPS %s, %s, %d(BX)"
	}
	for i := range n {
		for v := range vectors {
			a.op(write, a.v(i*vectors+v), masks[v], v*a.bytes())
		}
		a.op("ADDQ DX, BX")
	}
}
