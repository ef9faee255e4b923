package main

import "fmt"

func (a *assembler) convKernels() {
	a.set("Lanes", a.lanes)
	a.patches()
	a.set("PatchWidth", 2*a.lanes)
	a.set("Patches", "patches"+a.suffix)
	a.convTiles()
	a.convRowTiles()
	a.depthTiles()
	a.windowKernels()
	a.winograds()
}

// patches packs one tap of neighbouring patches: for some rows of some planes,
// a piece of the row that may lie beyond its ends.
func (a *assembler) patches() {
	in := []param{{"planes", "int"}, {"rows", "int"}, {"dst", "*float32"}, {"step", "int"}, {"src", "*float32"}, {"at", "int"}, {"rowStep", "int"},
		{"planeStep", "int"}, {"lo", "int"}, {"hi", "int"}, {"n", "int"}}
	a.function("patches", "writes n numbers to dst for each row of each plane: those before lo and from hi on are zeros, the others are read at bytes behind src. Steps count bytes.", in, nil)
	for i, reg := range []string{"CX", "R8", "DI", "R9", "SI", "AX", "R10", "R11", "R12", "R13", "DX"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("ADDQ AX, SI")
	read, write, masks := "VMASKMOVPS %s, %s, %s", "VMASKMOVPS %s, %s, %s", []string{a.v(2), a.v(3), a.v(4), a.v(5)}
	if a.masks {
		read, write, masks = "VMOVUPS.Z %s, %s, %s", "VMOVUPS %s, %s, %s", []string{"K1", "K2", "K3", "K4"}
		a.op("MOVQ CX, BX")
		a.op("MOVQ $-1, AX")
		a.op("MOVQ R12, CX")
		a.op("SHLQ CX, AX") // from lo on
		for _, m := range []struct{ count, mask string }{{"R13", "R12"}, {"DX", "DX"}} {
			a.op("MOVQ %s, CX", m.count)
			a.op("MOVQ $1, %s", m.mask)
			a.op("SHLQ CX, %s", m.mask)
			a.op("DECQ %s", m.mask)
		}
		a.op("ANDQ AX, R12")
		a.op("MOVQ BX, CX")
		for i, reg := range []string{"R12", "DX"} {
			a.op("KMOVW %s, %s", reg, masks[2*i])
			a.op("SHRQ $16, %s", reg)
			a.op("KMOVW %s, %s", reg, masks[2*i+1])
		}
	} else {
		for half := range 2 {
			a.cutMask("R12", half*a.lanes, 0)
			a.cutMask("R13", half*a.lanes, 1)
			a.op("VANDNPS %s, %s, %s", a.v(1), a.v(0), a.v(2+half))
			a.cutMask("DX", half*a.lanes, 4+half)
		}
	}
	a.label("plane")
	a.op("MOVQ SI, BX")
	a.op("MOVQ R8, DX")
	a.label("row")
	for half := range 2 {
		a.op(read, fmt.Sprintf("%d(BX)", half*a.bytes()), masks[half], a.v(half))
	}
	for half := range 2 {
		a.op(write, a.v(half), masks[2+half], fmt.Sprintf("%d(DI)", half*a.bytes()))
	}
	a.op("ADDQ R9, DI")
	a.op("ADDQ R10, BX")
	a.op("DECQ DX")
	a.op("JNZ row")
	a.op("ADDQ R11, SI")
	a.op("DECQ CX")
	a.op("JNZ plane")
	a.ret()
}
