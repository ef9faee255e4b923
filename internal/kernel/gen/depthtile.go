package main

import "fmt"

// Depthwise convolutions of sums that are rows of channels: vectors are
// channels here, too, and elements are not broadcast.
const (
	depthX = 8 * iota
	depthStep
	depthOffsets
	depthTaps
	depthWeights
	depthSums
	depthPositions
)

const (
	biasSums = 8 * iota
	biasPositions
	biasOf
	biasLow
	biasHigh = biasLow + 4
)

const depthPositionsAtOnce = 7

func (a *assembler) depthTiles() {
	for vectors := 1; vectors <= 2; vectors++ {
		a.depthTile(vectors)
		a.sumBias(vectors)
	}
	for _, f := range []struct{ table, name, typ string }{{"DepthTiles", "depthTile", "DepthTile"}, {"SumBiases", "sumBias", "SumBias"}} {
		fmt.Fprintf(&a.stubs, "\nfunc %ss%s(call kernel.%s, vectors int) {\n\tif vectors == 1 {\n\t\t%[1]s1x%[2]s(&call)\n\t\treturn\n\t}\n\t%[1]s2x%[2]s(&call)\n}\n", f.name, a.suffix, f.typ)
		a.set(f.table, f.name+"s"+a.suffix)
	}
}

// depthTile sums for a row of positions, some at a time.
func (a *assembler) depthTile(vectors int) {
	call := param{"call", "*kernel.DepthTile"}
	a.function(fmt.Sprintf("depthTile%dx", vectors), fmt.Sprintf("is a row of positions and %d channels.", vectors*a.lanes), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	for _, f := range []struct {
		at  int
		reg string
	}{{depthX, "R10"}, {depthStep, "CX"}, {depthSums, "R12"}, {depthPositions, "R11"}} {
		a.op("MOVQ %d(AX), %s", f.at, f.reg)
	}
	a.op("LEAQ (CX)(CX*2), DX")
	a.op("LEAQ (CX)(CX*4), SI")
	a.label("more")
	for n := depthPositionsAtOnce; n >= 1; n-- {
		if n > 1 {
			a.op("CMPQ R11, $%d", n)
			a.op("JLT fewer%d", n-1)
		}
		a.depthPositions(n, vectors)
		a.op("SUBQ $%d, R11", n)
		a.op("JNZ more")
		a.ret()
		if n > 1 {
			a.label(fmt.Sprintf("fewer%d", n-1))
		}
	}
}

// depthPositions sums for n positions from R10 on, and moves behind them.
func (a *assembler) depthPositions(n, vectors int) {
	for i := range n * vectors {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
	a.op("MOVQ %d(AX), R8", depthOffsets)
	a.op("MOVQ %d(AX), R9", depthTaps)
	a.op("MOVQ %d(AX), DI", depthWeights)
	weights := depthPositionsAtOnce * vectors
	a.label(fmt.Sprint("tap", n))
	a.op("MOVLQSX (R8), BX")
	a.op("ADDQ R10, BX")
	for v := range vectors {
		a.op("VMOVUPS %d(DI), %s", v*a.bytes(), a.v(weights+v))
	}
	for i := range n {
		for v := range vectors {
			a.op("VFMADD231PS %d%s, %s, %s", v*a.bytes(), stepped("BX", i), a.v(weights+v), a.v(i*vectors+v))
		}
	}
	a.op("ADDQ $4, R8")
	a.op("ADDQ $%d, DI", vectors*a.bytes())
	a.op("DECQ R9")
	a.op("JNZ tap%d", n)
	for i := range n * vectors {
		a.op("VMOVUPS %s, %d(R12)", a.v(i), i*a.bytes())
	}
	a.op("ADDQ $%d, R12", n*vectors*a.bytes())
	a.op("MOVQ CX, BX")
	a.op("IMULQ $%d, BX", n)
	a.op("ADDQ BX, R10")
}

// sumBias adds a bias to sums that stay rows of channels.
func (a *assembler) sumBias(vectors int) {
	call := param{"call", "*kernel.SumBias"}
	a.function(fmt.Sprintf("sumBias%dx", vectors), fmt.Sprintf("replaces sums of %d channels: sum = min(max(sum + bias, low), high).", vectors*a.lanes), []param{call}, nil)
	a.op("MOVQ %s, AX", a.arg(call))
	a.op("MOVQ %d(AX), DI", biasSums)
	a.op("MOVQ %d(AX), CX", biasPositions)
	a.op("MOVQ %d(AX), SI", biasOf)
	low, high := a.v(4), a.v(5)
	a.op("VBROADCASTSS %d(AX), %s", biasLow, low)
	a.op("VBROADCASTSS %d(AX), %s", biasHigh, high)
	for v := range vectors {
		a.op("VMOVUPS %d(SI), %s", v*a.bytes(), a.v(2+v))
	}
	a.label("next")
	for v := range vectors {
		a.op("VADDPS %d(DI), %s, %s", v*a.bytes(), a.v(2+v), a.v(v))
		a.op("VMAXPS %s, %s, %s", a.v(v), low, a.v(v))
		a.op("VMINPS %s, %s, %s", a.v(v), high, a.v(v))
		a.op("VMOVUPS %s, %d(DI)", a.v(v), v*a.bytes())
	}
	a.op("ADDQ $%d, DI", vectors*a.bytes())
	a.op("DECQ CX")
	a.op("JNZ next")
	a.ret()
}
