package tokenizer

import (
	"bytes"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
	"github.com/tenure-go/tenure/tokenizer/internal/pattern"
)

// A preTokenizer cuts the pieces of a text.
type preTokenizer interface {
	cut(s *scratch) error
}

type preTokenizers []preTokenizer

func (ps preTokenizers) cut(s *scratch) error {
	for _, p := range ps {
		if err := p.cut(s); err != nil {
			return err
		}
	}
	return nil
}

// A behavior says what becomes of the matches that a text is split at.
type behavior uint8

const (
	removed behavior = iota
	isolated
	mergedWithPrevious
	mergedWithNext
	contiguous
)

// A matcher appends the parts of a text, in order, to cuts: token is 0 for a
// match and noToken for what is between two.
type matcher interface {
	match(s *scratch, dst []cut, text []byte) ([]cut, error)
}

// A splitter cuts pieces at matches.
type splitter struct {
	at       matcher
	invert   bool
	behavior behavior
}

func (n splitter) cut(s *scratch) error {
	return s.each(func(p *piece) error { return n.split(s, p) })
}

// each replaces every piece that is no added token by those that f appends to
// s.spare. Empty ones are dropped.
func (s *scratch) each(f func(p *piece) error) error {
	s.spare = s.spare[:0]
	for i := range s.pieces {
		if p := &s.pieces[i]; p.token != noToken {
			s.spare = append(s.spare, *p)
		} else if err := f(p); err != nil {
			return err
		}
	}
	s.pieces, s.spare = s.spare, s.pieces
	return nil
}

// emit appends a piece to the result of each.
func (s *scratch) emit(p piece) {
	if len(p.text) > 0 {
		s.spare = append(s.spare, p)
	}
}

func (n splitter) split(s *scratch, p *piece) error {
	if len(p.text) == 0 {
		return nil
	}
	var err error
	s.bounds, err = n.at.match(s, s.bounds[:0], p.text)
	if err != nil {
		return err
	}
	cuts := s.bounds
	if n.invert {
		for i := range cuts {
			cuts[i].token = noToken - cuts[i].token
		}
	}
	cuts = n.behavior.join(cuts)
	if len(cuts) == 1 && cuts[0].start == 0 && cuts[0].end == len(p.text) {
		// A part that is all of a text keeps even what it stands for.
		if q := p.slice(0, len(p.text)); n.behavior != removed || cuts[0].token == noToken {
			s.emit(q)
		}
		return nil
	}
	for _, c := range cuts {
		if n.behavior != removed || c.token == noToken {
			s.emit(p.slice(c.start, c.end))
		}
	}
	return nil
}

// join unites parts as the behavior says, in place.
func (b behavior) join(cuts []cut) []cut {
	out := cuts[:0]
	before := false // whether the last part was a match
	switch b {
	case contiguous, mergedWithPrevious:
		for _, c := range cuts {
			match := c.token != noToken
			unite := match && !before
			if b == contiguous {
				unite = match == before
			}
			if unite && len(out) > 0 {
				out[len(out)-1].end = c.end
			} else {
				out = append(out, c)
			}
			before = match
		}
		return out
	case mergedWithNext:
		// From the right: a match joins what follows it.
		at := len(cuts)
		for i := len(cuts) - 1; i >= 0; i-- {
			match := cuts[i].token != noToken
			if match && !before && at < len(cuts) {
				cuts[at].start = cuts[i].start
			} else {
				at--
				cuts[at] = cuts[i]
			}
			before = match
		}
		return cuts[at:]
	}
	return cuts
}

// patternMatcher matches a regular expression.
type patternMatcher struct{ re *pattern.Regexp }

func (m patternMatcher) match(s *scratch, dst []cut, text []byte) ([]cut, error) {
	var err error
	s.matches, err = m.re.AppendMatches(s.matches[:0], &s.stack, text)
	if err != nil {
		return dst, err
	}
	last := 0
	for i := 0; i < len(s.matches); i += 2 {
		start, end := s.matches[i], s.matches[i+1]
		if last != start {
			dst = append(dst, cut{noToken, last, start})
		}
		dst = append(dst, cut{0, start, end})
		last = end
	}
	if last != len(text) {
		dst = append(dst, cut{noToken, last, len(text)})
	}
	return dst, nil
}

// propMatcher matches single characters with a property.
type propMatcher chars.Prop

func (m propMatcher) match(_ *scratch, dst []cut, text []byte) ([]cut, error) {
	last := 0
	for at := 0; at < len(text); {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[at:])
		}
		if chars.Of(r)&chars.Prop(m) != 0 {
			if last < at {
				dst = append(dst, cut{noToken, last, at})
			}
			dst = append(dst, cut{0, at, at + size})
			last = at + size
		}
		at += size
	}
	if last < len(text) {
		dst = append(dst, cut{noToken, last, len(text)})
	}
	return dst, nil
}

// runeMatcher matches one character.
type runeMatcher rune

func (m runeMatcher) match(_ *scratch, dst []cut, text []byte) ([]cut, error) {
	var buf [utf8.UTFMax]byte
	sep := buf[:utf8.EncodeRune(buf[:], rune(m))]
	last := 0
	for {
		i := bytes.Index(text[last:], sep)
		if i < 0 {
			break
		}
		if i > 0 {
			dst = append(dst, cut{noToken, last, last + i})
		}
		last += i + len(sep)
		dst = append(dst, cut{0, last - len(sep), last})
	}
	if last < len(text) {
		dst = append(dst, cut{noToken, last, len(text)})
	}
	return dst, nil
}

// wordMatcher matches runs of word characters and runs of signs.
type wordMatcher struct{}

func (wordMatcher) match(_ *scratch, dst []cut, text []byte) ([]cut, error) {
	const space, word, sign = 1, 2, 3
	start, kind := 0, 0
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRune(text[at:])
		k := sign
		if p := chars.Of(r); p&chars.Word != 0 {
			k = word
		} else if p&chars.Space != 0 {
			k = space
		}
		if k != kind {
			dst = appendRun(dst, start, at, kind == space)
			start, kind = at, k
		}
		at += size
	}
	return appendRun(dst, start, len(text), kind == space), nil
}

func appendRun(dst []cut, start, end int, gap bool) []cut {
	switch {
	case start == end:
		return dst
	case gap:
		return append(dst, cut{noToken, start, end})
	}
	return append(dst, cut{0, start, end})
}

// byteLevel turns the bytes of pieces into characters.
type byteLevel struct {
	prefix bool     // put a space before pieces without one
	at     splitter // how to split first, if split is set
	split  bool
	// raw leaves the bytes to the model, which has the vocabulary for them.
	raw bool
}

// gpt2 is the pattern that the pre-tokenizer ByteLevel splits at.
const gpt2 = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

func (n byteLevel) cut(s *scratch) error {
	err := s.each(func(p *piece) error {
		if n.prefix && !hasPrefix(p.text, " ") {
			s.prepend(p, " ")
		}
		if !n.split {
			s.emit(*p)
			return nil
		}
		return n.at.split(s, p)
	})
	if err != nil {
		return err
	}
	for i := range s.pieces {
		if p := &s.pieces[i]; p.token != noToken {
			continue
		} else if n.raw && p.whole() {
			p.raw = true
		} else {
			s.byteLevel(p)
		}
	}
	return nil
}

// metaspace puts a character in the place of spaces and splits there.
type metaspace struct {
	sep   string   // the character
	at    splitter // splits there, if split is set
	first bool     // prepend only at the start of the text
	never bool     // do not prepend
	split bool
}

var oneSpace = pattern.Literal(" ")

func (n metaspace) cut(s *scratch) error {
	return s.each(func(p *piece) error {
		if err := s.replace(p, oneSpace, n.sep); err != nil {
			return err
		}
		if !n.never && (!n.first || p.start == 0) && !hasPrefix(p.text, n.sep) {
			s.prepend(p, n.sep)
		}
		if !n.split {
			s.emit(*p)
			return nil
		}
		return n.at.split(s, p)
	})
}

// fixedLength cuts pieces of a number of characters.
type fixedLength int

func (n fixedLength) cut(s *scratch) error {
	return s.each(func(p *piece) error {
		start, count := 0, 0
		for at := 0; at < len(p.text); {
			if count == int(n) {
				s.emit(p.slice(start, at))
				start, count = at, 0
			}
			_, size := utf8.DecodeRune(p.text[at:])
			at += size
			count++
		}
		s.emit(p.slice(start, len(p.text)))
		return nil
	})
}

func hasPrefix(text []byte, prefix string) bool {
	return len(text) >= len(prefix) && string(text[:len(prefix)]) == prefix
}
