package dtype

import "math"

// specials describes the bit patterns of a format that are not plain numbers.
type specials uint8

const (
	ieee   specials = iota // the highest exponent holds infinities and NaNs
	fn                     // no infinity; NaN is every bit but the sign set
	fnuz                   // no infinity, no negative zero; the pattern of negative zero is the only NaN
	finite                 // neither infinity nor NaN: conversion must saturate
)

// minifloat describes a float format of at most 8 bits with a sign, for the one
// encoder and the one decoder of them all.
type minifloat struct {
	exp, man uint8 // widths in bits
	bias     int32
	specials specials
}

var (
	miniE3M4       = minifloat{exp: 3, man: 4, bias: 3, specials: ieee}
	miniE4M3       = minifloat{exp: 4, man: 3, bias: 7, specials: ieee}
	miniE5M2       = minifloat{exp: 5, man: 2, bias: 15, specials: ieee}
	miniE4M3FN     = minifloat{exp: 4, man: 3, bias: 7, specials: fn}
	miniE4M3FNUZ   = minifloat{exp: 4, man: 3, bias: 8, specials: fnuz}
	miniE4M3B11    = minifloat{exp: 4, man: 3, bias: 11, specials: fnuz}
	miniE5M2FNUZ   = minifloat{exp: 5, man: 2, bias: 16, specials: fnuz}
	miniE2M3Finite = minifloat{exp: 2, man: 3, bias: 1, specials: finite}
	miniE3M2Finite = minifloat{exp: 3, man: 2, bias: 3, specials: finite}
	miniE2M1Finite = minifloat{exp: 2, man: 1, bias: 1, specials: finite}
)

// sign returns the sign bit.
func (m *minifloat) sign() uint32 { return 1 << (m.exp + m.man) }

// max returns the pattern of the largest finite number. Positive patterns are
// ordered as their values are.
func (m *minifloat) max() uint32 {
	switch m.specials {
	case ieee:
		return m.sign() - 1 - 1<<m.man
	case fn:
		return m.sign() - 2
	}
	return m.sign() - 1
}

// nan returns the quiet NaN. A finite format has none: it takes negative zero,
// as in ONNX's reference and test data, although the text of the standard asks
// for the largest number.
func (m *minifloat) nan(sign uint32) uint8 {
	switch m.specials {
	case ieee:
		return uint8(sign | (m.sign() - 1<<(m.man-1)))
	case fn:
		return uint8(sign | (m.sign() - 1))
	}
	return uint8(m.sign())
}

// encode rounds to nearest, ties to even. What rounds past the largest number,
// infinity included, becomes the largest number (saturate), else infinity, or
// NaN where the format has no infinity.
func (m *minifloat) encode(f float32, saturate bool) uint8 {
	b := math.Float32bits(f)
	mag, sign := b&0x7fff_ffff, b>>31*m.sign()
	if mag > 0x7f80_0000 {
		return m.nan(sign)
	}
	code := m.round(mag)
	switch {
	case code == 0 && m.specials == fnuz:
		return 0
	case code <= m.max():
		return uint8(sign | code)
	case saturate:
		return uint8(sign | m.max())
	case m.specials == ieee:
		return uint8(sign | (m.max() + 1))
	}
	return m.nan(sign)
}

// round returns the magnitude of a float32 in units of the format's exponent
// and mantissa fields, as if the exponent had no upper end.
func (m *minifloat) round(mag uint32) uint32 {
	exp := int32(mag>>23) - 127 + m.bias
	significand := mag&0x007f_ffff | 1<<23 // a subnormal float32 is far below half of the smallest number of every format
	drop := uint32(23 - m.man)
	if exp < 1 {
		drop += uint32(1 - exp)
		exp = 1
	}
	if drop > 24 { // the significand has 24 bits: less than half of the smallest number
		return 0
	}
	kept, rest, half := significand>>drop, significand&(1<<drop-1), uint32(1)<<(drop-1)
	if rest > half || rest == half && kept&1 == 1 {
		kept++
	}
	// The leading bit of a normal significand counts one in the exponent field;
	// a carry of the rounding does the same.
	return uint32(exp-1)<<m.man + kept
}

// decode returns the value of a pattern; bits above the format's width are not
// looked at.
func (m *minifloat) decode(code uint8) float32 {
	mag := uint32(code) & (m.sign() - 1)
	negative := uint32(code)&m.sign() != 0
	if mag == 0 && negative && m.specials == fnuz {
		return float32(math.NaN())
	}
	v := math.Inf(1)
	if mag <= m.max() {
		v = m.magnitude(mag)
	} else if m.specials == fn || mag != m.max()+1 {
		v = math.NaN()
	}
	if negative {
		v = math.Copysign(v, -1)
	}
	return float32(v)
}

func (m *minifloat) magnitude(mag uint32) float64 {
	exp, man := int(mag>>m.man), int(mag&(1<<m.man-1))
	if exp == 0 {
		exp = 1
	} else {
		man |= 1 << m.man
	}
	return math.Ldexp(float64(man), exp-int(m.bias)-int(m.man))
}

// decoded is decode for every pattern of the format. Conversion to float32 is a
// load from it.
func (m *minifloat) decoded() *[256]float32 {
	var t [256]float32
	for c := range t {
		t[c] = m.decode(uint8(c))
	}
	return &t
}
