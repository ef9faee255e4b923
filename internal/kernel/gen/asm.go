package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/elementwise"
)

// machine is a set of vector instructions.
type machine struct {
	name   string
	suffix string // of function names
	lanes  int    // float32 per vector
	vector string // register of a whole vector, and of half of one
	half   string
	masks  bool // lanes are chosen by mask registers, not by vectors
	rows   int  // of a tile of the matrix product that fits into the registers, two vectors wide
}

var (
	avx512 = &machine{name: "avx512", suffix: "512", lanes: 16, vector: "Z", half: "Y", masks: true, rows: 14}
	avx2   = &machine{name: "avx2", suffix: "256", lanes: 8, vector: "Y", half: "X", rows: 6}
)

// assembler collects the text of one machine's functions.
type assembler struct {
	*machine
	*group
	functions   []*elementwise.Function
	text, stubs strings.Builder
	table       []uint64       // one 64-bit word per constant, which the file repeats over a whole vector
	lookups     []lookup       // of the file
	orders      [][]uint32     // of words, by which vectors are rearranged
	offset      int            // of the next argument
	loops       int            // of the function
	pins        map[uint64]int // vectors that hold constants
	pinned      map[lookup]int // pairs of vectors that hold tables
	shift       int            // added to the numbers of a function's own vectors, of which it has sideStep
	sides       int            // iterations of a loop whose instructions alternate
	compares    bool           // the function has made a comparison, whose result has one place
}

// lookup is a table of numbers, from which an index takes one by its last five
// bits.
type lookup [32]float32

// sideStep is how many vectors a body has whose instructions alternate with
// those of another iteration.
const sideStep = 6

// Registers that every kernel uses alike. The mask of a row's end is in
// tailMask; on machines without mask registers it takes a vector, and so does
// the result of a comparison.
const (
	tailMask   = "K1"
	tailVector = 15
	testMask   = "K2"
	testVector = 14
)

func (a *assembler) op(format string, args ...any) { fmt.Fprintf(&a.text, "\t"+format+"\n", args...) }

func (a *assembler) label(name string) { fmt.Fprintf(&a.text, "%s:\n", name) }

func (a *assembler) v(i int) string {
	if i < sideStep {
		i += a.shift
	}
	return fmt.Sprint(a.vector, i)
}

func (a *assembler) h(i int) string { return fmt.Sprint(a.half, i) }

// bytes is the size of a vector.
func (a *assembler) bytes() int { return 4 * a.lanes }

// slot is the size of a constant: of the machine's widest vector.
func (a *assembler) slot() int {
	if a.masks {
		return 64
	}
	return 32
}

// narrowly writes code for vectors of half the width, with the instructions of
// the machine.
func (a *assembler) narrowly(body func()) {
	wide := a.machine
	a.machine = &machine{name: wide.name, suffix: wide.suffix, lanes: wide.lanes / 2, vector: wide.half, half: "X", masks: wide.masks, rows: wide.rows}
	body()
	a.machine = wide
}

// param is an argument or a result of a function.
type param struct{ name, typ string }

func (p param) size() int {
	switch p.typ {
	case "float32", "int32":
		return 4
	case "bool":
		return 1
	}
	return 8
}

// function starts a function: its declaration for Go, with a doc unless that is
// empty, and its first line. The results begin at a multiple of eight.
func (a *assembler) function(name, doc string, in, out []param) {
	name += a.suffix
	size := 0
	layout := func(ps []param) (texts []string) {
		for _, p := range ps {
			size = (size + p.size() - 1) / p.size() * p.size()
			size += p.size()
			texts = append(texts, p.name+" "+p.typ)
		}
		return texts
	}
	args := strings.Join(layout(in), ", ")
	results := ""
	if len(out) > 0 {
		size = (size + 7) / 8 * 8
		results = " (" + strings.Join(layout(out), ", ") + ")"
	}
	if doc != "" {
		doc = fmt.Sprintf("\n// %s %s\n//\n", name, doc)
	}
	fmt.Fprintf(&a.stubs, "%s//go:noescape\nfunc %s(%s)%s\n", doc, name, args, results)
	fmt.Fprintf(&a.text, "\n// func %s(%s)%s\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, args, results, name, size)
	a.offset = 0
	a.pins, a.pinned = nil, nil
	a.loops = 0
	a.sides = 1
	a.compares = false
}

// arg returns the place of the next argument in order.
func (a *assembler) arg(p param) string {
	a.offset = (a.offset + p.size() - 1) / p.size() * p.size()
	s := fmt.Sprintf("%s+%d(FP)", p.name, a.offset)
	a.offset += p.size()
	return s
}

// result returns the place of the first result.
func (a *assembler) result(p param) string {
	a.offset = (a.offset + 7) / 8 * 8
	return a.arg(p)
}

// ret leaves with the upper halves of all vectors clean: scalar code would pay
// for each instruction otherwise.
func (a *assembler) ret() {
	a.op("VZEROUPPER")
	a.op("RET")
}

// pin loads the constants and tables that body uses into vectors that nothing
// else does, where the machine has those.
func (a *assembler) pin(body func()) {
	if !a.masks {
		return
	}
	used := a.dry(body)
	words, tables := used.table, used.lookups
	a.pinned = map[lookup]int{}
	for i, t := range tables {
		to := 32 - 2*(i+1)
		for half := range 2 {
			a.op("VMOVUPS lookups%s<>+%d(SB), %s", a.suffix, 128*a.lookupAt(t)+64*half, a.v(to+half))
		}
		a.pinned[t] = to
	}
	pins := map[uint64]int{}
	for i, w := range words[:min(len(words), 16-2*len(tables))] {
		a.op("VMOVUPS %s, %s", a.constant(w), a.v(16+i))
		pins[w] = 16 + i
	}
	a.pins = pins
}

// dry runs body without a trace, and returns the assembler as it was
// afterwards: with the constants and tables that body uses.
func (a *assembler) dry(body func()) (used *assembler) {
	outer := *a
	a.text, a.stubs, a.table, a.lookups = strings.Builder{}, strings.Builder{}, nil, nil
	body()
	inner := *a
	*a = outer
	return &inner
}

// lookupAt returns the place of a table among those of the file.
func (a *assembler) lookupAt(t lookup) int {
	i := slices.Index(a.lookups, t)
	if i < 0 {
		i = len(a.lookups)
		a.lookups = append(a.lookups, t)
	}
	return i
}

// order returns the place of an order of words.
func (a *assembler) order(o []uint32) string {
	i := slices.IndexFunc(a.orders, func(other []uint32) bool { return slices.Equal(o, other) })
	if i < 0 {
		i = len(a.orders)
		a.orders = append(a.orders, o)
	}
	return fmt.Sprintf("orders%s<>+%d(SB)", a.suffix, a.slot()*i)
}

// lookup sets to to the numbers of the table at the indices in from, on
// machines with masks and in the registers that pin was given.
func (a *assembler) lookup(t lookup, from, to int) {
	a.lookupAt(t)
	if from != to {
		a.move(from, to)
	}
	a.op("VPERMI2PS %s, %s, %s", a.v(a.pinned[t]+1), a.v(a.pinned[t]), a.v(to))
}

func (a *assembler) isPinned(c float32) bool {
	_, ok := a.pins[repeated(c)]
	return ok
}

// constant returns the place of a vector of equal words.
func (a *assembler) constant(word uint64) string {
	if v, ok := a.pins[word]; ok {
		return a.v(v)
	}
	at := -1
	for i, w := range a.table {
		if w == word {
			at = i
		}
	}
	if at < 0 {
		at = len(a.table)
		a.table = append(a.table, word)
	}
	return fmt.Sprintf("constants%s<>+%d(SB)", a.suffix, at*a.slot())
}

func (a *assembler) f64(v float64) string { return a.constant(math.Float64bits(v)) }

func (a *assembler) f32(v float32) string { return a.constant(repeated(v)) }

// repeated is a word of two equal numbers.
func repeated(v float32) uint64 {
	b := uint64(math.Float32bits(v))
	return b<<32 | b
}

// constants writes the tables: constants, and ones followed by zeros, from
// which the mask of any number of lanes is cut.
func (a *assembler) constants() string {
	var s strings.Builder
	name := "constants" + a.suffix
	words := a.slot() / 8
	s.WriteString("\n")
	for i, w := range a.table {
		for j := range words {
			fmt.Fprintf(&s, "DATA %s<>+%d(SB)/8, $0x%016x\n", name, 8*(i*words+j), w)
		}
	}
	fmt.Fprintf(&s, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, len(a.table)*a.slot())
	for i, t := range a.lookups {
		for j := 0; j < len(t); j += 2 {
			word := uint64(math.Float32bits(t[j+1]))<<32 | uint64(math.Float32bits(t[j]))
			fmt.Fprintf(&s, "DATA lookups%s<>+%d(SB)/8, $0x%016x\n", a.suffix, 128*i+4*j, word)
		}
	}
	if len(a.lookups) > 0 {
		fmt.Fprintf(&s, "GLOBL lookups%s<>(SB), RODATA|NOPTR, $%d\n", a.suffix, 128*len(a.lookups))
	}
	for i, o := range a.orders {
		for j, at := range o {
			fmt.Fprintf(&s, "DATA orders%s<>+%d(SB)/4, $%d\n", a.suffix, a.slot()*i+4*j, at)
		}
	}
	if len(a.orders) > 0 {
		fmt.Fprintf(&s, "GLOBL orders%s<>(SB), RODATA|NOPTR, $%d\n", a.suffix, a.slot()*len(a.orders))
	}
	if !a.masks {
		s.WriteString("\n")
		for i := range 2 * a.lanes {
			w := uint64(math.MaxUint64)
			if i >= a.lanes {
				w = 0
			}
			fmt.Fprintf(&s, "DATA lanes%s<>+%d(SB)/8, $0x%016x\n", a.suffix, 8*i, w)
		}
		fmt.Fprintf(&s, "GLOBL lanes%s<>(SB), RODATA|NOPTR, $%d\n", a.suffix, 16*a.lanes)
	}
	return s.String()
}

// tail makes the mask of the first CX lanes, fewer than a vector has. It needs
// AX.
func (a *assembler) tail() {
	if a.masks {
		a.op("MOVL $1, AX")
		a.op("SHLL CX, AX")
		a.op("DECL AX")
		a.op("KMOVW AX, %s", tailMask)
		return
	}
	a.cutMask("CX", 0, tailVector)
}

// cutMask loads a vector with ones in the lanes whose number, first on, is
// below count. It spoils count's sign, and needs AX.
func (a *assembler) cutMask(count string, first, to int) {
	a.op("LEAQ lanes%s<>+%d(SB), AX", a.suffix, 8*a.lanes+4*first)
	a.op("NEGQ %s", count)
	a.op("VMOVUPS (AX)(%s*4), %s", count, a.v(to))
	a.op("NEGQ %s", count)
}

// load and store move a vector of float32, or its part that the mask selects.
// With half set it is half a vector.
func (a *assembler) load(from string, to int, half, tail bool) {
	reg, mask := a.v(to), a.v(tailVector)
	if half {
		reg, mask = a.h(to), a.h(tailVector)
	}
	switch {
	case !tail:
		a.op("VMOVUPS %s, %s", from, reg)
	case a.masks:
		a.op("VMOVUPS.Z %s, %s, %s", from, tailMask, reg)
	default:
		a.op("VMASKMOVPS %s, %s, %s", from, mask, reg)
	}
}

func (a *assembler) store(from int, to string, half, tail bool) {
	reg, mask := a.v(from), a.v(tailVector)
	if half {
		reg, mask = a.h(from), a.h(tailVector)
	}
	switch {
	case !tail:
		a.op("VMOVUPS %s, %s", reg, to)
	case a.masks:
		a.op("VMOVUPS %s, %s, %s", reg, tailMask, to)
	default:
		a.op("VMASKMOVPS %s, %s, %s", reg, mask, to)
	}
}

// storeTo stores a vector of float32 or its part that the mask selects. With
// stream set whole vectors bypass the caches; their places are then at
// multiples of a vector's size, and fence must follow.
func (a *assembler) storeTo(stream bool, from int, to string, tail bool) {
	if stream && !tail {
		a.op("VMOVNTPS %s, %s", a.v(from), to)
		return
	}
	a.store(from, to, false, tail)
}

// Predicates of comparisons; the last four are true on NaN.
const (
	less       = 0x11
	greater    = 0x1e
	equal      = 0x00
	unordered  = 0x03
	notLess    = 0x15
	notGreater = 0x1a
	notEqual   = 0x04
)

// opposites are the relations that hold where others do not, of NaN too.
var opposites = map[int]int{less: notLess, greater: notGreater, equal: notEqual}

// choose sets dst to src in the lanes where x has the relation to y, a register
// or a constant. typ is PS or PD.
func (a *assembler) choose(typ string, relation int, x, y, src, dst string) {
	a.compares = true
	if a.masks {
		a.op("VCMP%s $%d, %s, %s, %s", typ, relation, y, x, testMask)
		a.op("VMOVUP%s %s, %s, %s", typ[1:], src, testMask, dst)
		return
	}
	a.op("VCMP%s $%d, %s, %s, %s", typ, relation, y, x, a.v(testVector))
	a.op("VBLENDV%s %s, %s, %s, %s", typ, a.v(testVector), src, dst, dst)
}

// chooseOrZero sets dst to src in the lanes where x has the relation to y, and
// to 0 in the others.
func (a *assembler) chooseOrZero(relation int, x, y, src, dst string) {
	a.compares = true
	if a.masks {
		a.op("VCMPPS $%d, %s, %s, %s", relation, y, x, testMask)
		a.op("VMOVAPS.Z %s, %s, %s", src, testMask, dst)
		return
	}
	a.op("VCMPPS $%d, %s, %s, %s", relation, y, x, a.v(testVector))
	a.op("VANDPS %s, %s, %s", a.v(testVector), src, dst)
}
