package ptx

import "strings"

// typ is a fundamental type.
type typ uint8

const (
	noType typ = iota
	b8
	b16
	b32
	b64
	u8
	u16
	u32
	u64
	s8
	s16
	s32
	s64
	f16
	bf16
	f32
	f64
	pred
)

var typNames = [...]string{noType: "none", b8: "b8", b16: "b16", b32: "b32", b64: "b64", u8: "u8", u16: "u16", u32: "u32", u64: "u64",
	s8: "s8", s16: "s16", s32: "s32", s64: "s64", f16: "f16", bf16: "bf16", f32: "f32", f64: "f64", pred: "pred"}

var typByName = map[string]typ{}

func init() {
	for t := b8; t <= pred; t++ {
		typByName[typNames[t]] = t
	}
}

func (t typ) String() string { return "." + typNames[t] }

// size is in bytes; 0 for predicates.
func (t typ) size() int {
	switch t {
	case b8, u8, s8:
		return 1
	case b16, u16, s16, f16, bf16:
		return 2
	case b32, u32, s32, f32:
		return 4
	case b64, u64, s64, f64:
		return 8
	}
	return 0
}

func (t typ) isBits() bool   { return t >= b8 && t <= b64 }
func (t typ) isSigned() bool { return t >= s8 && t <= s64 }
func (t typ) isInt() bool    { return t >= u8 && t <= s64 }
func (t typ) isFloat() bool  { return t >= f16 && t <= f64 }

// fits reports whether a register of type r may be an operand of type t. Where
// wide is set, as in loads, stores and conversions, the register of an integer
// may be wider than the operand.
func fits(r, t typ, wide bool) bool {
	if r == pred || t == pred {
		return r == t
	}
	if r.size() != t.size() && (!wide || t.isFloat() || r.isFloat() || r.size() < t.size()) {
		return false
	}
	if r.isBits() || t.isBits() {
		return true
	}
	if r.isFloat() || t.isFloat() {
		return r == t
	}
	return true
}

// mask keeps the bits of a register of n bytes.
func mask(n int) uint64 {
	if n >= 8 {
		return ^uint64(0)
	}
	return 1<<(8*n) - 1
}

// extend returns the lower bits of v as a register of the given bytes holds
// them.
func extend(v uint64, t typ, register int) uint64 {
	unused := 64 - 8*t.size()
	if t.isSigned() {
		v = uint64(int64(v<<unused) >> unused)
	} else {
		v = v << unused >> unused
	}
	return v & mask(register)
}

func typeList(ts []typ) string {
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.String()
	}
	return strings.Join(names, ", ")
}
