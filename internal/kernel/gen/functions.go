package main

import "math"

// The transcendental functions in float32. Polynomials are minimax fits with coefficients rounded to float32; what they leave over is below
// half a unit in the last place, and the errors of whole functions, measured over all their range, are held by kerneltest. Numbers above
// the largest, below the smallest and NaN come out of the arithmetic, with clamps that keep NaN where they are needed.

// Vectors of a function: the argument, which becomes the result, and what functions are built of.
const (
	fnX = iota
	fnE // the exponential
	fnR
	fnN
	fnP
	fnU
	fnV
	fnW
	fnS // scalars
	fnT
	fnY // of a loop with more operands
	fnZ
)

// rowFunction is a function of one operand over a row. With stream set the result is written past the caches.
func (a *assembler) rowFunction(name, doc string, in []param, sides int, stream bool, body func()) {
	in = append([]param{argN, argDst, argX}, in...)
	a.function(name, doc, in, nil)
	a.op("MOVQ %s, CX", a.arg(argN))
	a.op("MOVQ %s, DI", a.arg(argDst))
	a.op("MOVQ %s, SI", a.arg(argX))
	for i, p := range in[3:] {
		a.op("VBROADCASTSS %s, %s", a.arg(p), a.v(fnS+i))
	}
	a.pin(body)
	a.sides = sides
	ahead := a.twoPages()
	turn := 0
	a.rowLoop([]string{"DI", "SI"}, 2, func(at func(string) string, tail bool) {
		a.fetchAhead(at("SI"), ahead, turn, tail)
		turn++
		a.load(at("SI"), fnX, false, tail)
		body()
		a.storeTo(stream, fnX, at("DI"), tail)
	})
	a.ret()
}

func (a *assembler) functionKernels() {
	for _, f := range []struct {
		name, doc string
		in        []param
		sides     int
		body      func()
	}{
		{"exp", "is exp(x[i]).", nil, 2, func() { a.clampExp(fnX, fnU); a.exp(fnU); a.move(fnE, fnX) }},
		{"log", "is log(x[i]).", nil, 1, a.log},
		{"sigmoid", "is 1/(1+exp(-x[i])).", nil, 1, func() { a.sigmoidParts(fnX); a.ps("VDIVPS", fnU, fnE, fnX) }},
		{"silu", "is x[i]/(1+exp(-x[i])).", nil, 1, func() { a.sigmoidParts(fnX); a.timesSigmoid() }},
		{"swish", "is x[i]/(1+exp(-s*x[i])).", []param{argS}, 1, func() { a.ps("VMULPS", fnS, fnX, fnW); a.sigmoidParts(fnW); a.timesSigmoid() }},
		{"geluTanh", "is x[i]/2 * (1+tanh(sqrt(2/pi)*(x[i]+0.044715*x[i]^3))).", nil, 1, a.geluTanh},
		{"tanh", "is tanh(x[i]).", nil, 1, a.tanh},
		{"erf", "is erf(x[i]).", nil, 1, a.erf},
		{"gelu", "is x[i]/2 * (1+erf(x[i]/sqrt(2))).", nil, 2, a.gelu},
		{"softplus", "is log(1+exp(x[i])).", nil, 1, a.softplus},
		{"mish", "is x[i] * tanh(log(1+exp(x[i]))).", nil, 1, a.mish},
		{"elu", "is s*(exp(x[i])-1) for negative x[i], else t*x[i].", []param{argS, argT}, 1, a.elu},
	} {
		a.rowFunction(f.name, f.doc, f.in, f.sides, false, f.body)
		if f.in == nil {
			a.rowFunction(f.name+"Stream", f.doc, f.in, f.sides, true, f.body)
		}
	}
}

func (a *assembler) move(from, to int) { a.op("VMOVAPS %s, %s", a.v(from), a.v(to)) }

func (a *assembler) constantTo(c float32, to int) { a.op("VMOVUPS %s, %s", a.f32(c), a.v(to)) }

// ps is to = y op x: the order of operands of the instruction as the assembler writes it.
func (a *assembler) ps(op string, x, y, to int) {
	a.op("%s %s, %s, %s", op, a.v(x), a.v(y), a.v(to))
}

// with is x = x op c, for a constant c.
func (a *assembler) with(op string, c float32, x int) {
	a.op("%s %s, %s, %s", op, a.f32(c), a.v(x), a.v(x))
}

// bound is to = min(x, c) or max(x, c), and NaN where x is: the instructions give their last source, the first as written here, then.
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

// The logarithm of 2 in two parts: the product of the first and an exponent is exact.
const (
	ln2High = 0.693145751953125
	ln2Low  = 1.42860682030941723212e-6
)

// expParts writes exp(x) as 2^n * (1+m), with n in fnN, r in fnR and the polynomial (m-r)/r^2 in fnP.
func (a *assembler) expParts(x int) {
	const roundBias = 0x1.8p23 // adding and subtracting it rounds to an integer
	a.constantTo(roundBias, fnN)
	a.op("VFMADD231PS %s, %s, %s", a.f32(1/math.Ln2), a.v(x), a.v(fnN))
	a.with("VSUBPS", roundBias, fnN)
	a.move(x, fnR)
	a.op("VFNMADD231PS %s, %s, %s", a.f32(ln2High), a.v(fnN), a.v(fnR))
	a.op("VFNMADD231PS %s, %s, %s", a.f32(ln2Low), a.v(fnN), a.v(fnR))
	a.horner(fnP, fnR, 0.0013814539415761828, 0.008368744514882565, 0.04166838899254799, 0.1666652113199234, 0.4999999403953552)
}

// exp sets fnE to exp(x), within 1 unit in the last place. It needs x in [expLeast, expMost] or NaN, and keeps fnX and what is beyond fnP.
func (a *assembler) exp(x int) {
	a.expParts(x)
	for range 2 {
		a.op("VFMADD213PS %s, %s, %s", a.f32(1), a.v(fnR), a.v(fnP))
	}
	if a.masks {
		a.op("VSCALEFPS %s, %s, %s", a.v(fnN), a.v(fnP), a.v(fnE))
		return
	}
	// 2^n may have no float32 where the result has one, so it is multiplied in halves.
	a.op("VCVTPS2DQ %s, %s", a.v(fnN), a.v(fnN))
	a.op("VPSRAD $1, %s, %s", a.v(fnN), a.v(fnE))
	a.op("VPSUBD %s, %s, %s", a.v(fnE), a.v(fnN), a.v(fnN))
	for _, n := range []int{fnE, fnN} {
		a.power(n)
		a.ps("VMULPS", n, fnP, fnP)
	}
	a.move(fnP, fnE)
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

func (a *assembler) clampExp(x, to int) {
	a.bound("VMINPS", expMost, x, to)
	a.bound("VMAXPS", expLeast, to, to)
}

// sign and magnitude of numbers.
func (a *assembler) negated(from, to int) {
	a.op("VXORPS %s, %s, %s", a.f32(float32(math.Copysign(0, -1))), a.v(from), a.v(to))
}

func (a *assembler) magnitude(from, to int) {
	a.op("VANDPS %s, %s, %s", a.constant((1<<31-1)<<32|(1<<31-1)), a.v(from), a.v(to))
}

// minusMagnitude is -|from|.
func (a *assembler) minusMagnitude(from, to int) {
	a.op("VORPS %s, %s, %s", a.f32(float32(math.Copysign(0, -1))), a.v(from), a.v(to))
}

// withSign gives to, which is not negative, the sign of from. It spoils fnN.
func (a *assembler) withSign(from, to int) {
	a.op("VANDPS %s, %s, %s", a.f32(float32(math.Copysign(0, -1))), a.v(from), a.v(fnN))
	a.ps("VORPS", fnN, to, to)
}

// sigmoidParts writes sigmoid(u) as fnE/fnU: e/(1+e) or 1/(1+e) with e = exp(-|u|), so that neither overflows nor cancels.
func (a *assembler) sigmoidParts(u int) {
	a.minusMagnitude(u, fnV)
	a.bound("VMAXPS", expLeast, fnV, fnV)
	a.exp(fnV)
	a.op("VADDPS %s, %s, %s", a.f32(1), a.v(fnE), a.v(fnV))
	a.constantTo(1, fnR)
	a.op("VXORPS %s, %s, %s", a.v(fnN), a.v(fnN), a.v(fnN))
	a.choose("PS", greater, a.v(u), a.v(fnN), a.v(fnR), a.v(fnE))
	a.move(fnV, fnU)
}

// timesSigmoid multiplies fnX by what sigmoidParts left.
func (a *assembler) timesSigmoid() {
	a.ps("VDIVPS", fnU, fnE, fnE)
	a.ps("VMULPS", fnE, fnX, fnX)
}

// geluTanh is x*sigmoid(2u).
func (a *assembler) geluTanh() {
	const cube, scale = 0.044715, 0.7978845608028654
	a.ps("VMULPS", fnX, fnX, fnW)
	a.constantTo(2*scale*cube, fnV)
	a.op("VFMADD213PS %s, %s, %s", a.f32(2*scale), a.v(fnV), a.v(fnW))
	a.ps("VMULPS", fnX, fnW, fnW)
	a.sigmoidParts(fnW)
	a.timesSigmoid()
}

// tanh is 1-2/(exp(2|x|)+1), and an odd polynomial for small x, where the difference would cancel.
func (a *assembler) tanh() {
	a.magnitude(fnX, fnU)
	a.ps("VADDPS", fnU, fnU, fnV)
	a.bound("VMINPS", 20, fnV, fnV)
	a.exp(fnV)
	a.with("VADDPS", 1, fnE)
	a.constantTo(2, fnV)
	a.ps("VDIVPS", fnE, fnV, fnV)
	a.constantTo(1, fnW)
	a.ps("VSUBPS", fnV, fnW, fnW)
	a.withSign(fnX, fnW)
	a.ps("VMULPS", fnX, fnX, fnR)
	a.horner(fnP, fnR, 0.017256995663046837, -0.053052954375743866, 0.1332598775625229, -0.33333149552345276)
	a.ps("VMULPS", fnR, fnP, fnP)
	a.op("VFMADD213PS %s, %s, %s", a.v(fnX), a.v(fnX), a.v(fnP))
	a.choose("PS", less, a.v(fnU), a.f32(0.5), a.v(fnP), a.v(fnW))
	a.move(fnW, fnX)
}

// erf is 1-exp(-R(|x|)) with a polynomial R, and an odd polynomial for small x.
func (a *assembler) erf() {
	a.magnitude(fnX, fnU)
	a.bound("VMINPS", 3.95, fnU, fnV)
	a.horner(fnW, fnV, 4.00985936721554e-06, -0.0002606612688396126, 0.0034368266351521015, -0.023447558283805847, 0.1060602068901062, 0.6350695490837097,
		1.1287896633148193, -4.648135291063227e-05)
	a.negated(fnW, fnW)
	a.exp(fnW)
	a.constantTo(1, fnW)
	a.ps("VSUBPS", fnE, fnW, fnW)
	a.withSign(fnX, fnW)
	a.ps("VMULPS", fnX, fnX, fnR)
	a.horner(fnP, fnR, 0.0047179171815514565, -0.026757264509797096, 0.11282826960086823, -0.37612608075141907, 0.12837916612625122)
	a.op("VFMADD213PS %s, %s, %s", a.v(fnX), a.v(fnX), a.v(fnP))
	a.choose("PS", less, a.v(fnU), a.f32(0.5), a.v(fnP), a.v(fnW))
	a.move(fnW, fnX)
}

// gelu is max(x, 0) - |x|*e with e = Phi(-|x|). With instructions that look numbers up e is one of 32 polynomials, around the multiples of
// 1/5. Without it is 2^G(|x|) with a polynomial G: beyond gelu's last number e is nothing beside x, and the polynomial goes on falling up to
// the bound, where 2^G is still a normal number.
func (a *assembler) gelu() {
	if a.masks {
		a.geluPieces()
		return
	}
	const bound = 10
	a.magnitude(fnX, fnU)
	a.bound("VMINPS", bound, fnU, fnU)
	a.horner(fnP, fnU, geluCoefficients...)
	a.exp2(fnP, fnE)
	a.op("VXORPS %s, %s, %s", a.v(fnR), a.v(fnR), a.v(fnR))
	a.ps("VMAXPS", fnX, fnR, fnX)
	a.op("VFNMADD231PS %s, %s, %s", a.v(fnE), a.v(fnU), a.v(fnX))
}

func (a *assembler) geluPieces() {
	const (
		smaller   = 0x0a     // of the magnitudes, and the number where one is NaN
		rest      = 0x00     // what is left of the nearest integer
		roundBias = 0x1.8p23 // adding it rounds to an integer, and leaves that in the last bits
	)
	a.op("VRANGEPS $%d, %s, %s, %s", smaller, a.f32((tailPieces-1.0)/tailScale), a.v(fnX), a.v(fnU))
	a.op("VMULPS %s, %s, %s", a.f32(tailScale), a.v(fnU), a.v(fnR))
	a.op("VADDPS %s, %s, %s", a.f32(roundBias), a.v(fnR), a.v(fnN))
	a.op("VREDUCEPS $%d, %s, %s", rest, a.v(fnR), a.v(fnR))
	a.lookup(tailTables[0], fnN, fnE)
	for _, t := range tailTables[1:] {
		a.lookup(t, fnN, fnP)
		a.op("VFMADD213PS %s, %s, %s", a.v(fnP), a.v(fnR), a.v(fnE))
	}
	a.op("VXORPS %s, %s, %s", a.v(fnP), a.v(fnP), a.v(fnP))
	a.ps("VMAXPS", fnX, fnP, fnX)
	a.op("VFNMADD231PS %s, %s, %s", a.v(fnE), a.v(fnU), a.v(fnX))
}

const (
	tailPieces = 32
	tailScale  = 5
	tailDegree = 5
)

// tailTables are the coefficients of Phi(-u) around u = i/tailScale for each i, as polynomials in the distance times tailScale, which is 1/2
// at most: first those of the highest power. They meet Phi at the zeros of Chebyshev's polynomial, and in relative terms are off by less
// than the rounding of u*u/2. The last piece ends what is as good as 0 at its middle, with 0.
var tailTables = func() (tables [tailDegree + 1]lookup) {
	var zeros, newton, powers [tailDegree + 1]float64
	for k := range zeros {
		zeros[k] = math.Cos(math.Pi*(float64(k)+0.5)/(tailDegree+1)) / 2
	}
	for i := range tailPieces {
		for k, z := range zeros {
			newton[k] = math.Erfc((float64(i)+z)/tailScale/math.Sqrt2) / 2
		}
		for d := 1; d <= tailDegree; d++ {
			for k := tailDegree; k >= d; k-- {
				newton[k] = (newton[k] - newton[k-1]) / (zeros[k] - zeros[k-d])
			}
		}
		clear(powers[:])
		for k := tailDegree; k >= 0; k-- { // powers = powers*(t-zeros[k]) + newton[k]
			for d := tailDegree; d > 0; d-- {
				powers[d] = powers[d-1] - zeros[k]*powers[d]
			}
			powers[0] = newton[k] - zeros[k]*powers[0]
		}
		if i == tailPieces-1 {
			start := math.Erfc((float64(i)-0.5)/tailScale/math.Sqrt2) / 2
			powers = [tailDegree + 1]float64{1: -2 * start}
		}
		for d, c := range powers {
			tables[tailDegree-d][i] = float32(c)
		}
	}
	return tables
}()

var geluCoefficients = []float32{-1.824047046738997e-08, 5.844801762577845e-07, -7.99662393546896e-06, 5.900062751607038e-05,
	-0.00021918557467870414, -0.00012573544518090785, 0.00709993951022625, -0.0525430403649807, -0.4591888189315796, -1.1511075496673584, -1}

// exp2 sets to to 2^x, for x and results within the exponents of normal numbers. It spoils x, fnR and fnN. The number that rounds to an
// integer leaves that integer in the last bits, from where it is shifted into the exponent.
func (a *assembler) exp2(x, to int) {
	const roundBias = 0x1.8p23
	a.op("VADDPS %s, %s, %s", a.f32(roundBias), a.v(x), a.v(fnN))
	a.op("VSUBPS %s, %s, %s", a.f32(roundBias), a.v(fnN), a.v(fnR))
	a.ps("VSUBPS", fnR, x, fnR)
	a.op("VPSLLD $23, %s, %s", a.v(fnN), a.v(fnN))
	a.horner(to, fnR, 0.001326472731307149, 0.009671512991189957, 0.05550733581185341, 0.24022242426872253, 0.6931470036506653, 1)
	a.op("VPADDD %s, %s, %s", a.v(fnN), a.v(to), a.v(to))
}

// softplus is max(x, 0) + log(1+e) with e = exp(-|x|), as a series in e/(2+e).
func (a *assembler) softplus() {
	a.minusMagnitude(fnX, fnV)
	a.bound("VMAXPS", expLeast, fnV, fnV)
	a.exp(fnV)
	a.op("VADDPS %s, %s, %s", a.f32(2), a.v(fnE), a.v(fnV))
	a.ps("VDIVPS", fnV, fnE, fnE)
	a.ps("VMULPS", fnE, fnE, fnV)
	a.horner(fnP, fnV, 0.28024452924728394, 0.27999141812324524, 0.4002169966697693, 0.6666641235351562, 2)
	a.bound("VMAXPS", 0, fnX, fnX)
	a.op("VFMADD231PS %s, %s, %s", a.v(fnE), a.v(fnP), a.v(fnX))
}

// mish is x*e(e+2)/(e(e+2)+2) with e = exp(x), and x where the quotient is 1.
func (a *assembler) mish() {
	a.bound("VMINPS", 20, fnX, fnU)
	a.bound("VMAXPS", expLeast, fnU, fnU)
	a.exp(fnU)
	a.op("VADDPS %s, %s, %s", a.f32(2), a.v(fnE), a.v(fnU))
	a.ps("VMULPS", fnU, fnE, fnE)
	a.op("VADDPS %s, %s, %s", a.f32(2), a.v(fnE), a.v(fnU))
	a.timesSigmoid()
}

// elu takes exp(x)-1 as 2^n*m + (2^n-1), which does not cancel near 0, where the scale is 1.
func (a *assembler) elu() {
	a.bound("VMAXPS", -30, fnX, fnU)
	a.bound("VMINPS", 0, fnU, fnU)
	a.expParts(fnU)
	a.ps("VMULPS", fnR, fnP, fnP)
	a.op("VFMADD213PS %s, %s, %s", a.v(fnR), a.v(fnR), a.v(fnP))
	if a.masks {
		a.constantTo(1, fnE)
		a.op("VSCALEFPS %s, %s, %s", a.v(fnN), a.v(fnE), a.v(fnE))
	} else {
		a.op("VCVTPS2DQ %s, %s", a.v(fnN), a.v(fnE))
		a.power(fnE)
	}
	a.op("VSUBPS %s, %s, %s", a.f32(1), a.v(fnE), a.v(fnV))
	a.op("VFMADD213PS %s, %s, %s", a.v(fnV), a.v(fnE), a.v(fnP))
	a.ps("VMULPS", fnS, fnP, fnP)
	a.op("VXORPS %s, %s, %s", a.v(fnV), a.v(fnV), a.v(fnV))
	a.ps("VMULPS", fnT, fnX, fnW)
	a.choose("PS", less, a.v(fnX), a.v(fnV), a.v(fnP), a.v(fnW))
	a.move(fnW, fnX)
}

// log takes the exponent off, so that a number f+1 in [sqrt(1/2), sqrt(2)) is left.
func (a *assembler) log() {
	const rootHalf = 0x3f3504f3 // of the bits of sqrt(1/2)
	repeat := func(w uint64) string { return a.constant(w<<32 | w) }
	n, x, u := a.v(fnN), a.v(fnX), a.v(fnU)
	// Numbers below the normal ones are scaled into them.
	a.constantTo(0, fnV)
	a.constantTo(1<<23, fnR)
	a.ps("VMULPS", fnR, fnX, fnR)
	a.constantTo(-23, fnW)
	a.move(fnX, fnU)
	a.choose("PS", less, x, a.f32(0x1p-126), a.v(fnR), u)
	a.choose("PS", less, x, a.f32(0x1p-126), a.v(fnW), a.v(fnV))
	a.op("VPSUBD %s, %s, %s", repeat(rootHalf), u, n)
	a.op("VPSRAD $23, %s, %s", n, n)
	a.op("VPSLLD $23, %s, %s", n, a.v(fnR))
	a.op("VPSUBD %s, %s, %s", a.v(fnR), u, u)
	a.op("VCVTDQ2PS %s, %s", n, n)
	a.ps("VADDPS", fnV, fnN, fnN)
	a.with("VSUBPS", 1, fnU)
	a.horner(fnP, fnU, 0.08917878568172455, -0.14350196719169617, 0.1487695574760437, -0.16565634310245514, 0.1996539831161499,
		-0.2500174641609192, 0.33333858847618103)
	a.ps("VMULPS", fnU, fnU, fnR)
	a.ps("VMULPS", fnU, fnP, fnP)
	a.ps("VMULPS", fnR, fnP, fnP)
	a.op("VFMADD231PS %s, %s, %s", a.f32(ln2Low), n, a.v(fnP))
	a.op("VFNMADD231PS %s, %s, %s", a.f32(0.5), a.v(fnR), a.v(fnP))
	a.ps("VADDPS", fnP, fnU, fnU)
	a.op("VFMADD231PS %s, %s, %s", a.f32(ln2High), n, u)
	// Infinity and NaN stay; 0 gives -Inf, negative numbers NaN.
	a.constantTo(float32(math.Inf(1)), fnR)
	a.choose("PS", notLess, x, a.v(fnR), x, u)
	a.negated(fnR, fnR)
	a.op("VXORPS %s, %s, %s", n, n, n)
	a.choose("PS", equal, x, n, a.v(fnR), u)
	a.constantTo(float32(math.NaN()), fnR)
	a.choose("PS", less, x, n, a.v(fnR), u)
	a.move(fnU, fnX)
}
