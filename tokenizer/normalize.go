package tokenizer

import (
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
	"github.com/tenure-go/tenure/tokenizer/internal/pattern"
)

// A normalizer changes the text of a piece.
type normalizer interface {
	normalize(s *scratch, p *piece) error
}

type normalizers []normalizer

func (ns normalizers) normalize(s *scratch, p *piece) error {
	for _, n := range ns {
		if err := n.normalize(s, p); err != nil {
			return err
		}
	}
	return nil
}

// A filter drops the characters with a property.
type filter chars.Prop

func (f filter) normalize(s *scratch, p *piece) error {
	if f.keepsASCII() && isASCII(p.text) && p.whole() {
		return nil
	}
	s.drop(p, func(r rune) bool { return chars.Of(r)&chars.Prop(f) != 0 })
	return nil
}

// keepsASCII says that the property is one of marks.
func (f filter) keepsASCII() bool { return chars.Prop(f)&^(chars.Accent|chars.Mark) == 0 }

// drop removes characters. A character stands for those that are gone after it.
func (s *scratch) drop(p *piece, gone func(rune) bool) {
	s.changes = s.changes[:0]
	skipped, any := 0, false
	for at := 0; at < len(p.text); {
		r, size := utf8.DecodeRune(p.text[at:])
		at += size
		switch {
		case !gone(r):
			s.changes = append(s.changes, change{r, 0})
			continue
		case len(s.changes) == 0:
			skipped++
		default:
			s.changes[len(s.changes)-1].by--
		}
		any = true
	}
	if any || !p.whole() {
		s.transform(p, s.changes, skipped)
	}
}

// replaceRunes puts one character in the place of another.
func (s *scratch) replaceRunes(p *piece, to func(rune) rune) {
	s.changes = s.changes[:0]
	any := false
	for at := 0; at < len(p.text); {
		r, size := utf8.DecodeRune(p.text[at:])
		at += size
		t := to(r)
		any = any || t != r
		s.changes = append(s.changes, change{t, 0})
	}
	if any || !p.whole() {
		s.transform(p, s.changes, 0)
	}
}

func isASCII(text []byte) bool {
	for _, b := range text {
		if b >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// bert cleans a text as BERT's tokenizers do.
type bert struct{ clean, chinese, accents, lower bool }

func (n bert) normalize(s *scratch, p *piece) error {
	if n.ascii(s, p) {
		return nil
	}
	if n.clean {
		s.drop(p, func(r rune) bool { return r == 0 || r == utf8.RuneError || isControl(r) })
		s.replaceRunes(p, func(r rune) rune {
			if isSpace(r) {
				return ' '
			}
			return r
		})
	}
	if n.chinese {
		s.spaceChinese(p)
	}
	if n.accents {
		form{}.normalize(s, p)
		filter(chars.Accent).normalize(s, p)
	}
	if n.lower {
		lowercase{}.normalize(s, p)
	}
	return nil
}

// ascii normalizes a text of ASCII in place, unless characters are to go.
func (n bert) ascii(s *scratch, p *piece) bool {
	plain := p.whole()
	if !plain {
		return false
	}
	for _, b := range p.text {
		if b >= utf8.RuneSelf || n.clean && isControl(rune(b)) {
			return false
		}
		plain = plain && (b >= ' ' && (b < 'A' || b > 'Z'))
	}
	if plain {
		return true
	}
	text := append(s.bytes.take(len(p.text)), p.text...)
	for i, b := range text {
		switch {
		case n.lower && 'A' <= b && b <= 'Z':
			text[i] = b + 'a' - 'A'
		case n.clean && b < ' ':
			text[i] = ' ' // white space, which alone is no control here
		}
	}
	p.text = text
	return true
}

func isControl(r rune) bool {
	if r < ' ' {
		return r != '\t' && r != '\n' && r != '\r'
	}
	return chars.Of(r)&chars.Control != 0
}

func isSpace(r rune) bool { return chars.Of(r)&chars.Space != 0 }

func (s *scratch) spaceChinese(p *piece) {
	s.changes = s.changes[:0]
	any := false
	for at := 0; at < len(p.text); {
		r, size := utf8.DecodeRune(p.text[at:])
		at += size
		if isChinese(r) {
			s.changes = append(s.changes, change{' ', 0}, change{r, 1}, change{' ', 1})
			any = true
			continue
		}
		s.changes = append(s.changes, change{r, 0})
	}
	if any || !p.whole() {
		s.transform(p, s.changes, 0)
	}
}

// isChinese has BERT's blocks of ideographs. The gap between the fifth and the
// sixth is a slip of the reference library that models were trained with.
func isChinese(r rune) bool {
	return 0x4e00 <= r && r <= 0x9fff || 0x3400 <= r && r <= 0x4dbf || 0xf900 <= r && r <= 0xfaff ||
		0x20000 <= r && r <= 0x2a6df || 0x2a700 <= r && r <= 0x2b73f || 0x2b740 <= r && r <= 0x2b81f ||
		0x2b920 <= r && r <= 0x2ceaf || 0x2f800 <= r && r <= 0x2fa1f
}

type lowercase struct{}

func (lowercase) normalize(s *scratch, p *piece) error {
	if (bert{lower: true}).ascii(s, p) {
		return nil
	}
	s.changes = s.changes[:0]
	any := false
	for at := 0; at < len(p.text); {
		r, size := utf8.DecodeRune(p.text[at:])
		at += size
		first, second := chars.Lower(r)
		any = any || first != r
		s.changes = append(s.changes, change{first, 0})
		if second != 0 {
			s.changes = append(s.changes, change{second, 1})
		}
	}
	if any || !p.whole() {
		s.transform(p, s.changes, 0)
	}
	return nil
}

// A form is a normal form of Unicode.
type form struct{ compose, compatible bool }

func (f form) normalize(s *scratch, p *piece) error {
	if isASCII(p.text) && p.whole() {
		return nil
	}
	changes, parts := s.changes[:0], s.parts[:0]
	flush := func() {
		// Marks are put in the order of their classes, in stable order.
		for i := 1; i < len(parts); i++ {
			for j := i; j > 0 && parts[j].Class < parts[j-1].Class; j-- {
				parts[j], parts[j-1] = parts[j-1], parts[j]
			}
		}
		for _, q := range parts {
			changes = append(changes, change{q.Rune, q.by})
		}
		parts = parts[:0]
	}
	buf := make([]chars.Part, 0, 20)
	for at := 0; at < len(p.text); {
		r, size := utf8.DecodeRune(p.text[at:])
		at += size
		buf = chars.Decompose(buf[:0], r, f.compatible)
		for i, d := range buf {
			if d.Class == 0 && len(parts) > 0 {
				flush()
			}
			by := int32(1)
			if i == 0 {
				by = 0
			}
			if d.Class == 0 {
				changes = append(changes, change{d.Rune, by})
			} else {
				parts = append(parts, part{d, by})
			}
		}
	}
	flush()
	if f.compose {
		changes = composed(changes)
	}
	s.changes, s.parts = changes, parts
	s.transform(p, changes, 0)
	return nil
}

// A part of a decomposition, with its change.
type part struct {
	chars.Part
	by int32
}

// composed joins the characters of a decomposed text, in place.
func composed(in []change) []change {
	out := in[:0]
	starter := -1    // in out, the character that others join
	last := uint8(0) // class of what stands between
	for _, c := range in {
		class := chars.Class(c.r)
		if starter >= 0 {
			adjacent := starter == len(out)-1
			if adjacent || last < class {
				if r := chars.Compose(out[starter].r, c.r); r != 0 {
					out[starter].r = r
					out[starter].by += c.by - 1
					continue
				}
			}
		}
		if class == 0 {
			starter = len(out)
		}
		last = class
		out = append(out, c)
	}
	return out
}

// strip removes white space from the ends.
type strip struct{ left, right bool }

func (n strip) normalize(s *scratch, p *piece) error {
	if n.left && n.right {
		s.strip(p, true, true)
		return nil
	}
	if n.left {
		s.strip(p, true, false)
	}
	if n.right {
		s.strip(p, false, true)
	}
	return nil
}

func (s *scratch) strip(p *piece, left, right bool) {
	leading, trailing, count := 0, 0, 0
	s.changes = s.changes[:0]
	for at := 0; at < len(p.text); count++ {
		r, size := utf8.DecodeRune(p.text[at:])
		at += size
		s.changes = append(s.changes, change{r, 0})
		if isSpace(r) {
			if leading == count {
				leading++
			}
			trailing++
		} else {
			trailing = 0
		}
	}
	if !left {
		leading = 0
	}
	if !right {
		trailing = 0
	}
	if leading == 0 && trailing == 0 {
		return
	}
	// In a text of white space alone the two overlap.
	kept := s.changes[min(leading, count):max(count-trailing, min(leading, count))]
	// The reference library counts bytes here, so that only in texts of one
	// byte a character does the last one stand for what is gone.
	if last := len(p.text) - trailing - 1; len(kept) > 0 && last >= leading && last < count-trailing {
		s.changes[last].by = -int32(trailing)
	}
	s.transform(p, kept, leading)
}

type prepend string

func (n prepend) normalize(s *scratch, p *piece) error {
	s.prepend(p, string(n))
	return nil
}

type replacing struct {
	re      *pattern.Regexp
	content string
}

func (n replacing) normalize(s *scratch, p *piece) error { return s.replace(p, n.re, n.content) }

// nmt is the cleaning of a text in SentencePiece's rules for translation.
type nmt struct{}

func (nmt) normalize(s *scratch, p *piece) error {
	s.drop(p, func(r rune) bool {
		return 1 <= r && r <= 8 || r == 0xb || 0xe <= r && r <= 0x1f || r == 0x7f || r == 0x8f || r == 0x9f
	})
	s.replaceRunes(p, func(r rune) rune {
		switch r {
		case 9, 0xa, 0xc, 0xd, 0x1680, 0x200b, 0x200c, 0x200d, 0x200e, 0x200f, 0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd:
			return ' '
		}
		return r
	})
	return nil
}
