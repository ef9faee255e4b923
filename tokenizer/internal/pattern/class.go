package pattern

import (
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

// A class is a set of characters.
type class struct {
	ascii   [2]uint64
	props   chars.Prop
	ranges  []rune // pairs of first and last
	scripts []chars.Script
	parts   []*class   // more sets, united
	both    [][]*class // intersections, united
	negate  bool
}

// seal fills the table of ASCII characters.
func (c *class) seal() *class {
	c.ascii = [2]uint64{}
	for r := range rune(utf8.RuneSelf) {
		if c.has(r) {
			c.ascii[r>>6] |= 1 << (r & 63)
		}
	}
	return c
}

// match returns the size of the character at a position if it is in the set,
// and otherwise 0.
func (c *class) match(text []byte, pos int) int {
	if pos >= len(text) {
		return 0
	}
	if b := text[pos]; b < utf8.RuneSelf {
		return int(c.ascii[b>>6] >> (b & 63) & 1)
	}
	r, size := utf8.DecodeRune(text[pos:])
	if c.has(r) {
		return size
	}
	return 0
}

func (c *class) has(r rune) bool { return c.hasPlain(r) != c.negate }

func (c *class) hasPlain(r rune) bool {
	if c.props != 0 && chars.Of(r)&c.props != 0 {
		return true
	}
	for i := 0; i+1 < len(c.ranges); i += 2 {
		if c.ranges[i] <= r && r <= c.ranges[i+1] {
			return true
		}
	}
	for _, s := range c.scripts {
		if s.Has(r) {
			return true
		}
	}
	for _, p := range c.parts {
		if p.has(r) {
			return true
		}
	}
	for _, all := range c.both {
		in := true
		for _, p := range all {
			in = in && p.has(r)
		}
		if in {
			return true
		}
	}
	return false
}

// A byteSet holds bytes.
type byteSet [4]uint64

func (s *byteSet) has(b byte) bool { return s[b>>6]>>(b&63)&1 != 0 }

func (s *byteSet) add(b byte) { s[b>>6] |= 1 << (b & 63) }

func (s *byteSet) join(t byteSet) {
	for i := range s {
		s[i] |= t[i]
	}
}

// firstOf returns the bytes that characters of the set begin with: those of
// ASCII exactly, and every lead byte if others may be in it.
func (c *class) firstOf() byteSet {
	set := byteSet{c.ascii[0], c.ascii[1]}
	onlyASCII := !c.negate && c.props == 0 && c.scripts == nil && c.parts == nil && c.both == nil
	for i := 1; i < len(c.ranges); i += 2 {
		onlyASCII = onlyASCII && c.ranges[i] < utf8.RuneSelf
	}
	if !onlyASCII {
		for b := 0xc0; b <= 0xff; b++ {
			set.add(byte(b))
		}
	}
	return set
}
