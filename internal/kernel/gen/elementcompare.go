package main

import "fmt"

// relation is a comparison: its number for floats, for integers with mask
// registers, and how AVX2 makes it of greater and equal.
type relation struct {
	name       string
	float, int int
	of         string // EQ or GT
	swap, not  bool
}

var relations = []relation{
	{"equal", equal, 0, "EQ", false, false}, {"not_equal", 0x04, 4, "EQ", false, true},
	{"less", less, 1, "GT", true, false}, {"less_or_equal", 0x12, 2, "GT", false, true},
	{"greater", greater, 6, "GT", false, false}, {"greater_or_equal", 0x1d, 5, "GT", true, true},
}

// compare writes bytes of 0 and 1: with mask registers 64 at a time,
// otherwise 32.
func (a *elementWriter) compare() {
	for _, t := range allTypes {
		for _, r := range relations {
			for _, form := range []string{"vv", "vs"} {
				a.compareOf(t, r, form)
			}
		}
	}
}

func (a *elementWriter) compareOf(t elementType, r relation, form string) {
	results := a.bytes()
	vectors := t.size // each has results/size elements
	steps := []int{results, results * t.size, results * t.size}
	if form == "vs" {
		steps[2] = 0
	}
	flip := !a.masks && !t.float && !t.signed && r.of == "GT" // there is no comparison without a sign: both are moved
	start := func() {
		a.op("VMOVUPS %s, %s", a.constant(0x0101010101010101), a.v(onesVector))
		if flip {
			a.op("VMOVUPS %s, %s", a.constant(t.signs()), a.v(zeroVector))
		}
		if form == "vs" {
			a.broadcast(t, "DX", scalarVector)
			if flip {
				a.op("VPXOR %s, %s, %s", a.v(zeroVector), a.v(scalarVector), a.v(scalarVector))
			}
		}
	}
	a.emit(fmt.Sprintf("%s %s %s", r.name, t.name, form), results, 1, steps, start, func(at func(operand, offset int) string) {
		operands := func(i, spare int) (x, y string) {
			x, y = a.v(i), at(2, i*a.bytes())
			a.op("VMOVUPS %s, %s", at(1, i*a.bytes()), x)
			if form == "vs" {
				y = a.v(scalarVector)
			} else if flip || !a.masks && r.swap {
				a.op("VMOVUPS %s, %s", y, a.v(spare))
				y = a.v(spare)
			}
			if flip {
				a.op("VPXOR %s, %s, %s", a.v(zeroVector), x, x)
				if form == "vv" {
					a.op("VPXOR %s, %s, %s", a.v(zeroVector), y, y)
				}
			}
			return x, y
		}
		if a.masks {
			a.compareToMasks(t, r, vectors, operands)
			a.op("VMOVDQU8.Z %s, K1, %s", a.v(onesVector), a.v(0))
			a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
			return
		}
		for i := range vectors {
			x, y := operands(i, 9)
			switch {
			case t.float:
				a.op("VCMPP%s $%d, %s, %s, %s", map[int]string{4: "S", 8: "D"}[t.size], r.float, y, x, a.v(i))
			case r.swap:
				a.op("VPCMP%s%s %s, %s, %s", r.of, t.letter(), x, y, a.v(i))
			default:
				a.op("VPCMP%s%s %s, %s, %s", r.of, t.letter(), y, x, a.v(i))
			}
		}
		a.packMasks(vectors)
		if r.not && !t.float {
			a.op("VPANDN %s, %s, %s", a.v(onesVector), a.v(0), a.v(0))
		} else {
			a.op("VPAND %s, %s, %s", a.v(onesVector), a.v(0), a.v(0))
		}
		a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
	})
}

// signs is a word of the sign bits of elements.
func (t elementType) signs() uint64 {
	return map[int]uint64{1: 0x8080808080808080, 2: 0x8000800080008000, 4: 0x8000000080000000, 8: 1 << 63}[t.size]
}

// compareToMasks leaves 64 results in K1.
func (a *elementWriter) compareToMasks(t elementType, r relation, vectors int, operands func(i, spare int) (x, y string)) {
	var join func(first, n, to int)
	width := map[int]string{8: "BW", 16: "WD", 32: "DQ"}
	join = func(first, n, to int) {
		if n == 1 {
			x, y := operands(first, 0)
			switch {
			case t.float:
				a.op("VCMPP%s $%d, %s, %s, K%d", map[int]string{4: "S", 8: "D"}[t.size], r.float, y, x, to)
			case t.signed:
				a.op("VPCMP%s $%d, %s, %s, K%d", t.letter(), r.int, y, x, to)
			default:
				a.op("VPCMPU%s $%d, %s, %s, K%d", t.letter(), r.int, y, x, to)
			}
			return
		}
		join(first, n/2, to)
		join(first+n/2, n/2, to+1)
		a.op("KUNPCK%s K%d, K%d, K%d", width[n/2*t.count(a)], to, to+1, to)
	}
	join(0, vectors, 1)
}

// packMasks packs as many vectors of masks, whose elements have as many bytes,
// into bytes in vector 0.
func (a *elementWriter) packMasks(vectors int) {
	if vectors == 1 {
		return
	}
	for n := vectors; n > 1; n /= 2 {
		pack := "VPACKSSDW"
		if n == 2 {
			pack = "VPACKSSWB"
		}
		for i := range n / 2 {
			a.op("%s %s, %s, %s", pack, a.v(2*i+1), a.v(2*i), a.v(i))
		}
	}
	// Halves of vectors were packed side by side.
	switch vectors {
	case 2:
		a.op("VPERMQ $0xd8, Y0, Y0")
	default:
		group := map[int]string{4: "DQ", 8: "WD"}[vectors]
		a.op("VEXTRACTI128 $1, Y0, X1")
		a.op("VPUNPCKH%s X1, X0, X2", group)
		a.op("VPUNPCKL%s X1, X0, X0", group)
		a.op("VINSERTI128 $1, X2, Y0, Y0")
	}
}

// logic takes bytes that are not 0 for true.
func (a *elementWriter) logic() {
	ones := func() { a.op("VMOVUPS %s, %s", a.constant(0x0101010101010101), a.v(onesVector)) }
	truth := func(at string, to int) { a.op("VPMINUB %s, %s, %s", at, a.v(onesVector), a.v(to)) }
	n := a.bytes()
	for _, k := range []struct{ name, instruction string }{{"and", "VPAND"}, {"or", "VPOR"}, {"xor", "VPXOR"}} {
		a.emit(k.name+" bool vv", n, 2, []int{n, n, n}, ones, func(at func(operand, offset int) string) {
			truth(at(1, 0), 0)
			truth(at(2, 0), 1)
			a.op("%s%s %s, %s, %s", k.instruction, a.wide(), a.v(1), a.v(0), a.v(0))
			a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
		})
	}
	a.emit("not bool", n, 2, []int{n, n}, ones, func(at func(operand, offset int) string) {
		truth(at(1, 0), 0)
		a.op("VPXOR%s %s, %s, %s", a.wide(), a.v(onesVector), a.v(0), a.v(0))
		a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
	})
	a.emit("truth bool", n, 2, []int{n, n}, ones, func(at func(operand, offset int) string) {
		truth(at(1, 0), 0)
		a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
	})
}

// selects takes y where the byte x is not 0, and otherwise z.
func (a *elementWriter) selects() {
	for _, t := range []elementType{{name: "1", size: 1}, {name: "2", size: 2}, {name: "4", size: 4}, {name: "8", size: 8}} {
		for _, form := range []string{"vv", "vs", "sv", "ss"} {
			n := t.count(a)
			steps := []int{a.bytes(), n, a.bytes(), a.bytes()}
			for i := range 2 {
				if form[i] == 's' {
					steps[2+i] = 0
				}
			}
			a.emit("where "+t.name+" "+form, n, 2, steps, func() {
				if !a.masks {
					a.op("VPXOR %s, %s, %s", a.v(zeroVector), a.v(zeroVector), a.v(zeroVector))
				}
				for i := range 2 {
					if form[i] == 's' {
						a.broadcast(t, elementPointers[2+i], scalarVector+i)
					}
				}
			}, func(at func(operand, offset int) string) { a.selectOf(t, form, at) })
		}
	}
}

func (a *elementWriter) selectOf(t elementType, form string, at func(operand, offset int) string) {
	yes, no := at(2, 0), at(3, 0)
	if form[0] == 's' {
		yes = a.v(scalarVector)
	}
	if form[1] == 's' {
		no = a.v(scalarVector + 1)
	}
	if a.masks {
		bits := map[int]string{1: "8", 2: "16", 4: "32", 8: "64"}[t.size]
		c := map[int]string{1: "Z0", 2: "Y0", 4: "X0", 8: "X0"}[t.size]
		a.op("%s %s, %s", map[bool]string{true: "VMOVQ", false: "VMOVUPS"}[t.size == 8], at(1, 0), c)
		a.op("VPTESTMB %s, %s, K1", c, c)
		a.op("VMOVUPS %s, %s", no, a.v(1))
		a.op("VMOVDQU%s %s, K1, %s", bits, yes, a.v(1))
		a.op("VMOVUPS %s, %s", a.v(1), at(0, 0))
		return
	}
	if t.size == 1 {
		a.op("VMOVUPS %s, %s", at(1, 0), a.v(0))
	} else {
		a.op("VPMOVZXB%s %s, %s", t.letter(), at(1, 0), a.v(0))
	}
	a.op("VPCMPEQ%s %s, %s, %s", t.letter(), a.v(zeroVector), a.v(0), a.v(0))
	if form[0] == 'v' {
		a.op("VMOVUPS %s, %s", yes, a.v(1))
		yes = a.v(1)
	}
	a.op("VPBLENDVB %s, %s, %s, %s", a.v(0), no, yes, a.v(1))
	a.op("VMOVUPS %s, %s", a.v(1), at(0, 0))
}
