package main

import (
	"math"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// The transcendental functions in float32: the steps of formulas that are made
// of many instructions. Polynomials are minimax fits with coefficients rounded
// to float32; their errors are below half a unit in the last place, and the
// errors of whole functions, measured over all their range, are tested beside
// the kernels. Numbers above the largest, below the smallest and NaN come out
// of the arithmetic, with clamps that keep NaN where they are needed.

// Vectors of the loops that are written by hand around an exponential.
const (
	fnX = iota
	fnE // the exponential
	fnR
	fnN
	fnP
	fnU
	fnV
	fnW
)

var minusZero = float32(math.Copysign(0, -1))

func (a *assembler) move(from, to int) {
	if from != to {
		a.op("VMOVAPS %s, %s", a.v(from), a.v(to))
	}
}

func (a *assembler) constantTo(c float32, to int) { a.op("VMOVUPS %s, %s", a.f32(c), a.v(to)) }

// ps is to = y op x: the order of operands of the instruction as the assembler
// writes it.
func (a *assembler) ps(op string, x, y, to int) {
	a.op("%s %s, %s, %s", op, a.v(x), a.v(y), a.v(to))
}

// with is x = x op c, for a constant c.
func (a *assembler) with(op string, c float32, x int) {
	a.op("%s %s, %s, %s", op, a.f32(c), a.v(x), a.v(x))
}

// bound is to = min(x, c) or max(x, c), and NaN where x is: the instructions
// return their last source, the first as written here, then.
func (a *assembler) bound(op string, c float32, x, to int) {
	limit := a.f32(c)
	if !a.isPinned(c) {
		spare := to
		if x == to {
			spare = fnN
		}
		a.constantTo(c, spare)
		limit = a.v(spare)
	}
	a.op("%s %s, %s, %s", op, a.v(x), limit, a.v(to))
}

// horner is p = c0 and then p = p*x + c for the others.
func (a *assembler) horner(p, x int, coefficients ...float32) {
	a.constantTo(coefficients[0], p)
	for _, c := range coefficients[1:] {
		a.op("VFMADD213PS %s, %s, %s", a.f32(c), a.v(x), a.v(p))
	}
}

// The logarithm of 2 in two parts: the product of the first and an exponent is
// exact.
const (
	ln2High = 0.693145751953125
	ln2Low  = 1.42860682030941723212e-6
)

// expParts writes exp(x) as 2^n * (1+m), with r, which may be x, and the
// polynomial p = (m-r)/r^2.
func (a *assembler) expParts(x, r, n, p int) {
	const roundBias = 0x1.8p23 // adding and subtracting it rounds to an integer
	a.constantTo(roundBias, n)
	a.op("VFMADD231PS %s, %s, %s", a.f32(1/math.Ln2), a.v(x), a.v(n))
	a.with("VSUBPS", roundBias, n)
	a.move(x, r)
	a.op("VFNMADD231PS %s, %s, %s", a.f32(ln2High), a.v(n), a.v(r))
	a.op("VFNMADD231PS %s, %s, %s", a.f32(ln2Low), a.v(n), a.v(r))
	a.horner(p, r, 0.0013814539415761828, 0.008368744514882565, 0.04166838899254799, 0.1666652113199234, 0.4999999403953552)
}

// exp sets e to exp(x), within 1 unit in the last place. It needs x in
// [expLeast, expMost] or NaN, and spoils r, which may be x, and n.
func (a *assembler) exp(x, r, n, e int) {
	a.expParts(x, r, n, e)
	for range 2 {
		a.op("VFMADD213PS %s, %s, %s", a.f32(1), a.v(r), a.v(e))
	}
	if a.masks {
		a.op("VSCALEFPS %s, %s, %s", a.v(n), a.v(e), a.v(e))
		return
	}
	// 2^n may have no float32 where the result has one, so it is multiplied in
	// halves.
	a.op("VCVTPS2DQ %s, %s", a.v(n), a.v(n))
	a.op("VPSRAD $1, %s, %s", a.v(n), a.v(r))
	a.op("VPSUBD %s, %s, %s", a.v(r), a.v(n), a.v(n))
	for _, half := range []int{r, n} {
		a.power(half)
		a.ps("VMULPS", half, e, e)
	}
}

// power turns an integer n within the exponents of normal numbers into 2^n.
func (a *assembler) power(n int) {
	a.op("VPSLLD $23, %s, %s", a.v(n), a.v(n))
	a.op("VPADDD %s, %s, %s", a.f32(1), a.v(n), a.v(n))
}

// Beyond these exp is 0 or infinite.
const (
	expLeast = -104
	expMost  = 89
)

// sign and magnitude of numbers.
func (a *assembler) negated(from, to int) {
	a.op("VXORPS %s, %s, %s", a.f32(minusZero), a.v(from), a.v(to))
}

func (a *assembler) magnitude(from, to int) {
	a.op("VANDPS %s, %s, %s", a.constant((1<<31-1)<<32|(1<<31-1)), a.v(from), a.v(to))
}

// minusMagnitude is -|from|.
func (a *assembler) minusMagnitude(from, to int) {
	a.op("VORPS %s, %s, %s", a.f32(minusZero), a.v(from), a.v(to))
}

// atMost sets to to min(x, c), or max(x, c) with VMAXPS, and NaN where x is.
func (b *body) atMost(instruction string, c float32, x, to int) {
	limit, taken := b.inVector(c)
	b.op("%s %s, %s, %s", instruction, b.v(x), limit, b.v(to))
	b.drop(taken)
}

// clamped returns a vector of an operand's numbers that are moved into an
// interval, which may be overwritten. The formula may have limited them
// already.
func (b *body) clamped(v elementwise.Value, least, most float32) int {
	lo, hi := b.Range(v)
	from := b.vector[v]
	to := from
	if !b.dies(v) {
		to = b.take()
	}
	if hi > float64(most) {
		b.atMost("VMINPS", most, from, to)
		from = to
	}
	if lo < float64(least) {
		b.atMost("VMAXPS", least, from, to)
		from = to
	}
	b.move(from, to)
	return to
}

// expIn sets a vector of its own to exp(x), and drops x, which it spoils. It
// needs x in [expLeast, expMost] or NaN.
func (b *body) expIn(x int) int {
	n, e := b.take(), b.take()
	b.exp(x, x, n, e)
	b.drop(x, n)
	return e
}

func (b *body) expOf(v elementwise.Value) int {
	return b.expIn(b.clamped(v, expLeast, expMost))
}

// expm1 takes exp(x)-1 as 2^n*m + (2^n-1), which does not cancel near 0, where
// the scale is 1. Where 2^n may have no float32 it is 2^(n-1), twice.
func (b *body) expm1(v elementwise.Value) int {
	const least, mostOnce = -30, 88
	_, hi := b.Range(v)
	r := b.clamped(v, least, expMost)
	n, p := b.take(), b.take()
	b.expParts(r, r, n, p)
	one := float32(1)
	if hi > mostOnce {
		one = 0.5
		b.with("VSUBPS", 1, n)
	}
	if b.masks {
		scale := b.take()
		b.constantTo(1, scale)
		b.op("VSCALEFPS %s, %s, %s", b.v(n), b.v(scale), b.v(n))
		b.drop(scale)
	} else {
		b.op("VCVTPS2DQ %s, %s", b.v(n), b.v(n))
		b.power(n)
	}
	b.ps("VMULPS", r, p, p)
	b.op("VFMADD213PS %s, %s, %s", b.v(r), b.v(r), b.v(p))
	b.op("VSUBPS %s, %s, %s", b.f32(one), b.v(n), b.v(r))
	b.op("VFMADD213PS %s, %s, %s", b.v(r), b.v(n), b.v(p))
	if hi > mostOnce {
		b.ps("VADDPS", p, p, p)
	}
	b.drop(r, n)
	return p
}

// sigmoid is e/(1+e) or 1/(1+e) with e = exp(-|x|), so that neither overflows
// nor cancels.
func (b *body) sigmoid(v elementwise.Value) int {
	x, e := b.vector[v], b.take()
	b.minusMagnitude(x, e)
	b.atMost("VMAXPS", expLeast, e, e)
	e = b.expIn(e)
	sum := b.take()
	b.op("VADDPS %s, %s, %s", b.f32(1), b.v(e), b.v(sum))
	b.choose("PS", greater, b.v(x), b.f32(0), b.f32(1), b.v(e))
	b.ps("VDIVPS", sum, e, e)
	b.drop(sum)
	return e
}

// tanh is 1-2/(exp(2|x|)+1), and an odd polynomial for small x, where the
// difference would cancel.
func (b *body) tanh(v elementwise.Value) int {
	x, u, e := b.vector[v], b.take(), b.take()
	b.magnitude(x, u)
	b.ps("VADDPS", u, u, e)
	b.atMost("VMINPS", 20, e, e)
	e = b.expIn(e)
	b.with("VADDPS", 1, e)
	w := b.take()
	b.constantTo(2, w)
	b.ps("VDIVPS", e, w, e)
	b.constantTo(1, w)
	b.ps("VSUBPS", e, w, w)
	b.drop(e)
	return b.oddNearZero(v, u, w, 0.017256995663046837, -0.053052954375743866, 0.1332598775625229, -0.33333149552345276, 0)
}

// oddNearZero returns w with the sign of x, and x + x*P(x^2) where |x|, which
// is in u, is below 1/2. The polynomial's last coefficient may be 0.
func (b *body) oddNearZero(v elementwise.Value, u, w int, coefficients ...float32) int {
	x, square, p := b.vector[v], b.take(), b.take()
	b.op("VANDPS %s, %s, %s", b.f32(minusZero), b.v(x), b.v(square))
	b.ps("VORPS", square, w, w)
	b.ps("VMULPS", x, x, square)
	last := len(coefficients) - 1
	if coefficients[last] == 0 {
		b.horner(p, square, coefficients[:last]...)
		b.ps("VMULPS", square, p, p)
	} else {
		b.horner(p, square, coefficients...)
	}
	b.op("VFMADD213PS %s, %s, %s", b.v(x), b.v(x), b.v(p))
	b.choose("PS", less, b.v(u), b.f32(0.5), b.v(p), b.v(w))
	b.drop(u, square, p)
	return w
}

// erf is 1-exp(-R(|x|)) with a polynomial R, and an odd polynomial for small x.
func (b *body) erf(v elementwise.Value) int {
	u, t, w := b.take(), b.take(), b.take()
	b.magnitude(b.vector[v], u)
	b.atMost("VMINPS", 3.95, u, t)
	b.horner(w, t, 4.00985936721554e-06, -0.0002606612688396126, 0.0034368266351521015, -0.023447558283805847, 0.1060602068901062, 0.6350695490837097,
		1.1287896633148193, -4.648135291063227e-05)
	b.negated(w, w)
	b.drop(t)
	e := b.expIn(w)
	w = b.take()
	b.constantTo(1, w)
	b.ps("VSUBPS", e, w, w)
	b.drop(e)
	return b.oddNearZero(v, u, w, 0.0047179171815514565, -0.026757264509797096, 0.11282826960086823, -0.37612608075141907, 0.12837916612625122)
}

// softplus is max(x, 0) + log(1+e) with e = exp(-|x|), as a series in e/(2+e).
func (b *body) softplus(v elementwise.Value) int {
	x, e := b.vector[v], b.take()
	b.minusMagnitude(x, e)
	b.atMost("VMAXPS", expLeast, e, e)
	e = b.expIn(e)
	square, p := b.take(), b.take()
	b.op("VADDPS %s, %s, %s", b.f32(2), b.v(e), b.v(square))
	b.ps("VDIVPS", square, e, e)
	b.ps("VMULPS", e, e, square)
	b.horner(p, square, 0.28024452924728394, 0.27999141812324524, 0.4002169966697693, 0.6666641235351562, 2)
	b.drop(square)
	to := x
	if !b.dies(v) {
		to = b.take()
	}
	b.atMost("VMAXPS", 0, x, to)
	b.op("VFMADD231PS %s, %s, %s", b.v(e), b.v(p), b.v(to))
	b.drop(e, p)
	return to
}

// log takes the exponent off, so that a number f+1 in [sqrt(1/2), sqrt(2)) is
// left.
func (b *body) log(v elementwise.Value) int {
	const rootHalf = 0x3f3504f3 // of the bits of sqrt(1/2)
	repeat := func(w uint64) string { return b.constant(w<<32 | w) }
	fr, fp, fv, fu, fn := b.take(), b.take(), b.take(), b.take(), b.take()
	n, x, u, r := b.v(fn), b.v(b.vector[v]), b.v(fu), b.v(fr)
	// Numbers below the normal ones are scaled into them.
	b.constantTo(1<<23, fr)
	b.ps("VMULPS", fr, b.vector[v], fr)
	b.constantTo(0, fv)
	b.move(b.vector[v], fu)
	b.choose("PS", less, x, b.f32(0x1p-126), r, u)
	b.choose("PS", less, x, b.f32(0x1p-126), b.f32(-23), b.v(fv))
	b.op("VPSUBD %s, %s, %s", repeat(rootHalf), u, n)
	b.op("VPSRAD $23, %s, %s", n, n)
	b.op("VPSLLD $23, %s, %s", n, r)
	b.op("VPSUBD %s, %s, %s", r, u, u)
	b.op("VCVTDQ2PS %s, %s", n, n)
	b.ps("VADDPS", fv, fn, fn)
	b.with("VSUBPS", 1, fu)
	b.horner(fp, fu, 0.08917878568172455, -0.14350196719169617, 0.1487695574760437, -0.16565634310245514, 0.1996539831161499,
		-0.2500174641609192, 0.33333858847618103)
	b.ps("VMULPS", fu, fu, fr)
	b.ps("VMULPS", fu, fp, fp)
	b.ps("VMULPS", fr, fp, fp)
	b.op("VFMADD231PS %s, %s, %s", b.f32(ln2Low), n, b.v(fp))
	b.op("VFNMADD231PS %s, %s, %s", b.f32(0.5), r, b.v(fp))
	b.ps("VADDPS", fp, fu, fu)
	b.op("VFMADD231PS %s, %s, %s", b.f32(ln2High), n, u)
	// Infinity and NaN stay; 0 becomes -Inf, negative numbers NaN.
	b.choose("PS", notLess, x, b.f32(float32(math.Inf(1))), x, u)
	b.choose("PS", equal, x, b.f32(0), b.f32(float32(math.Inf(-1))), u)
	b.choose("PS", less, x, b.f32(0), b.f32(float32(math.NaN())), u)
	b.drop(fr, fp, fv, fn)
	return fu
}
