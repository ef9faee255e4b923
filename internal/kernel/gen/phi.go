package main

import (
	"math"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// timesPhi is max(x, 0) - |x|*e with e = Phi(-|x|). With instructions that look
// numbers up e is one of 32 polynomials, around the multiples of 1/5. Without
// it is 2^G(|x|) with a polynomial G: beyond the last number that is not 0 e is
// nothing beside x, and the polynomial goes on falling up to the bound, where
// 2^G is still a normal number.
func (b *body) timesPhi(v elementwise.Value) int {
	if b.masks {
		return b.timesPhiPieces(v)
	}
	const bound = 10
	u, p := b.take(), b.take()
	b.magnitude(b.vector[v], u)
	b.atMost("VMINPS", bound, u, u)
	b.horner(p, u, geluCoefficients...)
	n, e := b.take(), b.take()
	b.exp2(p, n, e)
	b.drop(p, n)
	return b.positiveLess(v, u, e)
}

// positiveLess is max(x, 0) - u*e, and drops both.
func (b *body) positiveLess(v elementwise.Value, u, e int) int {
	x := b.vector[v]
	to := x
	if !b.dies(v) {
		to = b.take()
	}
	b.atMost("VMAXPS", 0, x, to)
	b.op("VFNMADD231PS %s, %s, %s", b.v(e), b.v(u), b.v(to))
	b.drop(u, e)
	return to
}

func (b *body) timesPhiPieces(v elementwise.Value) int {
	const (
		smaller   = 0x0a     // of the magnitudes, and the number where one is NaN
		rest      = 0x00     // x less the nearest integer
		roundBias = 0x1.8p23 // adding it rounds to an integer, and leaves that in the last bits
	)
	u, r, n, e, p := b.take(), b.take(), b.take(), b.take(), b.take()
	b.op("VRANGEPS $%d, %s, %s, %s", smaller, b.f32((tailPieces-1.0)/tailScale), b.v(b.vector[v]), b.v(u))
	b.op("VMULPS %s, %s, %s", b.f32(tailScale), b.v(u), b.v(r))
	b.op("VADDPS %s, %s, %s", b.f32(roundBias), b.v(r), b.v(n))
	b.op("VREDUCEPS $%d, %s, %s", rest, b.v(r), b.v(r))
	b.lookup(tailTables[0], n, e)
	for _, t := range tailTables[1:] {
		b.lookup(t, n, p)
		b.op("VFMADD213PS %s, %s, %s", b.v(p), b.v(r), b.v(e))
	}
	b.drop(r, n, p)
	return b.positiveLess(v, u, e)
}

const (
	tailPieces = 32
	tailScale  = 5
	tailDegree = 5
)

// tailTables are the coefficients of Phi(-u) around u = i/tailScale for each i,
// as polynomials in the distance times tailScale, which is 1/2 at most: first
// those of the highest power. They meet Phi at the zeros of Chebyshev's
// polynomial, and in relative terms are off by less than the rounding of u*u/2.
// The last piece is 0 from its middle on, where Phi is almost 0.
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

// exp2 sets to to 2^x, for x and results within the exponents of normal
// numbers. It spoils x and n. The number that rounds to an integer leaves that
// integer in the last bits, from where it is shifted into the exponent.
func (a *assembler) exp2(x, n, to int) {
	const roundBias = 0x1.8p23
	a.op("VADDPS %s, %s, %s", a.f32(roundBias), a.v(x), a.v(n))
	a.op("VSUBPS %s, %s, %s", a.f32(roundBias), a.v(n), a.v(to))
	a.ps("VSUBPS", to, x, x)
	a.op("VPSLLD $23, %s, %s", a.v(n), a.v(n))
	a.horner(to, x, 0.001326472731307149, 0.009671512991189957, 0.05550733581185341, 0.24022242426872253, 0.6931470036506653, 1)
	a.op("VPADDD %s, %s, %s", a.v(n), a.v(to), a.v(to))
}
