package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

// maxNesting bounds the groups within groups of a pattern.
const maxNesting = 200

type parser struct {
	src     string
	at      int
	fold    bool // (?i)
	dot     bool // (?m): the dot matches line feeds
	nesting int
}

func (p *parser) parse() (*node, error) {
	n, err := p.alternatives()
	if err == nil && p.at < len(p.src) {
		err = fmt.Errorf("got %q at byte %d, want no closing parenthesis without an opening one", p.src[p.at], p.at)
	}
	return n, err
}

func (p *parser) more() bool { return p.at < len(p.src) }

func (p *parser) peek(s string) bool { return strings.HasPrefix(p.src[p.at:], s) }

func (p *parser) take(s string) bool {
	if p.peek(s) {
		p.at += len(s)
		return true
	}
	return false
}

func (p *parser) next() rune {
	r, size := utf8.DecodeRuneInString(p.src[p.at:])
	p.at += size
	return r
}

// unsupported is the error for what follows the position.
func (p *parser) unsupported(from int, what string) error {
	return fmt.Errorf("got %s (%q at byte %d), which is not supported", what, p.src[from:min(p.at, len(p.src))], from)
}

func (p *parser) alternatives() (*node, error) {
	if p.nesting++; p.nesting > maxNesting {
		return nil, fmt.Errorf("got groups within groups %d deep, want at most %d", p.nesting, maxNesting)
	}
	defer func() { p.nesting-- }()
	var subs []*node
	for {
		n, err := p.concat()
		if err != nil {
			return nil, err
		}
		subs = append(subs, n)
		if !p.take("|") {
			break
		}
	}
	if len(subs) == 1 {
		return subs[0], nil
	}
	return &node{kind: nodeAlternate, subs: subs}, nil
}

func (p *parser) concat() (*node, error) {
	var subs []*node
	for p.more() && !p.peek("|") && !p.peek(")") {
		n, err := p.repeated()
		if err != nil {
			return nil, err
		}
		if p.fold && len(subs) > 0 {
			if err := foldsTogether(subs[len(subs)-1], n); err != nil {
				return nil, err
			}
		}
		subs = append(subs, n)
	}
	subs = joinLiterals(subs)
	switch len(subs) {
	case 0:
		return &node{kind: nodeEmpty}, nil
	case 1:
		return subs[0], nil
	}
	return &node{kind: nodeConcat, subs: subs}, nil
}

func joinLiterals(subs []*node) []*node {
	var out []*node
	for _, n := range subs {
		if n.kind == nodeLiteral && len(out) > 0 && out[len(out)-1].kind == nodeLiteral {
			out[len(out)-1] = &node{kind: nodeLiteral, lit: out[len(out)-1].lit + n.lit}
			continue
		}
		out = append(out, n)
	}
	return out
}

// foldsTogether refuses two characters that are, together, the same as one in
// another case: ss and ß.
func foldsTogether(a, b *node) error {
	for _, pair := range []string{"ss", "st", "ff", "fi", "fl"} {
		if a.canBe(rune(pair[0])) && b.canBe(rune(pair[1])) {
			return fmt.Errorf("got %q without regard to case, which is one character in another case: this is not supported", pair)
		}
	}
	return nil
}

func (n *node) canBe(r rune) bool {
	switch n.kind {
	case nodeClass:
		return n.class.has(r)
	case nodeLoop, nodeAtomic:
		return n.subs[0].canBe(r)
	case nodeConcat, nodeAlternate:
		for _, s := range n.subs {
			if s.canBe(r) {
				return true
			}
		}
	}
	return false
}

// repeated parses a part with the counts behind it.
func (p *parser) repeated() (*node, error) {
	n, err := p.atom()
	if err != nil {
		return nil, err
	}
	for loops := 0; p.more(); loops++ {
		from := p.at
		least, most, ok, err := p.counts()
		if err != nil || !ok {
			return n, err
		}
		if loops > 10 {
			return nil, p.unsupported(from, "a count of a count of a count")
		}
		interval := p.src[from] == '{'
		m := greedy
		if p.take("?") {
			if m = lazy; interval && least == most {
				return nil, p.unsupported(from, "a lazy loop with one count")
			}
		} else if !interval && p.take("+") {
			m = possessive
		}
		if n.kind == nodeLoop {
			// A loop over a class gives back from its end alone.
			n = &node{kind: nodeConcat, subs: []*node{n}}
		}
		n = &node{kind: nodeLoop, subs: []*node{n}, least: least, most: most, mode: m}
	}
	return n, nil
}

// counts parses *, +, ? or {n,m}.
func (p *parser) counts() (least, most int, ok bool, err error) {
	switch {
	case p.take("*"):
		return 0, endless, true, nil
	case p.take("+"):
		return 1, endless, true, nil
	case p.take("?"):
		return 0, 1, true, nil
	case !p.peek("{"):
		return 0, 0, false, nil
	}
	end := strings.IndexByte(p.src[p.at:], '}')
	if end < 0 {
		return 0, 0, false, nil
	}
	low, high, comma := strings.Cut(p.src[p.at+1:p.at+end], ",")
	least, errLow := strconv.Atoi(low)
	most, errHigh := strconv.Atoi(high)
	switch {
	case !comma && errLow == nil:
		most = least
	case comma && errLow == nil && high == "":
		most = endless
	case comma && low == "" && errHigh == nil:
		least = 0
	case !comma || errLow != nil || errHigh != nil:
		return 0, 0, false, nil // a literal brace
	}
	if least < 0 || most < least || least > 1000 || most > 1000 && most != endless {
		return 0, 0, false, fmt.Errorf("got the count %q, want counts from low to high of at most 1000", p.src[p.at:p.at+end+1])
	}
	p.at += end + 1
	return least, most, true, nil
}

func (p *parser) atom() (*node, error) {
	from := p.at
	switch r := p.next(); r {
	case '(':
		return p.group(from)
	case '[':
		c, err := p.bracket(0)
		if err != nil {
			return nil, err
		}
		return &node{kind: nodeClass, class: c.seal()}, nil
	case '.':
		c := &class{negate: true}
		if !p.dot {
			c.ranges = []rune{'\n', '\n'}
		}
		return &node{kind: nodeClass, class: c.seal()}, nil
	case '^':
		return &node{kind: nodeAssert, op: opLineStart}, nil
	case '$':
		return &node{kind: nodeAssert, op: opLineEnd}, nil
	case '*', '+', '?':
		return nil, fmt.Errorf("got %q at byte %d, want something to repeat before it", r, from)
	case '\\':
		return p.escape(from)
	default:
		return p.literal(r)
	}
}

func (p *parser) literal(r rune) (*node, error) {
	if !p.fold {
		return &node{kind: nodeLiteral, lit: string(r)}, nil
	}
	c := &class{ranges: []rune{r, r}}
	if err := c.addCases(); err != nil {
		return nil, err
	}
	if len(c.ranges) == 2 {
		return &node{kind: nodeLiteral, lit: string(r)}, nil
	}
	return &node{kind: nodeClass, class: c.seal()}, nil
}

// addCases adds the other cases of the letters of ASCII in a set. Two of them
// have one outside of it.
func (c *class) addCases() error {
	if c.props&^(chars.PatternSpace|digits()) != 0 || c.scripts != nil || c.both != nil {
		return fmt.Errorf("got a property without regard to case, which is not supported")
	}
	for _, s := range c.parts {
		if err := s.addCases(); err != nil {
			return err
		}
	}
	ranges := c.ranges
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i+1] >= utf8.RuneSelf {
			for r := max(ranges[i], utf8.RuneSelf); r <= ranges[i+1]; r++ {
				if letter, _ := chars.Category("l"); chars.Of(r)&letter != 0 {
					return fmt.Errorf("got %q without regard to case, want letters of ASCII there", r)
				}
			}
		}
		for r := ranges[i]; r <= min(ranges[i+1], 'z'); r++ {
			if lower := r | 0x20; 'a' <= lower && lower <= 'z' {
				c.ranges = append(c.ranges, r^0x20, r^0x20)
				switch lower {
				case 's':
					c.ranges = append(c.ranges, 'ſ', 'ſ')
				case 'k':
					c.ranges = append(c.ranges, 0x212a, 0x212a)
				}
			}
		}
	}
	return nil
}

// group parses what follows an opening parenthesis.
func (p *parser) group(from int) (*node, error) {
	n := &node{kind: nodeConcat}
	fold, dot := p.fold, p.dot
	if p.take("?") {
		switch {
		case p.take(":"):
		case p.take("="):
			n = &node{kind: nodeLook}
		case p.take("!"):
			n = &node{kind: nodeLook, negate: true}
		case p.take("<="):
			n = &node{kind: nodeBehind}
		case p.take("<!"):
			n = &node{kind: nodeBehind, negate: true}
		case p.take(">"):
			n = &node{kind: nodeAtomic}
		default:
			rest, err := p.flags(from)
			if err != nil {
				return nil, err
			}
			if rest { // (?i) holds to the end of the group around it
				return p.alternatives()
			}
		}
	}
	sub, err := p.alternatives()
	if err != nil {
		return nil, err
	}
	if !p.take(")") {
		return nil, fmt.Errorf("got a group that begins at byte %d without an end, want a closing parenthesis", from)
	}
	p.fold, p.dot = fold, dot
	n.subs = []*node{sub}
	if n.kind == nodeConcat && sub.kind == nodeClass {
		return sub, nil
	}
	return n, nil
}

// flags parses the letters of (?i:...) and (?i), and returns whether it was
// the second.
func (p *parser) flags(from int) (bool, error) {
	on := true
	for p.more() {
		switch p.next() {
		case 'i':
			p.fold = on
		case 'm':
			p.dot = on
		case '-':
			on = false
		case ':':
			return false, nil
		case ')':
			return true, nil
		default:
			return false, p.unsupported(from, "a group of this kind")
		}
	}
	return false, p.unsupported(from, "a group without an end")
}
