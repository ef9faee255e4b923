package ptx

import "fmt"

// instructions has the decoder of each instruction. It is filled by init, as
// decoders refer to it.
var instructions map[string]func(d *decoder)

func init() {
	instructions = map[string]func(d *decoder){
		"add": decodeAdd, "sub": decodeSub, "mul": decodeMul, "mad": decodeMad, "div": decodeDiv, "rem": decodeRem,
		"min": decodeMin, "max": decodeMax, "abs": decodeAbs, "neg": decodeNeg,
		"and": bitwise(andBits), "or": bitwise(orBits), "xor": bitwise(xorBits), "not": decodeNot, "shl": decodeShl, "shr": decodeShr,
		"setp": decodeSetp, "selp": decodeSelp, "mov": decodeMov, "cvt": decodeCvt,
		"fma": decodeFMA, "rcp": decodeRcp, "sqrt": decodeSqrt, "rsqrt": approx(rsqrt), "ex2": approx(ex2), "lg2": approx(lg2),
		"testp": decodeTestp, "copysign": decodeCopysign,
		"bfe": decodeBfe, "bfi": decodeBfi, "prmt": decodePrmt,
		"popc": countBits(ones, ones), "clz": countBits(leadingZeros32, leadingZeros64), "brev": decodeBrev,
		"ld": decodeLd, "st": decodeSt, "atom": decodeAtom, "red": decodeRed, "cvta": decodeCvta, "membar": decodeMembar, "fence": decodeFence,
		"bra": decodeBra, "ret": decodeExit, "exit": decodeExit, "trap": decodeTrap, "bar": decodeBar, "barrier": decodeBarrier,
		"shfl": decodeShfl, "vote": decodeVote, "activemask": decodeActivemask,
	}
}

var (
	intTypes  = []typ{u16, u32, u64, s16, s32, s64}
	wordTypes = []typ{u32, u64, s32, s64}
	sumTypes  = []typ{u16, u32, u64, s16, s32, s64, f32, f64}
	bitTypes  = []typ{b16, b32, b64}
	moveTypes = []typ{b16, b32, b64, u16, u32, u64, s16, s32, s64, f32, f64}
)

func runOne(t *thread, in *inst)   { t.r[in.d] = in.one(t.r[in.a]) }
func runTwo(t *thread, in *inst)   { t.r[in.d] = in.two(t.r[in.a], t.r[in.b]) }
func runThree(t *thread, in *inst) { t.r[in.d] = in.three(t.r[in.a], t.r[in.b], t.r[in.c]) }

// setOne decodes the operands of d = f(a), all of type t.
func (d *decoder) setOne(t typ, f oneFunc) {
	if d.count(2, 2) {
		d.in.d, d.in.a, d.in.one, d.in.run = d.dst(d.ops[0], t), d.src(d.ops[1], t), f, runOne
	}
}

func (d *decoder) setTwo(t typ, f twoFunc) {
	if d.count(3, 3) {
		d.in.d, d.in.a, d.in.b, d.in.two, d.in.run = d.dst(d.ops[0], t), d.src(d.ops[1], t), d.src(d.ops[2], t), f, runTwo
	}
}

func (d *decoder) setThree(t typ, f threeFunc) {
	if d.count(4, 4) {
		d.in.d, d.in.a, d.in.b, d.in.c = d.dst(d.ops[0], t), d.src(d.ops[1], t), d.src(d.ops[2], t), d.src(d.ops[3], t)
		d.in.three, d.in.run = f, runThree
	}
}

// floatMods reads the rounding, which is optional if it may be left out, .ftz
// and .sat before a float type.
func (d *decoder) floatMods(required bool) (floatMods, bool) {
	var m floatMods
	round := d.mod("rn", "rz", "rm", "rp")
	m.mode = roundings[round]
	m.ftz, m.sat = d.mod("ftz") != "", d.mod("sat") != ""
	if required && round == "" {
		d.fail(d.line, d.root+" without a rounding", ".rn, .rz, .rm or .rp")
	}
	return m, round != "" || m.ftz || m.sat
}

// onlyF32 refuses .ftz and .sat where the type has neither.
func (d *decoder) onlyF32(t typ, m floatMods) {
	if t != f32 && (m.ftz || m.sat) {
		d.fail(d.line, fmt.Sprintf(".ftz or .sat with type %s", t), "type .f32")
	}
}

// sum decodes add and sub.
func (d *decoder) sum(ints map[typ]twoFunc, saturated, of32, of64 twoFunc, slow func(format, float64, float64, float64, rounding) uint64) {
	m, any := d.floatMods(false)
	t := d.typ(sumTypes...)
	switch {
	case t == s32 && m == (floatMods{sat: true}):
		d.setTwo(t, saturated)
	case t.isInt():
		if any {
			d.fail(d.line, "a rounding, .ftz or .sat with type "+t.String(), "a float type, or .sat with .s32")
		}
		d.setTwo(t, ints[t])
	default:
		d.onlyF32(t, m)
		d.floatTwo(t, m, of32, of64, slow)
	}
}

func (d *decoder) floatTwo(t typ, m floatMods, of32, of64 twoFunc, slow func(format, float64, float64, float64, rounding) uint64) {
	plain := of32
	if t == f64 {
		plain = of64
	}
	if m == (floatMods{}) {
		d.setTwo(t, plain)
		return
	}
	op := floatOp(t, m, func(a, b, _ uint64) uint64 { return plain(a, b) }, slow)
	d.setTwo(t, func(a, b uint64) uint64 { return op(a, b, 0) })
}

// floatOne decodes an operation of one operand.
func (d *decoder) floatOne(t typ, m floatMods, of32, of64 twoFunc, slow func(format, float64, float64, float64, rounding) uint64) {
	plain := of32
	if t == f64 {
		plain = of64
	}
	op := floatOp(t, m, func(a, b, _ uint64) uint64 { return plain(a, b) }, slow)
	d.setOne(t, func(a uint64) uint64 { return op(a, 0, 0) })
}

func decodeAdd(d *decoder) {
	d.sum(sizes[twoFunc](addInt[uint16], addInt[uint32], addInt[uint64]), addSaturated, add32, add64, slowAdd)
}

func decodeSub(d *decoder) {
	d.sum(sizes[twoFunc](subInt[uint16], subInt[uint32], subInt[uint64]), subSaturated, sub32, sub64, slowSub)
}

var (
	wideTypes   = map[typ]typ{u16: u32, s16: s32, u32: u64, s32: s64}
	wideMuls    = map[typ]twoFunc{u16: wideMul[uint16, uint32], s16: wideMul[int16, int32], u32: wideMul[uint32, uint64], s32: wideMul[int32, int64]}
	wideMads    = map[typ]threeFunc{u16: wideMad[uint16, uint32], s16: wideMad[int16, int32], u32: wideMad[uint32, uint64], s32: wideMad[int32, int64]}
	lowMuls     = sizes[twoFunc](mulInt[uint16], mulInt[uint32], mulInt[uint64])
	lowMads     = sizes[threeFunc](madInt[uint16], madInt[uint32], madInt[uint64])
	highMuls    = signs[twoFunc](highMul[uint16], highMul[uint32], highMul[uint64], highMul[int16], highMul[int32], highMul[int64])
	highMads    = signs[threeFunc](highMad[uint16], highMad[uint32], highMad[uint64], highMad[int16], highMad[int32], highMad[int64])
	smallerInts = []typ{u16, s16, u32, s32}
)

func decodeMul(d *decoder) {
	switch half := d.mod("lo", "hi", "wide"); half {
	case "lo":
		t := d.typ(intTypes...)
		d.setTwo(t, lowMuls[t])
	case "hi":
		t := d.typ(intTypes...)
		d.setTwo(t, highMuls[t])
	case "wide":
		t := d.typ(smallerInts...)
		if d.count(3, 3) {
			d.in.d, d.in.a, d.in.b = d.dst(d.ops[0], wideTypes[t]), d.src(d.ops[1], t), d.src(d.ops[2], t)
			d.in.two, d.in.run = wideMuls[t], runTwo
		}
	default:
		m, _ := d.floatMods(false)
		t := d.typ(f32, f64)
		d.onlyF32(t, m)
		d.floatTwo(t, m, mul32, mul64, slowMul)
	}
}

func decodeMad(d *decoder) {
	switch half := d.need("lo", "hi", "wide"); half {
	case "lo":
		t := d.typ(intTypes...)
		d.setThree(t, lowMads[t])
	case "hi":
		t := d.typ(intTypes...)
		d.setThree(t, highMads[t])
	case "wide":
		t := d.typ(smallerInts...)
		if d.count(4, 4) {
			w := wideTypes[t]
			d.in.d, d.in.a, d.in.b, d.in.c = d.dst(d.ops[0], w), d.src(d.ops[1], t), d.src(d.ops[2], t), d.src(d.ops[3], w)
			d.in.three, d.in.run = wideMads[t], runThree
		}
	}
}

// runDivision faults where the divisor is 0.
func runDivision(t *thread, in *inst) {
	if t.r[in.b] == 0 {
		t.fail("got the divisor 0, want another: the result is unspecified")
		return
	}
	t.r[in.d] = in.two(t.r[in.a], t.r[in.b])
}

func (d *decoder) division(ops map[typ]twoFunc, t typ) {
	d.setTwo(t, ops[t])
	d.in.run = runDivision
}

func decodeDiv(d *decoder) {
	if d.mod("approx", "full") != "" {
		m := floatMods{ftz: d.mod("ftz") != ""}
		d.floatTwo(d.typ(f32), m, div32, div64, slowDiv)
		return
	}
	m, any := d.floatMods(false)
	t := d.typ(sumTypes...)
	switch {
	case t.isFloat() && m.sat || t.isInt() && any || t == f64 && m.ftz:
		d.fail(d.line, "a modifier that div with type "+t.String()+" lacks", "none")
	case t.isFloat() && !any:
		d.fail(d.line, "div without a rounding", ".rn, .rz, .rm, .rp, .approx or .full")
	case t.isFloat():
		d.floatTwo(t, m, div32, div64, slowDiv)
	default:
		d.division(signs[twoFunc](divInt[uint16], divInt[uint32], divInt[uint64], divInt[int16], divInt[int32], divInt[int64]), t)
	}
}

func decodeRem(d *decoder) {
	d.division(signs[twoFunc](remInt[uint16], remInt[uint32], remInt[uint64], remInt[int16], remInt[int32], remInt[int64]), d.typ(intTypes...))
}

func (d *decoder) extreme(ints map[typ]twoFunc, of32, nan32, of64 twoFunc) {
	ftz, nan := d.mod("ftz") != "", d.mod("NaN") != ""
	t := d.typ(sumTypes...)
	switch {
	case t != f32 && (ftz || nan):
		d.fail(d.line, ".ftz or .NaN with type "+t.String(), "type .f32")
	case t.isInt():
		d.setTwo(t, ints[t])
	default:
		if nan {
			of32 = nan32
		}
		d.floatTwo(t, floatMods{ftz: ftz}, of32, of64, slowAdd)
	}
}

func decodeMin(d *decoder) {
	d.extreme(signs[twoFunc](minInt[uint16], minInt[uint32], minInt[uint64], minInt[int16], minInt[int32], minInt[int64]), min32, minNaN32, min64)
}

func decodeMax(d *decoder) {
	d.extreme(signs[twoFunc](maxInt[uint16], maxInt[uint32], maxInt[uint64], maxInt[int16], maxInt[int32], maxInt[int64]), max32, maxNaN32, max64)
}
