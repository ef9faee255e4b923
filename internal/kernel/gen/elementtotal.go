package main

// totals join rows of integers: four vectors of totals, from dst and back to
// it, so that a row may come in pieces. And they add rows of float32 to sums in
// float64.
func (a *elementWriter) totals() {
	for _, t := range intTypes {
		if t.signed {
			add := func(x string, to int) { a.op("VPADD%s %s, %s, %s", t.letter(), x, a.v(to), a.v(to)) }
			a.total("total add", t, add)
			a.columns("add", t, add)
		}
		if t.size == 8 && !a.masks {
			continue // as fast one by one
		}
		for most, name := range []string{"min", "max"} {
			extreme := func(x string, to int) { a.extreme(t, most == 1, a.v(to), x, to) }
			a.total("total "+name, t, extreme)
			a.columns(name, t, extreme)
		}
	}
	for _, k := range []struct{ name, instruction string }{{"add", "VADDPD"}, {"max", "VMAXPD"}, {"min", "VMINPD"}} {
		a.columns(k.name, typeF64, func(x string, to int) {
			if k.name == "add" {
				a.op("VADDPD %s, %s, %s", x, a.v(to), a.v(to))
				return
			}
			a.op("VMOVUPS %s, %s", x, a.v(4))
			a.op("VMOVAPD %s, %s", a.v(to), a.v(5))
			a.op("%s %s, %s, %s", k.instruction, a.v(4), a.v(to), a.v(to)) // the row's where one is NaN
			a.choose("PD", unordered, a.v(5), a.v(5), a.v(5), a.v(to))
		})
	}
	n := a.bytes() / 8
	a.emit("gather f32 f64", n, 4, []int{8 * n, 4 * n}, func() {}, func(at func(operand, offset int) string) {
		a.op("VCVTPS2PD %s, %s", at(1, 0), a.v(0))
		a.op("VADDPD %s, %s, %s", at(0, 0), a.v(0), a.v(0))
		a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
	})
}

func (a *elementWriter) total(name string, t elementType, join func(x string, to int)) {
	const totals = 4
	a.leave = func() {
		for i := range totals {
			a.op("VMOVUPS %s, %d(DI)", a.v(i), i*a.bytes())
		}
	}
	a.emit(name+" "+t.name, totals*t.count(a), 1, []int{0, totals * a.bytes()}, func() {
		for i := range totals {
			a.op("VMOVUPS %d(DI), %s", i*a.bytes(), a.v(i))
		}
	}, func(at func(operand, offset int) string) {
		for i := range totals {
			join(at(1, i*a.bytes()), i)
		}
	})
	a.leave = nil
}

// columns joins n rows of four vectors, which lie as many bytes apart as the
// word behind y says, to the one in dst.
func (a *elementWriter) columns(name string, t elementType, join func(x string, to int)) {
	const vectors = 4
	a.leave = func() {
		for i := range vectors {
			a.op("VMOVUPS %s, %d(DI)", a.v(i), i*a.bytes())
		}
	}
	a.emit("columns "+name+" "+t.name, vectors*t.count(a), 1, []int{0, 0, 0}, func() {
		a.op("MOVQ (DX), DX")
		for i := range vectors {
			a.op("VMOVUPS %d(DI), %s", i*a.bytes(), a.v(i))
		}
	}, func(at func(operand, offset int) string) {
		for i := range vectors {
			join(at(1, i*a.bytes()), i)
		}
		a.op("ADDQ DX, SI")
	})
	a.leave = nil
}
