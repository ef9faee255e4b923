package ptx

import (
	"fmt"
	"strconv"
)

// space is where an access goes.
type space uint8

const (
	genericSpace space = iota
	globalSpace
	sharedSpace
	paramSpace
)

var spaces = map[string]space{"": genericSpace, "global": globalSpace, "shared": sharedSpace, "shared::cta": sharedSpace, "param": paramSpace}

var specialNames = map[string]bool{"%tid.x": true, "%tid.y": true, "%tid.z": true, "%ntid.x": true, "%ntid.y": true, "%ntid.z": true,
	"%ctaid.x": true, "%ctaid.y": true, "%ctaid.z": true, "%nctaid.x": true, "%nctaid.y": true, "%nctaid.z": true,
	"%laneid": true, "%warpid": true, "%nwarpid": true, "%lanemask_eq": true, "%lanemask_lt": true, "%lanemask_le": true,
	"%lanemask_gt": true, "%lanemask_ge": true, "%dynamic_smem_size": true}

// specialOr is the slot of a special register, which mov and cvt read, or that
// of another operand.
func (d *decoder) specialOr(o operand, t typ, wide bool) int32 {
	if _, declared := d.lookup(o.text); o.kind != aWord || declared || !specialNames[o.text] || o.negated {
		return d.source(o, t, wide)
	}
	if !fits(u32, t, wide) {
		d.fail(o.line, o.text+" of type .u32", "one of type %s", t)
	}
	return d.specialSlot(o.text, o.line)
}

func runMov(t *thread, in *inst) { t.r[in.d] = t.r[in.a] }

// runPack puts the elements of a vector together.
func runPack(t *thread, in *inst) {
	var v uint64
	for i := range in.n {
		v |= t.r[in.vec[i]] << (8 * in.reg * i)
	}
	t.r[in.d] = v
}

func runUnpack(t *thread, in *inst) {
	v := t.r[in.a]
	for i := range in.n {
		if s := in.vec[i]; s >= 0 {
			t.r[s] = v >> (8 * in.reg * i) & mask(int(in.reg))
		}
	}
}

func decodeMov(d *decoder) {
	t := d.typ(append(moveTypes[:len(moveTypes):len(moveTypes)], pred)...)
	if !d.count(2, 2) {
		return
	}
	result, from := d.ops[0], d.ops[1]
	switch {
	case result.kind == aVector || from.kind == aVector:
		d.pack(t, result, from)
		return
	case from.kind == aWord && !from.negated && (t.size() == 8 || t.size() == 4) && !t.isFloat():
		if s, ok := d.lookup(from.text); ok && s.kind != isRegister {
			d.in.a = d.variable(s, from)
			break
		}
		fallthrough
	default:
		d.in.a = d.specialOr(from, t, false)
	}
	d.in.d, d.in.run = d.dst(result, t), runMov
}

// variable is the slot with the address of a variable.
func (d *decoder) variable(s symbol, o operand) int32 {
	if s.kind == isDynamic {
		return d.specialSlot(dynamicBase, o.line)
	}
	return d.constant(s.value, o.line)
}

func (d *decoder) pack(t typ, result, from operand) {
	v, whole := result.list, from
	if from.kind == aVector {
		v, whole = from.list, result
	}
	elem := map[int]typ{1: b8, 2: b16, 4: b32}[t.size()/max(len(v), 1)]
	if !t.isBits() || elem.size() < 2 || len(v)*elem.size() != t.size() || whole.kind == aVector {
		d.fail(d.line, fmt.Sprintf("mov%s with a vector of %d", t, len(v)), "2 halves of .b32, or 2 or 4 parts of .b64")
		return
	}
	d.in.n, d.in.reg = uint8(len(v)), uint8(elem.size())
	for i, o := range v {
		if from.kind == aVector {
			d.in.vec[i] = d.src(o, elem)
		} else {
			d.in.vec[i] = d.sinkOr(o, elem, false)
		}
	}
	if from.kind == aVector {
		d.in.d, d.in.run = d.dst(result, t), runPack
	} else {
		d.in.a, d.in.run = d.src(from, t), runUnpack
	}
}

// sinkOr is the slot of a result, -1 for the sink _.
func (d *decoder) sinkOr(o operand, t typ, wide bool) int32 {
	if o.kind == aWord && o.text == "_" {
		return -1
	}
	slot, size := d.target(o, t, wide)
	if wide {
		d.in.reg = uint8(size)
	}
	return slot
}

var memoryTypes = []typ{b8, b16, b32, b64, u8, u16, u32, u64, s8, s16, s32, s64, f32, f64}

// accessMods reads the modifiers before the type of a load or store, which
// say how it is ordered and cached: the interpreter is as strict as the
// strictest.
func (d *decoder) accessMods(store bool) {
	strong := d.mod("weak", "volatile", "relaxed", map[bool]string{false: "acquire", true: "release"}[store])
	if strong != "" && strong != "weak" && strong != "volatile" {
		d.need("cta", "gpu", "sys")
	}
	var in []string
	for s := range spaces {
		if s != "" && (s != "param" || !store) {
			in = append(in, s)
		}
	}
	d.in.space = spaces[d.mod(in...)]
	global := d.in.space == globalSpace || d.in.space == genericSpace
	if !store && d.in.space == globalSpace && (strong == "" || strong == "weak") {
		d.mod("nc")
	}
	if strong == "" || strong == "weak" {
		if store {
			d.mod("wb", "cg", "cs", "wt")
		} else {
			d.mod("ca", "cg", "cs", "lu", "cv")
		}
	}
	if global {
		d.mod("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate")
		if !store {
			d.mod("L2::64B", "L2::128B", "L2::256B")
		}
	}
}

// access decodes what ld and st have in common.
func (d *decoder) access(value, address operand, store bool) {
	n := 1
	switch d.mod("v2", "v4") {
	case "v2":
		n = 2
	case "v4":
		n = 4
	}
	t := d.typ(memoryTypes...)
	d.in.n, d.in.elem = uint8(n), t
	values := []operand{value}
	if n > 1 {
		if values = value.list; len(values) != n {
			d.fail(value.line, value, "a vector of %d", n)
			return
		}
	}
	if n*t.size() > 16 {
		d.fail(d.line, fmt.Sprintf("a vector of %d bytes", n*t.size()), "at most 16")
	}
	d.in.reg = uint8(t.size())
	for i, o := range values {
		if store {
			d.in.vec[i] = d.source(o, t, true)
		} else {
			reg := d.in.reg
			d.in.vec[i] = d.sinkOr(o, t, true)
			if i > 0 && d.in.reg != reg && t.isSigned() {
				d.fail(o.line, o, "a register as wide as the others")
			}
		}
	}
	d.address(address)
}

// address decodes [base+offset] into the slot a and the offset x.
func (d *decoder) address(o operand) {
	if o.kind != anAddress {
		d.fail(o.line, o, "an address in brackets")
		return
	}
	d.in.x = uint64(o.offset)
	if v, err := strconv.ParseUint(o.text, 0, 64); err == nil {
		d.in.a = d.constant(v, o.line)
		return
	}
	s, _ := d.lookup(o.text)
	want := map[space]symbolKind{sharedSpace: isShared, paramSpace: isParam}[d.in.space]
	switch {
	case s.kind == isRegister && s.typ.size() == 8 && !s.typ.isFloat(),
		s.kind == isRegister && s.typ.size() == 4 && !s.typ.isFloat() && d.in.space >= sharedSpace:
		d.in.a = int32(s.value)
	case s.kind == isDynamic && want == isShared:
		d.in.a = d.specialSlot(dynamicBase, o.line)
	case s.kind != 0 && s.kind == want:
		if end := o.offset + int64(max(int(d.in.n), 1)*d.in.elem.size()); o.offset < 0 || end > int64(s.size) {
			d.fail(o.line, o, "an access within the %d bytes of %s", s.size, o.text)
		}
		d.in.a = d.constant(s.value, o.line)
	default:
		d.fail(o.line, o, "an address in a register of 64 bits, or a variable of the state space")
	}
}

func decodeLd(d *decoder) {
	d.accessMods(false)
	if d.count(2, 2) {
		d.access(d.ops[0], d.ops[1], false)
		d.in.run = runLoad
		if d.in.space == paramSpace {
			d.in.run = runLoadParam
		}
	}
}

func decodeSt(d *decoder) {
	d.accessMods(true)
	if d.count(2, 2) {
		d.access(d.ops[1], d.ops[0], true)
		d.in.run = runStore
	}
}

// decodeCvta converts between the addresses of a state space and generic ones,
// which differ for shared memory alone.
func decodeCvta(d *decoder) {
	to := d.mod("to") != ""
	s := spaces[d.need("global", "shared")]
	t := d.typ(u64)
	switch {
	case s == globalSpace:
		d.setOne(t, func(a uint64) uint64 { return a })
	case to:
		d.setOne(t, func(a uint64) uint64 { return a - sharedWindow })
	default:
		d.setOne(t, func(a uint64) uint64 { return a + sharedWindow })
	}
}

func runNothing(*thread, *inst) {}

func decodeMembar(d *decoder) {
	d.need("cta", "gl", "sys")
	d.count(0, 0)
	d.in.run = runNothing
}

func decodeFence(d *decoder) {
	d.mod("sc", "acq_rel")
	d.need("cta", "gpu", "sys")
	d.count(0, 0)
	d.in.run = runNothing
}

// atomics has the operations of atom and red with their types. An operation
// takes the old value and the operand.
var atomics = map[string]map[typ]twoFunc{
	"and":  {b32: andBits, b64: andBits},
	"or":   {b32: orBits, b64: orBits},
	"xor":  {b32: xorBits, b64: xorBits},
	"exch": {b32: second, b64: second},
	"add":  {u32: addInt[uint32], s32: addInt[uint32], u64: addInt[uint64], f32: add32, f64: add64},
	"min":  {u32: minInt[uint32], s32: minInt[int32], u64: minInt[uint64], s64: minInt[int64]},
	"max":  {u32: maxInt[uint32], s32: maxInt[int32], u64: maxInt[uint64], s64: maxInt[int64]},
	"inc":  {u32: increaseWithin},
	"dec":  {u32: decreaseWithin},
}

func second(_, b uint64) uint64 { return b }

func increaseWithin(old, limit uint64) uint64 {
	if old >= limit {
		return 0
	}
	return old + 1
}

func decreaseWithin(old, limit uint64) uint64 {
	if old == 0 || old > limit {
		return limit
	}
	return old - 1
}

// atomic decodes atom and red after their name. first is the operand with the
// address.
func (d *decoder) atomic(first int, names ...string) string {
	d.mod("relaxed", "acquire", "release", "acq_rel")
	d.mod("cta", "gpu", "sys")
	d.in.space = spaces[d.mod("global", "shared", "shared::cta")]
	name := d.need(names...)
	operands := first + 2
	if name == "cas" {
		t := d.typ(b16, b32, b64)
		if d.in.elem = t; d.count(operands+1, operands+1) {
			d.in.b, d.in.c, d.in.run = d.src(d.ops[first+1], t), d.src(d.ops[first+2], t), runSwap
		}
	} else {
		var types []typ
		for t := b8; t <= f64; t++ {
			if atomics[name][t] != nil {
				types = append(types, t)
			}
		}
		if d.err != nil {
			return name
		}
		t := d.typ(types...)
		if d.in.elem = t; d.count(operands, operands) {
			d.in.b, d.in.two, d.in.run = d.src(d.ops[first+1], t), atomics[name][t], runAtomic
		}
	}
	if d.err == nil {
		d.in.n = 1
		d.address(d.ops[first])
	}
	return name
}

func decodeAtom(d *decoder) {
	d.atomic(1, "and", "or", "xor", "exch", "cas", "add", "min", "max", "inc", "dec")
	if d.err == nil {
		d.in.d = d.sinkOr(d.ops[0], d.in.elem, false)
	}
}

func decodeRed(d *decoder) {
	d.atomic(0, "and", "or", "xor", "add", "min", "max", "inc", "dec")
	d.in.d = -1
}
