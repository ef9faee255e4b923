package ptx

import (
	"fmt"
	"strings"
)

var signedTypes = []typ{s16, s32, s64, f32, f64}

// sign decodes abs and neg, which on floats change the sign bit alone.
func (d *decoder) sign(ints map[typ]oneFunc, float func(b, sign uint64) uint64) {
	ftz := d.mod("ftz") != ""
	t := d.typ(signedTypes...)
	f := ints[t]
	if t.isFloat() {
		bit := formats[t].sign(true)
		f = func(a uint64) uint64 { return float(a, bit) }
	}
	switch {
	case ftz && t != f32:
		d.fail(d.line, ".ftz with type "+t.String(), "type .f32")
	case ftz:
		d.setOne(t, func(a uint64) uint64 { return f(flush(a)) })
	default:
		d.setOne(t, f)
	}
}

func decodeAbs(d *decoder) {
	d.sign(sizes[oneFunc](absInt[int16], absInt[int32], absInt[int64]), func(b, sign uint64) uint64 { return b &^ sign })
}

func decodeNeg(d *decoder) {
	d.sign(sizes[oneFunc](negInt[uint16], negInt[uint32], negInt[uint64]), func(b, sign uint64) uint64 { return b ^ sign })
}

func bitwise(f twoFunc) func(d *decoder) {
	return func(d *decoder) { d.setTwo(d.typ(pred, b16, b32, b64), f) }
}

func decodeNot(d *decoder) {
	t := d.typ(pred, b16, b32, b64)
	if t == pred {
		d.setOne(t, func(a uint64) uint64 { return a ^ 1 })
		return
	}
	d.setOne(t, sizes[oneFunc](notInt[uint16], notInt[uint32], notInt[uint64])[t])
}

// shift decodes shl and shr, whose amount is a u32.
func (d *decoder) shift(t typ, ops map[typ]twoFunc) {
	if d.count(3, 3) {
		d.in.d, d.in.a, d.in.b = d.dst(d.ops[0], t), d.src(d.ops[1], t), d.src(d.ops[2], u32)
		d.in.two, d.in.run = ops[t], runTwo
	}
}

func decodeShl(d *decoder) {
	d.shift(d.typ(bitTypes...), sizes[twoFunc](shlInt[uint16], shlInt[uint32], shlInt[uint64]))
}

func decodeShr(d *decoder) {
	d.shift(d.typ(append(bitTypes[:3:3], intTypes...)...), signs[twoFunc](shrInt[uint16], shrInt[uint32], shrInt[uint64], shrInt[int16], shrInt[int32], shrInt[int64]))
}

var comparisons = map[typ]map[string]testFunc{u16: intTests[uint16](), u32: intTests[uint32](), u64: intTests[uint64](),
	s16: intTests[int16](), s32: intTests[int32](), s64: intTests[int64]()}

// unsignedOnly are the names of unsigned comparisons.
const unsignedOnly = "lo ls hi hs"

// comparison returns the test of setp for a type.
func (d *decoder) comparison(name string, t typ, ftz bool) testFunc {
	if !t.isFloat() {
		bare := t
		switch {
		case t.isBits():
			bare = map[typ]typ{b16: u16, b32: u32, b64: u64}[t]
		case t.isSigned() && strings.Contains(unsignedOnly, name):
			name = ""
		}
		test := comparisons[bare][name]
		if test == nil || ftz || t.isBits() && name != "eq" && name != "ne" {
			d.fail(d.line, fmt.Sprintf("setp.%s with type %s", name, t), "a comparison that the type has")
		}
		return test
	}
	test, f := floatTests[name], formats[t]
	switch {
	case test == nil || ftz && t != f32:
		d.fail(d.line, fmt.Sprintf("setp.%s with type %s", name, t), "a comparison that the type has")
	case ftz:
		return func(a, b uint64) bool { return test(f.toFloat(flush(a)), f.toFloat(flush(b))) }
	case t == f32:
		return func(a, b uint64) bool { return test(float64(single(a)), float64(single(b))) }
	}
	return func(a, b uint64) bool { return test(double(a), double(b)) }
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// runSetp compares without a further predicate.
func runSetp(t *thread, in *inst) { t.r[in.d] = bit(in.test(t.r[in.a], t.r[in.b])) }

// runSetpWith combines the comparison, and its opposite for q, with a
// predicate.
func runSetpWith(t *thread, in *inst) {
	r := bit(in.test(t.r[in.a], t.r[in.b]))
	c := t.r[in.c] ^ bit(in.flag)
	p, q := in.two(r, c), in.two(r^1, c)
	t.r[in.d] = p
	if in.d2 >= 0 {
		t.r[in.d2] = q
	}
}

func decodeSetp(d *decoder) {
	name := d.need("eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
	combine := d.mod("and", "or", "xor")
	ftz := d.mod("ftz") != ""
	t := d.typ(moveTypes...)
	operands := 3
	if combine != "" {
		operands = 4
	}
	if !d.count(operands, operands) {
		return
	}
	d.in.test = d.comparison(name, t, ftz)
	result := d.ops[0]
	d.in.d2 = -1
	if result.kind == aPair {
		d.in.d2 = d.dst(operand{kind: aWord, text: result.second, line: result.line}, pred)
		result.kind = aWord
	}
	d.in.d, d.in.a, d.in.b = d.dst(result, pred), d.src(d.ops[1], t), d.src(d.ops[2], t)
	d.in.run = runSetp
	if combine == "" && d.in.d2 < 0 {
		return
	}
	d.in.run, d.in.two = runSetpWith, map[string]twoFunc{"": func(a, _ uint64) uint64 { return a }, "and": andBits, "or": orBits, "xor": xorBits}[combine]
	if combine != "" {
		d.in.c, d.in.flag = d.predicate(d.ops[3])
	}
}

func runSelp(t *thread, in *inst) {
	if t.r[in.c] != 0 {
		t.r[in.d] = t.r[in.a]
	} else {
		t.r[in.d] = t.r[in.b]
	}
}

func decodeSelp(d *decoder) {
	t := d.typ(moveTypes...)
	if d.count(4, 4) {
		d.in.d, d.in.a, d.in.b, d.in.c = d.dst(d.ops[0], t), d.src(d.ops[1], t), d.src(d.ops[2], t), d.src(d.ops[3], pred)
		d.in.run = runSelp
	}
}

func decodeFMA(d *decoder) {
	m, _ := d.floatMods(true)
	t := d.typ(f32, f64)
	d.onlyF32(t, m)
	plain := map[typ]threeFunc{f32: fma32, f64: fma64}[t]
	d.setThree(t, floatOp(t, m, plain, slowFMA))
}

// inverse decodes rcp and sqrt, which are approximate or rounded.
func (d *decoder) inverse(of32, of64 twoFunc, slow func(format, float64, float64, float64, rounding) uint64) {
	if d.mod("approx") != "" {
		m := floatMods{ftz: d.mod("ftz") != ""}
		d.floatOne(d.typ(f32), m, of32, of64, slow)
		return
	}
	m, _ := d.floatMods(true)
	t := d.typ(f32, f64)
	d.onlyF32(t, m)
	if m.sat {
		d.fail(d.line, ".sat", "none")
	}
	d.floatOne(t, m, of32, of64, slow)
}

func decodeRcp(d *decoder)  { d.inverse(rcp32, rcp64, slowRcp) }
func decodeSqrt(d *decoder) { d.inverse(sqrt32, sqrt64, slowSqrt) }

func approx(f twoFunc) func(d *decoder) {
	return func(d *decoder) {
		d.need("approx")
		m := floatMods{ftz: d.mod("ftz") != ""}
		d.floatOne(d.typ(f32), m, f, f, slowAdd)
	}
}

func decodeTestp(d *decoder) {
	class := classes[d.need("finite", "infinite", "number", "notanumber", "normal", "subnormal")]
	t := d.typ(f32, f64)
	f := formats[t]
	magnitude := f.sign(true) - 1
	if d.count(2, 2) {
		d.in.d, d.in.a = d.dst(d.ops[0], pred), d.src(d.ops[1], t)
		d.in.one, d.in.run = func(a uint64) uint64 { return bit(class(f, a&magnitude)) }, runOne
	}
}

func decodeCopysign(d *decoder) {
	t := d.typ(f32, f64)
	sign := formats[t].sign(true)
	d.setTwo(t, func(a, b uint64) uint64 { return a&sign | b&^sign })
}

func decodeBfe(d *decoder) {
	t := d.typ(wordTypes...)
	if d.count(4, 4) {
		d.in.d, d.in.a, d.in.b, d.in.c = d.dst(d.ops[0], t), d.src(d.ops[1], t), d.src(d.ops[2], u32), d.src(d.ops[3], u32)
		d.in.three, d.in.run = map[typ]threeFunc{u32: extract[uint32], u64: extract[uint64], s32: extract[int32], s64: extract[int64]}[t], runThree
	}
}

func runInsert32(t *thread, in *inst) {
	t.r[in.d] = insert[uint32](t.r[in.a], t.r[in.b], t.r[in.c], t.r[in.e])
}

func runInsert64(t *thread, in *inst) {
	t.r[in.d] = insert[uint64](t.r[in.a], t.r[in.b], t.r[in.c], t.r[in.e])
}

func decodeBfi(d *decoder) {
	t := d.typ(b32, b64)
	if d.count(5, 5) {
		d.in.d, d.in.a, d.in.b = d.dst(d.ops[0], t), d.src(d.ops[1], t), d.src(d.ops[2], t)
		d.in.c, d.in.e = d.src(d.ops[3], u32), d.src(d.ops[4], u32)
		d.in.run = map[typ]func(*thread, *inst){b32: runInsert32, b64: runInsert64}[t]
	}
}

func decodePrmt(d *decoder) { d.setThree(d.typ(b32), permute) }

// countBits decodes popc and clz, whose result is a u32.
func countBits(of32, of64 oneFunc) func(d *decoder) {
	return func(d *decoder) {
		t := d.typ(b32, b64)
		if d.count(2, 2) {
			d.in.d, d.in.a = d.dst(d.ops[0], u32), d.src(d.ops[1], t)
			d.in.one, d.in.run = map[typ]oneFunc{b32: of32, b64: of64}[t], runOne
		}
	}
}

func decodeBrev(d *decoder) {
	t := d.typ(b32, b64)
	d.setOne(t, map[typ]oneFunc{b32: reverse32, b64: reverse64}[t])
}
