// Package pattern matches the regular expressions of tokenizer files.
//
// They are in Oniguruma's Ruby syntax and need what package regexp leaves out:
// lookahead, lookbehind, possessive loops and intersections of classes. A
// pattern is compiled to a program that backtracks, as that library's does, so
// that the leftmost match is the one that it finds. Literals, classes, groups,
// loops, anchors and looks are supported; what is not (captures that are read
// back, named groups, conditions) is an error of [Compile] that names it.
//
// A [Regexp] may be used from several goroutines, a [Stack] from one at a time.
package pattern

import (
	"fmt"
	"unicode/utf8"
)

// A Regexp is a compiled pattern.
type Regexp struct {
	source string
	prog   []inst
	first  byteSet // bytes that a match can begin with
	empty  bool    // a match can be empty
}

// maxSteps bounds the work for one match, beside some steps for each byte:
// nested loops can take exponential time on texts that almost match.
const maxSteps = 1_000_000

// A Stack is the memory of searches, to be used again.
type Stack struct {
	frames []frame
	steps  int
}

// A frame is an untried way: where to continue, and at which position.
type frame struct {
	pc   int32
	kind frameKind
	pos  int32
	// least is the lowest position that a loop may give back to, or the next
	// branch of an alternation.
	least int32
}

type frameKind uint8

const (
	resume  frameKind = iota
	giveOne           // a greedy loop continues with one character less
	takeOne           // a lazy loop continues with one character more
	branch            // an alternation tries its next branches
)

// Compile parses a pattern.
func Compile(source string) (*Regexp, error) {
	if !utf8.ValidString(source) {
		return nil, fmt.Errorf("pattern %q: got invalid UTF-8, want a pattern in UTF-8", source)
	}
	p := parser{src: source}
	tree, err := p.parse()
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", source, err)
	}
	c := compiler{}
	c.emit(tree)
	c.add(inst{op: opMatch})
	if c.err != nil {
		return nil, fmt.Errorf("pattern %q: %w", source, c.err)
	}
	re := &Regexp{source: source, prog: c.prog}
	re.first, re.empty = firstBytes(tree)
	return re, nil
}

// Literal returns the pattern that matches a text and nothing else.
func Literal(text string) *Regexp {
	re := &Regexp{source: text, prog: []inst{{op: opLiteral, lit: text}, {op: opMatch}}}
	if text == "" {
		re.empty = true
		return re
	}
	re.first.add(text[0])
	return re
}

// String returns the pattern as it was given.
func (re *Regexp) String() string { return re.source }

// AppendMatches appends start and end of every match in a text of valid UTF-8,
// from left to right. An empty match directly after another match is none.
func (re *Regexp) AppendMatches(dst []int, st *Stack, text []byte) ([]int, error) {
	from, lastEnd := 0, -1
	for from <= len(text) {
		start, end, err := re.find(st, text, from)
		if err != nil {
			return dst, err
		}
		if start < 0 {
			break
		}
		if start == end && end == lastEnd {
			_, size := utf8.DecodeRune(text[from:])
			from += max(size, 1)
			continue
		}
		dst = append(dst, start, end)
		from, lastEnd = end, end
	}
	return dst, nil
}

func (re *Regexp) find(st *Stack, text []byte, from int) (start, end int, err error) {
	st.steps = maxSteps + 64*len(text)
	for at := from; ; {
		if !re.empty {
			for at < len(text) && !re.first.has(text[at]) {
				at++
			}
			if at == len(text) {
				return -1, -1, nil
			}
		}
		st.frames = st.frames[:0]
		end := re.run(st, text, 0, at)
		if st.steps <= 0 {
			return -1, -1, fmt.Errorf("pattern %q: got more than %d steps for one match, want a pattern without nested loops over the same characters", re.source, maxSteps)
		}
		if end >= 0 {
			return at, end, nil
		}
		if at >= len(text) {
			return -1, -1, nil
		}
		_, size := utf8.DecodeRune(text[at:])
		at += size
	}
}

// run executes the program from pc at a position until it matches, and returns
// the end of the match or -1. Frames below those that it finds stay.
func (re *Regexp) run(st *Stack, text []byte, pc int32, pos int) int {
	base := len(st.frames)
	for {
		in := &re.prog[pc]
		ok := true
		switch in.op {
		case opMatch:
			st.frames = st.frames[:base]
			return pos
		case opLiteral:
			if ok = hasPrefix(text[pos:], in.lit); ok {
				pos += len(in.lit)
			}
			pc++
		case opClass:
			n := in.class.match(text, pos)
			pos, ok = pos+n, n > 0
			pc++
		case opLoop:
			pos, ok = re.loop(st, text, in, pc, pos)
			pc++
		case opJump:
			pc = in.to
		case opSplit:
			st.frames = append(st.frames, frame{pc: in.other, pos: int32(pos)})
			pc = in.to
		case opAlternate:
			pc, ok = alternate(st, in, text, pc, pos, 0)
		case opLook, opBehind, opAtomic:
			var end int
			end, ok = re.nested(st, text, in, pc, pos)
			if in.op == opAtomic {
				pos = end
			}
			pc = in.to
		default:
			ok = in.assert(text, pos)
			pc++
		}
		if !ok {
			if pc, pos = re.backtrack(st, text, base); pc < 0 {
				return -1
			}
		}
	}
}

// backtrack takes the last untried way, or returns a negative pc.
func (re *Regexp) backtrack(st *Stack, text []byte, base int) (pc int32, pos int) {
	for len(st.frames) > base {
		if st.steps--; st.steps <= 0 {
			st.frames = st.frames[:base]
			return -1, 0
		}
		f := &st.frames[len(st.frames)-1]
		switch f.kind {
		case giveOne:
			f.pos -= int32(lastSize(text[:f.pos]))
			pc, pos = f.pc, int(f.pos)
			if f.pos <= f.least {
				st.frames = st.frames[:len(st.frames)-1]
			}
			return pc, pos
		case takeOne:
			in := &re.prog[f.pc-1]
			n := in.class.match(text, int(f.pos))
			if n == 0 || f.least == 0 {
				st.frames = st.frames[:len(st.frames)-1]
				continue
			}
			f.pos += int32(n)
			f.least-- // how many more it may take
			return f.pc, int(f.pos)
		case branch:
			g := *f
			st.frames = st.frames[:len(st.frames)-1]
			pc, ok := alternate(st, &re.prog[g.pc], text, g.pc, int(g.pos), g.least)
			if ok {
				return pc, int(g.pos)
			}
		default:
			pc, pos = f.pc, int(f.pos)
			st.frames = st.frames[:len(st.frames)-1]
			return pc, pos
		}
	}
	return -1, 0
}

func lastSize(text []byte) int {
	n := 1
	for n < len(text) && !utf8.RuneStart(text[len(text)-n]) {
		n++
	}
	return n
}

// loop repeats a class.
func (re *Regexp) loop(st *Stack, text []byte, in *inst, pc int32, pos int) (int, bool) {
	n := 0
	for ; n < in.least; n++ {
		size := in.class.match(text, pos)
		if size == 0 {
			return pos, false
		}
		pos += size
	}
	low := pos
	if in.mode == lazy {
		st.frames = append(st.frames, frame{pc: pc + 1, kind: takeOne, pos: int32(pos), least: int32(min(in.most-n, 1<<30))})
		return pos, true
	}
	for ; n < in.most; n++ {
		size := in.class.match(text, pos)
		if size == 0 {
			break
		}
		pos += size
	}
	st.steps -= n
	if in.mode == greedy && pos > low {
		st.frames = append(st.frames, frame{pc: pc + 1, kind: giveOne, pos: int32(pos), least: int32(low)})
	}
	return pos, true
}

// alternate enters the first branch, from the given one on, that can match
// here, and leaves a frame if a later one can, too.
func alternate(st *Stack, in *inst, text []byte, pc int32, pos int, from int32) (int32, bool) {
	found := int32(-1)
	for i := from; i < int32(len(in.branches)); i++ {
		b := &in.branches[i]
		if !b.empty && (pos == len(text) || !b.first.has(text[pos])) {
			continue
		}
		if found >= 0 {
			st.frames = append(st.frames, frame{pc: pc, kind: branch, pos: int32(pos), least: i})
			break
		}
		found = i
	}
	if found < 0 {
		return pc, false
	}
	return in.branches[found].to, true
}

// nested runs the part of a look or of an atomic group, which keeps no untried
// ways.
func (re *Regexp) nested(st *Stack, text []byte, in *inst, pc int32, pos int) (int, bool) {
	switch in.op {
	case opBehind:
		for _, b := range in.behinds {
			at := pos
			n := b.width
			for ; n > 0 && at > 0; n-- {
				at -= lastSize(text[:at])
			}
			if n == 0 && re.run(st, text, b.to, at) >= 0 {
				return pos, !in.negate
			}
		}
		return pos, in.negate
	case opLook:
		return pos, (re.run(st, text, pc+1, pos) >= 0) != in.negate
	}
	end := re.run(st, text, pc+1, pos)
	return end, end >= 0
}

func hasPrefix(text []byte, lit string) bool {
	return len(text) >= len(lit) && string(text[:len(lit)]) == lit
}
