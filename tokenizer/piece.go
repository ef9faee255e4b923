package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/pattern"
)

// A piece is a part of a text on its way to tokens: what normalizers and
// pre-tokenizers made of a part of the original.
type piece struct {
	text []byte
	// align holds, for every byte of text, the bytes of the original that it
	// stands for. It is nil while characters have kept their places: then
	// every byte stands for its own character.
	align []span
	// start and size are the part of the original.
	start, size int
	// token is the added token that the piece is, or none.
	token int32
	// raw says that the model reads bytes of the text where the file has the
	// characters of the byte-level alphabet.
	raw bool
}

const noToken = -1

// A span is a range of bytes of the original.
type span struct{ start, end uint32 }

// maxText bounds a text, whose positions are 32-bit numbers.
const maxText = math.MaxInt32 / 4

// A scratch is the memory of one call, kept for the next.
type scratch struct {
	pieces, spare []piece
	changes       []change
	matches       []int
	bounds        []cut
	stack         pattern.Stack
	bytes         arena[byte]
	spans         arena[span]
	tokens        []token
	ends          []int // of the tokens of each piece
	model         modelScratch
	parts         []part
}

// A token is a result of the model: an id and the part of a piece's text. The
// text of a token is that of its id unless own is set.
type token struct {
	id         uint32
	start, end int
	own        string
}

func (s *scratch) reset() {
	clear(s.pieces)
	clear(s.spare)
	s.pieces, s.spare = s.pieces[:0], s.spare[:0]
	s.bytes.used, s.spans.used = 0, 0
}

// An arena gives out slices that live until it is reset.
type arena[T any] struct {
	block []T
	used  int
}

// take returns an empty slice with room for n elements. What is appended to it
// beyond them moves elsewhere.
func (a *arena[T]) take(n int) []T {
	if len(a.block)-a.used < n {
		// The old block lives as long as the slices of it.
		a.block, a.used = make([]T, max(n, 2*len(a.block), 1024)), 0
	}
	s := a.block[a.used : a.used : a.used+n]
	a.used += n
	return s
}

// A change is one character of a text that a normalizer makes. By is 0 if it
// takes the place of the next character of the old text, 1 if it is additional,
// and -n if it takes the place of the next and the n after it are gone.
type change struct {
	r  rune
	by int32
}

// spanOf returns the bytes of the original that bytes of the text stand for,
// relative to the piece's start.
func (p *piece) spanOf(start, end int) (int, int) {
	if start == end || end > len(p.text) {
		return start, end
	}
	if p.align != nil {
		// Marks that changed places can stand before the start.
		return int(int32(p.align[start].start)), int(int32(p.align[end-1].end))
	}
	for !utf8.RuneStart(p.text[start]) {
		start--
	}
	for end < len(p.text) && !utf8.RuneStart(p.text[end]) {
		end++
	}
	return start, end
}

// charSpan is the alignment of the byte at a position.
func (p *piece) charSpan(at int) span {
	if p.align != nil {
		return p.align[at]
	}
	start, end := at, at+1
	for !utf8.RuneStart(p.text[start]) {
		start--
	}
	for end < len(p.text) && !utf8.RuneStart(p.text[end]) {
		end++
	}
	return span{uint32(start), uint32(end)}
}

// slice returns the part of a piece between two bytes of its text.
func (p *piece) slice(start, end int) piece {
	out := piece{text: p.text[start:end:end], start: p.start, token: noToken}
	from, to := p.spanOf(start, end)
	if p.align == nil {
		out.start, out.size = p.start+from, to-from
		return out
	}
	out.align = p.align[start:end:end]
	out.start, out.size = p.start+from, max(to-from, 0)
	if from != 0 {
		out.align = rebased(out.align, uint32(from))
	}
	return out
}

// rebased returns alignments that are relative to a later start. They are
// shared with no other piece: slices of one text do not overlap, but for those
// of added tokens, which are not normalized further.
func rebased(align []span, by uint32) []span {
	for i := range align {
		align[i].start -= by
		align[i].end -= by
	}
	return align
}

// mapped returns the part of the text that the whole original part stands for.
// It is all of the text, unless characters were put in that stand for nothing.
func (p *piece) mapped() (start, end int) {
	if p.align == nil {
		return 0, len(p.text)
	}
	if p.size == 0 {
		return 0, 0
	}
	start, end = -1, -1
	for i, a := range p.align {
		if a.end > uint32(p.size) {
			break
		}
		if start < 0 && a.start != a.end {
			start = i
		}
		end = i + 1
	}
	switch {
	case start < 0 && end < 0:
		return -1, -1
	case start < 0:
		return end, end
	}
	return start, end
}

// whole says that the part is all of the text. If not, a transformation that
// changes no character still repeats some.
func (p *piece) whole() bool {
	start, end := p.mapped()
	return start == 0 && end == len(p.text)
}

// transform replaces the text by the changes, of which the first characters,
// skipped in number, are gone.
func (s *scratch) transform(p *piece, changes []change, skipped int) {
	if start, end := p.mapped(); start >= 0 {
		s.transformRange(p, start, end, changes, skipped)
	}
}

func (s *scratch) transformRange(p *piece, start, end int, changes []change, skipped int) {
	size := len(p.text) - (end - start)
	for _, c := range changes {
		size += utf8.RuneLen(c.r)
	}
	text := append(s.bytes.take(size), p.text[:start]...)
	align := s.spans.take(size)
	for i := range start {
		align = append(align, p.charSpan(i))
	}
	at := start
	step := func(n int) {
		for ; n > 0 && at < end; n-- {
			_, size := utf8.DecodeRune(p.text[at:end])
			at += size
		}
	}
	step(skipped)
	for _, c := range changes {
		var a span
		switch {
		case c.by > 0 && at > 0:
			a = p.charSpan(at - 1)
		case c.by > 0:
		case len(p.text) > 0:
			// The counts of a precompiled table can exceed the text.
			a = p.charSpan(min(at, len(p.text)-1))
		}
		if c.by <= 0 {
			step(1)
			step(int(-c.by))
		}
		from := len(text)
		text = utf8.AppendRune(text, c.r)
		for range len(text) - from {
			align = append(align, a)
		}
	}
	for i := end; i < len(p.text); i++ {
		align = append(align, p.charSpan(i))
	}
	p.text, p.align = append(text, p.text[end:]...), align
}

// prepend puts a text before that of a piece, whose first character it then
// stands for.
func (s *scratch) prepend(p *piece, prefix string) {
	if len(p.text) == 0 {
		return
	}
	size := len(prefix) + len(p.text)
	text := append(s.bytes.take(size), prefix...)
	align := s.spans.take(size)
	first := p.charSpan(0)
	for range len(prefix) {
		align = append(align, first)
	}
	for i := range p.text {
		align = append(align, p.charSpan(i))
	}
	if prefix == "" {
		// The reference library puts the first character in anew.
		_, n := utf8.DecodeRune(p.text)
		clear(align[:n])
	}
	p.text, p.align = append(text, p.text...), align
}

// replace puts a content in the place of every match of a pattern.
func (s *scratch) replace(p *piece, re *pattern.Regexp, content string) error {
	var err error
	s.matches, err = re.AppendMatches(s.matches[:0], &s.stack, p.text)
	if err != nil || len(s.matches) == 0 {
		return err
	}
	size := len(p.text) + len(s.matches)/2*len(content)
	for i := 0; i < len(s.matches); i += 2 {
		size -= s.matches[i+1] - s.matches[i]
	}
	if size > maxText {
		return fmt.Errorf("tokenizer: got a text of %d bytes from the replacement of %q, want at most %d", size, re, maxText)
	}
	text, align := s.bytes.take(size), s.spans.take(size)
	last := 0
	for i := 0; i < len(s.matches); i += 2 {
		start, end := s.matches[i], s.matches[i+1]
		for j := last; j < start; j++ {
			align = append(align, p.charSpan(j))
		}
		text = append(text, p.text[last:start]...)
		var a span
		if end > 0 {
			a = p.charSpan(end - 1)
		}
		for range len(content) {
			align = append(align, a)
		}
		text = append(text, content...)
		last = end
	}
	for j := last; j < len(p.text); j++ {
		align = append(align, p.charSpan(j))
	}
	p.text, p.align = append(text, p.text[last:]...), align
	return nil
}
