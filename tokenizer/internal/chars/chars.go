// Package chars has the properties of characters that decide how a text is
// cut into tokens, as the reference library has them.
//
// That library is built of parts with tables of different versions of Unicode:
// patterns and categories are those of version 16, cases and user-perceived
// characters those of 17, normal forms those of 9, the classes of BERT those
// of 8. A character that was assigned later is as unknown here as it is there.
// Tokens of a model follow these tables, so that newer ones would be wrong:
// make.py asks the library about every character and writes tables.go.
//
// All functions may be called from any goroutine. None allocates but the first
// that asks about a page of 256 characters.
package chars

import (
	"sync/atomic"
	"unicode/utf8"
)

// A Prop is a set of properties of a character. The low bits are its general
// category, as a set of one.
type Prop uint64

// Properties beside the general category.
const (
	PatternWord  Prop = 1 << (32 + iota) // \w in patterns
	PatternSpace                         // \s in patterns
	Space                                // white space of normalizers and pre-tokenizers
	Word                                 // word character of the pre-tokenizer Whitespace
	Number
	Punctuation
	Control   // what BERT drops
	Accent    // a mark that BERT drops
	Mark      // a mark that StripAccents drops
	Composite // has a decomposition or a combining class
	Lowers    // has a lower case
	Extend
	Prepend
	Picture
	Consonant
	Linker
)

type (
	span  struct{ low, high rune }
	from  struct{ low, category rune }
	shift struct{ low, high, step, delta rune }
)

// categoryNames are in the order of the numbers in the table; 0 is unassigned.
var categoryNames = []string{
	"cn", "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd", "nl", "no", "pc", "pd", "ps", "pe", "pi", "pf",
	"po", "sm", "sc", "sk", "so", "zs", "zl", "zp", "cc", "cf", "co",
}

// Category returns the set of a general category ("lu") or of a group of them
// ("l"). Names are in lower case.
func Category(name string) (Prop, bool) {
	var set Prop
	for i, n := range categoryNames {
		if name == n || len(name) == 1 && name[0] == n[0] {
			set |= 1 << i
		}
	}
	return set, set != 0
}

// A Script holds the characters of a script.
type Script []span

// ScriptOf returns the script of a name in lower case.
func ScriptOf(name string) (Script, bool) {
	s, ok := scripts[name]
	return s, ok
}

// Has says whether a character belongs to the script.
func (s Script) Has(r rune) bool { return inSpans(s, r) }

const pageBits = 8

type page [1 << pageBits]Prop

// pages are made when a character of theirs is first asked about: a text has
// characters of few pages.
var pages [(utf8.MaxRune + 1) >> pageBits]atomic.Pointer[page]

// Of returns the properties of a character, and none of what is no character.
func Of(r rune) Prop {
	if uint32(r) > utf8.MaxRune {
		return 0
	}
	p := pages[r>>pageBits].Load()
	if p == nil {
		p = makePage(r >> pageBits)
	}
	return p[r&(1<<pageBits-1)]
}

func makePage(n rune) *page {
	p := new(page)
	first := n << pageBits
	for i := range p {
		r := first + rune(i)
		p[i] = 1 << categoryOf(r)
		for _, t := range propTables {
			if inSpans(t.spans, r) {
				p[i] |= t.prop
			}
		}
		if lower(r) != r {
			p[i] |= Lowers
		}
	}
	pages[n].Store(p) // two goroutines make equal pages
	return p
}

var propTables = []struct {
	prop  Prop
	spans []span
}{
	{PatternWord, patternWords}, {PatternSpace, patternSpaces}, {Space, spaces}, {Word, words},
	{Number, numbers}, {Punctuation, punctuation}, {Control, controls}, {Accent, accents}, {Mark, marks},
	{Composite, composites}, {Extend, extends}, {Prepend, prepends}, {Picture, pictures},
	{Consonant, consonants}, {Linker, linkers},
}

func categoryOf(r rune) rune {
	low, high := 0, len(categories)
	for high-low > 1 {
		if mid := (low + high) / 2; categories[mid].low <= r {
			low = mid
		} else {
			high = mid
		}
	}
	return categories[low].category
}

func inSpans(spans []span, r rune) bool {
	low, high := 0, len(spans)
	for low < high {
		if mid := (low + high) / 2; spans[mid].high < r {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low < len(spans) && spans[low].low <= r
}

// Lower returns the lower case of a character: one character, or i and a dot
// above for U+0130, whose second is not zero.
func Lower(r rune) (first, second rune) {
	switch {
	case r < 0x80:
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
	case r == 0x130:
		return 'i', 0x307
	case Of(r)&Lowers != 0:
		r = lower(r)
	}
	return r, 0
}

func lower(r rune) rune {
	low, high := 0, len(lowers)
	for low < high {
		if mid := (low + high) / 2; lowers[mid].high < r {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(lowers) {
		if s := lowers[low]; s.low <= r && (r-s.low)%s.step == 0 {
			return r + s.delta
		}
	}
	return r
}
