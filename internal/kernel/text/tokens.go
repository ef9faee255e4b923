package text

import (
	"regexp"
	"unicode/utf8"
)

// Pattern is a regular expression that finds the leftmost of its matches, and
// the longest of those that begin there.
type Pattern struct {
	first *regexp.Regexp // where nothing is before the match
	later *regexp.Regexp // with the character before the match
}

// NewPattern compiles a regular expression of RE2.
func NewPattern(expr string) (*Pattern, error) {
	first, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	later, err := regexp.Compile("(?s:.)(?:" + expr + ")")
	if err != nil {
		return nil, err
	}
	first.Longest()
	later.Longest()
	return &Pattern{first, later}, nil
}

// Find returns the bounds of the first match in s that begins at from, which is
// the place of a character, or later. Assertions of the expression, such as ^
// and \b, see all of s.
func (p *Pattern) Find(s []byte, from int) (lo, hi int, ok bool) {
	if from == 0 {
		m := p.first.FindIndex(s)
		if m == nil {
			return 0, 0, false
		}
		return m[0], m[1], true
	}
	_, before := utf8.DecodeLastRune(s[:from])
	m := p.later.FindIndex(s[from-before:])
	if m == nil {
		return 0, 0, false
	}
	lo, hi = m[0]+from-before, m[1]+from-before
	_, skip := utf8.DecodeRune(s[lo:])
	return lo + skip, hi, true
}

// Tokenizer cuts strings into tokens.
type Tokenizer struct {
	Token      *Pattern   // matches are tokens; nil where there are separators or tokens are characters
	Separators []*Pattern // the parts between the matches of the first are cut at those of the next
	Least      int        // characters of a token; tokens with fewer are dropped
}

// Each calls emit for every token of s, in order.
func (z *Tokenizer) Each(s []byte, emit func(token []byte)) {
	switch {
	case z.Token != nil:
		z.matches(s, emit)
	case len(z.Separators) > 0:
		z.parts(z.Separators, s, emit)
	default:
		for len(s) > 0 {
			_, n := utf8.DecodeRune(s)
			emit(s[:n])
			s = s[n:]
		}
	}
}

// matches finds tokens. Where one has too few characters, the next may begin at
// its second.
func (z *Tokenizer) matches(s []byte, emit func(token []byte)) {
	for from := 0; from <= len(s); {
		lo, hi, ok := z.Token.Find(s, from)
		if !ok {
			return
		}
		if utf8.RuneCount(s[lo:hi]) >= z.Least {
			emit(s[lo:hi])
			from = hi
			continue
		}
		if lo == len(s) {
			return
		}
		_, n := utf8.DecodeRune(s[lo:])
		from = lo + n
	}
}

// parts cuts s at the matches of the first separator, and each part at those of
// the next. A match without characters separates nothing.
func (z *Tokenizer) parts(separators []*Pattern, s []byte, emit func(token []byte)) {
	part := func(p []byte) {
		switch {
		case utf8.RuneCount(p) < z.Least:
		case len(separators) == 1:
			emit(p)
		default:
			z.parts(separators[1:], p, emit)
		}
	}
	from := 0
	for at := 0; at < len(s); {
		lo, hi, ok := separators[0].Find(s, at)
		if !ok {
			break
		}
		if lo == hi {
			_, n := utf8.DecodeRune(s[lo:])
			at = lo + max(n, 1)
			continue
		}
		part(s[from:lo])
		from, at = hi, hi
	}
	part(s[from:])
}

// TokenRows says how rows of tokens lie: each row has room for so many, behind
// Lead columns that are for a mark.
type TokenRows struct{ Room, Lead int }

// Tokens writes the tokens of each of the first n strings of src into its row
// of dst, and their number into counts; it returns the largest number.
func (r TokenRows) Tokens(z *Tokenizer, dst, src Text, n int, counts []int64) int {
	most := 0
	for i := range n {
		at := i*r.Room + r.Lead
		from := at
		z.Each(src.At(i), func(token []byte) {
			dst.Put(at, token)
			at++
		})
		counts[i] = int64(at - from)
		most = max(most, at-from)
	}
	return most
}

// Index is Tokens for the places of the tokens, and absent for a token that has
// none.
func (r TokenRows) Index(z *Tokenizer, dst []int64, src Text, n int, counts []int64, places map[string]int64, absent int64) int {
	most := 0
	for i := range n {
		at := i*r.Room + r.Lead
		from := at
		z.Each(src.At(i), func(token []byte) {
			place, ok := places[string(token)]
			if !ok {
				place = absent
			}
			dst[at] = place
			at++
		})
		counts[i] = int64(at - from)
		most = max(most, at-from)
	}
	return most
}

// Close makes rows of so many columns, of elements of unit items each: it moves
// the tokens to where their rows begin then, puts marks around them if there
// is a lead, and fills up with padding. begin, end and pad are one element
// each.
func Close[T any](r TokenRows, dst []T, unit, columns int, counts []int64, begin, end, pad []T) {
	for i, count := range counts {
		row := dst[i*columns*unit:][:columns*unit]
		tokens := dst[(i*r.Room+r.Lead)*unit:][:int(count)*unit]
		at := r.Lead*unit + copy(row[r.Lead*unit:], tokens)
		if r.Lead > 0 {
			copy(row, begin)
			at += copy(row[at:], end)
		}
		for at < len(row) {
			at += copy(row[at:], pad)
		}
	}
}
