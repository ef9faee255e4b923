package main

import "math"

// The transcendental functions are computed as the portable ones are: in float64, half a vector of float32 at a time, with polynomials
// good to 1e-9 and one rounding at the end. Constants come from memory, repeated over a vector.

// function registers: the argument, which becomes the result, and what functions are built of.
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

func (a *assembler) functionKernels() {
	for _, f := range []struct {
		name, doc string
		body      func()
	}{
		{"exp", "is exp(x[i]).", func() { a.exp(fnX); a.move(fnE, fnX) }},
		{"sigmoid", "is 1/(1+exp(-x[i])).", func() { a.sigmoidOf(fnX, func() { a.constantTo(1, fnX) }) }},
		{"silu", "is x[i]/(1+exp(-x[i])).", func() { a.sigmoidOf(fnX, func() {}) }},
		{"tanh", "is tanh(x[i]).", a.tanh},
		{"erf", "is erf(x[i]).", a.erf},
		{"gelu", "is x[i]/2 * (1+erf(x[i]/sqrt(2))).", a.gelu},
		{"geluTanh", "is x[i]/2 * (1+tanh(sqrt(2/pi)*(x[i]+0.044715*x[i]^3))).", a.geluTanh},
		{"mish", "is x[i] * tanh(log(1+exp(x[i]))).", a.mish},
	} {
		a.function(f.name, f.doc, []param{argN, argDst, argX}, nil)
		a.op("MOVQ %s, CX", a.arg(argN))
		a.op("MOVQ %s, DI", a.arg(argDst))
		a.op("MOVQ %s, SI", a.arg(argX))
		a.loop([]string{"DI", "SI"}, 2, a.lanes/2, func(at func(string) string, tail bool) {
			a.loadDoubles(at("SI"), fnX, tail)
			f.body()
			a.narrow(fnX)
			a.store(fnX, at("DI"), true, tail)
		})
		a.ret()
	}
	a.expSum()
}

// expSum is the heart of softmax.
func (a *assembler) expSum() {
	sum := param{"sum", "float64"}
	const total, shift = fnW + 1, fnW + 2
	for _, k := range []struct {
		name, doc string
		keep      bool
	}{{"expSum", "is the sum of exp(x[i]-s), which it keeps in dst[i].", true}, {"expOnlySum", "is the sum of exp(x[i]-s).", false}} {
		in, pointers := []param{argN, argDst, argX, argS}, []string{"SI", "DI"}
		if !k.keep {
			in, pointers = []param{argN, argX, argS}, pointers[:1]
		}
		a.function(k.name, k.doc, in, []param{sum})
		a.op("MOVQ %s, CX", a.arg(argN))
		if k.keep {
			a.op("MOVQ %s, DI", a.arg(argDst))
		}
		a.op("MOVQ %s, SI", a.arg(argX))
		a.op("VBROADCASTSS %s, %s", a.arg(argS), a.h(shift))
		a.op("VXORPD %s, %s, %s", a.v(total), a.v(total), a.v(total))
		a.loop(pointers, 2, a.lanes/2, func(at func(string) string, tail bool) {
			// The difference is one of float32, as the portable code forms it.
			a.load(at("SI"), fnX, true, tail)
			a.op("VSUBPS %s, %s, %s", a.h(shift), a.h(fnX), a.h(fnX))
			a.op("VCVTPS2PD %s, %s", a.h(fnX), a.v(fnX))
			a.exp(fnX)
			if tail {
				a.keepTail(fnE)
			}
			a.op("VADDPD %s, %s, %s", a.v(fnE), a.v(total), a.v(total))
			if k.keep {
				a.narrow(fnE)
				a.store(fnE, at("DI"), true, tail)
			}
		})
		a.addDoubles(total, fnE)
		a.op("VMOVSD X%d, %s", total, a.result(sum))
		a.ret()
	}
}

func (a *assembler) move(from, to int) { a.op("VMOVAPD %s, %s", a.v(from), a.v(to)) }

func (a *assembler) constantTo(c float64, to int) { a.op("VMOVUPD %s, %s", a.f64(c), a.v(to)) }

// narrow rounds a vector of float64 to half a vector of float32.
func (a *assembler) narrow(v int) {
	if a.masks {
		a.op("VCVTPD2PS %s, %s", a.v(v), a.h(v))
		return
	}
	a.op("VCVTPD2PSY %s, %s", a.v(v), a.h(v))
}

// with is x = x op c, for a constant c.
func (a *assembler) with(op string, c float64, x int) {
	a.op("%s %s, %s, %s", op, a.f64(c), a.v(x), a.v(x))
}

// horner is p = c0 and then p = p*x + c for the others.
func (a *assembler) horner(p, x int, first float64, others ...float64) {
	a.constantTo(first, p)
	for _, c := range others {
		a.op("VFMADD213PD %s, %s, %s", a.f64(c), a.v(x), a.v(p))
	}
}

// expParts writes exp(x) as 2^n * (1+m), with 2^n in fnN and m in fnP. x must not be larger than exp takes in float64.
func (a *assembler) expParts(x int) {
	const roundBias = 0x1.8p52 // adding it leaves an integer in the low bits
	n, r, m, square := a.v(fnN), a.v(fnR), a.v(fnP), a.v(fnE)
	a.constantTo(roundBias, fnN)
	a.op("VFMADD231PD %s, %s, %s", a.f64(1/math.Ln2), a.v(x), n)
	a.op("VSUBPD %s, %s, %s", a.f64(roundBias), n, square)
	a.move(x, fnR)
	a.op("VFNMADD231PD %s, %s, %s", a.f64(math.Ln2), square, r)
	a.horner(fnP, fnR, 1.0/40320, 1.0/5040, 1.0/720, 1.0/120, 1.0/24, 1.0/6, 0.5)
	a.op("VMULPD %s, %s, %s", r, r, square)
	a.op("VFMADD213PD %s, %s, %s", r, square, m)
	a.op("VPADDQ %s, %s, %s", a.constant(1023), n, n)
	a.op("VPSLLQ $52, %s, %s", n, n)
}

// exp sets fnE. Beyond the range of float64 the parts are void.
func (a *assembler) exp(x int) {
	a.expParts(x)
	a.move(fnN, fnE)
	a.op("VFMADD231PD %s, %s, %s", a.v(fnN), a.v(fnP), a.v(fnE))
	a.constantTo(math.Inf(1), fnN)
	a.choose("PD", greater, a.v(x), a.f64(709), a.v(fnN), a.v(fnE))
	a.op("VXORPD %s, %s, %s", a.v(fnN), a.v(fnN), a.v(fnN))
	a.choose("PD", less, a.v(x), a.f64(-708), a.v(fnN), a.v(fnE))
}

// negate changes the sign of from.
func (a *assembler) negate(from, to int) {
	a.op("VXORPD %s, %s, %s", a.f64(math.Copysign(0, -1)), a.v(from), a.v(to))
}

// absolute and sign take x apart.
func (a *assembler) absolute(from, to int) {
	a.op("VANDPD %s, %s, %s", a.constant(1<<63-1), a.v(from), a.v(to))
}

// withSign gives to, which is not negative, the sign of from. It spoils fnN.
func (a *assembler) withSign(from, to int) {
	a.op("VANDPD %s, %s, %s", a.f64(math.Copysign(0, -1)), a.v(from), a.v(fnN))
	a.op("VORPD %s, %s, %s", a.v(fnN), a.v(to), a.v(to))
}

// sigmoidOf divides fnX, after change, by 1+exp(-u).
func (a *assembler) sigmoidOf(u int, change func()) {
	a.negate(u, fnU)
	a.exp(fnU)
	change()
	a.with("VADDPD", 1, fnE)
	a.op("VDIVPD %s, %s, %s", a.v(fnE), a.v(fnX), a.v(fnX))
}

// tanh is e/(e+2) with e = exp(2|x|)-1, which does not cancel near 0: the scale there is 1.
func (a *assembler) tanh() {
	a.absolute(fnX, fnU)
	a.constantTo(20, fnV)
	a.op("VMINPD %s, %s, %s", a.v(fnU), a.v(fnV), a.v(fnU))
	a.op("VADDPD %s, %s, %s", a.v(fnU), a.v(fnU), a.v(fnU))
	a.expParts(fnU)
	a.op("VSUBPD %s, %s, %s", a.f64(1), a.v(fnN), a.v(fnE))
	a.op("VFMADD231PD %s, %s, %s", a.v(fnN), a.v(fnP), a.v(fnE))
	a.op("VADDPD %s, %s, %s", a.f64(2), a.v(fnE), a.v(fnU))
	a.op("VDIVPD %s, %s, %s", a.v(fnU), a.v(fnE), a.v(fnU))
	a.withSign(fnX, fnU)
	a.move(fnU, fnX)
}

// erfc turns z in fnU, not negative, into 1-erf(z) in fnV: the polynomial of the portable kernels.
func (a *assembler) erfc() {
	a.op("VMULPD %s, %s, %s", a.v(fnU), a.v(fnU), a.v(fnV))
	a.negate(fnV, fnV)
	a.exp(fnV)
	a.constantTo(0.5, fnR)
	a.op("VFMADD213PD %s, %s, %s", a.f64(1), a.v(fnU), a.v(fnR))
	a.constantTo(1, fnV)
	a.op("VDIVPD %s, %s, %s", a.v(fnR), a.v(fnV), a.v(fnV))
	a.horner(fnP, fnV, -0.03195434353644973, 0.23713428373375847, -0.752550663413937, 1.2940798173831172, -1.2481344237028051,
		0.6595103194976087, -0.2984544093074751, 0.1673293665803194, 0.1601292576973674, 0.24886535896530138, 0.2819458232676612,
		0.28209961277122847)
	a.op("VMULPD %s, %s, %s", a.v(fnP), a.v(fnV), a.v(fnV))
	a.op("VMULPD %s, %s, %s", a.v(fnE), a.v(fnV), a.v(fnV))
	a.op("VXORPD %s, %s, %s", a.v(fnN), a.v(fnN), a.v(fnN))
	a.choose("PD", greater, a.v(fnU), a.f64(10.4), a.v(fnN), a.v(fnV))
}

// erf is 1-erfc(|x|) but for small x, where a Taylor series keeps what the difference would lose.
func (a *assembler) erf() {
	a.absolute(fnX, fnU)
	a.erfc()
	a.constantTo(1, fnW)
	a.op("VSUBPD %s, %s, %s", a.v(fnV), a.v(fnW), a.v(fnW))
	a.withSign(fnX, fnW)
	a.op("VMULPD %s, %s, %s", a.v(fnX), a.v(fnX), a.v(fnR))
	a.horner(fnP, fnR, -1.0/6894720, 1.0/685440, -1.0/75600, 1.0/9360, -1.0/1320, 1.0/216, -1.0/42, 1.0/10, -1.0/3, 1)
	a.with("VMULPD", 2/math.SqrtPi, fnX)
	a.op("VMULPD %s, %s, %s", a.v(fnP), a.v(fnX), a.v(fnX))
	a.choose("PD", greater, a.v(fnU), a.f64(0.5), a.v(fnW), a.v(fnX))
}

// gelu is x times the distribution function of the normal distribution, which is erfc(|x|/sqrt(2))/2 or one minus that.
func (a *assembler) gelu() {
	a.absolute(fnX, fnU)
	a.with("VMULPD", 1/math.Sqrt2, fnU)
	a.erfc()
	a.with("VMULPD", 0.5, fnV)
	a.constantTo(1, fnW)
	a.op("VSUBPD %s, %s, %s", a.v(fnV), a.v(fnW), a.v(fnW))
	a.choose("PD", greater, a.v(fnX), a.f64(0), a.v(fnW), a.v(fnV))
	a.op("VMULPD %s, %s, %s", a.v(fnV), a.v(fnX), a.v(fnX))
}

// geluTanh is x*sigmoid(2u).
func (a *assembler) geluTanh() {
	const cube, scale = 0.044715, 0.7978845608028654
	a.op("VMULPD %s, %s, %s", a.v(fnX), a.v(fnX), a.v(fnW))
	a.constantTo(cube, fnV)
	a.op("VFMADD213PD %s, %s, %s", a.f64(1), a.v(fnV), a.v(fnW))
	a.op("VMULPD %s, %s, %s", a.v(fnX), a.v(fnW), a.v(fnW))
	a.with("VMULPD", 2*scale, fnW)
	a.sigmoidOf(fnW, func() {})
}

// mish is x*tanh(softplus(x)), with the logarithm and the exponentials resolved.
func (a *assembler) mish() {
	a.exp(fnX)
	a.op("VADDPD %s, %s, %s", a.f64(2), a.v(fnE), a.v(fnU))
	a.op("VMULPD %s, %s, %s", a.v(fnU), a.v(fnE), a.v(fnE))
	a.op("VADDPD %s, %s, %s", a.f64(2), a.v(fnE), a.v(fnU))
	a.op("VDIVPD %s, %s, %s", a.v(fnU), a.v(fnE), a.v(fnU))
	a.op("VMULPD %s, %s, %s", a.v(fnX), a.v(fnU), a.v(fnU))
	a.choose("PD", greater, a.v(fnX), a.f64(20), a.v(fnX), a.v(fnU))
	a.move(fnU, fnX)
}
