package ptx_test

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
)

var oddFloats = []float64{0, math.Copysign(0, -1), 1, -1, 0.5, 1.5, 2, 3, math.Inf(1), math.Inf(-1), math.NaN(), 0x1p-149, -0x1p-149, 0x1p-126, 0x1.fffffcp-127,
	math.MaxFloat32, -math.MaxFloat32, 0x1p-1074, 0x1p-1022, math.MaxFloat64, 0x1p24, 0x1.000002p0, 0x1p-24, 0x1p-25, 65504, 65520, 0x1p15, 0x1p16, 0x1p31, 0x1p32, 0x1p63, 0x1p64, -0x1p31, -0x1p63, -0x1p64, 127.5, 128, 255.5, 2.5}

func anyFloat32(r *rand.Rand) float32 {
	switch r.IntN(4) {
	case 0:
		return float32(oddFloats[r.IntN(len(oddFloats))])
	case 1:
		return math.Float32frombits(r.Uint32())
	case 2: // few bits, so that sums and products are ties
		return float32(math.Ldexp(float64(r.IntN(1<<12))-1<<11, r.IntN(40)-20))
	}
	return math.Float32frombits(r.Uint32()&0x807f_ffff | uint32(110+r.IntN(30))<<23)
}

func anyFloat64(r *rand.Rand) float64 {
	switch r.IntN(4) {
	case 0:
		return oddFloats[r.IntN(len(oddFloats))]
	case 1:
		return math.Float64frombits(r.Uint64())
	case 2:
		return math.Ldexp(float64(r.IntN(1<<12))-1<<11, r.IntN(100)-50)
	}
	return math.Float64frombits(r.Uint64()&0x800f_ffff_ffff_ffff | uint64(990+r.IntN(60))<<52)
}

// kind is a float type: its values by their bits.
type kind struct {
	name  string
	size  int
	value func(bits uint64) float64
	max   uint64 // the bits of the largest number
}

var kinds = map[string]kind{
	"f32": {"f32", 4, func(b uint64) float64 { return float64(math.Float32frombits(uint32(b))) }, 0x7f7f_ffff},
	"f64": {"f64", 8, math.Float64frombits, 0x7fef_ffff_ffff_ffff},
	"f16": {"f16", 2, func(b uint64) float64 { return half(b, 10, 15) }, 0x7bff},
	"bf16": {"bf16", 2, func(b uint64) float64 {
		return float64(math.Float32frombits(uint32(b) << 16))
	}, 0x7f7f},
}

func half(b uint64, mantissa, bias int) float64 {
	e, m := int(b>>mantissa&31), float64(b&(1<<mantissa-1))
	x := math.Ldexp(m, 1-bias-mantissa)
	switch {
	case e == 31 && m != 0:
		return math.NaN()
	case e == 31:
		x = math.Inf(1)
	case e > 0:
		x = math.Ldexp(m+math.Ldexp(1, mantissa), e-bias-mantissa)
	}
	if b>>15 == 1 {
		return -x
	}
	return x
}

// rounded reports whether got is the number of the type that exact is rounded
// to, by the definition of the mode: no number of the type lies between, or is
// nearer. less compares the result with a number.
func rounded(k kind, got uint64, mode string, compare func(x *big.Rat) int) bool {
	sign := uint64(1) << (8*k.size - 1)
	neg, mag := got&sign != 0, got&^sign
	if mag > k.max+1 {
		return false
	}
	at := func(m uint64) *big.Rat {
		x := new(big.Rat)
		if m > k.max { // where the next number would be
			top := at64(k.value(k.max))
			x.Sub(top, at64(k.value(k.max-1)))
			x.Add(x, top)
		} else {
			x = at64(k.value(m))
		}
		if neg {
			x.Neg(x)
		}
		return x
	}
	c := compare(at(mag)) // of the exact result with what we got
	if neg {
		c = -c
	}
	switch away := mode == "rp" && !neg || mode == "rm" && neg; {
	case mag > k.max && mode == "rn":
		low := at(k.max)
		middle := new(big.Rat).Add(low, at(mag))
		middle.Quo(middle, big.NewRat(2, 1))
		c := compare(middle)
		return neg && c <= 0 || !neg && c >= 0
	case mag > k.max:
		c := compare(at(k.max))
		return away && (neg && c < 0 || !neg && c > 0)
	case c == 0:
		return true
	case mode == "rn":
		return nearestOf(k, mag, c, neg, at, compare)
	case away: // the magnitude is the next above
		return c < 0 && (mag == 0 || outside(compare(at(mag-1)), neg) > 0)
	default:
		return c > 0 && (mag == k.max || outside(compare(at(mag+1)), neg) < 0)
	}
}

func outside(c int, neg bool) int {
	if neg {
		return -c
	}
	return c
}

func nearestOf(_ kind, mag uint64, c int, neg bool, at func(uint64) *big.Rat, compare func(x *big.Rat) int) bool {
	next := mag + 1
	if c < 0 {
		if mag == 0 {
			return false
		}
		next = mag - 1
	}
	middle := new(big.Rat).Add(at(mag), at(next))
	middle.Quo(middle, big.NewRat(2, 1))
	m := outside(compare(middle), neg)
	if c < 0 {
		m = -m
	}
	return m < 0 || m == 0 && mag&1 == 0
}

func at64(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// exactOps compute exactly: they compare the result with a number.
var exactOps = map[string]func(x [3]float64) func(*big.Rat) int{
	"add": func(x [3]float64) func(*big.Rat) int { return new(big.Rat).Add(at64(x[0]), at64(x[1])).Cmp },
	"sub": func(x [3]float64) func(*big.Rat) int { return new(big.Rat).Sub(at64(x[0]), at64(x[1])).Cmp },
	"mul": func(x [3]float64) func(*big.Rat) int { return new(big.Rat).Mul(at64(x[0]), at64(x[1])).Cmp },
	"fma": func(x [3]float64) func(*big.Rat) int {
		r := new(big.Rat).Mul(at64(x[0]), at64(x[1]))
		return r.Add(r, at64(x[2])).Cmp
	},
	"div": func(x [3]float64) func(*big.Rat) int { return new(big.Rat).Quo(at64(x[0]), at64(x[1])).Cmp },
	"rcp": func(x [3]float64) func(*big.Rat) int { return new(big.Rat).Inv(at64(x[0])).Cmp },
	"sqrt": func(x [3]float64) func(*big.Rat) int {
		return func(y *big.Rat) int {
			if y.Sign() < 0 {
				return 1
			}
			return at64(x[0]).Cmp(new(big.Rat).Mul(y, y))
		}
	},
}

// native computes in f64, for results that are not finite or are zero.
func native(op string, x [3]float64) float64 {
	switch op {
	case "add":
		return x[0] + x[1]
	case "sub":
		return x[0] - x[1]
	case "mul":
		return x[0] * x[1]
	case "fma":
		return math.FMA(x[0], x[1], x[2])
	case "div":
		return x[0] / x[1]
	case "rcp":
		return 1 / x[0]
	}
	return math.Sqrt(x[0])
}

// TestFloats checks every result of rounded arithmetic against the definition
// of rounding, on exact rationals.
func TestFloats(t *testing.T) {
	operands := map[string]int{"add": 2, "sub": 2, "mul": 2, "fma": 3, "div": 2, "rcp": 1, "sqrt": 1}
	var rows []row
	for op, n := range operands {
		for _, mode := range []string{"rn", "rz", "rm", "rp"} {
			for _, ty := range []string{"f32", "f64"} {
				rows = append(rows, row{op: op + "." + mode + "." + ty, types: strings.TrimSpace(strings.Repeat(ty+" ", n+1))})
			}
		}
	}
	rows = append(rows, row{op: "add.f32", types: "f32 f32 f32"}, row{op: "sub.f64", types: "f64 f64 f64"}, row{op: "mul.f32", types: "f32 f32 f32"})
	check(t, rows, true, func(t *testing.T, r row, bits [4]uint64, got uint64) bool {
		parts := strings.Split(r.op, ".")
		op, mode, k := parts[0], "rn", kinds[parts[len(parts)-1]]
		if len(parts) == 3 {
			mode = parts[1]
		}
		var x [3]float64
		finite := true
		for i := range operands[op] {
			x[i] = k.value(bits[i])
			finite = finite && !math.IsNaN(x[i]) && !math.IsInf(x[i], 0)
		}
		if n := native(op, x); !finite || math.IsNaN(n) || op == "div" && x[1] == 0 || op == "rcp" && x[0] == 0 {
			v := k.value(got)
			return math.IsNaN(n) && math.IsNaN(v) || n == v && math.Signbit(n) == math.Signbit(v) || op != "rcp" && op != "div" && finite == false && n == v
		}
		compare := exactOps[op](x)
		if zero := new(big.Rat); compare(zero) == 0 {
			want := native(op, x)
			neg := math.Signbit(want)
			if (op == "add" || op == "sub" || op == "fma") && !zerosOfOneSign(op, x) {
				neg = mode == "rm"
			}
			return k.value(got) == 0 && math.Signbit(k.value(got)) == neg
		}
		return rounded(k, got, mode, compare)
	})
}

func zerosOfOneSign(op string, x [3]float64) bool {
	a, b := x[0], x[1]
	switch op {
	case "sub":
		b = -b
	case "fma":
		if x[0] != 0 && x[1] != 0 {
			return false
		}
		a, b = x[0]*x[1], x[2]
	}
	return a == 0 && b == 0 && math.Signbit(a) == math.Signbit(b)
}

// TestFMARoundsOnce has operands whose sum in f64 is a tie of f32.
func TestFMARoundsOnce(t *testing.T) {
	k := kernel(t, text("fma", ".param .f32 a, .param .f32 b, .param .f32 c", `
	ld.param.f32 %f0, [a];
	ld.param.f32 %f1, [b];
	ld.param.f32 %f2, [c];
	fma.rn.f32 %f3, %f0, %f1, %f2;
	st.global.f32 [%out], %f3;`), "k")
	for _, c := range []struct{ a, b, c, want float32 }{
		{0x1p-30, 0x1p-30, 1 + 0x1p-23, 1 + 0x1p-23},
		{1 + 0x1p-12, 1 + 0x1p-12, 0x1p-60, 1 + 0x1p-11 + 0x1p-23}, // 1 + 2^-11 + 2^-24 + 2^-60 is above a tie
		{1 + 0x1p-12, 1 + 0x1p-12, -0x1p-60, 1 + 0x1p-11},
		{1 + 0x1p-12, 1 + 0x1p-12, 0, 1 + 0x1p-11},
		{0x1p-75, 0x1p-75, 0x1p-149, 0x1p-149 * 2}, // 1.5 units of a subnormal: a tie
	} {
		h := newHeap(4)
		b := func(x float32) []byte { return arg(uint64(math.Float32bits(x)), 4) }
		if _, err := k.Run(launch(h, 1, 1, 0, arg(h.base, 8), b(c.a), b(c.b), b(c.c))); err != nil {
			t.Fatal(err)
		}
		if got := math.Float32frombits(h.u32(0)); got != c.want {
			t.Errorf("%g * %g + %g: got %g, want %g", c.a, c.b, c.c, got, c.want)
		}
	}
}

func f32of(f func(a, b float32) float32) func(x [4]uint64) uint64 {
	return func(x [4]uint64) uint64 {
		r := f(math.Float32frombits(uint32(x[0])), math.Float32frombits(uint32(x[1])))
		if r != r {
			return 0x7fff_ffff
		}
		return uint64(math.Float32bits(r))
	}
}

func flushed(x float32) float32 {
	if math.Abs(float64(x)) < 0x1p-126 {
		return float32(math.Copysign(0, float64(x)))
	}
	return x
}

func clamped(x float32) float32 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

func isNaN(x float32) bool { return x != x }

// TestFloatForms checks what rounds nothing, and .ftz and .sat.
func TestFloatForms(t *testing.T) {
	rows := []row{
		{"add.ftz.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return flushed(flushed(a) + flushed(b)) })},
		{"mul.rn.ftz.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return flushed(flushed(a) * flushed(b)) })},
		{"add.sat.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return clamped(a + b) })},
		{"mul.ftz.sat.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return clamped(flushed(flushed(a) * flushed(b))) })},
		{"min.f32", "f32 f32 f32", f32of(func(a, b float32) float32 {
			switch {
			case isNaN(a):
				return b
			case isNaN(b):
				return a
			}
			return min(a, b)
		})},
		{"max.f32", "f32 f32 f32", f32of(func(a, b float32) float32 {
			switch {
			case isNaN(a):
				return b
			case isNaN(b):
				return a
			}
			return max(a, b)
		})},
		{"min.NaN.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return min(a, b) })},
		{"max.NaN.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return max(a, b) })},
		{"abs.f32", "f32 f32", func(x [4]uint64) uint64 { return x[0] &^ (1 << 31) }},
		{"neg.f32", "f32 f32", func(x [4]uint64) uint64 { return x[0] ^ 1<<31 }},
		{"abs.f64", "f64 f64", func(x [4]uint64) uint64 { return x[0] &^ (1 << 63) }},
		{"neg.f64", "f64 f64", func(x [4]uint64) uint64 { return x[0] ^ 1<<63 }},
		{"copysign.f32", "f32 f32 f32", func(x [4]uint64) uint64 { return x[0]&(1<<31) | x[1]&^(1<<31) }},
		{"rcp.approx.ftz.f32", "f32 f32", f32of(func(a, _ float32) float32 { return flushed(1 / flushed(a)) })},
		{"sqrt.approx.f32", "f32 f32", f32of(func(a, _ float32) float32 { return float32(math.Sqrt(float64(a))) })},
		{"rsqrt.approx.f32", "f32 f32", f32of(func(a, _ float32) float32 { return float32(1 / math.Sqrt(float64(a))) })},
		{"ex2.approx.f32", "f32 f32", f32of(func(a, _ float32) float32 { return float32(math.Exp2(float64(a))) })},
		{"lg2.approx.f32", "f32 f32", f32of(func(a, _ float32) float32 { return float32(math.Log2(float64(a))) })},
		{"div.full.f32", "f32 f32 f32", f32of(func(a, b float32) float32 { return a / b })},
		{"selp.f64", "f64 f64 f64 p", func(x [4]uint64) uint64 { return x[1-x[2]] }},
		{"mov.f32", "f32 f32", func(x [4]uint64) uint64 { return x[0] }},
	}
	tests := map[string]func(a, b float64) bool{"eq": func(a, b float64) bool { return a == b }, "lt": func(a, b float64) bool { return a < b },
		"le": func(a, b float64) bool { return a <= b }, "gt": func(a, b float64) bool { return a > b }, "ge": func(a, b float64) bool { return a >= b }}
	for _, ty := range []string{"f32", "f64"} {
		k := kinds[ty]
		add := func(name string, f func(a, b float64) bool) {
			rows = append(rows, row{"setp." + name + "." + ty, "p " + ty + " " + ty, func(x [4]uint64) uint64 { return b2i(f(k.value(x[0]), k.value(x[1]))) }})
		}
		for name, f := range tests {
			add(name, f)
			add(name+"u", func(a, b float64) bool { return f(a, b) || math.IsNaN(a) || math.IsNaN(b) })
		}
		add("ne", func(a, b float64) bool { return a != b && !math.IsNaN(a) && !math.IsNaN(b) })
		add("neu", func(a, b float64) bool { return a != b })
		add("num", func(a, b float64) bool { return !math.IsNaN(a) && !math.IsNaN(b) })
		add("nan", func(a, b float64) bool { return math.IsNaN(a) || math.IsNaN(b) })
		smallest := map[string]float64{"f32": 0x1p-126, "f64": 0x1p-1022}[ty]
		for name, f := range map[string]func(x float64) bool{"finite": func(x float64) bool { return x-x == 0 }, "infinite": func(x float64) bool { return math.IsInf(x, 0) },
			"number": func(x float64) bool { return x == x }, "notanumber": math.IsNaN,
			"normal":    func(x float64) bool { return x-x == 0 && math.Abs(x) >= smallest },
			"subnormal": func(x float64) bool { return x != 0 && math.Abs(x) < smallest }} {
			rows = append(rows, row{"testp." + name + "." + ty, "p " + ty, func(x [4]uint64) uint64 { return b2i(f(k.value(x[0]))) }})
		}
	}
	check(t, rows, true, same)
}
