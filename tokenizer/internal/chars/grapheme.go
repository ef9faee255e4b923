package chars

import "unicode/utf8"

// Grapheme returns the length of the user-perceived character at the start of
// a text, by the rules of UAX #29.
func Grapheme(text []byte) int {
	r, at := utf8.DecodeRune(text)
	if at == len(text) || r < 0x20 && r != '\r' {
		return at
	}
	prev := clusterOf(r)
	flags := prev == regional   // an odd number of flags' letters came before
	pictured := prev == picture // a picture, then marks
	linked := 0                 // 1: a consonant, then marks; 2: a linker among them
	if Of(r)&Consonant != 0 {
		linked = 1
	}
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		next := clusterOf(r)
		prop := Of(r)
		switch {
		case joined(prev, next):
		case next == picture && prev == joiner && pictured:
		case next == regional && prev == regional && flags:
		case prop&Consonant != 0 && linked == 2:
		default:
			return at
		}
		flags = next == regional && !(prev == regional && flags)
		pictured = next == picture || pictured && (next == extend || next == joiner)
		switch {
		case prop&Consonant != 0:
			linked = 1
		case prop&Linker != 0 && linked > 0:
			linked = 2
		case linked > 0 && (next == extend || next == joiner) && prop.mark():
		default:
			linked = 0
		}
		prev, at = next, at+size
	}
	return at
}

// A cluster is a class of characters in the rules.
type cluster uint8

const (
	other cluster = iota
	carriageReturn
	lineFeed
	control
	extend
	joiner
	prepend
	regional
	picture
	hangulLead
	hangulVowel
	hangulTrail
	hangulLV
	hangulLVT
)

func clusterOf(r rune) cluster {
	switch {
	case r == '\r':
		return carriageReturn
	case r == '\n':
		return lineFeed
	case r == 0x200d:
		return joiner
	case 0x1f1e6 <= r && r <= 0x1f1ff:
		return regional
	case 0x1100 <= r && r <= 0x115f, 0xa960 <= r && r <= 0xa97c:
		return hangulLead
	case 0x1160 <= r && r <= 0x11a7, 0xd7b0 <= r && r <= 0xd7c6, r == 0x16d63, 0x16d67 <= r && r <= 0x16d6a:
		return hangulVowel
	case 0x11a8 <= r && r <= 0x11ff, 0xd7cb <= r && r <= 0xd7fb:
		return hangulTrail
	case hangulBase <= r && r < hangulBase+hangulCount:
		if (r-hangulBase)%trails == 0 {
			return hangulLV
		}
		return hangulLVT
	}
	p := Of(r)
	switch {
	case p&Extend != 0:
		return extend
	case p&Prepend != 0:
		return prepend
	case p&Picture != 0:
		return picture
	case p&controlCategories != 0, 0xe0000 <= r && r <= 0xe0fff, r == 0x2065, 0xfff0 <= r && r <= 0xfff8:
		return control
	}
	return other
}

// The numbers of the categories Zl, Zp, Cc and Cf.
const controlCategories Prop = 1<<24 | 1<<25 | 1<<26 | 1<<27

// mark excludes spacing marks, which end a row of linked consonants.
func (p Prop) mark() bool { return p&(1<<7) == 0 }

// joined says whether two neighbours are one user-perceived character whatever
// came before them.
func joined(a, b cluster) bool {
	switch {
	case a == carriageReturn:
		return b == lineFeed
	case a == lineFeed, a == control, b == carriageReturn, b == lineFeed, b == control:
		return false
	case b == extend, b == joiner, a == prepend:
		return true
	case a == hangulLead:
		return b == hangulLead || b == hangulVowel || b == hangulLV || b == hangulLVT
	case a == hangulLV, a == hangulVowel:
		return b == hangulVowel || b == hangulTrail
	case a == hangulLVT, a == hangulTrail:
		return b == hangulTrail
	}
	return false
}
