package ptx

import "math"

func single(b uint64) float32 { return math.Float32frombits(uint32(b)) }
func double(b uint64) float64 { return math.Float64frombits(b) }

// bits32 returns the bits of x, of every NaN the canonical one.
func bits32(x float32) uint64 {
	if x != x {
		return 0x7fff_ffff
	}
	return uint64(math.Float32bits(x))
}

func bits64(x float64) uint64 {
	if x != x {
		return math.Float64bits(math.NaN())
	}
	return math.Float64bits(x)
}

// Go rounds each of these operations once, to nearest even, as no further
// operation follows that a compiler could fuse with it.

func add32(a, b uint64) uint64  { return bits32(single(a) + single(b)) }
func sub32(a, b uint64) uint64  { return bits32(single(a) - single(b)) }
func mul32(a, b uint64) uint64  { return bits32(single(a) * single(b)) }
func div32(a, b uint64) uint64  { return bits32(single(a) / single(b)) }
func add64(a, b uint64) uint64  { return bits64(double(a) + double(b)) }
func sub64(a, b uint64) uint64  { return bits64(double(a) - double(b)) }
func mul64(a, b uint64) uint64  { return bits64(double(a) * double(b)) }
func div64(a, b uint64) uint64  { return bits64(double(a) / double(b)) }
func sqrt64(a, _ uint64) uint64 { return bits64(math.Sqrt(double(a))) }
func rcp32(a, _ uint64) uint64  { return bits32(1 / single(a)) }
func rcp64(a, _ uint64) uint64  { return bits64(1 / double(a)) }

// sqrt32 rounds twice, which for a square root, a quotient or a sum gives the
// result of rounding once, as 53 bits are more than twice 24.
func sqrt32(a, _ uint64) uint64 { return bits32(float32(math.Sqrt(float64(single(a))))) }

func fma64(a, b, c uint64) uint64 { return bits64(math.FMA(double(a), double(b), double(c))) }

// fma32 computes in f64, where the product of two f32 is exact. Rounding the
// sum to f64 and then to f32 could be wrong in the last place: 1 + 2^-24 +
// 2^-60 would become a tie. So the sum is rounded to odd: if it is inexact, its
// last bit is set. With two bits more than f32 has, and subnormals have fewer,
// the second rounding is then right.
func fma32(a, b, c uint64) uint64 {
	p, z := float64(single(a))*float64(single(b)), float64(single(c))
	s := float64(p) + z
	if s != s || math.IsInf(s, 0) {
		return bits32(float32(s))
	}
	t := s - float64(p) // the error of the sum, which Knuth's six operations give exactly
	err := (float64(p) - (s - t)) + (z - t)
	if b := math.Float64bits(s); err != 0 && b&1 == 0 {
		if (err > 0) == (s > 0) {
			b++
		} else {
			b--
		}
		s = math.Float64frombits(b)
	}
	return bits32(float32(s))
}

func ex2(a, _ uint64) uint64   { return bits32(float32(math.Exp2(float64(single(a))))) }
func lg2(a, _ uint64) uint64   { return bits32(float32(math.Log2(float64(single(a))))) }
func rsqrt(a, _ uint64) uint64 { return bits32(float32(1 / math.Sqrt(float64(single(a))))) }

func min32(a, b uint64) uint64 { return bits32(lower(single(a), single(b))) }
func max32(a, b uint64) uint64 { return bits32(higher(single(a), single(b))) }
func min64(a, b uint64) uint64 { return bits64(lower(double(a), double(b))) }
func max64(a, b uint64) uint64 { return bits64(higher(double(a), double(b))) }

func minNaN32(a, b uint64) uint64 { return bits32(min(single(a), single(b))) }
func maxNaN32(a, b uint64) uint64 { return bits32(max(single(a), single(b))) }

// lower returns the number where one of its operands is NaN. Go's min knows
// that -0 is less than 0.
func lower[F float32 | float64](a, b F) F {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return min(a, b)
}

func higher[F float32 | float64](a, b F) F {
	switch {
	case a != a:
		return b
	case b != b:
		return a
	}
	return max(a, b)
}

// flush is .ftz: a subnormal f32 becomes a zero of its sign.
func flush(b uint64) uint64 {
	if b&0x7f80_0000 == 0 {
		return b & 0x8000_0000
	}
	return b
}

// saturate is .sat: to [0, 1], NaN and -0 to 0.
func (f format) saturate(b uint64) uint64 {
	switch x := f.toFloat(b); {
	case x >= 1:
		return f.fromFloat(1, nearest)
	case x > 0:
		return b
	}
	return 0
}

// floatMods are the modifiers of arithmetic.
type floatMods struct {
	mode     rounding
	ftz, sat bool
}

// floatOp makes an operation with modifiers. plain rounds to nearest; slow is
// called in other modes, with finite operands.
func floatOp(t typ, m floatMods, plain threeFunc, slow func(f format, a, b, c float64, mode rounding) uint64) threeFunc {
	f, op := formats[t], plain
	if m.mode != nearest {
		op = func(a, b, c uint64) uint64 {
			x, y, z := f.toFloat(a), f.toFloat(b), f.toFloat(c)
			if d := x - x + (y - y) + (z - z); d != d {
				return plain(a, b, c)
			}
			return slow(f, x, y, z, m.mode)
		}
	}
	if m.ftz {
		inner := op
		op = func(a, b, c uint64) uint64 { return flush(inner(flush(a), flush(b), flush(c))) }
	}
	if m.sat {
		inner := op
		op = func(a, b, c uint64) uint64 { return f.saturate(inner(a, b, c)) }
	}
	return op
}

func slowAdd(f format, a, b, _ float64, mode rounding) uint64 { return f.fma(a, 1, b, mode) }
func slowSub(f format, a, b, _ float64, mode rounding) uint64 { return f.fma(a, 1, -b, mode) }
func slowFMA(f format, a, b, c float64, mode rounding) uint64 { return f.fma(a, b, c, mode) }

func slowMul(f format, a, b, _ float64, mode rounding) uint64 {
	return f.fma(a, b, math.Copysign(0, math.Copysign(1, a)*math.Copysign(1, b)), mode)
}

func slowDiv(f format, a, b, _ float64, mode rounding) uint64 {
	if a == 0 || b == 0 {
		return f.fromFloat(a/b, mode)
	}
	return f.quotient(a, b, mode)
}

func slowRcp(f format, a, _, _ float64, mode rounding) uint64 { return slowDiv(f, 1, a, 0, mode) }

func slowSqrt(f format, a, _, _ float64, mode rounding) uint64 {
	if a <= 0 {
		return f.fromFloat(math.Sqrt(a), mode)
	}
	return f.root(a, mode)
}

// classes are the tests of testp.
var classes = map[string]func(f format, magnitude uint64) bool{
	"finite":     func(f format, m uint64) bool { return m < f.infinity() },
	"infinite":   func(f format, m uint64) bool { return m == f.infinity() },
	"number":     func(f format, m uint64) bool { return m <= f.infinity() },
	"notanumber": func(f format, m uint64) bool { return m > f.infinity() },
	"normal":     func(f format, m uint64) bool { return m < f.infinity() && m>>f.mantissa != 0 },
	"subnormal":  func(f format, m uint64) bool { return m>>f.mantissa == 0 && m != 0 },
}

// floatTests are the comparisons of setp on floats. An ordered one is false
// where an operand is NaN, an unordered one true.
var floatTests = map[string]func(a, b float64) bool{
	"eq":  func(a, b float64) bool { return a == b },
	"ne":  func(a, b float64) bool { return a < b || a > b },
	"lt":  func(a, b float64) bool { return a < b },
	"le":  func(a, b float64) bool { return a <= b },
	"gt":  func(a, b float64) bool { return a > b },
	"ge":  func(a, b float64) bool { return a >= b },
	"equ": func(a, b float64) bool { return !(a < b || a > b) },
	"neu": func(a, b float64) bool { return a != b },
	"ltu": func(a, b float64) bool { return !(a >= b) },
	"leu": func(a, b float64) bool { return !(a > b) },
	"gtu": func(a, b float64) bool { return !(a <= b) },
	"geu": func(a, b float64) bool { return !(a < b) },
	"num": func(a, b float64) bool { return a == a && b == b },
	"nan": func(a, b float64) bool { return a != a || b != b },
}

func intTests[T integer]() map[string]testFunc {
	return map[string]testFunc{"eq": equal[T], "ne": unequal[T], "lt": less[T], "le": lessOrEqual[T], "gt": greater[T], "ge": greaterOrEqual[T],
		"lo": less[T], "ls": lessOrEqual[T], "hi": greater[T], "hs": greaterOrEqual[T]}
}
