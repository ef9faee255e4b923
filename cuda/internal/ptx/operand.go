package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

type operandKind uint8

const (
	aWord operandKind = iota + 1
	aNumber
	anAddress
	aVector
	aPair // p|q
)

// operand is one as it stands in the text.
type operand struct {
	kind    operandKind
	text    string // the word or the number; the base of an address
	second  string // of a pair
	minus   bool
	negated bool // !p
	offset  int64
	list    []operand
	line    int
}

func (o operand) String() string {
	switch o.kind {
	case anAddress:
		return fmt.Sprintf("[%s%+d]", o.text, o.offset)
	case aVector:
		return fmt.Sprintf("a vector of %d", len(o.list))
	case aPair:
		return o.text + "|" + o.second
	case aNumber:
		if o.minus {
			return "-" + o.text
		}
	}
	return strconv.Quote(o.text)
}

// operand reads one.
func (b *builder) operand() operand {
	o := operand{line: b.peek().line}
	switch {
	case b.is("["):
		o.kind = anAddress
		b.address(&o)
		return o
	case b.is("{"):
		o.kind = aVector
		for b.err == nil {
			o.list = append(o.list, b.operand())
			if !b.is(",") {
				break
			}
		}
		b.want("}")
		if len(o.list) > 4 {
			b.fail(o.line, o, "at most 4 elements")
		}
		return o
	case b.is("!"):
		o.negated = true
	case b.is("-"):
		o.minus = true
	}
	t := b.next()
	o.text = t.text
	switch {
	case t.kind == number && !o.negated:
		o.kind = aNumber
	case t.kind == word && !o.minus:
		o.kind = aWord
		if !o.negated && b.is("|") {
			o.kind, o.second = aPair, b.next().text
		}
	default:
		b.fail(t.line, t, "an operand")
	}
	return o
}

// address reads the rest of [base+offset].
func (b *builder) address(o *operand) {
	t := b.next()
	if o.text = t.text; t.kind != word && t.kind != number {
		b.fail(t.line, t, "a register, a variable or a number")
	}
	if b.is("]") {
		return
	}
	minus := b.is("-")
	if !minus {
		b.want("+")
		minus = b.is("-")
	}
	t = b.next()
	n, err := strconv.ParseInt(t.text, 0, 32)
	if t.kind != number || err != nil {
		b.fail(t.line, t, "an offset of 32 bits")
	}
	if o.offset = n; minus {
		o.offset = -n
	}
	b.want("]")
}

// decoder decodes one instruction.
type decoder struct {
	*builder
	in   inst
	root string
	mods []string // those that are not decoded yet
	ops  []operand
	line int
}

// decode looks the instruction up and runs its decoder, which must use every
// modifier.
func (d *decoder) decode() {
	f, ok := instructions[d.root]
	if !ok {
		d.fail(d.line, strconv.Quote(d.root), "an instruction of the subset")
		return
	}
	f(d)
	if len(d.mods) > 0 {
		d.fail(d.line, fmt.Sprintf("%s with .%s", d.root, d.mods[0]), "another modifier, or none, there")
	}
	if d.err == nil && d.in.run == nil {
		panic("BUG: ptx: " + d.root + " has no implementation")
	}
}

// mod takes the next modifier if it is one of names, else it is "".
func (d *decoder) mod(names ...string) string {
	if len(d.mods) > 0 && slices.Contains(names, d.mods[0]) {
		m := d.mods[0]
		d.mods = d.mods[1:]
		return m
	}
	return ""
}

// need is mod for a modifier that must be there.
func (d *decoder) need(names ...string) string {
	m := d.mod(names...)
	if m == "" {
		d.fail(d.line, d.nextMod(), ".%s", strings.Join(names, ", ."))
	}
	return m
}

func (d *decoder) nextMod() string {
	if len(d.mods) == 0 {
		return d.root + " without a further modifier"
	}
	return d.root + " with ." + d.mods[0]
}

// typ takes the type that must be next.
func (d *decoder) typ(allowed ...typ) typ {
	if len(d.mods) > 0 {
		if t := typByName[d.mods[0]]; slices.Contains(allowed, t) {
			d.mods = d.mods[1:]
			return t
		}
	}
	d.fail(d.line, d.nextMod(), "one of the types %s", typeList(allowed))
	return allowed[0]
}

// count checks the number of operands.
func (d *decoder) count(low, high int) bool {
	if n := len(d.ops); n < low || n > high {
		d.fail(d.line, fmt.Sprintf("%s with %d operands", d.root, n), "%d to %d", low, high)
	}
	return d.err == nil
}

// src returns the slot of an operand of type t.
func (d *decoder) src(o operand, t typ) int32 { return d.source(o, t, false) }

func (d *decoder) source(o operand, t typ, wide bool) int32 {
	switch {
	case o.kind == aNumber:
		return d.constant(d.literal(o, t), o.line)
	case o.kind == aWord && o.text == "WARP_SZ" && !o.negated:
		return d.constant(32, o.line)
	case o.kind == aWord && !o.negated:
		if s, ok := d.lookup(o.text); ok && s.kind == isRegister {
			if !fits(s.typ, t, wide) {
				d.fail(o.line, fmt.Sprintf("%s of type %s", o.text, s.typ), "one of type %s", t)
			}
			return int32(s.value)
		}
	}
	d.fail(o.line, o, "a register or a literal of type %s", t)
	return 0
}

// dst returns the slot of the register o, which an instruction writes.
func (d *decoder) dst(o operand, t typ) int32 {
	slot, _ := d.target(o, t, false)
	return slot
}

// target is dst, and the bytes of the register.
func (d *decoder) target(o operand, t typ, wide bool) (slot int32, bytes int) {
	s, ok := d.lookup(o.text)
	if o.kind != aWord || o.negated || !ok || s.kind != isRegister || !fits(s.typ, t, wide) {
		found := o.String()
		if ok && s.kind == isRegister {
			found = fmt.Sprintf("%s of type %s", o.text, s.typ)
		}
		d.fail(o.line, found, "a register of type %s for the result", t)
	}
	return int32(s.value), s.typ.size()
}

// literal returns the bits of a number as an operand of type t.
func (d *decoder) literal(o operand, t typ) uint64 {
	text := strings.ToLower(o.text)
	if len(text) > 2 && (text[:2] == "0f" || text[:2] == "0d") {
		size := map[byte]int{'f': 4, 'd': 8}[text[1]]
		v, err := strconv.ParseUint(text[2:], 16, 64)
		if err != nil || len(text) != 2+2*size || t.size() != size || t.isInt() || t == pred {
			d.fail(o.line, o, "a literal of type %s", t)
		}
		if o.minus {
			v ^= 1 << (8*size - 1)
		}
		return v
	}
	if t.isFloat() {
		d.fail(o.line, o, "a literal of type %s: 0f and 8, or 0d and 16 hexadecimal digits", t)
		return 0
	}
	digits := strings.TrimSuffix(text, "u")
	if len(digits) > 1 && digits[0] == '0' && isDigit(digits[1]) {
		digits = "0o" + digits[1:]
	}
	v, err := strconv.ParseUint(digits, 0, 64)
	limit := mask(t.size())
	if o.minus {
		limit = limit/2 + 1
	}
	if err != nil || v > limit || t == pred {
		d.fail(o.line, o, "an integer that fits %s", t)
	}
	if o.minus {
		v = -v
	}
	return v & mask(t.size())
}

// predicate returns the slot of a predicate operand and whether it is negated.
func (d *decoder) predicate(o operand) (int32, bool) {
	negated := o.negated
	o.negated = false
	return d.src(o, pred), negated
}
