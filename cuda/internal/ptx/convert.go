package ptx

import (
	"math"
	"strings"
)

// conversion is a decoded cvt.
type conversion struct {
	to, from typ
	register int // bytes of the register of the result
	mode     rounding
	integral bool // .rni and the like
	ftz, sat bool
}

// decodeCvt reads cvt{.rounding}{.ftz}{.sat}.to.from.
func decodeCvt(d *decoder) {
	var c conversion
	round := d.mod("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi")
	c.mode, c.integral = roundings[round], strings.HasSuffix(round, "i")
	c.ftz, c.sat = d.mod("ftz") != "", d.mod("sat") != ""
	all := []typ{u8, u16, u32, u64, s8, s16, s32, s64, f16, bf16, f32, f64}
	c.to, c.from = d.typ(all...), d.typ(all...)
	if !d.count(2, 2) {
		return
	}
	switch narrows := c.to.isFloat() && (c.from.isInt() || c.narrows()); {
	case narrows && (round == "" || c.integral):
		d.fail(d.line, "a conversion that may be inexact with rounding "+quoted(round), ".rn, .rz, .rm or .rp")
	case c.to.isInt() && c.from.isFloat() && !c.integral:
		d.fail(d.line, "a conversion to an integer with rounding "+quoted(round), ".rni, .rzi, .rmi or .rpi")
	case !narrows && round != "" && !c.integral, c.to.isInt() && c.from.isInt() && round != "", c.integral && c.to.isFloat() && c.to != c.from:
		d.fail(d.line, "an exact conversion with rounding "+quoted(round), "none")
	case c.sat && c.to.isInt() && c.from.isInt() && contains(c.to, c.from):
		d.fail(d.line, "cvt.sat"+c.to.String()+c.from.String(), "a conversion of a smaller range")
	case c.ftz && c.to != f32 && c.from != f32:
		d.fail(d.line, ".ftz", "a conversion from or to .f32")
	}
	if d.ops[1].kind == aWord && strings.HasPrefix(d.ops[1].text, "%") {
		d.in.a = d.specialOr(d.ops[1], c.from, true)
	} else {
		d.in.a = d.source(d.ops[1], c.from, true)
	}
	d.in.d, c.register = d.target(d.ops[0], c.to, true)
	d.in.one, d.in.run = c.function(), runOne
}

func quoted(round string) string {
	if round == "" {
		return "left out"
	}
	return "." + round
}

// narrows reports whether a float conversion may be inexact.
func (c conversion) narrows() bool {
	t, f := formats[c.to], formats[c.from]
	return c.from.isFloat() && (t.mantissa < f.mantissa || t.exponent < f.exponent)
}

func (c conversion) function() oneFunc {
	switch {
	case c.to.isInt() && c.from.isInt() && c.sat:
		return c.clampInt
	case c.to.isInt() && c.from.isInt():
		if c.from.isSigned() || c.to.size() < c.from.size() {
			return func(a uint64) uint64 { return extend(extend(a, c.from, 8), c.to, c.register) }
		}
		m := mask(c.from.size())
		if c.to.isSigned() && c.to.size() == c.from.size() {
			return func(a uint64) uint64 { return extend(a, c.to, c.register) }
		}
		return func(a uint64) uint64 { return a & m }
	case c.to.isInt():
		return c.floatToInt
	case c.from.isInt():
		return c.intToFloat
	}
	return c.floatToFloat
}

// limits returns the range of an integer type; high as a u64.
func limits(t typ) (low int64, high uint64) {
	n := 8 * t.size()
	if t.isSigned() {
		return math.MinInt64 >> (64 - n), math.MaxInt64 >> (64 - n)
	}
	return 0, mask(t.size())
}

// contains reports whether every number of type b is one of type a.
func contains(a, b typ) bool {
	lowA, highA := limits(a)
	lowB, highB := limits(b)
	return lowA <= lowB && highA >= highB
}

func (c conversion) clampInt(a uint64) uint64 {
	v := extend(a, c.from, 8)
	low, high := limits(c.to)
	switch {
	case c.from.isSigned() && int64(v) < 0:
		v = uint64(max(int64(v), low))
	case v > high:
		v = high
	}
	return extend(v, c.to, c.register)
}

// floatToInt gives the nearest number of the type to one that is out of range.
// What it makes of NaN depends on the types, as the ISA has it.
func (c conversion) floatToInt(a uint64) uint64 {
	if c.ftz {
		a = flush(a)
	}
	x := formats[c.from].toFloat(a)
	switch c.mode {
	case nearest:
		x = math.RoundToEven(x)
	case zero:
		x = math.Trunc(x)
	case down:
		x = math.Floor(x)
	case up:
		x = math.Ceil(x)
	}
	low, high := limits(c.to)
	var v uint64
	switch {
	case x != x && c.from != f64 && c.to.size() < 8:
	case x != x:
		v = 1 << (8*c.to.size() - 1)
	case x <= float64(low):
		v = uint64(low)
	case x >= float64(high): // high rounds up to a power of two at most, from where on the type ends
		v = high
	case x >= 0x1p63:
		v = uint64(x-0x1p63) + 1<<63
	default:
		v = uint64(int64(x))
	}
	return extend(v, c.to, c.register)
}

func (c conversion) intToFloat(a uint64) uint64 {
	v := extend(a, c.from, 8)
	neg := c.from.isSigned() && int64(v) < 0
	if neg {
		v = -v
	}
	r := formats[c.to].round(neg, v, 0, false, c.mode)
	if c.sat {
		r = formats[c.to].saturate(r)
	}
	return r
}

func (c conversion) floatToFloat(a uint64) uint64 {
	if c.ftz && c.from == f32 {
		a = flush(a)
	}
	x := formats[c.from].toFloat(a)
	if c.integral {
		switch c.mode {
		case nearest:
			x = math.RoundToEven(x)
		case zero:
			x = math.Trunc(x)
		case down:
			x = math.Floor(x)
		case up:
			x = math.Ceil(x)
		}
	}
	r := formats[c.to].fromFloat(x, c.mode)
	if c.ftz && c.to == f32 {
		r = flush(r)
	}
	if c.sat {
		r = formats[c.to].saturate(r)
	}
	return r
}
