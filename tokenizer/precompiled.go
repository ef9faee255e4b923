package tokenizer

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/chars"
)

// A precompiled normalizer replaces characters by a table that SentencePiece
// compiled: a double-array trie over bytes, whose values are places in a text
// of replacements, each of which ends with a zero.
type precompiled struct {
	units []uint32
	texts []byte
}

func newPrecompiled(encoded string) (*precompiled, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap: %w", err)
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("precompiled_charsmap: got %d bytes, want a table", len(data))
	}
	size := binary.LittleEndian.Uint32(data)
	data = data[4:]
	if uint64(size) > uint64(len(data)) || size < 4 {
		return nil, fmt.Errorf("precompiled_charsmap: got a trie of %d bytes in a table of %d, want one within it", size, len(data))
	}
	n := &precompiled{units: make([]uint32, size/4), texts: data[size/4*4:]}
	for i := range n.units {
		n.units[i] = binary.LittleEndian.Uint32(data[4*i:])
	}
	if !utf8.Valid(n.texts) {
		return nil, errors.New("precompiled_charsmap: got replacements in invalid UTF-8")
	}
	return n, nil
}

// find returns the replacement of the shortest beginning of a text that has
// one.
func (n *precompiled) find(text []byte) ([]byte, bool) {
	at := uint32(0)
	unit := n.units[0]
	at ^= offsetOf(unit)
	for _, b := range text {
		if b == 0 {
			return nil, false
		}
		at ^= uint32(b)
		if at >= uint32(len(n.units)) {
			return nil, false
		}
		unit = n.units[at]
		if unit&(1<<31|0xff) != uint32(b) {
			return nil, false
		}
		at ^= offsetOf(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(n.units)) {
			return nil, false
		}
		start := int(n.units[at] & (1<<31 - 1))
		if start > len(n.texts) || start < len(n.texts) && !utf8.RuneStart(n.texts[start]) {
			return nil, false
		}
		end := start
		for end < len(n.texts) && n.texts[end] != 0 {
			end++
		}
		return n.texts[start:end], true
	}
	return nil, false
}

func offsetOf(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

// normalize looks every user-perceived character up, if it is short, and then
// its characters. What the first character of a short one maps to takes the
// place of all of it.
func (n *precompiled) normalize(s *scratch, p *piece) error {
	s.changes = s.changes[:0]
	any := false
	for at := 0; at < len(p.text); {
		cluster := p.text[at : at+chars.Grapheme(p.text[at:])]
		at += len(cluster)
		if len(cluster) < 6 {
			if to, ok := n.find(cluster); ok {
				any = true
				if s.changes = substitute(s.changes, cluster, to); len(s.changes) > maxText/utf8.UTFMax {
					return fmt.Errorf("tokenizer: got a text of more than %d characters from precompiled_charsmap, want fewer", maxText/utf8.UTFMax)
				}
				continue
			}
		}
		for len(cluster) > 0 {
			r, size := utf8.DecodeRune(cluster)
			if to, ok := n.find(cluster[:size]); ok {
				any = true
				s.changes = substitute(s.changes, cluster[:size], to)
			} else {
				s.changes = append(s.changes, change{r, 0})
			}
			cluster = cluster[size:]
		}
	}
	if any {
		s.transform(p, s.changes, 0)
	}
	return nil
}

// substitute appends the characters of a replacement.
func substitute(changes []change, old, to []byte) []change {
	more := utf8.RuneCount(to) - utf8.RuneCount(old)
	for len(to) > 0 {
		r, size := utf8.DecodeRune(to)
		changes = append(changes, change{r, 0})
		to = to[size:]
	}
	for i := range min(more, len(changes)) {
		changes[len(changes)-1-i].by = 1
	}
	if more < 0 && len(changes) > 0 {
		changes[len(changes)-1].by += int32(more)
	}
	return changes
}
