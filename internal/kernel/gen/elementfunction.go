package main

import "math"

// functions are exponentials and logarithms in float64, within a unit in the
// last place. Their series are Taylor's: the arguments are so small that a
// dozen terms leave over less than a rounding does.
func (a *elementWriter) functions() {
	n := a.bytes() / 8
	function := func(name string, start, body func()) {
		a.emit(name+" f64", n, 1, []int{8 * n, 8 * n}, start, func(at func(operand, offset int) string) {
			a.op("VMOVUPS %s, %s", at(1, 0), a.v(0))
			body()
			a.op("VMOVUPS %s, %s", a.v(0), at(0, 0))
		})
	}
	function("exp", func() {
		a.op("VMOVUPS %s, %s", a.f64(710), a.v(12))  // and beyond, the result is infinite
		a.op("VMOVUPS %s, %s", a.f64(-746), a.v(13)) // and beyond, it is 0
	}, a.expDouble)
	function("log", func() {}, a.logDouble)
}

// series is p = c0 and then p = p*x + c for the others.
func (a *elementWriter) series(p, x int, coefficients []float64) {
	a.op("VMOVUPS %s, %s", a.f64(coefficients[0]), a.v(p))
	for _, c := range coefficients[1:] {
		a.op("VFMADD213PD %s, %s, %s", a.f64(c), a.v(x), a.v(p))
	}
}

// expDouble is 2^n * (1 + (r + r^2*p)), with n the nearest integer to x/ln(2),
// r the remainder, and a series p.
func (a *elementWriter) expDouble() {
	const x, n, r, p, square = 0, 1, 2, 3, 4
	const roundBias = 0x1.8p52 // adding and subtracting it rounds to an integer
	const ln2High = 0x1.62e42fefa39efp-1
	a.op("VMINPD %s, %s, %s", a.v(x), a.v(12), a.v(x)) // NaN stays: see unaryKernels
	a.op("VMAXPD %s, %s, %s", a.v(x), a.v(13), a.v(x))
	a.op("VMOVUPS %s, %s", a.f64(roundBias), a.v(n))
	a.op("VFMADD231PD %s, %s, %s", a.f64(1/math.Ln2), a.v(x), a.v(n))
	a.op("VSUBPD %s, %s, %s", a.f64(roundBias), a.v(n), a.v(n))
	a.op("VMOVAPD %s, %s", a.v(x), a.v(r))
	a.op("VFNMADD231PD %s, %s, %s", a.f64(ln2High), a.v(n), a.v(r))
	a.op("VFNMADD231PD %s, %s, %s", a.f64(math.Ln2-ln2High), a.v(n), a.v(r))
	var terms []float64
	factorial := 6227020800.0 // of 13
	for k := 13; k >= 2; k-- {
		terms = append(terms, 1/factorial)
		factorial /= float64(k)
	}
	a.series(p, r, terms)
	a.op("VMULPD %s, %s, %s", a.v(r), a.v(r), a.v(square))
	a.op("VFMADD213PD %s, %s, %s", a.v(r), a.v(square), a.v(p))
	a.op("VADDPD %s, %s, %s", a.f64(1), a.v(p), a.v(p))
	if a.masks {
		a.op("VSCALEFPD %s, %s, %s", a.v(n), a.v(p), a.v(x))
		return
	}
	// 2^n may have no float64 where the result has one, so it is multiplied in
	// halves.
	a.op("VCVTPD2DQY Y%d, X5", n)
	a.op("VPSRAD $1, X5, X6")
	a.op("VPSUBD X6, X5, X5")
	for _, half := range []int{5, 6} {
		a.op("VPMOVSXDQ X%d, Y%d", half, half)
		a.op("VPSLLQ $52, Y%d, Y%d", half, half)
		a.op("VPADDQ %s, Y%d, Y%d", a.f64(1), half, half)
		a.op("VMULPD Y%d, Y%d, Y%d", half, p, p)
	}
	a.op("VMOVAPD Y%d, Y%d", p, x)
}

// logDouble takes the exponent k off, so that a number 1+f in [sqrt(1/2),
// sqrt(2)) is left, whose logarithm is f - s*(f - z*p) with s = f/(2+f), z =
// s^2, and a series p of the inverse hyperbolic tangent.
func (a *elementWriter) logDouble() {
	const x, u, k, f, s, z, p, low = 0, 1, 2, 3, 4, 5, 6, 7
	const rootHalf, bias = 0x3fe6a09e667f3bcd, 1023 << 52 // bits of sqrt(1/2), and of 1
	const whole = 0x1p52                                  // in whose bits an integer is added to 0
	const ln2 = 0x1.62e42fefa39efp-1
	high := math.Float64frombits(math.Float64bits(ln2) &^ (1<<21 - 1)) // whose product with an exponent is exact
	rest := ln2 - high + (math.Ln2 - ln2)
	// Numbers below the normal ones are scaled into them.
	a.op("VMOVUPS %s, %s", a.f64(0x1p54), a.v(f))
	a.op("VMULPD %s, %s, %s", a.v(f), a.v(x), a.v(f))
	a.op("VMOVUPS %s, %s", a.f64(54), a.v(s))
	a.op("VMOVAPD %s, %s", a.v(x), a.v(u))
	a.op("VXORPD %s, %s, %s", a.v(low), a.v(low), a.v(low))
	a.op("VMOVUPS %s, %s", a.f64(0x1p-1022), a.v(p))
	a.choose("PD", less, a.v(x), a.v(p), a.v(f), a.v(u))
	a.choose("PD", less, a.v(x), a.v(p), a.v(s), a.v(low))
	a.op("VPSUBQ %s, %s, %s", a.constant(rootHalf), a.v(u), a.v(k))
	a.op("VPADDQ %s, %s, %s", a.constant(bias), a.v(k), a.v(k))
	a.op("VPSRLQ $52, %s, %s", a.v(k), a.v(k))
	a.op("VPSLLQ $52, %s, %s", a.v(k), a.v(f))
	a.op("VPSUBQ %s, %s, %s", a.v(f), a.v(u), a.v(f))
	a.op("VPADDQ %s, %s, %s", a.constant(bias), a.v(f), a.v(f))
	a.op("VORPD %s, %s, %s", a.f64(whole), a.v(k), a.v(k))
	a.op("VSUBPD %s, %s, %s", a.f64(whole+1023), a.v(k), a.v(k))
	a.op("VSUBPD %s, %s, %s", a.v(low), a.v(k), a.v(k))
	a.op("VSUBPD %s, %s, %s", a.f64(1), a.v(f), a.v(f))
	a.op("VADDPD %s, %s, %s", a.f64(2), a.v(f), a.v(s))
	a.op("VDIVPD %s, %s, %s", a.v(s), a.v(f), a.v(s))
	a.op("VMULPD %s, %s, %s", a.v(s), a.v(s), a.v(z))
	var terms []float64
	for i := 11; i >= 1; i-- {
		terms = append(terms, 2/float64(2*i+1))
	}
	a.series(p, z, terms)
	a.op("VFNMADD213PD %s, %s, %s", a.v(f), a.v(z), a.v(p)) // f - z*p
	a.op("VMULPD %s, %s, %s", a.v(s), a.v(p), a.v(p))
	a.op("VFNMADD231PD %s, %s, %s", a.f64(rest), a.v(k), a.v(p))
	a.op("VSUBPD %s, %s, %s", a.v(p), a.v(f), a.v(f))
	a.op("VFMADD231PD %s, %s, %s", a.f64(high), a.v(k), a.v(f))
	// Infinity and NaN stay; 0 becomes -Inf, negative numbers NaN.
	a.op("VMOVUPS %s, %s", a.f64(math.Inf(1)), a.v(p))
	a.choose("PD", notLess, a.v(x), a.v(p), a.v(x), a.v(f))
	a.op("VXORPD %s, %s, %s", a.v(z), a.v(z), a.v(z))
	a.op("VMOVUPS %s, %s", a.f64(math.Inf(-1)), a.v(p))
	a.choose("PD", equal, a.v(x), a.v(z), a.v(p), a.v(f))
	a.op("VMOVUPS %s, %s", a.f64(math.NaN()), a.v(p))
	a.choose("PD", less, a.v(x), a.v(z), a.v(p), a.v(f))
	a.op("VMOVAPD %s, %s", a.v(f), a.v(x))
}
