package main

import "fmt"

// Vectors of the loop that puts compressed floats together: three of codes,
// three of other bits of four vectors, and what stays as it is.
const (
	codeVector  = 0
	bitsVector  = 3
	tableVector = 6
	keepVector  = 7 // all but the exponent
	upperVector = 8 // the fourth vector's bits in the first two vectors of bits
	lastVector  = 9 // its bits in the third one
)

// codeGroup is how many vectors of floats share three vectors of codes: ten
// have theirs in one of them, three bits each, and the last two have them in
// the two bits that are left over in each.
const codeGroup = 32

func (a *assembler) expandKernels() {
	in := []param{{"vectors", "int"}, argDst, {"src", "*byte"}, {"table", "*uint32"}}
	a.function("expand", "expands an even number of vectors of floats, and prefetches the bytes after them.", in, nil)
	for i, reg := range []string{"CX", "DI", "SI", "DX"} {
		a.op("MOVQ %s, %s", a.arg(in[i]), reg)
	}
	a.op("VMOVUPS (DX), %s", a.v(tableVector))
	a.op("VMOVUPS %s, %s", a.word(0x807fffff), a.v(keepVector))
	a.op("VMOVUPS %s, %s", a.word(0x007f8000), a.v(upperVector))
	a.op("VMOVUPS %s, %s", a.word(0x8000007f), a.v(lastVector))
	a.label("group")
	for i := range 3 {
		a.op("VMOVUPS %d(SI), %s", i*a.bytes(), a.v(codeVector+i))
	}
	for j := range codeGroup {
		if j%4 == 0 {
			for i := range 3 {
				a.op("VMOVUPS %d(SI), %s", (3+j/4*3+i)*a.bytes(), a.v(bitsVector+i))
			}
		}
		a.expandVector(j)
		if j%2 == 1 {
			a.op("SUBQ $2, CX")
			a.op("JZ done")
		}
	}
	const words = 27 // of a group
	a.op("ADDQ $%d, DI", codeGroup*a.bytes())
	a.op("ADDQ $%d, SI", words*a.bytes())
	a.op("JMP group")
	a.label("done")
	a.ret()
	// A call by name keeps the table on the stack, one through the variant's
	// table would not.
	fmt.Fprintf(&a.stubs, "\nfunc expandBy%[1]s(vectors int, dst *float32, src *byte, table kernel.ExpandTable) {\n\texpand%[1]s(vectors, dst, src, &table[0])\n}\n", a.suffix)
	a.set("Lanes", a.lanes)
	a.set("Expand", "expandBy"+a.suffix)
}

// word returns the place of a vector of equal words.
func (a *assembler) word(w uint64) string { return a.constant(w<<32 | w) }

// expandVector puts vector j of a group together: an exponent by its code, and
// the other bits, which three vectors of four have where they belong, and the
// fourth in place of the three exponents.
func (a *assembler) expandVector(j int) {
	const exponents, bits, spare, line = 10, 11, 12, 64
	ahead := 1 << 14 // the first-level cache has space for this and the floats of a block
	if a.masks {
		ahead = 1 << 12
	}
	a.op("VPERMD %s, %s, %s", a.v(tableVector), a.codes(j, exponents, spare), a.v(exponents))
	from := bitsVector + j%4
	if j%4 == 3 {
		from = bits
		a.fourth(bits, spare)
	}
	if a.masks {
		a.choice(keepVector, from, exponents)
	} else {
		a.op("VPAND %s, %s, %s", a.v(keepVector), a.v(from), a.v(bits))
		a.op("VPOR %s, %s, %s", a.v(bits), a.v(exponents), a.v(exponents))
	}
	a.op("VMOVUPS %s, %d(DI)", a.v(exponents), j*a.bytes())
	if at := j * a.bytes(); at%line == 0 && j < 27 {
		a.op("PREFETCHT0 %d(SI)", ahead+at)
	}
}

// choice takes the bits of from that the mask names into to.
func (a *assembler) choice(mask, from, to int) {
	const secondOfThirdElseFirst = 0xb8
	a.op("VPTERNLOGD $%#x, %s, %s, %s", secondOfThirdElseFirst, a.v(from), a.v(mask), a.v(to))
}

// fourth collects the bits of a fourth vector: eight of each of the three
// others', all but the exponent's.
func (a *assembler) fourth(to, spare int) {
	if a.masks {
		a.op("VPSRLD $16, %s, %s", a.v(bitsVector+1), a.v(to))
		a.op("VPSRLD $8, %s, %s", a.v(bitsVector), a.v(spare))
		a.choice(upperVector, spare, to)
		a.op("VPROLD $8, %s, %s", a.v(bitsVector+2), a.v(spare))
		a.choice(lastVector, spare, to)
		return
	}
	a.op("VPSRLD $8, %s, %s", a.v(bitsVector), a.v(to))
	a.op("VPAND %s, %s, %s", a.v(upperVector), a.v(to), a.v(to))
	for _, part := range []struct {
		shift string
		from  int
		mask  uint64
	}{{"VPSRLD $16", 1, 0x7f80}, {"VPSRLD $24", 2, 0x7f}, {"VPSLLD $8", 2, 1 << 31}} {
		a.op("%s, %s, %s", part.shift, a.v(bitsVector+part.from), a.v(spare))
		a.op("VPAND %s, %s, %s", a.word(part.mask), a.v(spare), a.v(spare))
		a.op("VPOR %s, %s, %s", a.v(spare), a.v(to), a.v(to))
	}
}

// codes names a vector whose last three bits are the codes of vector j of a
// group. It may be to, and spare may be spoilt.
func (a *assembler) codes(j, to, spare int) string {
	const inOne = 10
	first, second, third := a.v(codeVector), a.v(codeVector+1), a.v(codeVector+2)
	switch {
	case j == 3*inOne:
		a.op("VPSRLD $30, %s, %s", first, a.v(to))
		a.op("VPSRLD $30, %s, %s", second, a.v(spare))
		a.op("VPSLLD $2, %s, %s", a.v(spare), a.v(spare))
	case j == 3*inOne+1:
		a.op("VPSRLD $31, %s, %s", second, a.v(to))
		a.op("VPSRLD $30, %s, %s", third, a.v(spare))
		a.op("VPADDD %s, %s, %s", a.v(spare), a.v(spare), a.v(spare))
	case j%inOne == 0:
		return a.v(codeVector + j/inOne)
	default:
		a.op("VPSRLD $%d, %s, %s", 3*(j%inOne), a.v(codeVector+j/inOne), a.v(to))
		return a.v(to)
	}
	if a.masks {
		a.op("VPORD %s, %s, %s", a.v(spare), a.v(to), a.v(to))
	} else {
		a.op("VPOR %s, %s, %s", a.v(spare), a.v(to), a.v(to))
	}
	return a.v(to)
}
