package main

import "fmt"

// transposeWords transposes squares of four-byte elements, a vector wide.
// Groups of four lanes are gathered from rows four apart while they are loaded,
// so that transposing 4x4 blocks within the lanes is all that is left to do.
func (a *assembler) transposeWords() {
	in := []param{{"n", "int"}, {"dst", "*uint32"}, {"src", "*uint32"}, {"dstStep", "int"}, {"srcStep", "int"}}
	doc := fmt.Sprintf("transposes n squares of %d rows, which lie one below the other in src and side by side in dst; steps count bytes.", a.lanes)
	a.function("transposeWords", doc, in, nil)
	count := a.arg(in[0])
	from, to := []string{"SI", "R8", "R9", "R10"}, []string{"DI", "R11", "R12", "R13"}
	groups := a.lanes / 4
	for i, reg := range []string{"DI", "SI", "DX", "AX"} {
		a.op("MOVQ %s, %s", a.arg(in[1+i]), reg)
	}
	a.op("LEAQ (AX)(AX*2), BX")
	a.op("LEAQ (DX)(DX*2), CX")
	for g := 1; g < groups; g++ {
		a.op("LEAQ (%s)(DX*4), %s", to[g-1], to[g])
	}
	row := func(disp int, pointer string, i int, step, step3 string) string {
		return fmt.Sprintf("%d(%s)", disp, pointer) + []string{"", "(" + step + "*1)", "(" + step + "*2)", "(" + step3 + "*1)"}[i]
	}
	a.label("square")
	for g := 1; g < groups; g++ {
		a.op("LEAQ (%s)(AX*4), %s", from[g-1], from[g])
	}
	for j := range groups {
		for i := range 4 {
			a.op("VMOVUPS %s, X%d", row(16*j, from[0], i, "AX", "BX"), i)
			for g := 1; g < groups; g++ {
				at := row(16*j, from[g], i, "AX", "BX")
				if a.masks {
					a.op("VINSERTF32X4 $%d, %s, Z%d, Z%d", g, at, i, i)
				} else {
					a.op("VINSERTF128 $%d, %s, Y%d, Y%d", g, at, i, i)
				}
			}
		}
		for i, pair := range [][2]int{{0, 1}, {2, 3}} {
			a.op("VUNPCKLPS %s, %s, %s", a.v(pair[1]), a.v(pair[0]), a.v(4+2*i))
			a.op("VUNPCKHPS %s, %s, %s", a.v(pair[1]), a.v(pair[0]), a.v(5+2*i))
		}
		for i := range 2 {
			a.op("VUNPCKLPD %s, %s, %s", a.v(6+i), a.v(4+i), a.v(8+2*i))
			a.op("VUNPCKHPD %s, %s, %s", a.v(6+i), a.v(4+i), a.v(9+2*i))
		}
		for i := range 4 {
			a.op("VMOVUPS %s, %s", a.v(8+i), row(0, to[j], i, "DX", "CX"))
		}
	}
	a.op("LEAQ (%s)(AX*4), SI", from[groups-1])
	for _, p := range to[:groups] {
		a.op("ADDQ $%d, %s", a.bytes(), p)
	}
	a.op("DECQ %s", count)
	a.op("JNZ square")
	a.ret()
}
