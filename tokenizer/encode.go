package tokenizer

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// An Option changes one call of Encode and its siblings.
type Option func(*settings)

type settings struct {
	plain       bool
	charOffsets bool
	truncation  truncation
	padding     *padding
	padTo       int
	padToken    string
}

// WithoutSpecial leaves out the special tokens that the file adds to texts.
func WithoutSpecial() Option { return withoutSpecial }

func withoutSpecial(s *settings) { s.plain = true }

// CharOffsets counts offsets in characters and not in bytes.
func CharOffsets() Option { return charOffsets }

func charOffsets(s *settings) { s.charOffsets = true }

// Truncate limits encodings to a number of tokens, special ones included, in
// place of what the file says. What is cut off is in Overflow, in parts that
// share stride tokens with the part before. 0 is no limit.
func Truncate(most, stride int) Option {
	return func(s *settings) {
		s.truncation.on, s.truncation.most, s.truncation.stride = most != 0, most, stride
	}
}

// PadTo fills encodings with a token up to a number of tokens, in place of
// what the file says. 0 is no padding.
func PadTo(size int, token string) Option {
	return func(s *settings) { s.padTo, s.padToken, s.padding = size, token, nil }
}

func (t *Tokenizer) settings(options []Option) (settings, error) {
	s := settings{truncation: t.truncation, padding: t.padding}
	if len(options) == 0 {
		return s, nil
	}
	return t.changed(s, options)
}

// changed applies options. Apart from settings, which then stay off the heap.
func (t *Tokenizer) changed(s settings, options []Option) (settings, error) {
	for _, o := range options {
		o(&s)
	}
	if s.truncation.most < 0 || s.truncation.stride < 0 || s.padTo < 0 {
		return s, fmt.Errorf("tokenizer: got the limits %d, %d and %d, want none below 0", s.truncation.most, s.truncation.stride, s.padTo)
	}
	if s.padTo > 0 {
		id, ok := t.ID(s.padToken)
		if !ok {
			return s, fmt.Errorf("tokenizer: got the padding %q, want a token of the vocabulary", s.padToken)
		}
		s.padding = &padding{fixed: s.padTo, id: id, token: s.padToken}
	}
	return s, nil
}

// Encode turns a text into tokens.
//
// Every byte that is not part of valid UTF-8 is read as U+FFFD.
func (t *Tokenizer) Encode(text string, options ...Option) (Encoding, error) {
	return t.encode(text, "", false, options)
}

// EncodePair turns two texts into the tokens of one sequence, as models that
// compare texts take them.
func (t *Tokenizer) EncodePair(first, second string, options ...Option) (Encoding, error) {
	return t.encode(first, second, true, options)
}

// EncodeBatch turns texts into tokens. If the file pads to the longest text,
// that is the longest of these.
func (t *Tokenizer) EncodeBatch(texts []string, options ...Option) ([]Encoding, error) {
	s, err := t.settings(options)
	if err != nil {
		return nil, err
	}
	out := make([]Encoding, len(texts))
	for i, text := range texts {
		if out[i], err = t.encodeWith(text, "", false, &s); err != nil {
			return nil, fmt.Errorf("text %d: %w", i, err)
		}
	}
	if s.padding != nil {
		s.padding.apply(out)
	}
	return out, nil
}

func (t *Tokenizer) encode(first, second string, pair bool, options []Option) (Encoding, error) {
	s, err := t.settings(options)
	if err != nil {
		return Encoding{}, err
	}
	return t.encodeWith(first, second, pair, &s)
}

func (t *Tokenizer) encodeWith(first, second string, pair bool, set *settings) (Encoding, error) {
	var both [2]Encoding
	encodings := both[:1]
	if err := t.encodeOne(&both[0], first, 0, set); err != nil {
		return Encoding{}, err
	}
	if pair {
		encodings = both[:2]
		if err := t.encodeOne(&both[1], second, 1, set); err != nil {
			return Encoding{}, err
		}
	}
	if err := t.truncate(encodings, set); err != nil {
		return Encoding{}, err
	}
	if t.processor != nil {
		for i := range encodings {
			encodings[i].setType(int64(i))
		}
		var err error
		if encodings, err = t.processor.process(encodings, !set.plain); err != nil {
			return Encoding{}, err
		}
	}
	out := joined(encodings)
	if set.padding != nil {
		one := []Encoding{out}
		set.padding.apply(one)
		out = one[0]
	}
	return out, nil
}

// joined appends encodings to each other.
func joined(encodings []Encoding) Encoding {
	if len(encodings) == 1 {
		return encodings[0]
	}
	size := 0
	for i := range encodings {
		size += encodings[i].Len()
	}
	var out Encoding
	out.grow(size)
	for i := range encodings {
		out.merge(&encodings[i])
	}
	return out
}

// encodeOne encodes one text, without special tokens.
func (t *Tokenizer) encodeOne(e *Encoding, text string, typeID int64, set *settings) error {
	s := t.scratches.Get().(*scratch)
	defer t.scratches.Put(s)
	s.model.texts = true
	if err := t.cut(s, text); err != nil {
		return err
	}
	var chars []uint32
	if set.charOffsets {
		chars = charIndex(text)
	}
	if err := t.tokenize(s); err != nil {
		return err
	}
	e.grow(len(s.tokens))
	from := 0
	for i, end := range s.ends {
		for _, tok := range s.tokens[from:end] {
			shown := tok.own
			if shown == "" {
				shown, _ = t.model.text(tok.id)
			}
			e.add(int64(tok.id), typeID, 0, shown, offsets(&s.pieces[i], tok, chars), int32(i))
		}
		from = end
	}
	return nil
}

// cut makes the pieces of a text in the scratch.
func (t *Tokenizer) cut(s *scratch, text string) error {
	if len(text) > maxText {
		return fmt.Errorf("tokenizer: got a text of %d bytes, want at most %d", len(text), maxText)
	}
	s.reset()
	if text == "" {
		return nil
	}
	s.pieces = append(s.pieces, s.original(text))
	t.added.split(s, t.added.verbatim)
	if t.normalizer != nil {
		kept := s.pieces[:0]
		for i := range s.pieces {
			p := &s.pieces[i]
			if p.token == noToken {
				if err := t.normalizer.normalize(s, p); err != nil {
					return err
				}
				if len(p.text) == 0 {
					continue
				}
				// From here on the piece stands for what its first and its
				// last character do.
				*p = p.slice(0, len(p.text))
			}
			kept = append(kept, *p)
		}
		s.pieces = kept
	}
	t.added.split(s, t.added.normal)
	if t.preTokenizer != nil {
		return t.preTokenizer.cut(s)
	}
	return nil
}

// original returns the piece of a whole text.
func (s *scratch) original(text string) piece {
	p := piece{size: len(text), token: noToken}
	if utf8.ValidString(text) {
		p.text = append(s.bytes.take(len(text)), text...)
		return p
	}
	p.text, p.align = s.bytes.take(3*len(text)), s.spans.take(3*len(text))
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		from := len(p.text)
		p.text = utf8.AppendRune(p.text, r)
		for range len(p.text) - from {
			p.align = append(p.align, span{uint32(at), uint32(at + size)})
		}
		at += size
	}
	return p
}

// tokenize fills the tokens of all pieces.
func (t *Tokenizer) tokenize(s *scratch) error {
	s.tokens, s.ends = s.tokens[:0], s.ends[:0]
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.token == noToken {
			var err error
			if s.tokens, err = t.model.tokenize(s.tokens, &s.model, p); err != nil {
				return err
			}
		} else {
			a := &t.added.list[p.token]
			tok := token{id: a.id, end: len(p.text), own: a.content}
			if s.model.texts && string(p.text) != a.content {
				tok.own = string(p.text)
			}
			s.tokens = append(s.tokens, tok)
		}
		s.ends = append(s.ends, len(s.tokens))
	}
	return nil
}

// offsets returns the part of the text that a token stands for, in bytes or in
// characters.
func offsets(p *piece, tok token, chars []uint32) Span {
	start, end := p.spanOf(tok.start, tok.end)
	if tok.start == tok.end || tok.end <= len(p.text) {
		start, end = start+p.start, end+p.start
	}
	if chars == nil || start < 0 || start >= len(chars) {
		return Span{start, end}
	}
	first := int(chars[start])
	switch {
	case end < 0:
		return Span{start, end}
	case end < len(chars):
		return Span{first, int(chars[end])}
	case end-1 < len(chars):
		return Span{first, int(chars[end-1]) + 1}
	}
	return Span{first, first + 2}
}

// charIndex returns the number of the character that each byte belongs to.
func charIndex(text string) []uint32 {
	out := make([]uint32, 0, len(text))
	n := uint32(0)
	for at := 0; at < len(text); n++ {
		_, size := utf8.DecodeRuneInString(text[at:])
		for range size {
			out = append(out, n)
		}
		at += size
	}
	return out
}

// AppendIDs appends the ids of a text to a list: those of Encode, without the
// other lists. It allocates nothing while the list has room and the words were
// seen before, and no encoding needs truncation or padding.
func (t *Tokenizer) AppendIDs(dst []int64, text string, options ...Option) ([]int64, error) {
	set, err := t.settings(options)
	if err != nil {
		return dst, err
	}
	f := t.frame
	if f == nil || set.truncation.on || set.padding != nil {
		e, err := t.encodeWith(text, "", false, &set)
		return append(dst, e.IDs...), err
	}
	s := t.scratches.Get().(*scratch)
	defer t.scratches.Put(s)
	s.model.texts = false
	if err := t.cut(s, text); err != nil {
		return dst, err
	}
	if err := t.tokenize(s); err != nil {
		return dst, err
	}
	for _, part := range f.parts {
		if part.text < 0 {
			if !set.plain {
				dst = append(dst, part.ids...)
			}
			continue
		}
		dst = slices.Grow(dst, len(s.tokens))
		for i := range s.tokens {
			dst = append(dst, int64(s.tokens[i].id))
		}
	}
	return dst, nil
}
