package pattern

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

func digits() chars.Prop {
	set, _ := chars.Category("nd")
	return set
}

// escape parses what follows a backslash outside of brackets.
func (p *parser) escape(from int) (*node, error) {
	if !p.more() {
		return nil, fmt.Errorf("got a backslash at the end, want a character after it")
	}
	asserts := map[byte]op{'b': opWordEdge, 'B': opNoWordEdge, 'A': opTextStart, 'z': opTextEnd, 'Z': opLastLineEnd}
	if op, ok := asserts[p.src[p.at]]; ok {
		p.at++
		return &node{kind: nodeAssert, op: op}, nil
	}
	c, r, err := p.escaped(from)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return p.literal(r)
	}
	if p.fold {
		if err := c.addCases(); err != nil {
			return nil, err
		}
	}
	return &node{kind: nodeClass, class: c.seal()}, nil
}

// escaped parses what follows a backslash: a set, or else a character.
func (p *parser) escaped(from int) (*class, rune, error) {
	switch r := p.next(); r {
	case 'd', 'D':
		return &class{props: digits(), negate: r == 'D'}, 0, nil
	case 's', 'S':
		return &class{props: chars.PatternSpace, negate: r == 'S'}, 0, nil
	case 'w', 'W':
		return &class{props: chars.PatternWord, negate: r == 'W'}, 0, nil
	case 'h', 'H':
		return &class{ranges: []rune{'0', '9', 'a', 'f', 'A', 'F'}, negate: r == 'H'}, 0, nil
	case 'p', 'P':
		c, err := p.property(from, r == 'P')
		return c, 0, err
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 't':
		return nil, '\t', nil
	case 'f':
		return nil, '\f', nil
	case 'v':
		return nil, '\v', nil
	case 'a':
		return nil, '\a', nil
	case 'e':
		return nil, 0x1b, nil
	case 'x', 'u':
		r, err := p.hex(from, r)
		return nil, r, err
	default:
		if r == utf8.RuneError || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return nil, 0, p.unsupported(from, "an escape")
		}
		return nil, r, nil
	}
}

// hex parses the digits of \xHH, \x{H...} and \uHHHH. Bytes that are no
// characters of their own are refused.
func (p *parser) hex(from int, kind rune) (rune, error) {
	digits := ""
	switch {
	case kind == 'x' && p.take("{"):
		digits, _, _ = strings.Cut(p.src[p.at:], "}")
		p.at = min(p.at+len(digits)+1, len(p.src))
	default:
		n := 2
		if kind == 'u' {
			n = 4
		}
		digits = p.src[p.at:min(p.at+n, len(p.src))]
		p.at += len(digits)
		if len(digits) < n {
			return 0, p.unsupported(from, "too few digits")
		}
	}
	v, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || !utf8.ValidRune(rune(v)) || kind == 'x' && len(digits) == 2 && v >= utf8.RuneSelf {
		return 0, p.unsupported(from, "a character by number")
	}
	return rune(v), nil
}

// property parses {Name} or {^Name}.
func (p *parser) property(from int, negate bool) (*class, error) {
	end := strings.IndexByte(p.src[p.at:], '}')
	if !p.peek("{") || end < 0 {
		return nil, p.unsupported(from, "a property without braces")
	}
	name := p.src[p.at+1 : p.at+end]
	p.at += end + 1
	if strings.HasPrefix(name, "^") {
		name, negate = name[1:], !negate
	}
	c := &class{negate: negate}
	key := strings.NewReplacer(" ", "", "_", "", "-", "").Replace(strings.ToLower(name))
	if short, ok := longNames[key]; ok {
		key = short
	}
	if key == "any" {
		c.negate = !c.negate
		return c, nil
	}
	var ok bool
	if c.props, ok = chars.Category(key); ok {
		return c, nil
	}
	script, ok := chars.ScriptOf(key)
	if !ok {
		return nil, p.unsupported(from, "a property that is neither a general category nor a known script")
	}
	c.scripts = []chars.Script{script}
	return c, nil
}

// longNames are the long names of general categories.
var longNames = map[string]string{
	"letter": "l", "mark": "m", "number": "n", "punctuation": "p", "symbol": "s", "separator": "z", "other": "c",
	"uppercaseletter": "lu", "lowercaseletter": "ll", "titlecaseletter": "lt", "modifierletter": "lm",
	"otherletter": "lo", "nonspacingmark": "mn", "spacingmark": "mc", "enclosingmark": "me",
	"decimalnumber": "nd", "letternumber": "nl", "othernumber": "no", "spaceseparator": "zs", "control": "cc",
	"format": "cf", "unassigned": "cn", "privateuse": "co", "mathsymbol": "sm", "currencysymbol": "sc",
	"modifiersymbol": "sk", "othersymbol": "so", "dashpunctuation": "pd", "connectorpunctuation": "pc",
	"openpunctuation": "ps", "closepunctuation": "pe", "otherpunctuation": "po",
}

// bracket parses a class after its opening bracket.
func (p *parser) bracket(depth int) (*class, error) {
	if depth > maxNesting {
		return nil, fmt.Errorf("got classes within classes more than %d deep, want fewer", maxNesting)
	}
	negate := p.take("^")
	c := &class{}
	var both []*class
	for first := true; ; first = false {
		if !p.more() {
			return nil, fmt.Errorf("got a class without an end, want a closing bracket")
		}
		if !first && p.take("]") {
			break
		}
		if p.take("&&") {
			both = append(both, c)
			c = &class{}
			continue
		}
		if err := p.classItem(c, depth); err != nil {
			return nil, err
		}
	}
	for _, part := range append(both, c) {
		if p.fold {
			if err := part.addCases(); err != nil {
				return nil, err
			}
		}
	}
	if both != nil {
		c = &class{both: [][]*class{append(both, c)}}
	}
	c.negate = negate
	return c, nil
}

// classItem parses a character, a range or a set within brackets.
func (p *parser) classItem(c *class, depth int) error {
	from := p.at
	if p.peek("[:") {
		return p.posix(c)
	}
	low := p.next()
	switch low {
	case '[':
		sub, err := p.bracket(depth + 1)
		if err != nil {
			return err
		}
		c.parts = append(c.parts, sub)
		return nil
	case '\\':
		if !p.more() {
			return fmt.Errorf("got a backslash at the end, want a character after it")
		}
		if p.take("b") {
			low = '\b'
			break
		}
		set, r, err := p.escaped(from)
		if err != nil {
			return err
		}
		if set != nil {
			c.addSet(set.bracketed())
			return nil
		}
		low = r
	}
	high := low
	if p.peek("-") && !p.peek("-]") {
		p.at++
		to := p.at
		high = p.next()
		if high == '\\' {
			set, r, err := p.escaped(to)
			if err != nil {
				return err
			}
			if set != nil {
				return p.unsupported(from, "a range that ends in a set")
			}
			high = r
		} else if high == '[' {
			return p.unsupported(from, "a range that ends in a class")
		}
		if high < low {
			return fmt.Errorf("got the range %q, want one from low to high", p.src[from:p.at])
		}
	}
	c.ranges = append(c.ranges, low, high)
	return nil
}

// addSet unites a class with a set of one property.
func (c *class) addSet(set *class) {
	if set.negate || set.scripts != nil || set.both != nil {
		c.parts = append(c.parts, set)
		return
	}
	c.props |= set.props
	c.ranges = append(c.ranges, set.ranges...)
}

// posix parses [:name:] within brackets.
func (p *parser) posix(c *class) error {
	from := p.at
	name, _, ok := strings.Cut(p.src[p.at+2:], ":]")
	if !ok {
		return fmt.Errorf("got %q at byte %d, want a name and :] after it", "[:", from)
	}
	p.at += 4 + len(name)
	negate := strings.HasPrefix(name, "^")
	sets := map[string]*class{
		"digit": {props: digits()}, "space": {props: chars.PatternSpace}, "word": {props: chars.PatternWord},
		"xdigit": {ranges: []rune{'0', '9', 'a', 'f', 'A', 'F'}},
	}
	set := sets[strings.TrimPrefix(name, "^")]
	if set == nil {
		return p.unsupported(from, "a class by name")
	}
	set = set.bracketed()
	set.negate = negate
	c.addSet(set)
	return nil
}

// bracketed returns the form that a set has within brackets: there, in
// Oniguruma, the superscripts and fractions of Latin-1 are no word characters.
func (c *class) bracketed() *class {
	if c.props != chars.PatternWord {
		return c
	}
	signs := &class{ranges: []rune{'²', '³', '¹', '¹', '¼', '¾'}, negate: true}
	return &class{both: [][]*class{{{props: chars.PatternWord}, signs}}, negate: c.negate}
}
