package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A processor adds special tokens around the texts that were encoded.
type processor interface {
	// process returns encodings that are then appended to each other.
	process(encodings []Encoding, special bool) ([]Encoding, error)
	// added returns the number of tokens that it adds.
	added(pair bool) int
}

type processors []processor

func (ps processors) process(encodings []Encoding, special bool) (out []Encoding, err error) {
	out = encodings
	for _, p := range ps {
		if out, err = p.process(out, special); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (ps processors) added(pair bool) int {
	n := 0
	for _, p := range ps {
		n += p.added(pair)
	}
	return n
}

// A template lists what surrounds one text, and two.
type template struct{ single, pair []templatePart }

// A templatePart is a text by its number, or special tokens.
type templatePart struct {
	text   int // 0 or 1; -1 for tokens
	typeID int64
	ids    []int64
	tokens []string
}

func (t *template) added(pair bool) int {
	n := 0
	for _, p := range t.parts(pair) {
		n += len(p.ids)
	}
	return n
}

func (t *template) parts(pair bool) []templatePart {
	if pair {
		return t.pair
	}
	return t.single
}

func (t *template) process(encodings []Encoding, special bool) ([]Encoding, error) {
	if len(encodings) > 2 {
		return nil, fmt.Errorf("tokenizer: got %d parts for a template, want one text or two: the file has a template after another", len(encodings))
	}
	var out []Encoding
	var used [2]bool
	for _, p := range t.parts(len(encodings) == 2) {
		switch {
		case p.text >= len(encodings):
			return nil, fmt.Errorf("tokenizer: got one text, want two: the template of the file for one text has both")
		case p.text >= 0:
			e := encodings[p.text]
			if used[p.text] {
				e = e.clone() // the template has a text twice
			}
			used[p.text] = true
			e.setType(p.typeID)
			out = append(out, e)
		case special:
			var e Encoding
			for i, id := range p.ids {
				e.add(id, p.typeID, 1, p.tokens[i], Span{}, -1)
			}
			out = append(out, e)
		}
	}
	return out, nil
}

// A named token of BERT's or RoBERTa's form.
type named struct {
	text string
	id   int64
}

// around puts tokens before the first text and after each; of RoBERTa's form
// it puts one before the second, too, and types are 0.
type around struct {
	first, last named
	roberta     bool
	trim        trim
}

func (a *around) added(pair bool) int {
	switch {
	case !pair:
		return 2
	case a.roberta:
		return 4
	}
	return 3
}

func (a *around) process(encodings []Encoding, special bool) ([]Encoding, error) {
	if a.roberta {
		a.trim.all(encodings)
		for i := range encodings {
			encodings[i].setType(0)
		}
	}
	if !special {
		return encodings, nil
	}
	out := make([]Encoding, len(encodings))
	for i := range encodings {
		out[i] = a.wrap(&encodings[i], i)
		for j := range encodings[i].Overflow {
			out[i].Overflow = append(out[i].Overflow, a.wrap(&encodings[i].Overflow[j], i))
		}
	}
	return out, nil
}

func (a *around) wrap(e *Encoding, i int) Encoding {
	var out Encoding
	out.grow(e.Len() + 2)
	typeID := int64(0)
	if i > 0 && !a.roberta {
		typeID = 1
	}
	if i == 0 {
		out.add(a.first.id, 0, 1, a.first.text, Span{}, -1)
	} else if a.roberta {
		out.add(a.last.id, 0, 1, a.last.text, Span{}, -1)
	}
	from := out.Len()
	out.append(e)
	for j := from; j < out.Len(); j++ {
		out.Special[j], out.Mask[j] = 0, 1
		if a.roberta {
			out.TypeIDs[j] = 0
		}
	}
	out.add(a.last.id, typeID, 1, a.last.text, Span{}, -1)
	return out
}

// trim takes white space out of offsets.
type trim struct{ on, prefix bool }

func (t trim) added(bool) int { return 0 }

func (t trim) process(encodings []Encoding, _ bool) ([]Encoding, error) {
	t.all(encodings)
	return encodings, nil
}

func (t trim) all(encodings []Encoding) {
	if !t.on {
		return
	}
	for i := range encodings {
		t.encoding(&encodings[i])
		for j := range encodings[i].Overflow {
			t.encoding(&encodings[i].Overflow[j])
		}
	}
}

func (t trim) encoding(e *Encoding) {
	space := func(r rune) bool { return r == byteRunes[' '] || isSpace(r) }
	for i, text := range e.Tokens {
		at := &e.Offsets[i]
		leading := utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimLeftFunc(text, space))
		trailing := utf8.RuneCountInString(text) - utf8.RuneCountInString(strings.TrimRightFunc(text, space))
		if leading > 0 {
			if (i == 0 || at.Start == 0) && t.prefix && leading == 1 {
				leading = 0 // it is the prefix, which the text does not have
			}
			at.Start = min(at.Start+leading, at.End)
		}
		if trailing > 0 && at.End >= trailing {
			at.End = max(at.End-trailing, at.Start)
		}
	}
}
