package ptx

import (
	"fmt"
	"strings"
)

// builder makes a kernel of the statements of its body.
type builder struct {
	*parser
	kernel    *Kernel
	names     []map[string]symbol // of each open brace
	labels    map[string]label
	jumps     []jump
	constants map[uint64]int32
	special   map[string]int32
	dynamic   int // the alignment of dynamic shared memory; 0 without any
}

type symbolKind uint8

const (
	isRegister symbolKind = iota + 1
	isParam
	isShared
	isDynamic
)

// symbol is a name that statements may use. value is the slot of a register,
// the offset of a parameter or the address of a shared variable.
type symbol struct {
	kind  symbolKind
	typ   typ
	value uint64
	size  int
}

type label struct{ at, line int }

// jump is a branch whose label may follow.
type jump struct {
	at    int
	label string
	line  int
}

func (b *builder) declare(name string, s symbol, line int) {
	scope := b.names[len(b.names)-1]
	if _, taken := scope[name]; taken || specialNames[name] || specialNames[name+".x"] {
		b.fail(line, name, "a name that is not taken")
	}
	scope[name] = s
}

func (b *builder) lookup(name string) (symbol, bool) {
	for i := len(b.names) - 1; i >= 0; i-- {
		if s, ok := b.names[i][name]; ok {
			return s, true
		}
	}
	return symbol{}, false
}

func (b *builder) declareShared(v variable, line int) {
	if v.dynamic {
		b.dynamic = max(b.dynamic, v.align)
		b.declare(v.name, symbol{kind: isDynamic, typ: u64}, line)
		return
	}
	k := b.kernel
	at := (k.shared + v.align - 1) / v.align * v.align
	if k.shared = at + v.size; k.shared > maxSharedBytes {
		b.fail(line, fmt.Sprintf("%d bytes of shared variables", k.shared), "at most %d", maxSharedBytes)
	}
	b.declare(v.name, symbol{kind: isShared, typ: u64, value: uint64(at), size: v.size}, line)
}

// slot makes a slot with an initial value.
func (b *builder) slot(value uint64, line int) int32 {
	k := b.kernel
	if len(k.initial) >= maxSlots {
		b.fail(line, "one register more", "at most %d registers, literals and special registers", maxSlots)
		return 0
	}
	k.initial = append(k.initial, value)
	return int32(len(k.initial) - 1)
}

// constant returns the slot of a value.
func (b *builder) constant(value uint64, line int) int32 {
	if s, ok := b.constants[value]; ok {
		return s
	}
	s := b.slot(value, line)
	b.constants[value] = s
	return s
}

// specialSlot returns the slot of a special register.
func (b *builder) specialSlot(name string, line int) int32 {
	if s, ok := b.special[name]; ok {
		return s
	}
	s := b.slot(0, line)
	b.special[name] = s
	b.kernel.specials = append(b.kernel.specials, special{s, name})
	return s
}

// body reads statements up to the closing brace of the kernel.
func (b *builder) body() {
	b.labels, b.constants, b.special = map[string]label{}, map[uint64]int32{}, map[string]int32{}
	for b.err == nil {
		t := b.peek()
		switch {
		case b.is("{"):
			b.names = append(b.names, map[string]symbol{})
		case b.is("}"):
			if b.names = b.names[:len(b.names)-1]; len(b.names) == 0 {
				return
			}
		case t.text == ".reg":
			b.registers()
		case t.text == ".shared":
			for _, v := range b.sharedVariable() {
				b.declareShared(v, t.line)
			}
		case t.kind == word && b.tokens[b.at+1].text == ":":
			name := b.name("a label")
			b.want(":")
			if old, taken := b.labels[name]; taken {
				b.fail(t.line, name, "a label that line %d has not taken", old.line)
			}
			b.labels[name] = label{len(b.kernel.code), t.line}
		case t.text == "@" || t.kind == word && !strings.HasPrefix(t.text, "."):
			b.statement()
		default:
			b.fail(t.line, t, "a statement or }")
		}
	}
}

// registers reads .reg .type a, b; or .reg .type name<count>;
func (b *builder) registers() {
	b.want(".reg")
	t := b.next()
	ty := typByName[strings.TrimPrefix(t.text, ".")]
	if ty == noType || ty == bf16 || ty.size() == 1 || !strings.HasPrefix(t.text, ".") {
		b.fail(t.line, t, "the type of a register")
	}
	for {
		line := b.peek().line
		name := b.name("a register")
		if b.is("<") {
			n := b.count("a number of registers", 1, maxSlots)
			b.want(">")
			for i := 0; i < n && b.err == nil; i++ {
				b.register(fmt.Sprint(name, i), ty, line)
			}
		} else {
			b.register(name, ty, line)
		}
		if !b.is(",") {
			break
		}
	}
	b.want(";")
}

// unset is what registers hold before they are written, so that a kernel that
// reads one too early does not get a harmless zero.
const unset = 0xa5a5_a5a5_a5a5_a5a5

func (b *builder) register(name string, t typ, line int) {
	value := uint64(1)
	if t != pred {
		value = unset & mask(t.size())
	}
	b.declare(name, symbol{kind: isRegister, typ: t, value: uint64(b.slot(value, line))}, line)
}

// statement reads an instruction with its guard.
func (b *builder) statement() {
	from := b.peek().from
	d := &decoder{builder: b}
	if b.is("@") {
		d.in.guarded, d.in.negated = true, b.is("!")
		t := b.next()
		s, _ := b.lookup(t.text)
		if s.kind != isRegister || s.typ != pred {
			b.fail(t.line, t, "a predicate register")
		}
		d.in.guard = int32(s.value)
	}
	t := b.next()
	if t.kind != word {
		b.fail(t.line, t, "an instruction")
		return
	}
	d.line = t.line
	parts := strings.Split(t.text, ".")
	d.root, d.mods = parts[0], parts[1:]
	for b.err == nil && !b.is(";") {
		if len(d.ops) > 0 {
			b.want(",")
		}
		d.ops = append(d.ops, b.operand())
	}
	if b.err != nil {
		return
	}
	text := strings.Join(strings.Fields(b.text[from:b.tokens[b.at-1].from]), " ")
	d.decode()
	if k := b.kernel; len(k.code) < maxStatements {
		d.in.at = int32(len(k.code))
		k.code = append(k.code, d.in)
		k.places = append(k.places, place{t.line, text})
	} else {
		b.fail(t.line, t, "at most %d instructions", maxStatements)
	}
}

// finish resolves what was not known while statements were read.
func (b *builder) finish() {
	k := b.kernel
	for _, j := range b.jumps {
		l, ok := b.labels[j.label]
		if !ok {
			b.fail(j.line, j.label, "a label of the kernel")
		}
		k.code[j.at].x = uint64(l.at)
	}
	k.code = append(k.code, inst{run: leave, at: int32(len(k.code))}) // a body may end without ret
	k.places = append(k.places, place{b.tokens[max(b.at-1, 0)].line, "}"})
	if b.dynamic > 0 {
		k.dynamic = (k.shared + b.dynamic - 1) / b.dynamic * b.dynamic
		if s, used := b.special[dynamicBase]; used {
			k.initial[s] = uint64(k.dynamic)
		}
	} else {
		k.dynamic = k.shared
	}
}

// dynamicBase is the name of the slot with the address of dynamic shared
// memory.
const dynamicBase = ".extern"
