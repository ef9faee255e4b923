package pattern

import (
	"errors"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

type op uint8

const (
	opMatch op = iota
	opLiteral
	opClass
	opLoop
	opJump
	opSplit
	opAlternate
	opLook
	opBehind
	opAtomic
	opLineStart
	opLineEnd
	opTextStart
	opTextEnd
	opLastLineEnd
	opWordEdge
	opNoWordEdge
)

// An inst is one instruction of a program.
type inst struct {
	op          op
	mode        mode
	negate      bool
	to, other   int32
	least, most int
	lit         string
	class       *class
	branches    []branchTo
	behinds     []behind
}

type branchTo struct {
	first byteSet
	empty bool
	to    int32
}

// A behind is a part of fixed width before the position.
type behind struct {
	width int
	to    int32
}

type mode uint8

const (
	greedy mode = iota
	lazy
	possessive
)

// A node is a part of a pattern.
type node struct {
	kind        nodeKind
	class       *class
	lit         string
	op          op // of an assertion
	subs        []*node
	least, most int
	mode        mode
	negate      bool
}

type nodeKind uint8

const (
	nodeEmpty nodeKind = iota
	nodeLiteral
	nodeClass
	nodeAssert
	nodeConcat
	nodeAlternate
	nodeLoop
	nodeLook
	nodeBehind
	nodeAtomic
)

// endless is the most of a loop without a bound.
const endless = 1 << 30

// maxProgram bounds a program, which counted loops repeat their parts in.
const maxProgram = 20_000

type compiler struct {
	prog []inst
	err  error
}

func (c *compiler) add(in inst) int32 {
	if len(c.prog) >= maxProgram {
		if c.err == nil {
			c.err = errors.New("got loops that repeat too much, want smaller counts")
		}
		return 0
	}
	c.prog = append(c.prog, in)
	return int32(len(c.prog) - 1)
}

func (c *compiler) here() int32 { return int32(len(c.prog)) }

func (c *compiler) emit(n *node) {
	if c.err != nil {
		return
	}
	switch n.kind {
	case nodeEmpty:
	case nodeLiteral:
		c.add(inst{op: opLiteral, lit: n.lit})
	case nodeClass:
		c.add(inst{op: opClass, class: n.class})
	case nodeAssert:
		c.add(inst{op: n.op})
	case nodeConcat:
		for _, s := range n.subs {
			c.emit(s)
		}
	case nodeAlternate:
		c.emitAlternate(n)
	case nodeLoop:
		c.emitLoop(n)
	case nodeLook, nodeAtomic:
		op := opLook
		if n.kind == nodeAtomic {
			op = opAtomic
		}
		at := c.add(inst{op: op, negate: n.negate})
		c.emit(n.subs[0])
		c.add(inst{op: opMatch})
		c.prog[at].to = c.here()
	case nodeBehind:
		c.emitBehind(n)
	}
}

func (c *compiler) emitAlternate(n *node) {
	at := c.add(inst{op: opAlternate})
	branches := make([]branchTo, len(n.subs))
	var jumps []int32
	for i, s := range n.subs {
		branches[i].first, branches[i].empty = firstBytes(s)
		branches[i].to = c.here()
		c.emit(s)
		jumps = append(jumps, c.add(inst{op: opJump}))
	}
	c.prog[at].branches = branches
	for _, j := range jumps {
		c.prog[j].to = c.here()
	}
}

func (c *compiler) emitLoop(n *node) {
	body := n.subs[0]
	if body.kind == nodeClass {
		c.add(inst{op: opLoop, class: body.class, least: n.least, most: n.most, mode: n.mode})
		return
	}
	if n.mode == possessive {
		c.emit(&node{kind: nodeAtomic, subs: []*node{{kind: nodeLoop, subs: n.subs, least: n.least, most: n.most}}})
		return
	}
	if _, empty := firstBytes(body); empty && n.most == endless {
		c.err = errors.New("got a loop over a part that can be empty, want one that takes a character each time")
		return
	}
	for range n.least {
		c.emit(body)
	}
	if n.most == endless {
		at := c.add(inst{op: opSplit})
		c.emit(body)
		c.add(inst{op: opJump, to: at})
		c.branch(at, n.mode)
		return
	}
	var exits []int32
	for range n.most - n.least {
		if c.err != nil {
			return
		}
		exits = append(exits, c.add(inst{op: opSplit}))
		c.emit(body)
	}
	for _, at := range exits {
		c.branch(at, n.mode)
	}
}

// branch makes a split enter its loop first, or leave it first.
func (c *compiler) branch(at int32, m mode) {
	in, out := at+1, c.here()
	if m == lazy {
		in, out = out, in
	}
	c.prog[at].to, c.prog[at].other = in, out
}

func (c *compiler) emitBehind(n *node) {
	subs := n.subs
	if subs[0].kind == nodeAlternate {
		subs = subs[0].subs
	}
	at := c.add(inst{op: opBehind, negate: n.negate})
	var behinds []behind
	for _, s := range subs {
		width, ok := s.width()
		if !ok {
			c.err = errors.New("got a lookbehind of several widths, want parts of fixed width")
			return
		}
		behinds = append(behinds, behind{width, c.here()})
		c.emit(s)
		c.add(inst{op: opMatch})
	}
	c.prog[at].behinds = behinds
	c.prog[at].to = c.here()
}

// width returns the number of characters that every match of the part has.
func (n *node) width() (int, bool) {
	switch n.kind {
	case nodeEmpty, nodeAssert, nodeLook, nodeBehind:
		return 0, true
	case nodeLiteral:
		return utf8.RuneCountInString(n.lit), true
	case nodeClass:
		return 1, true
	case nodeAtomic:
		return n.subs[0].width()
	case nodeLoop:
		w, ok := n.subs[0].width()
		return w * n.least, ok && n.least == n.most
	}
	total, same := 0, true
	for i, s := range n.subs {
		w, ok := s.width()
		if !ok {
			return 0, false
		}
		if n.kind == nodeConcat {
			total += w
		} else {
			same = same && (i == 0 || w == total)
			total = w
		}
	}
	return total, same
}

// firstBytes returns the bytes that a match of the part can begin with, and
// whether it can be empty. The set may have more.
func firstBytes(n *node) (set byteSet, empty bool) {
	switch n.kind {
	case nodeLiteral:
		set.add(n.lit[0])
	case nodeClass:
		set = n.class.firstOf()
	case nodeConcat:
		for _, s := range n.subs {
			f, e := firstBytes(s)
			set.join(f)
			if !e {
				return set, false
			}
		}
		return set, true
	case nodeAlternate:
		for _, s := range n.subs {
			f, e := firstBytes(s)
			set.join(f)
			empty = empty || e
		}
	case nodeLoop:
		set, empty = firstBytes(n.subs[0])
		empty = empty || n.least == 0
	case nodeAtomic:
		return firstBytes(n.subs[0])
	default: // an assertion says nothing about what follows
		return byteSet{}, true
	}
	return set, empty
}

// assert tests a position.
func (in *inst) assert(text []byte, pos int) bool {
	switch in.op {
	case opLineStart:
		return pos == 0 || pos < len(text) && text[pos-1] == '\n'
	case opLineEnd:
		return pos == len(text) || text[pos] == '\n'
	case opTextStart:
		return pos == 0
	case opTextEnd:
		return pos == len(text)
	case opLastLineEnd:
		return pos == len(text) || pos == len(text)-1 && text[pos] == '\n'
	}
	before, after := false, false
	if pos > 0 {
		r, _ := utf8.DecodeLastRune(text[:pos])
		before = chars.Of(r)&chars.PatternWord != 0
	}
	if pos < len(text) {
		r, _ := utf8.DecodeRune(text[pos:])
		after = chars.Of(r)&chars.PatternWord != 0
	}
	return (before != after) == (in.op == opWordEdge)
}
