package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// wordPiece takes the longest token that a word begins with, then the longest
// continuation, and so on.
type wordPiece struct {
	vocabulary
	unknown  string
	prefix   string
	maxChars int
	// begin has all texts, next those of continuations without the prefix.
	begin, next *trie
}

func newWordPiece(v vocabulary, unknown, prefix string, maxChars int) *wordPiece {
	m := &wordPiece{vocabulary: v, unknown: unknown, prefix: prefix, maxChars: maxChars}
	texts, ids := v.lists()
	m.begin = newTrie(texts, ids)
	var rest []string
	var restIDs []int32
	for i, text := range texts {
		if cont, ok := strings.CutPrefix(text, prefix); ok {
			rest, restIDs = append(rest, cont), append(restIDs, ids[i])
		}
	}
	m.next = newTrie(rest, restIDs)
	return m
}

func (m *wordPiece) tokenize(dst []token, _ *modelScratch, p *piece) ([]token, error) {
	if utf8.RuneCount(p.text) > m.maxChars {
		return m.unknownToken(dst, p)
	}
	from := len(dst)
	t := m.begin
	for at := 0; at < len(p.text); t = m.next {
		id, size := t.longest(p.text[at:])
		if id < 0 {
			return m.unknownToken(dst[:from], p)
		}
		dst = append(dst, token{id: uint32(id), start: at, end: at + size})
		at += size
	}
	return dst, nil
}

func (m *wordPiece) unknownToken(dst []token, p *piece) ([]token, error) {
	return m.vocabulary.unknown(dst, m.unknown, p)
}

func (v *vocabulary) unknown(dst []token, text string, p *piece) ([]token, error) {
	id, ok := v.ids[text]
	if !ok {
		return dst, fmt.Errorf("tokenizer: got the unknown word %q, want the unknown token %q in the vocabulary", p.text, text)
	}
	return append(dst, token{id: id, end: len(p.text)}), nil
}

// wordLevel has whole words.
type wordLevel struct {
	vocabulary
	unknown string
}

func (m *wordLevel) tokenize(dst []token, _ *modelScratch, p *piece) ([]token, error) {
	if id, ok := m.ids[string(p.text)]; ok {
		return append(dst, token{id: id, end: len(p.text)}), nil
	}
	return m.vocabulary.unknown(dst, m.unknown, p)
}
