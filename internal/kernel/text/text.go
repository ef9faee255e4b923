package text

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Text is strings of a fixed width: each is its bytes, filled up with zeros.
// Zeros at the end are no part of a string.
type Text struct {
	Data  []byte
	Width int // in bytes, 1 or more
}

// At returns string i.
func (t Text) At(i int) []byte {
	row := t.Data[i*t.Width:][:t.Width]
	for n := len(row); n > 0; n-- {
		if row[n-1] != 0 {
			return row[:n]
		}
	}
	return nil
}

// Put makes s, which fits, string i.
func (t Text) Put(i int, s []byte) {
	row := t.Data[i*t.Width:][:t.Width]
	clear(row[copy(row, s):])
}

// AppendLower and AppendUpper append s in another case, character by character
// by Unicode's tables. Bytes that are no UTF-8 stay.
func AppendLower(dst, s []byte) []byte { return appendCase(dst, s, unicode.ToLower) }

// AppendUpper is AppendLower for the upper case.
func AppendUpper(dst, s []byte) []byte { return appendCase(dst, s, unicode.ToUpper) }

func appendCase(dst, s []byte, change func(rune) rune) []byte {
	for len(s) > 0 {
		r, n := utf8.DecodeRune(s)
		if r == utf8.RuneError && n == 1 {
			dst = append(dst, s[0])
		} else {
			dst = utf8.AppendRune(dst, change(r))
		}
		s = s[n:]
	}
	return dst
}

// Normalizer drops stopwords and changes the case of the other strings.
type Normalizer struct {
	Change func(dst, s []byte) []byte // AppendLower or AppendUpper; nil for neither
	Fold   bool                       // stopwords are looked for in lower case, as Stop has them
	Stop   map[string]bool
}

// Normalize fills dst with the strings that remain of the first n strings of
// src, and returns their number: an empty string if none remains. dst is wide
// enough for changed strings, and scratch is as long as one of them.
func Normalize(z *Normalizer, dst, src Text, n int, scratch []byte) int {
	kept := 0
	for i := range n {
		s := src.At(i)
		key := s
		if z.Fold && len(z.Stop) > 0 {
			key = AppendLower(scratch[:0], s)
		}
		if z.Stop[string(key)] {
			continue
		}
		if z.Change != nil {
			s = z.Change(scratch[:0], s)
		}
		dst.Put(kept, s)
		kept++
	}
	if kept == 0 {
		dst.Put(0, nil)
		return 1
	}
	return kept
}

// ConcatText puts strings of b behind those of a, as the nest pairs them.
func ConcatText(n *kernel.Nest, lo, hi int, dst, a, b Text) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		for i := range c.N {
			row := dst.Data[(c.Off[0]+i*c.Step[0])*dst.Width:][:dst.Width]
			k := copy(row, a.At(c.Off[1]+i*c.Step[1]))
			k += copy(row[k:], b.At(c.Off[2]+i*c.Step[2]))
			clear(row[k:])
		}
	}
}

// EqualText compares strings of a with those of b, as the nest pairs them.
func EqualText(n *kernel.Nest, lo, hi int, dst []uint8, a, b Text) {
	c := n.Cursor(lo, hi)
	for c.Next() {
		for i := range c.N {
			equal := uint8(0)
			if bytes.Equal(a.At(c.Off[1]+i*c.Step[1]), b.At(c.Off[2]+i*c.Step[2])) {
				equal = 1
			}
			dst[c.Off[0]+i*c.Step[0]] = equal
		}
	}
}

// IndexText writes the place of each string from lo to hi, and absent for one
// that has none.
func IndexText(dst []int64, src Text, lo, hi int, places map[string]int64, absent int64) {
	for i := lo; i < hi; i++ {
		at, ok := places[string(src.At(i))]
		if !ok {
			at = absent
		}
		dst[i] = at
	}
}

// TextSplit says where strings are split.
type TextSplit struct {
	Delimiter []byte // empty: white space
	Most      int    // splits of one string at most; below 0 for any number
}

// CountParts counts the parts of each of the first n strings, and returns the
// largest count. counts may be nil.
func CountParts(z *TextSplit, src Text, n int, counts []int64) int {
	most := 0
	for i := range n {
		parts := 0
		for rest, ok := z.start(src.At(i)); ok; parts++ {
			_, rest, ok = z.part(rest, parts)
		}
		if counts != nil {
			counts[i] = int64(parts)
		}
		most = max(most, parts)
	}
	return most
}

// SplitText fills dst with rows of so many parts, of each of the first n
// strings.
func SplitText(z *TextSplit, dst, src Text, n, parts int) {
	for i := range n {
		at := 0
		var part []byte
		for rest, ok := z.start(src.At(i)); ok; at++ {
			part, rest, ok = z.part(rest, at)
			dst.Put(i*parts+at, part)
		}
		for ; at < parts; at++ {
			dst.Put(i*parts+at, nil)
		}
	}
}

// start returns the part of a string that is to be split; false means that it
// has no parts.
func (z *TextSplit) start(s []byte) ([]byte, bool) {
	if len(z.Delimiter) > 0 {
		return s, true
	}
	s = bytes.TrimSpace(s)
	return s, len(s) > 0
}

// Part returns the part at the front of the rest of a string after so many
// parts, and the new rest; more says whether there is another part.
func (z *TextSplit) part(rest []byte, done int) (part, left []byte, more bool) {
	if z.Most >= 0 && done == z.Most {
		return rest, nil, false
	}
	if len(z.Delimiter) > 0 {
		return bytes.Cut(rest, z.Delimiter)
	}
	at := bytes.IndexFunc(rest, unicode.IsSpace)
	if at < 0 {
		return rest, nil, false
	}
	return rest[:at], bytes.TrimLeftFunc(rest[at:], unicode.IsSpace), true
}
