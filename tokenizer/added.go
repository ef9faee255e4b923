package tokenizer

import (
	"fmt"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

// An addedToken is a token that texts are searched for before the model reads
// them.
type addedToken struct {
	content    string
	id         uint32
	singleWord bool
	lstrip     bool
	rstrip     bool
	normalized bool
	special    bool
	// shown is what the id decodes to: the content as the normalizer leaves
	// it, if the token is normalized.
	shown string
}

// addedTokens are those of a file.
type addedTokens struct {
	list    []addedToken
	ids     map[string]uint32
	byID    map[uint32]int32 // index in list
	special map[string]bool  // contents of the special ones
	// verbatim finds those that are searched for in the original text, and
	// normal those that are searched for in the normalized one.
	verbatim, normal *trie
}

// newAddedTokens gives tokens their ids: the id that the model has for the
// content, or the next one that is free. Ids in the file are not looked at, as
// in the reference library.
func newAddedTokens(list []addedToken, m model, n normalizer) (*addedTokens, error) {
	a := &addedTokens{ids: map[string]uint32{}, byID: map[uint32]int32{}, special: map[string]bool{}}
	next := uint32(m.size())
	var s scratch
	for _, t := range list {
		if t.content == "" {
			continue
		}
		id, ok := a.ids[t.content]
		if !ok {
			if id, ok = m.id(t.content); !ok {
				id = next
				next++
			}
		}
		t.id, t.shown = id, t.content
		if at, ok := a.byID[id]; ok {
			t.shown = a.list[at].shown // of the same content, and it stays
		}
		if t.normalized && n != nil {
			p := piece{text: []byte(t.content), size: len(t.content), token: noToken}
			if err := n.normalize(&s, &p); err != nil {
				return nil, fmt.Errorf("added token %q: %w", t.content, err)
			}
			t.shown = string(p.text)
		}
		a.ids[t.content] = id
		if t.special {
			a.special[t.content] = true
		}
		if at, ok := a.byID[id]; ok {
			a.list[at] = t
			continue
		}
		a.byID[id] = int32(len(a.list))
		a.list = append(a.list, t)
	}
	return a, a.index()
}

// index makes the tries. Of tokens that are one text after normalization, the
// first is found: the reference library finds any of them.
func (a *addedTokens) index() error {
	var texts [2][]string
	var values [2][]int32
	for i := len(a.list) - 1; i >= 0; i-- {
		t := &a.list[i]
		kind, text := 0, t.content
		if t.normalized {
			kind, text = 1, t.shown
		}
		if text == "" {
			return fmt.Errorf("added token %q: got an empty text from the normalizer, want one to search for", t.content)
		}
		texts[kind] = append(texts[kind], text)
		values[kind] = append(values[kind], int32(i))
	}
	if len(texts[0]) > 0 {
		a.verbatim = newTrie(texts[0], values[0])
	}
	if len(texts[1]) > 0 {
		a.normal = newTrie(texts[1], values[1])
	}
	return nil
}

// A cut is a part of a text: an added token by its index, or text between two.
type cut struct {
	token      int32
	start, end int
}

// find returns the cuts of a text at added tokens: at each place the longest,
// from left to right.
func (a *addedTokens) find(dst []cut, t *trie, text []byte) []cut {
	done := 0
	for at := 0; at < len(text); {
		if t.roots[text[at]] == 0 {
			at++
			continue
		}
		index, size := t.longest(text[at:])
		if index < 0 {
			at++
			continue
		}
		start, end := at, at+size
		at = end
		token := &a.list[index]
		if token.singleWord && (endsInWord(text[:start]) || startsWithWord(text[end:])) {
			continue
		}
		if token.lstrip {
			start = max(start-spaceBefore(text[:start]), done)
		}
		if start > end {
			continue // white space that belongs to the token before
		}
		if token.rstrip {
			end += spaceAfter(text[end:])
		}
		if done < start {
			dst = append(dst, cut{noToken, done, start})
		}
		dst = append(dst, cut{index, start, end})
		done = end
	}
	if done != len(text) {
		dst = append(dst, cut{noToken, done, len(text)})
	}
	return dst
}

func endsInWord(text []byte) bool {
	r, size := utf8.DecodeLastRune(text)
	return size > 0 && chars.Of(r)&chars.Word != 0
}

func startsWithWord(text []byte) bool {
	r, size := utf8.DecodeRune(text)
	return size > 0 && chars.Of(r)&chars.Word != 0
}

func spaceBefore(text []byte) int {
	n := len(text)
	for n > 0 {
		r, size := utf8.DecodeLastRune(text[:n])
		if !isSpace(r) {
			break
		}
		n -= size
	}
	return len(text) - n
}

func spaceAfter(text []byte) int {
	n := 0
	for n < len(text) {
		r, size := utf8.DecodeRune(text[n:])
		if !isSpace(r) {
			break
		}
		n += size
	}
	return n
}

// split cuts the pieces that are no added tokens at those of a trie.
func (a *addedTokens) split(s *scratch, t *trie) {
	if t == nil {
		return
	}
	s.spare = s.spare[:0]
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.token != noToken {
			s.spare = append(s.spare, *p)
			continue
		}
		s.bounds = a.find(s.bounds[:0], t, p.text)
		if len(s.bounds) == 1 && s.bounds[0].token == noToken {
			s.spare = append(s.spare, *p)
			continue
		}
		overlap := false
		for j := 1; j < len(s.bounds); j++ {
			overlap = overlap || s.bounds[j].start < s.bounds[j-1].end
		}
		for _, b := range s.bounds {
			from := *p
			if overlap && p.align != nil {
				from.align = append(s.spans.take(len(p.align)), p.align...)
			}
			q := from.slice(b.start, b.end)
			q.token = b.token
			if len(q.text) > 0 {
				s.spare = append(s.spare, q)
			}
		}
	}
	s.pieces, s.spare = s.spare, s.pieces
}
