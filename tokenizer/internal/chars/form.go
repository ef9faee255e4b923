package chars

import (
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Decompose appends the decomposition of a character, canonical or for
// compatibility, with the combining class of each part, and the character
// itself if it has none.
func Decompose(dst []Part, r rune, compatible bool) []Part {
	if Of(r)&Composite == 0 {
		return append(dst, Part{r, 0})
	}
	if s := r - hangulBase; 0 <= s && s < hangulCount {
		dst = append(dst, Part{hangulL + s/(vowels*trails), 0}, Part{hangulV + s%(vowels*trails)/trails, 0})
		if t := s % trails; t != 0 {
			dst = append(dst, Part{hangulT + t, 0})
		}
		return dst
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	form := norm.NFD
	if compatible {
		form = norm.NFKD
	}
	p := form.Properties(buf[:n])
	to := p.Decomposition()
	if to == nil {
		return append(dst, Part{r, p.CCC()})
	}
	for len(to) > 0 {
		d, size := utf8.DecodeRune(to)
		dst = append(dst, Part{d, Class(d)})
		to = to[size:]
	}
	return dst
}

// A Part is a character with its canonical combining class.
type Part struct {
	Rune  rune
	Class uint8
}

// Class returns the canonical combining class of a character.
func Class(r rune) uint8 {
	if r < 0x300 || Of(r)&Composite == 0 {
		return 0
	}
	var buf [utf8.UTFMax]byte
	return norm.NFD.Properties(buf[:utf8.EncodeRune(buf[:], r)]).CCC()
}

// Hangul syllables are computed, not listed.
const (
	hangulBase, hangulCount   = 0xac00, 19 * vowels * trails
	hangulL, hangulV, hangulT = 0x1100, 0x1161, 0x11a7
	vowels, trails            = 21, 28
)

// Compose returns the character that two characters make together, or 0.
func Compose(a, b rune) rune {
	if l, v := a-hangulL, b-hangulV; 0 <= l && l < 19 && 0 <= v && v < vowels {
		return hangulBase + (l*vowels+v)*trails
	}
	if s, t := a-hangulBase, b-hangulT; 0 <= s && s < hangulCount && s%trails == 0 && 0 < t && t < trails {
		return a + t
	}
	return compositions()[[2]rune{a, b}]
}

// compositions are the canonical decompositions into two characters, reversed.
// A decomposition into more is one of two whose first is composed.
var compositions = sync.OnceValue(func() map[[2]rune]rune {
	pairs := make(map[[2]rune]rune, 1000)
	for _, s := range composites {
		for r := s.low; r <= s.high; r++ {
			if 0xd800 <= r && r <= 0xdfff || hangulBase <= r && r < hangulBase+hangulCount {
				continue
			}
			text := string(r)
			to := norm.NFD.PropertiesString(text).Decomposition()
			if utf8.RuneCount(to) < 2 || norm.NFC.String(text) != text {
				continue // a singleton, or excluded from composition
			}
			last, size := utf8.DecodeLastRune(to)
			first := []rune(norm.NFC.String(string(to[:len(to)-size])))
			if len(first) == 1 {
				pairs[[2]rune{first[0], last}] = r
			}
		}
	}
	return pairs
})
