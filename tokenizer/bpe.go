package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// bpe merges the characters of a word, the pair of the lowest rank first.
type bpe struct {
	vocabulary
	merges       mergeTable
	unknown      string
	hasUnknown   bool
	prefix       string // of continuing subwords
	suffix       string // of the ends of words
	fuseUnknown  bool
	ignoreMerges bool
	fallback     *[256]uint32
	// bytes has the token of every byte if the model reads raw pieces.
	bytes *[256]uint32
	// ascii has the tokens of single characters, or noID.
	ascii [utf8.RuneSelf]uint32
}

// prepare fills the tables that follow from the vocabulary.
func (m *bpe) prepare() {
	for b := range m.ascii {
		id, ok := m.ids[string(rune(b))]
		if !ok || m.prefix != "" || m.suffix != "" {
			id = noID
		}
		m.ascii[b] = id
	}
}

// readsBytes says whether the model can read pieces of raw bytes, and makes it
// ready for them: each byte must be a token.
func (m *bpe) readsBytes() bool {
	if m.prefix != "" || m.suffix != "" {
		return false
	}
	var to [256]uint32
	for b, r := range byteRunes {
		id, ok := m.ids[string(r)]
		if !ok {
			return false
		}
		to[b] = id
	}
	m.bytes = &to
	return true
}

// A modelScratch is the memory of a model for one call.
type modelScratch struct {
	ways    []best
	symbols []symbol
	heap    []merge
	text    []byte
	cache   wordCache
	texts   bool // tokens need their texts
}

// A symbol is a token of a word under way. Its neighbours are positions in the
// list of symbols, or -1.
type symbol struct {
	id         uint32
	size       int32 // in bytes of the piece; 0 once it is part of another
	prev, next int32
}

// A wordCache has the tokens of words that were seen before.
type wordCache struct {
	words map[cacheKey][]token
	bytes int
}

type cacheKey struct {
	word string
	raw  bool
}

const (
	maxCachedWord  = 256     // bytes
	maxCachedBytes = 4 << 20 // of words and tokens together, about
	cachedToken    = 40      // bytes
)

func (c *wordCache) put(p *piece, tokens []token) {
	if len(p.text) >= maxCachedWord {
		return
	}
	cost := len(p.text) + cachedToken*(len(tokens)+2)
	if c.words == nil || c.bytes+cost > maxCachedBytes {
		c.words, c.bytes = make(map[cacheKey][]token), 0
	}
	c.bytes += cost
	c.words[cacheKey{string(p.text), p.raw}] = append([]token(nil), tokens...)
}

func (m *bpe) tokenize(dst []token, s *modelScratch, p *piece) ([]token, error) {
	if tokens, ok := s.cache.words[cacheKey{string(p.text), p.raw}]; ok {
		return append(dst, tokens...), nil
	}
	from := len(dst)
	if m.ignoreMerges {
		if id, ok := m.whole(s, p); ok {
			dst = append(dst, token{id: id, end: len(p.text)})
			s.cache.put(p, dst[from:])
			return dst, nil
		}
	}
	s.symbols = s.symbols[:0]
	if p.raw {
		for _, b := range p.text {
			s.add(m.bytes[b], 1)
		}
	} else if err := m.symbolize(s, p.text); err != nil {
		return dst, err
	}
	s.mergeAll(&m.merges)
	at := 0
	for i := range s.symbols {
		if sym := &s.symbols[i]; sym.size > 0 {
			dst = append(dst, token{id: sym.id, start: at, end: at + int(sym.size)})
			at += int(sym.size)
		}
	}
	s.cache.put(p, dst[from:])
	return dst, nil
}

// whole looks a whole word up.
func (m *bpe) whole(s *modelScratch, p *piece) (uint32, bool) {
	if !p.raw {
		id, ok := m.ids[string(p.text)]
		return id, ok
	}
	s.text = s.text[:0]
	for _, b := range p.text {
		s.text = utf8.AppendRune(s.text, byteRunes[b])
	}
	id, ok := m.ids[string(s.text)]
	return id, ok
}

func (s *modelScratch) add(id uint32, size int) {
	n := int32(len(s.symbols))
	if n > 0 {
		s.symbols[n-1].next = n
	}
	s.symbols = append(s.symbols, symbol{id: id, size: int32(size), prev: n - 1, next: -1})
}

// symbolize makes a symbol of every character. Characters that the vocabulary
// lacks become their bytes, or the unknown token, or nothing.
func (m *bpe) symbolize(s *modelScratch, text []byte) error {
	unknown := 0 // bytes of unknown characters before this one
	var unknownID uint32
	flush := func() {
		if unknown > 0 {
			s.add(unknownID, unknown)
			unknown = 0
		}
	}
	for at := 0; at < len(text); {
		_, size := utf8.DecodeRune(text[at:])
		char := text[at : at+size]
		id := uint32(noID)
		if size == 1 {
			id = m.ascii[char[0]]
		}
		if id == noID {
			if m.prefix != "" || m.suffix != "" {
				s.text = m.affixed(s.text[:0], char, at == 0, at+size == len(text))
				char = s.text
			}
			if known, ok := m.ids[string(char)]; ok {
				id = known
			}
		}
		at += size
		if id != noID {
			flush()
			s.add(id, size)
			continue
		}
		// Unknown characters that wait stay behind bytes, as in the reference
		// library.
		if m.addBytes(s, char) || !m.hasUnknown {
			continue
		}
		if !m.fuseUnknown {
			flush()
		}
		var ok bool
		if unknownID, ok = m.ids[m.unknown]; !ok {
			return fmt.Errorf("tokenizer: got the unknown character %q, want the unknown token %q in the vocabulary", char, m.unknown)
		}
		unknown += size
	}
	flush()
	return nil
}

func (m *bpe) affixed(dst, char []byte, first, last bool) []byte {
	if !first {
		dst = append(dst, m.prefix...)
	}
	dst = append(dst, char...)
	if last {
		dst = append(dst, m.suffix...)
	}
	return dst
}

func (m *bpe) addBytes(s *modelScratch, char []byte) bool {
	if m.fallback == nil {
		return false
	}
	for _, b := range char {
		if m.fallback[b] == noID {
			return false
		}
	}
	for _, b := range char {
		s.add(m.fallback[b], 1)
	}
	return true
}

// A merge is a pair that can become one symbol, at the position of its left.
type merge struct {
	rank uint32
	pos  int32
	id   uint32
}

func (a merge) before(b merge) bool {
	return a.rank < b.rank || a.rank == b.rank && a.pos < b.pos
}

// mergeAll merges until no pair is left that the table has. The pair of the
// lowest rank is next, of equal ones the first.
func (s *modelScratch) mergeAll(t *mergeTable) {
	s.heap = s.heap[:0]
	for i := range len(s.symbols) - 1 {
		if rank, id, ok := t.get(s.symbols[i].id, s.symbols[i+1].id); ok {
			s.heap = append(s.heap, merge{rank, int32(i), id})
		}
	}
	for i := len(s.heap)/2 - 1; i >= 0; i-- {
		s.down(i)
	}
	for len(s.heap) > 0 {
		top := s.heap[0]
		last := len(s.heap) - 1
		s.heap[0] = s.heap[last]
		s.heap = s.heap[:last]
		s.down(0)

		left := &s.symbols[top.pos]
		if left.size == 0 || left.next < 0 {
			continue
		}
		right := &s.symbols[left.next]
		// An entry from before one of the two was merged may still be here.
		if _, id, ok := t.get(left.id, right.id); !ok || id != top.id {
			continue
		}
		left.id = top.id
		left.size += right.size
		left.next = right.next
		right.size = 0
		if left.next >= 0 {
			s.symbols[left.next].prev = top.pos
			s.pushPair(t, top.pos, left.next)
		}
		if left.prev >= 0 {
			s.pushPair(t, left.prev, top.pos)
		}
	}
}

func (s *modelScratch) pushPair(t *mergeTable, left, right int32) {
	rank, id, ok := t.get(s.symbols[left].id, s.symbols[right].id)
	if !ok {
		return
	}
	s.heap = append(s.heap, merge{rank, left, id})
	for i := len(s.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.heap[i].before(s.heap[up]) {
			break
		}
		s.heap[i], s.heap[up] = s.heap[up], s.heap[i]
		i = up
	}
}

func (s *modelScratch) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if child+1 < len(s.heap) && s.heap[child+1].before(s.heap[child]) {
			child++
		}
		if !s.heap[child].before(s.heap[i]) {
			return
		}
		s.heap[i], s.heap[child] = s.heap[child], s.heap[i]
		i = child
	}
}

// A mergeTable maps pairs of ids to the rank of their merge and its result. It
// is a hash table with open addressing.
type mergeTable struct {
	slots []mergeSlot
	shift uint8
}

type mergeSlot struct {
	left, right uint32
	rank, id    uint32 // rank+1; 0 is an empty slot
}

func newMergeTable(n int) mergeTable {
	bits := uint8(4)
	for 1<<bits < 2*n {
		bits++
	}
	return mergeTable{slots: make([]mergeSlot, 1<<bits), shift: 64 - bits}
}

func (t *mergeTable) slot(left, right uint32) *mergeSlot {
	hash := (uint64(left)<<32 | uint64(right)) * 0x9e3779b97f4a7c15
	mask := uint64(len(t.slots) - 1)
	for i := hash >> t.shift; ; i++ {
		s := &t.slots[i&mask]
		if s.rank == 0 || s.left == left && s.right == right {
			return s
		}
	}
}

func (t *mergeTable) put(left, right, rank, id uint32) {
	*t.slot(left, right) = mergeSlot{left, right, rank + 1, id}
}

func (t *mergeTable) get(left, right uint32) (rank, id uint32, ok bool) {
	s := t.slot(left, right)
	return s.rank - 1, s.id, s.rank != 0
}
