package main

import "fmt"

// casts convert between element types by way of 32 or 64 bits: narrower
// elements are widened when they are loaded and cut when they are stored. A
// group is a vector of the wider type on the way.
func (a *elementWriter) casts() {
	for _, from := range append([]elementType{typeBool}, allTypes...) {
		for _, to := range allTypes {
			switch {
			case from.name == to.name, !from.float && !to.float && from.size == to.size:
			case from.float && to.float:
				a.cast(from, to, 8, func() { a.floatToFloat(from, to) })
			case to.float:
				a.intToFloat(from, to)
			case from.float:
				a.floatToInt(from, to)
			default:
				a.intToInt(from, to)
			}
		}
	}
}

// cast emits a conversion of whole vectors with elements of width bytes, from
// vector 0 into which they were loaded as loadWide does, and into which body
// leaves them as storeCut wants them.
func (a *elementWriter) cast(from, to elementType, width int, body func()) {
	n := a.bytes() / width
	a.emit("cast "+from.name+" "+to.name, n, 2, []int{n * to.size, n * from.size}, func() {}, func(at func(operand, offset int) string) {
		a.loadWide(from, width, at(1, 0))
		body()
		a.storeCut(to, width, at(0, 0))
	})
}

// register is vector i or the part of it that n bytes fill.
func (a *elementWriter) register(i, n int) string {
	switch {
	case n > 32:
		return fmt.Sprint("Z", i)
	case n > 16:
		return fmt.Sprint("Y", i)
	}
	return fmt.Sprint("X", i)
}

// move names the instruction that moves n bytes from or to memory.
func move(n int) string { return map[int]string{4: "VMOVD", 8: "VMOVQ"}[n] }

// moveBytes moves n bytes of vector i.
func (a *elementWriter) moveBytes(n, i int, at string, store bool) {
	instruction := "VMOVUPS"
	if n < 16 {
		instruction = move(n)
	}
	if store {
		a.op("%s %s, %s", instruction, a.register(i, n), at)
	} else {
		a.op("%s %s, %s", instruction, at, a.register(i, n))
	}
}

// loadWide fills vector 0 with integers of width bytes, or with floats as they
// are, as far as the row goes.
func (a *elementWriter) loadWide(from elementType, width int, at string) {
	n := a.bytes() / width
	if from.float || from.size >= width {
		a.moveBytes(n*from.size, 0, at, false)
		return
	}
	letter := map[int]string{4: "D", 8: "Q", 2: "W"}[width]
	sign := map[bool]string{true: "S", false: "Z"}[from.signed]
	a.op("VPMOV%sX%s%s %s, %s", sign, from.letter(), letter, at, a.v(0))
	a.oneIfTrue(from, width, a.v(0))
}

// oneIfTrue sets widened bools, in which any byte but 0 is true, to 1 or 0.
func (a *elementWriter) oneIfTrue(from elementType, width int, v string) {
	if from.name == typeBool.name {
		a.op("VPMINUW %s, %s, %s", a.constant(map[int]uint64{2: 0x0001000100010001, 4: 0x0000000100000001, 8: 1}[width]), v, v)
	}
}

// storeCut stores the lower bytes of the integers of width bytes in vector 0,
// or floats as they are.
func (a *elementWriter) storeCut(to elementType, width int, at string) {
	n := a.bytes() / width
	if !to.float && to.size < width {
		if a.masks {
			a.op("VPMOV%s%s %s, %s", map[int]string{4: "D", 8: "Q", 2: "W"}[width], to.letter(), a.v(0), a.register(0, n*to.size))
		} else {
			a.cut(width, to.size)
		}
	}
	a.moveBytes(n*to.size, 0, at, true)
}

// cut packs the lower bytes of the elements of vector 0, of width bytes, side
// by side.
func (a *elementWriter) cut(width, size int) {
	if width == 8 { // to 32 bits first
		a.op("VEXTRACTI128 $1, Y0, X1")
		a.op("VSHUFPS $0x88, X1, X0, X0")
		switch size {
		case 2:
			a.op("VPSHUFB %s, X0, X0", a.constant(0x0d0c090805040100))
		case 1:
			a.op("VPSHUFB %s, X0, X0", a.constant(0x808080800c080400))
		}
		return
	}
	pick := map[[2]int]uint64{{4, 2}: 0x0d0c090805040100, {4, 1}: 0x808080800c080400, {2, 1}: 0x0e0c0a0806040200}[[2]int{width, size}]
	a.op("VPSHUFB %s, Y0, Y0", a.constant(pick))
	a.op("VEXTRACTI128 $1, Y0, X1")
	a.op("VPUNPCKL%s X1, X0, X0", map[bool]string{true: "DQ", false: "QDQ"}[size == 1 && width == 4])
}

func (a *elementWriter) floatToFloat(from, to elementType) {
	if from.size < to.size {
		a.op("VCVTPS2PD %s, %s", a.register(0, a.bytes()/2), a.v(0))
		return
	}
	suffix := ""
	if !a.masks {
		suffix = "Y"
	}
	a.op("VCVTPD2PS%s %s, %s", suffix, a.v(0), a.register(0, a.bytes()/2))
}

func (a *elementWriter) intToFloat(from, to elementType) {
	half := a.register(0, a.bytes()/2)
	switch {
	case from.size == 8 && !a.masks, from.name == "u32" && !a.masks: // there are no instructions
	case from.size == 8:
		kind := map[bool]string{true: "QQ", false: "UQQ"}[from.signed]
		a.cast(from, to, 8, func() {
			if to.size == 8 {
				a.op("VCVT%s2PD %s, %s", kind, a.v(0), a.v(0))
			} else {
				a.op("VCVT%s2PS %s, %s", kind, a.v(0), half)
			}
		})
	case to.size == 4:
		kind := map[bool]string{false: "DQ", true: "UDQ"}[from.name == "u32"]
		a.cast(from, to, 4, func() { a.op("VCVT%s2PS %s, %s", kind, a.v(0), a.v(0)) })
	case from.size == 4:
		kind := map[bool]string{true: "DQ", false: "UDQ"}[from.signed]
		a.toDouble(from, to, func(at string) { a.op("VCVT%s2PD %s, %s", kind, at, a.v(0)) })
	default:
		sign := map[bool]string{true: "S", false: "Z"}[from.signed]
		a.toDouble(from, to, func(at string) {
			a.op("VPMOV%sX%sD %s, %s", sign, from.letter(), at, half)
			a.oneIfTrue(from, 4, half)
			a.op("VCVTDQ2PD %s, %s", half, a.v(0))
		})
	}
}

// toDouble emits the conversion of a place in memory to a vector of float64 in
// vector 0.
func (a *elementWriter) toDouble(from, to elementType, body func(at string)) {
	n := a.bytes() / to.size
	a.emit("cast "+from.name+" "+to.name, n, 2, []int{n * to.size, n * from.size}, func() {}, func(at func(operand, offset int) string) {
		body(at(1, 0))
		a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
	})
}

// floatToInt drops the fraction, and saturates: numbers beyond the ends become
// the ends, NaN becomes 0.
func (a *elementWriter) floatToInt(from, to elementType) {
	switch {
	case to.size == 8 && (!a.masks || !to.signed): // rare, or there are no instructions
	case to.size == 8:
		a.cast(from, to, 8, func() { a.longOfFloat(from) })
	case from.size == 8:
		a.cast(from, elementType{to.name, to.size, false, to.signed}, 8, func() { a.intOfDouble(to) })
	default:
		a.cast(from, to, 4, func() { a.intOfFloat(to.signed) })
	}
}

// longOfFloat converts to 64-bit integers; the instruction converts numbers
// that do not fit to the smallest integer.
func (a *elementWriter) longOfFloat(from elementType) {
	if from.size == 4 {
		a.op("VCVTTPS2QQ Y0, Z1")
		a.op("VCVTPS2PD Y0, Z0")
	} else {
		a.op("VCVTTPD2QQ Z0, Z1")
	}
	a.op("VCMPPD $0x1d, %s, Z0, K1", a.f64(0x1p63)) // not less, or the smallest number is right
	a.op("VCMPPD $0x07, Z0, Z0, K2")                // a number
	a.op("VMOVDQU64 %s, K1, Z1", a.constant(1<<63-1))
	a.op("VMOVDQU64.Z Z1, K2, Z0")
}

// intOfDouble converts to 64-bit integers in the range of 32, or without mask
// registers to 32-bit ones in half a vector.
func (a *elementWriter) intOfDouble(to elementType) {
	limit := 0x1p31 - 1
	if !to.signed {
		limit = 0x1p32 - 1
	}
	if a.masks {
		a.op("VCMPPD $0x07, Z0, Z0, K1")
	} else {
		a.op("VCMPPD $0x07, Y0, Y0, Y1")
		a.op("VANDPD Y1, Y0, Y0")
	}
	a.op("VMAXPD %s, %s, %s", a.f64(-0x1p31), a.v(0), a.v(0))
	a.op("VMINPD %s, %s, %s", a.f64(limit), a.v(0), a.v(0))
	if a.masks {
		a.op("VCVTTPD2QQ.Z Z0, K1, Z0")
		return
	}
	if !to.signed { // from 2^31 on the number less 2^32 has the same lower bits
		a.op("VROUNDPD $11, Y0, Y0")
		a.op("VCMPPD $0x1d, %s, Y0, Y1", a.f64(0x1p31))
		a.op("VANDPD %s, Y1, Y1", a.f64(0x1p32))
		a.op("VSUBPD Y1, Y0, Y0")
	}
	a.op("VCVTTPD2DQY Y0, X0")
	a.op("VPMOVSXDQ X0, Y0")
}

// intOfFloat converts to 32-bit integers.
func (a *elementWriter) intOfFloat(signed bool) {
	x, r, t := a.v(0), a.v(1), a.v(2)
	switch {
	case signed && a.masks:
		a.op("VCVTTPS2DQ %s, %s", x, r)
		a.op("VCMPPS $0x1d, %s, %s, K1", a.f32(0x1p31), x)
		a.op("VMOVDQU32 %s, K1, %s", a.constant(0x7fffffff7fffffff), r)
	case signed:
		a.op("VCVTTPS2DQ %s, %s", x, r)
		a.op("VCMPPS $0x1d, %s, %s, %s", a.f32(0x1p31), x, t)
		a.op("VPXOR %s, %s, %s", t, r, r) // the smallest number turns into the largest
	case a.masks:
		a.op("VCVTTPS2DQ %s, %s", x, r)
		a.op("VCMPPS $0x1d, %s, %s, K1", a.f32(0x1p31), x)
		a.op("VCVTTPS2UDQ %s, K1, %s", x, r) // the largest number where it does not fit
	default:
		// From 2^31 on, 2^31 less; and all ones from 2^32 on.
		y, over := a.v(3), a.v(4)
		a.op("VCMPPS $0x1d, %s, %s, %s", a.f32(0x1p31), x, t)
		a.op("VANDPS %s, %s, %s", a.f32(0x1p31), t, y)
		a.op("VSUBPS %s, %s, %s", y, x, y)
		a.op("VCVTTPS2DQ %s, %s", y, r)
		a.op("VCMPPS $0x1d, %s, %s, %s", a.f32(0x1p31), y, over)
		a.op("VPSLLD $31, %s, %s", t, t)
		a.op("VPXOR %s, %s, %s", t, r, r)
		a.op("VPOR %s, %s, %s", over, r, r)
	}
	if a.masks {
		a.op("VCMPPS $0x07, %s, %s, K1", x, x)
		a.op("VMOVDQU32.Z %s, K1, %s", r, x)
		return
	}
	a.op("VCMPPS $0x07, %s, %s, %s", x, x, t)
	a.op("VPAND %s, %s, %s", t, r, x)
}

func (a *elementWriter) intToInt(from, to elementType) {
	width := max(from.size, to.size)
	if !to.signed || to.size < from.size && !from.signed {
		return // the same as with a sign: see elementTable
	}
	a.cast(from, to, width, func() {})
}
