package main

import "fmt"

// axpy adds the products of some numbers and rows of B to a row.
func (a *assembler) axpy(rows int) {
	in := []param{{"n", "int"}, {"out", "*float32"}, {"x", "*float32"}, {"b", "*float32"}, {"ldb", "int"}}
	a.function(fmt.Sprintf("axpy%dx", rows), fmt.Sprintf("adds to out the sum of x[i] times row i of b, for %d rows that are ldb bytes apart.", rows), in, nil)
	regs := []string{"CX", "DI", "AX", "SI", "R8"}
	for i, reg := range regs {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	pointers := []string{"SI", "R9", "R10", "R11", "R12", "R13", "BX", "DX"}[:rows]
	for i := range rows {
		a.op("VBROADCASTSS %d(AX), %s", 4*i, a.v(i))
		if i > 0 {
			a.op("LEAQ (%s)(R8*1), %s", pointers[i-1], pointers[i])
		}
	}
	sum := rows
	a.rowLoop(append([]string{"DI"}, pointers...), 2, func(at func(string) string, tail bool) {
		a.load(at("DI"), sum, false, tail)
		for i, p := range pointers {
			if tail {
				a.load(at(p), sum+1, false, true)
				a.op("VFMADD231PS %s, %s, %s", a.v(sum+1), a.v(i), a.v(sum))
				continue
			}
			a.op("VFMADD231PS %s, %s, %s", at(p), a.v(i), a.v(sum))
		}
		a.store(sum, at("DI"), false, tail)
	})
	a.ret()
}

// dots multiplies a row with some rows of B. Two sums per row keep the
// processor busy.
func (a *assembler) dots(rows int) {
	in := []param{{"n", "int"}, {"out", "*float32"}, {"x", "*float32"}, {"b", "*float32"}, {"ldb", "int"}}
	a.function(fmt.Sprintf("dot%dx", rows), fmt.Sprintf("adds to out[i] the product of x and row i of b, for %d rows that are ldb bytes apart.", rows), in, nil)
	for i, reg := range []string{"CX", "DI", "DX", "SI", "R8"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	pointers := []string{"SI", "R9", "R10", "R11"}[:rows]
	for i := range rows {
		if i > 0 {
			a.op("LEAQ (%s)(R8*1), %s", pointers[i-1], pointers[i])
		}
	}
	for i := range 2 * rows {
		a.op("VXORPS %s, %s, %s", a.v(i), a.v(i), a.v(i))
	}
	x, half := 2*rows, 0
	a.rowLoop(append([]string{"DX"}, pointers...), 2, func(at func(string) string, tail bool) {
		a.load(at("DX"), x, false, tail)
		for i, p := range pointers {
			from := at(p)
			if tail {
				a.load(from, x+1, false, true)
				from = a.v(x + 1)
			}
			a.op("VFMADD231PS %s, %s, %s", from, a.v(x), a.v(2*i+half))
		}
		half ^= 1
	})
	for i := range rows {
		a.op("VADDPS %s, %s, %s", a.v(2*i+1), a.v(2*i), a.v(2*i))
		a.addLanes(2*i, x)
		a.op("VADDSS %d(DI), X%d, X%d", 4*i, 2*i, 2*i)
		a.op("VMOVSS X%d, %d(DI)", 2*i, 4*i)
	}
	a.ret()
}

// addLanes adds up a vector of float32 into its first lane.
func (a *assembler) addLanes(v, spare int) {
	if a.masks {
		a.op("VEXTRACTF64X4 $1, Z%d, Y%d", v, spare)
		a.op("VADDPS Y%d, Y%d, Y%d", spare, v, v)
	}
	a.op("VEXTRACTF128 $1, Y%d, X%d", v, spare)
	a.op("VADDPS X%d, X%d, X%d", spare, v, v)
	a.op("VPERMILPS $0x4e, X%d, X%d", v, spare)
	a.op("VADDPS X%d, X%d, X%d", spare, v, v)
	a.op("VPERMILPS $0xb1, X%d, X%d", v, spare)
	a.op("VADDPS X%d, X%d, X%d", spare, v, v)
}
