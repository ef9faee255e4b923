package ir

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// scanner reads the tokens of the text form. The first error sticks and moves
// to the end of the text, so that every loop over tokens ends.
type scanner struct {
	text string
	at   int // byte offset of the next token once skip has run
	err  error
}

func (s *scanner) fail(at int, format string, args ...any) {
	if s.err != nil {
		return
	}
	line := 1 + strings.Count(s.text[:at], "\n")
	column := 1 + utf8.RuneCountInString(s.text[1+strings.LastIndexByte(s.text[:at], '\n'):at])
	s.err = fmt.Errorf("ir: %d:%d: %w", line, column, fmt.Errorf(format, args...))
	s.at = len(s.text)
}

// want reports that the next token is not the expected one, which what
// describes.
func (s *scanner) want(what string) {
	s.skip()
	rest := s.text[s.at:]
	end := 0
	for end < len(rest) && isWordByte(rest[end]) {
		end++
	}
	if end == 0 && rest != "" {
		_, end = utf8.DecodeRuneInString(rest)
	}
	got := "the end of the text"
	if rest != "" {
		got = strconv.Quote(rest[:min(end, 40)])
	}
	s.fail(s.at, "got %s, want %s", got, what)
}

func (s *scanner) skip() {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			s.at++
		case strings.HasPrefix(s.text[s.at:], "//"):
			end := strings.IndexByte(s.text[s.at:], '\n')
			if end < 0 {
				end = len(s.text) - s.at
			}
			s.at += end
		default:
			return
		}
	}
}

// next returns the first byte of the next token, 0 at the end.
func (s *scanner) next() byte {
	s.skip()
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// pos returns the offset of the next token.
func (s *scanner) pos() int {
	s.skip()
	return s.at
}

func (s *scanner) accept(token string) bool {
	s.skip()
	if !strings.HasPrefix(s.text[s.at:], token) {
		return false
	}
	s.at += len(token)
	return true
}

func (s *scanner) expect(token string) {
	if !s.accept(token) {
		s.want(strconv.Quote(token))
	}
}

// peekWord returns the word at the next token without taking it, "" if none.
func (s *scanner) peekWord() string {
	s.skip()
	end := s.at
	for end < len(s.text) && isWordByte(s.text[end]) {
		end++
	}
	return s.text[s.at:end]
}

func (s *scanner) acceptWord(word string) bool {
	if s.peekWord() != word {
		return false
	}
	s.at += len(word)
	return true
}

func (s *scanner) word(what string) string {
	w := s.peekWord()
	if w == "" {
		s.want(what)
	}
	s.at += len(w)
	return w
}

func (s *scanner) quoted(what string) string {
	if s.next() != '"' {
		s.want(what)
		return ""
	}
	q, err := strconv.QuotedPrefix(s.text[s.at:])
	if err != nil {
		s.fail(s.at, "got a string that does not end or has a bad escape, want %s", what)
		return ""
	}
	text, err := strconv.Unquote(q)
	if err != nil {
		s.fail(s.at, "got the string %s, want %s", q, what)
	}
	s.at += len(q)
	return text
}

// name reads a word or a string that follows its sign directly.
func (s *scanner) name(what string) string {
	if s.at < len(s.text) && s.text[s.at] == '"' {
		return s.quoted(what)
	}
	if s.at >= len(s.text) || !isWordByte(s.text[s.at]) {
		s.want(what)
		return ""
	}
	return s.word(what)
}

func (s *scanner) typ() op.Type {
	at := s.pos()
	dt, err := dtype.Parse(s.word("a type such as f32[1,8]"))
	if s.err == nil && err != nil {
		s.fail(at, "%w", err)
	}
	open := s.pos()
	if s.expect("["); s.err != nil {
		return op.Type{}
	}
	if s.accept("...") {
		s.expect("]")
		return op.Type{DType: dt}
	}
	for s.err == nil && !s.accept("]") {
		switch c := s.next(); {
		case c == '"':
			s.quoted("a dimension")
		case c == '?' || c == ',' || c == '-':
			s.at++
		default:
			s.word(`a dimension or "]"`)
		}
	}
	if s.err != nil {
		return op.Type{}
	}
	dims, err := shape.Parse(s.text[open:s.at])
	if err != nil {
		s.fail(open, "%w", err)
	}
	return op.Type{DType: dt, Shape: dims}
}

// attrValue reads an attribute value of the kind.
func (s *scanner) attrValue(kind op.AttrKind) any {
	switch kind {
	case op.Int:
		return s.integer()
	case op.Float:
		return s.float()
	case op.String:
		return s.quoted("a string")
	case op.DTypeKind:
		at := s.pos()
		dt, err := dtype.Parse(s.word("an element type"))
		if s.err == nil && err != nil {
			s.fail(at, "%w", err)
		}
		return dt
	case op.Ints:
		return list(s, s.integer)
	case op.Floats:
		return list(s, s.float)
	case op.Strings:
		return list(s, func() string { return s.quoted("a string") })
	}
	s.fail(s.pos(), "the operator declares an attribute of kind %d, which has no text form", kind)
	return nil
}

func list[T any](s *scanner, item func() T) []T {
	out := []T{}
	s.expect("[")
	for s.err == nil && !s.accept("]") {
		if len(out) > 0 {
			s.expect(",")
		}
		out = append(out, item())
	}
	return out
}

func (s *scanner) integer() int64 {
	at, text := s.number("an integer")
	n, err := strconv.ParseInt(text, 10, 64)
	if s.err == nil && err != nil {
		s.fail(at, "got %q, want an integer of 64 bits", text)
	}
	return n
}

func (s *scanner) float() float64 {
	at, text := s.number("a number")
	f, err := strconv.ParseFloat(text, 64)
	if s.err == nil && err != nil {
		s.fail(at, "got %q, want a number of 64 bits", text)
	}
	return f
}

// number takes what may be one: word bytes and signs.
func (s *scanner) number(what string) (at int, text string) {
	at = s.pos()
	end := at
	for end < len(s.text) && (isWordByte(s.text[end]) || s.text[end] == '-' || s.text[end] == '+') {
		end++
	}
	if end == at {
		s.want(what)
		return at, ""
	}
	s.at = end
	return at, s.text[at:end]
}
