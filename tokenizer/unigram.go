package tokenizer

import (
	"errors"
	"math"
	"unicode/utf8"
)

// unigram finds the tokens with the largest sum of scores that make a text.
type unigram struct {
	vocabulary
	pieces   []string
	scores   []float64
	unknown  int // index of the unknown token, or -1
	fallback *[256]uint32
	trie     *trie
	worst    float64 // the score of an unknown character
}

// unknownPenalty is what an unknown character costs beyond the least score.
const unknownPenalty = 10

var errNoUnknown = errors.New("tokenizer: got an unknown character, want unk_id in the model for it")

func newUnigram(pieces []string, scores []float64, unknown int, fallback bool) *unigram {
	m := &unigram{pieces: pieces, scores: scores, unknown: unknown}
	ids := make(map[string]uint32, len(pieces))
	indices := make([]int32, len(pieces))
	least := math.Inf(1)
	for i, piece := range pieces {
		ids[piece] = uint32(i)
		least = min(least, scores[i])
	}
	for i, piece := range pieces {
		indices[i] = int32(ids[piece]) // the last of equal pieces
	}
	m.vocabulary = vocabulary{ids: ids}
	m.trie = newTrie(pieces, indices)
	m.worst = least - unknownPenalty
	if fallback {
		m.fallback = byteTokens(&m.vocabulary)
	}
	return m
}

// byteTokens returns the ids of <0x00> to <0xFF>, with missing ones marked.
func byteTokens(v *vocabulary) *[256]uint32 {
	const hex = "0123456789ABCDEF"
	var to [256]uint32
	for b := range to {
		id, ok := v.ids["<0x"+string(hex[b>>4])+string(hex[b&15])+">"]
		if !ok {
			id = noID
		}
		to[b] = id
	}
	return &to
}

const noID = math.MaxUint32

func (m *unigram) text(id uint32) (string, bool) {
	if id < uint32(len(m.pieces)) {
		return m.pieces[id], true
	}
	return "", false
}

func (m *unigram) size() int { return len(m.pieces) }

// A best is the best way to a position.
type best struct {
	score float64
	from  int32 // or -1
	id    int32
}

func (m *unigram) tokenize(dst []token, s *modelScratch, p *piece) ([]token, error) {
	ways, err := m.search(s.ways[:0], p.text)
	s.ways = ways
	if err != nil {
		return dst, err
	}
	// From the end, neighbouring unknown characters become one part.
	first := len(dst)
	for end := len(p.text); end > 0; {
		w := &ways[end]
		start := int(w.from)
		if int(w.id) == m.unknown {
			for start > 0 && int(ways[start].id) == m.unknown {
				start = int(ways[start].from)
			}
		}
		dst, err = m.part(dst, s, p.text, start, end)
		if err != nil {
			return dst, err
		}
		end = start
	}
	for i, j := first, len(dst)-1; i < j; i, j = i+1, j-1 {
		dst[i], dst[j] = dst[j], dst[i]
	}
	return dst, nil
}

// part appends the token of a part of the best way, or the tokens of its bytes
// in reverse.
func (m *unigram) part(dst []token, s *modelScratch, text []byte, start, end int) ([]token, error) {
	if id, ok := m.ids[string(text[start:end])]; ok {
		return append(dst, token{id: id, start: start, end: end}), nil
	}
	if m.fallback != nil {
		all := true
		for _, b := range text[start:end] {
			all = all && m.fallback[b] != noID
		}
		for i := end - 1; all && i >= start; i-- {
			dst = append(dst, token{id: m.fallback[text[i]], start: start, end: end})
		}
		if all {
			return dst, nil
		}
	}
	if m.unknown < 0 {
		return dst, errNoUnknown
	}
	tok := token{id: uint32(m.unknown), start: start, end: end}
	if s.texts {
		tok.own = string(text[start:end])
	}
	return append(dst, tok), nil
}

func (m *unigram) search(ways []best, text []byte) ([]best, error) {
	for range len(text) + 1 {
		ways = append(ways, best{from: -1})
	}
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRune(text[at:])
		here := ways[at].score
		single := false
		node := uint32(0)
		for i := at; i < len(text); i++ {
			if node = m.trie.next(node, text[i]); node == 0 {
				break
			}
			id := m.trie.nodes[node].value
			if id < 0 {
				continue
			}
			single = single || i+1-at == size
			way(&ways[i+1], m.scores[id]+here, at, int(id))
		}
		if !single {
			if w := &ways[at+size]; w.from < 0 || m.worst+here > w.score {
				if m.unknown < 0 {
					return ways, errNoUnknown
				}
				way(w, m.worst+here, at, m.unknown)
			}
		}
		at += size
	}
	return ways, nil
}

func way(w *best, score float64, from, id int) {
	if w.from < 0 || score > w.score {
		*w = best{score, int32(from), int32(id)}
	}
}
