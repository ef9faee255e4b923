package dtype

import (
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// format describes a float format for the test: the widths, and each special
// pattern. The reference below computes with powers of two and a search among
// all values, and shares nothing with the code under test.
type format struct {
	name     string
	exp, man int
	bias     int
	inf, nan []int // patterns without sign that are special
	fnuz     bool  // the pattern of negative zero is NaN
	max      float64
	smallest float64

	decode func(code int) float32
	encode func(f float32, saturate bool) int
	quiet  func(sign int) int // the pattern that NaN becomes

	values  []float64 // of every magnitude, as if none were special, and of one more
	largest int       // magnitude of the largest number
}

func init() {
	for i := range formats {
		f := &formats[i]
		for mag := range f.signBit() + 1 {
			f.values = append(f.values, f.value(mag))
		}
		for f.largest = f.signBit() - 1; contains(f.inf, f.largest) || contains(f.nan, f.largest); f.largest-- {
		}
	}
}

func span(from, to int) []int {
	var s []int
	for i := from; i <= to; i++ {
		s = append(s, i)
	}
	return s
}

func signed(width, pattern int) func(int) int {
	return func(s int) int { return s<<(width-1) | pattern }
}
func always(pattern int) func(int) int { return func(int) int { return pattern } }

var formats = []format{
	{name: "f16", exp: 5, man: 10, bias: 15, inf: []int{0x7c00}, nan: span(0x7c01, 0x7fff), max: 65504, smallest: 0x1p-24,
		decode: func(c int) float32 { return Float16(c).Float32() },
		encode: func(f float32, _ bool) int { return int(Float16FromFloat32(f)) }},
	{name: "bf16", exp: 8, man: 7, bias: 127, inf: []int{0x7f80}, nan: span(0x7f81, 0x7fff), max: 0x1.fep127, smallest: 0x1p-133,
		decode: func(c int) float32 { return BFloat16(c).Float32() },
		encode: func(f float32, _ bool) int { return int(BFloat16FromFloat32(f)) }},
	{name: "f8e4m3fn", exp: 4, man: 3, bias: 7, nan: []int{0x7f}, max: 448, smallest: 0x1p-9, quiet: signed(8, 0x7f),
		decode: func(c int) float32 { return Float8E4M3FN(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E4M3FNFromFloat32(f, s)) }},
	{name: "f8e4m3fnuz", exp: 4, man: 3, bias: 8, fnuz: true, max: 240, smallest: 0x1p-10, quiet: always(0x80),
		decode: func(c int) float32 { return Float8E4M3FNUZ(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E4M3FNUZFromFloat32(f, s)) }},
	{name: "f8e5m2", exp: 5, man: 2, bias: 15, inf: []int{0x7c}, nan: []int{0x7d, 0x7e, 0x7f}, max: 57344, smallest: 0x1p-16, quiet: signed(8, 0x7e),
		decode: func(c int) float32 { return Float8E5M2(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E5M2FromFloat32(f, s)) }},
	{name: "f8e5m2fnuz", exp: 5, man: 2, bias: 16, fnuz: true, max: 57344, smallest: 0x1p-17, quiet: always(0x80),
		decode: func(c int) float32 { return Float8E5M2FNUZ(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E5M2FNUZFromFloat32(f, s)) }},
	{name: "f8e3m4", exp: 3, man: 4, bias: 3, inf: []int{0x70}, nan: span(0x71, 0x7f), max: 15.5, smallest: 0x1p-6, quiet: signed(8, 0x78),
		decode: func(c int) float32 { return Float8E3M4(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E3M4FromFloat32(f, s)) }},
	{name: "f8e4m3", exp: 4, man: 3, bias: 7, inf: []int{0x78}, nan: span(0x79, 0x7f), max: 240, smallest: 0x1p-9, quiet: signed(8, 0x7c),
		decode: func(c int) float32 { return Float8E4M3(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E4M3FromFloat32(f, s)) }},
	{name: "f8e4m3b11fnuz", exp: 4, man: 3, bias: 11, fnuz: true, max: 30, smallest: 0x1p-13, quiet: always(0x80),
		decode: func(c int) float32 { return Float8E4M3B11FNUZ(c).Float32() },
		encode: func(f float32, s bool) int { return int(Float8E4M3B11FNUZFromFloat32(f, s)) }},
	{name: "f6e2m3fn", exp: 2, man: 3, bias: 1, max: 7.5, smallest: 0.125, quiet: always(0x20),
		decode: func(c int) float32 { return Float6E2M3FNFromBits(uint8(c)).Float32() },
		encode: func(f float32, _ bool) int { return int(Float6E2M3FNFromFloat32(f).Bits()) }},
	{name: "f6e3m2fn", exp: 3, man: 2, bias: 3, max: 28, smallest: 0.0625, quiet: always(0x20),
		decode: func(c int) float32 { return Float6E3M2FNFromBits(uint8(c)).Float32() },
		encode: func(f float32, _ bool) int { return int(Float6E3M2FNFromFloat32(f).Bits()) }},
	{name: "f4e2m1", exp: 2, man: 1, bias: 1, max: 6, smallest: 0.5, quiet: always(0x8),
		decode: func(c int) float32 { return Float4E2M1FromBits(uint8(c)).Float32() },
		encode: func(f float32, _ bool) int { return int(Float4E2M1FromFloat32(f).Bits()) }},
}

func (f *format) width() int   { return 1 + f.exp + f.man }
func (f *format) signBit() int { return 1 << (f.exp + f.man) }

// value is the number that a magnitude stands for if no pattern is special.
func (f *format) value(mag int) float64 {
	exp, man := mag>>f.man, float64(mag&(1<<f.man-1))/math.Pow(2, float64(f.man))
	if exp == 0 {
		return man * math.Pow(2, float64(1-f.bias))
	}
	return (1 + man) * math.Pow(2, float64(exp-f.bias))
}

func contains(s []int, v int) bool {
	i := sort.SearchInts(s, v)
	return i < len(s) && s[i] == v
}

// refDecode returns the value of a pattern.
func (f *format) refDecode(code int) float64 {
	mag := code &^ f.signBit()
	v := f.value(mag)
	switch {
	case f.fnuz && code == f.signBit(), contains(f.nan, mag):
		v = math.NaN()
	case contains(f.inf, mag):
		v = math.Inf(1)
	}
	if code != mag {
		v = math.Copysign(v, -1)
	}
	return v
}

// refEncode searches the two neighbours of x and compares x with their
// midpoint, which float64 holds exactly.
func (f *format) refEncode(x float64, saturate bool) int {
	sign := 0
	if math.Signbit(x) {
		sign = f.signBit()
	}
	mag := math.Abs(x)
	// The number above the largest one, if the format went on, bounds what
	// still rounds down to the largest.
	up := sort.Search(f.largest+1, func(c int) bool { return f.values[c] > mag })
	code := up - 1
	if mid := (f.values[code] + f.values[up]) / 2; mag > mid || mag == mid && code%2 == 1 {
		code = up
	}
	switch {
	case code == 0 && f.fnuz:
		return 0
	case code <= f.largest:
		return sign | code
	case len(f.inf) > 0 && !saturate:
		return sign | f.inf[0]
	case (len(f.nan) > 0 || f.fnuz) && !saturate:
		return f.quiet(sign / f.signBit())
	}
	return sign | f.largest
}

// interesting holds, for every pair of neighbours, both, their midpoint, and
// the float32 on either side of each; then values far outside.
func (f *format) interesting() []float32 {
	var xs []float32
	near := func(v float64) {
		x := float32(v)
		xs = append(xs, x, math.Nextafter32(x, 0), math.Nextafter32(x, float32(math.Inf(1))))
	}
	for mag := 0; mag <= f.largest; mag++ {
		near(f.values[mag])
		near((f.values[mag] + f.values[mag+1]) / 2)
	}
	near(f.values[f.largest+1])
	return append(xs, 0x1p-149, 0x1p-126, 1, math.MaxFloat32, float32(math.Inf(1)))
}

func sameFloat(a, b float64) bool {
	return math.IsNaN(a) && math.IsNaN(b) || a == b && math.Signbit(a) == math.Signbit(b)
}

func TestDecodeAllPatterns(t *testing.T) {
	for _, f := range formats {
		largest, smallest := 0.0, math.Inf(1)
		for code := range 1 << f.width() {
			got, want := float64(f.decode(code)), f.refDecode(code)
			if !sameFloat(got, want) {
				t.Fatalf("%s: decode(%#x): got %v, want %v", f.name, code, got, want)
			}
			if !math.IsNaN(want) && !math.IsInf(want, 0) {
				largest = max(largest, got)
				if got > 0 {
					smallest = min(smallest, got)
				}
			}
		}
		if largest != f.max || smallest != f.smallest {
			t.Errorf("%s: got numbers from %v to %v, want %v to %v", f.name, smallest, largest, f.smallest, f.max)
		}
	}
}

func TestRoundTripAllPatterns(t *testing.T) {
	for _, f := range formats {
		for code := range 1 << f.width() {
			want := code
			if math.IsNaN(f.refDecode(code)) {
				if f.quiet == nil { // f16 and bf16 keep sign and payload, and set the quiet bit
					want = code | 1<<(f.man-1)
				} else {
					want = f.quiet(code >> (f.width() - 1))
				}
			}
			if got := f.encode(f.decode(code), false); got != want {
				t.Fatalf("%s: got %#x after decode and encode, want %#x (from %#x)", f.name, got, want, code)
			}
		}
	}
}

func TestEncodeAroundAllValues(t *testing.T) {
	for _, f := range formats {
		for _, x := range f.interesting() {
			checkEncode(t, &f, x)
			checkEncode(t, &f, -x)
		}
	}
}

func TestEncodeRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, f := range formats {
		n := 20_000
		if f.width() == 16 {
			n = 200_000
		}
		for range n {
			// Random bits over all float32, and random numbers within the range
			// of the format.
			checkEncode(t, &f, math.Float32frombits(r.Uint32()))
			checkEncode(t, &f, float32(math.Ldexp(r.Float64()*2-1, r.IntN(2*f.bias+4)-f.bias-f.man)))
		}
	}
}

func checkEncode(t *testing.T, f *format, x float32) {
	t.Helper()
	if x != x {
		return // NaN has its own test
	}
	for _, saturate := range []bool{false, true} {
		want := f.refEncode(float64(x), saturate && f.width() <= 8)
		if got := f.encode(x, saturate); got != want {
			t.Fatalf("%s: encode(%v = %#08x, saturate %v): got %#x, want %#x", f.name, x, math.Float32bits(x), saturate, got, want)
		}
	}
}

func TestEncodeNaN(t *testing.T) {
	payloads := []uint32{0x7fc0_0000, 0x7f80_0001, 0x7fbf_ffff, 0x7fff_ffff, 0x7f80_2000, 0x7fd5_5555}
	for _, f := range formats {
		for _, p := range payloads {
			for sign := range 2 {
				b := p | uint32(sign)<<31
				var want int
				switch f.name {
				case "f16": // sign, infinity's exponent, the quiet bit, the upper 10 bits of the payload
					want = sign<<15 | 0x7e00 | int(p>>13)&0x3ff
				case "bf16":
					want = int(b>>16) | 0x40
				default:
					want = f.quiet(sign)
				}
				for _, saturate := range []bool{false, true} {
					if got := f.encode(math.Float32frombits(b), saturate); got != want {
						t.Errorf("%s: encode(NaN %#x, saturate %v): got %#x, want %#x", f.name, b, saturate, got, want)
					}
				}
			}
		}
	}
}

// Float16 keeps the payload of a NaN and makes it quiet on the way to float32
// too; BFloat16 keeps every bit.
func TestNaNToFloat32(t *testing.T) {
	for sign := range uint32(2) {
		for man := uint32(1); man < 1<<10; man++ {
			got, want := math.Float32bits(Float16(sign<<15|0x7c00|man).Float32()), sign<<31|0x7fc0_0000|man<<13
			if got != want {
				t.Fatalf("f16 NaN with payload %#x: got %#x, want %#x", man, got, want)
			}
		}
	}
	for code := range 1 << 16 {
		if got, want := math.Float32bits(BFloat16(code).Float32()), uint32(code)<<16; got != want {
			t.Fatalf("bf16 %#x: got %#x, want %#x", code, got, want)
		}
	}
}

// The rows of the two tables in ONNX's Cast, by pattern.
func TestCastTables(t *testing.T) {
	inf := float32(math.Inf(1))
	negZero := float32(math.Copysign(0, -1))
	for _, row := range []struct {
		x        float32
		saturate bool
		want     [4]int // E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ
	}{
		{0, true, [4]int{0x00, 0x00, 0x00, 0x00}},
		{negZero, true, [4]int{0x80, 0x00, 0x80, 0x00}},
		{inf, true, [4]int{0x7e, 0x7f, 0x7b, 0x7f}},
		{-inf, true, [4]int{0xfe, 0xff, 0xfb, 0xff}},
		{1e6, true, [4]int{0x7e, 0x7f, 0x7b, 0x7f}},
		{-1e6, true, [4]int{0xfe, 0xff, 0xfb, 0xff}},
		{0.4789, true, [4]int{0x2f, 0x37, 0x38, 0x3c}},
		{-1e-7, true, [4]int{0x80, 0x00, 0x80, 0x00}},
		{0, false, [4]int{0x00, 0x00, 0x00, 0x00}},
		{negZero, false, [4]int{0x80, 0x00, 0x80, 0x00}},
		{inf, false, [4]int{0x7f, 0x80, 0x7c, 0x80}},
		{-inf, false, [4]int{0xff, 0x80, 0xfc, 0x80}},
		{1e6, false, [4]int{0x7f, 0x80, 0x7c, 0x80}},
		{-1e6, false, [4]int{0xff, 0x80, 0xfc, 0x80}},
		{0.81910545, false, [4]int{0x35, 0x3d, 0x3b, 0x3f}},
	} {
		for i, f := range formats[2:6] {
			if got := f.encode(row.x, row.saturate); got != row.want[i] {
				t.Errorf("%s: encode(%v, saturate %v): got %#x, want %#x", f.name, row.x, row.saturate, got, row.want[i])
			}
		}
	}
}

func TestRoundToOdd(t *testing.T) {
	// Just above the midpoint of 1 and the next f16: float32 rounds it onto the
	// midpoint, from where it goes to even, downwards.
	f := 1 + 0x1p-11 + 0x1p-40
	if twice, once := Float16FromFloat32(float32(f)), Float16FromFloat32(RoundToOdd(f)); twice != 0x3c00 || once != 0x3c01 {
		t.Errorf("got %#x through float32 and %#x through RoundToOdd, want 0x3c00 and 0x3c01", twice, once)
	}
	for _, exact := range []float64{0, math.Copysign(0, -1), 1, -0x1p-149, math.MaxFloat32, math.Inf(1), math.Inf(-1), math.NaN()} {
		if got := float64(RoundToOdd(exact)); !sameFloat(got, exact) {
			t.Errorf("RoundToOdd(%v): got %v, want it unchanged", exact, got)
		}
	}
	for i := range formats {
		f := &formats[i]
		for mag := range f.largest + 1 {
			for _, x := range []float64{f.values[mag], (f.values[mag] + f.values[mag+1]) / 2} {
				// A few float64 steps to either side of a value or a midpoint:
				// where rounding twice goes wrong.
				for step := -2; step <= 2; step++ {
					checkRoundToOdd(t, f, math.Float64frombits(math.Float64bits(x)+uint64(step)))
				}
			}
		}
		for _, x := range []float64{0x1p-1074, 0x1p-200, 0x1p-150, 0x1.8p-150, 0x1p200, math.MaxFloat64} {
			checkRoundToOdd(t, f, x)
		}
	}
}

func checkRoundToOdd(t *testing.T, f *format, x float64) {
	t.Helper()
	if x != x {
		return // a step down from zero
	}
	for _, x := range []float64{x, -x} {
		want := f.refEncode(x, f.width() <= 8)
		if got := f.encode(RoundToOdd(x), true); got != want {
			t.Fatalf("%s: encode(RoundToOdd(%v)): got %#x, want %#x", f.name, x, got, want)
		}
	}
}

func TestE8M0(t *testing.T) {
	for code := range 255 {
		if got, want := float64(Float8E8M0(code).Float32()), math.Pow(2, float64(code-127)); got != want {
			t.Fatalf("decode(%#x): got %v, want %v", code, got, want)
		}
	}
	if got := Float8E8M0(255).Float32(); got == got {
		t.Errorf("decode(0xff): got %v, want NaN", got)
	}

	for code := 0; code < 255; code++ {
		low := math.Pow(2, float64(code-127))
		for _, c := range []struct {
			x    float64
			want [3]int // added to code when going up, down, nearest
		}{
			{low, [3]int{0, 0, 0}}, {low * 1.125, [3]int{1, 0, 0}}, {low * 1.25, [3]int{1, 0, 0}}, {low * (1.5 - 0x1p-20), [3]int{1, 0, 0}},
			{low * 1.5, [3]int{1, 0, 1}}, {low * 1.75, [3]int{1, 0, 1}}, {low * (2 - 0x1p-20), [3]int{1, 0, 1}},
		} {
			for mode, up := range c.want {
				for _, saturate := range []bool{false, true} {
					want := code + up
					if c.x > 0x1p127 {
						want = map[bool]int{true: 254, false: 255}[saturate]
					}
					if got := int(Float8E8M0FromFloat32(float32(c.x), RoundMode(mode), saturate)); got != want {
						t.Fatalf("encode(%v, mode %d, saturate %v): got %#x, want %#x", c.x, mode, saturate, got, want)
					}
				}
			}
		}
	}

	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x                    float32
		saturated, unbounded int
	}{
		{0, 0, 255}, {float32(math.Copysign(0, -1)), 0, 255}, {0x1p-128, 0, 255}, {0x1p-149, 0, 255},
		{inf, 254, 255}, {math.MaxFloat32, 254, 255}, {nan, 255, 255}, {-nan, 255, 255}, {-1, 255, 255}, {-inf, 255, 255}, {-0x1p-149, 255, 255},
	} {
		for mode := RoundUp; mode <= RoundNearest; mode++ {
			got, unbounded := int(Float8E8M0FromFloat32(c.x, mode, true)), int(Float8E8M0FromFloat32(c.x, mode, false))
			if got != c.saturated || unbounded != c.unbounded {
				t.Errorf("encode(%v, mode %d): got %#x saturated and %#x not, want %#x and %#x", c.x, mode, got, unbounded, c.saturated, c.unbounded)
			}
		}
	}
}
