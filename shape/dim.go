package shape

import (
	"fmt"
	"strconv"
	"strings"
)

// Dim is one dimension: a size of zero or more, a symbol, or unknown. Dims
// are comparable; two unknown dims are equal even if their sizes may differ.
type Dim struct {
	size   int    // valid when kind is sized
	symbol string // valid when kind is symbolic
	kind   dimKind
}

type dimKind uint8

const (
	unknown dimKind = iota
	sized
	symbolic
)

// Unknown is a dimension of unknown size. It is the zero Dim.
var Unknown = Dim{}

// N returns the dimension of the given size. A negative size makes a Dim that
// [FromDims] refuses.
func N(size int) Dim { return Dim{size: size, kind: sized} }

// Sym returns the dimension named by symbol; an empty symbol is [Unknown].
func Sym(symbol string) Dim {
	if symbol == "" {
		return Unknown
	}
	return Dim{symbol: symbol, kind: symbolic}
}

// Size returns the dimension's size, and false when it is symbolic or unknown.
func (d Dim) Size() (int, bool) { return d.size, d.kind == sized }

// Symbol returns the dimension's symbol, and false when it has none.
func (d Dim) Symbol() (string, bool) { return d.symbol, d.kind == symbolic }

// String returns "4", "batch" or "?"; a symbol that is not an identifier is
// written in double quotes.
func (d Dim) String() string {
	switch d.kind {
	case sized:
		return strconv.Itoa(d.size)
	case symbolic:
		if isIdent(d.symbol) {
			return d.symbol
		}
		return strconv.Quote(d.symbol)
	}
	return "?"
}

func isIdent(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != ""
}

// Parse parses the form that [Shape.String] writes: "[1,3,224,224]", "[]",
// "[batch,?,\"past + new\"]".
func Parse(text string) (*Shape, error) {
	s := strings.TrimSpace(text)
	if len(s) < 2 || s[0] != '[' || s[len(s)-1] != ']' {
		return nil, fmt.Errorf("shape: got %q, want dimensions in brackets: %w", text, ErrShape)
	}
	s = strings.TrimSpace(s[1 : len(s)-1])
	var dims []Dim
	for s != "" {
		dim, rest, err := parseDim(s)
		if err != nil {
			return nil, fmt.Errorf("shape %q: %w", text, err)
		}
		dims = append(dims, dim)
		rest = strings.TrimSpace(rest)
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("shape %q: got %q, want a comma: %w", text, rest, ErrShape)
		}
		if s = strings.TrimSpace(rest[1:]); s == "" {
			return nil, fmt.Errorf("shape %q: a dimension is missing after the last comma: %w", text, ErrShape)
		}
	}
	return FromDims(dims...)
}

func parseDim(s string) (Dim, string, error) {
	if s[0] == '"' {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return Dim{}, "", fmt.Errorf("got %q, want a quoted symbol: %w", s, ErrShape)
		}
		symbol, err := strconv.Unquote(quoted)
		if err != nil || symbol == "" {
			return Dim{}, "", fmt.Errorf("got %s, want a symbol that is not empty: %w", quoted, ErrShape)
		}
		return Sym(symbol), s[len(quoted):], nil
	}
	end := strings.IndexAny(s, ", \t")
	if end < 0 {
		end = len(s)
	}
	word := s[:end]
	switch {
	case word == "?":
		return Unknown, s[end:], nil
	case isIdent(word):
		return Sym(word), s[end:], nil
	}
	size, err := strconv.Atoi(word)
	if err != nil {
		return Dim{}, "", fmt.Errorf("got dimension %q, want a number, a symbol or ?: %w", word, ErrShape)
	}
	return N(size), s[end:], nil
}
