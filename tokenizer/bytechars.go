package tokenizer

import "unicode/utf8"

// byteChars turns the bytes of a text into characters.
type byteChars struct{}

func (byteChars) normalize(s *scratch, p *piece) error {
	s.byteLevel(p)
	return nil
}

// byteLevel replaces every byte by the character that stands for it.
func (s *scratch) byteLevel(p *piece) {
	s.changes = s.changes[:0]
	for _, b := range p.text {
		c := change{byteRunes[b], 0}
		if !utf8.RuneStart(b) {
			c.by = 1
		}
		s.changes = append(s.changes, c)
	}
	s.transform(p, s.changes, 0)
}

// byteRunes are the characters that stand for bytes in byte-level vocabularies:
// themselves where they are visible in Latin-1, and otherwise those from U+0100
// on, in order.
var byteRunes = func() (to [256]rune) {
	next := rune(0x100)
	for b := range to {
		if b > ' ' && b < 0x7f || b > 0xa0 && b != 0xad {
			to[b] = rune(b)
			continue
		}
		to[b] = next
		next++
	}
	return to
}()

// runeBytes reverses byteRunes; -1 is none.
var runeBytes = func() (to [0x144]int16) {
	for i := range to {
		to[i] = -1
	}
	for b, r := range byteRunes {
		to[r] = int16(b)
	}
	return to
}()
