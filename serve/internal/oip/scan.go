package oip

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may be nested: deeper than any tensor
// has dimensions.
const maxDepth = 64

// scanner reads JSON from front to back. NaN, Infinity and -Infinity count as
// numbers, as Triton and Python write them.
type scanner struct {
	text []byte
	at   int
}

// space skips what may stand between tokens, and returns the next byte, 0 at
// the end.
func (s *scanner) space() byte {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return c
		}
	}
	return 0
}

func (s *scanner) unexpected(want string) error {
	if s.at >= len(s.text) {
		return messagef("JSON: got the end of the text, want %s", want)
	}
	return messagef("JSON: got %q at byte %d, want %s", s.text[s.at:min(len(s.text), s.at+1)], s.at, want)
}

// take skips one byte, which must be c.
func (s *scanner) take(c byte) error {
	if s.space() != c {
		return s.unexpected(strconv.Quote(string(c)))
	}
	s.at++
	return nil
}

// end returns an error for text behind the value.
func (s *scanner) end() error {
	if s.space(); s.at < len(s.text) {
		return s.unexpected("the end of the text")
	}
	return nil
}

// object calls field for each key, with the scanner at the value, which field
// reads.
func (s *scanner) object(field func(key string) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	if s.space() == '}' {
		s.at++
		return nil
	}
	for {
		key, err := s.str()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
		switch s.space() {
		case ',':
			s.at++
		case '}':
			s.at++
			return nil
		default:
			return s.unexpected(`"," or "}"`)
		}
	}
}

// array calls element for each element, with the scanner at it.
func (s *scanner) array(element func() error) error {
	if err := s.take('['); err != nil {
		return err
	}
	if s.space() == ']' {
		s.at++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch s.space() {
		case ',':
			s.at++
		case ']':
			s.at++
			return nil
		default:
			return s.unexpected(`"," or "]"`)
		}
	}
}

// raw returns the text of a string between its quotes.
func (s *scanner) raw() ([]byte, error) {
	if s.space() != '"' {
		return nil, s.unexpected("a string")
	}
	for i := s.at + 1; i < len(s.text); i++ {
		switch c := s.text[i]; {
		case c == '\\':
			i++
		case c == '"':
			raw := s.text[s.at+1 : i]
			s.at = i + 1
			return raw, nil
		case c < ' ':
			s.at = i
			return nil, s.unexpected("a string without control characters")
		}
	}
	s.at = len(s.text)
	return nil, s.unexpected("the end of a string")
}

// str reads a string.
func (s *scanner) str() (string, error) {
	raw, err := s.raw()
	if err != nil {
		return "", err
	}
	return unescape(raw)
}

// escapes are those of one character.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape returns the string that stands between quotes.
func unescape(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), nil
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		i++ // raw never ends in a single backslash
		if raw[i] != 'u' {
			c, ok := escapes[raw[i]]
			if !ok {
				return "", messagef("JSON: got the escape %q, want one of JSON's", raw[i-1:i+1])
			}
			out = append(out, c)
			continue
		}
		r, err := hex(raw, i+1)
		if err != nil {
			return "", err
		}
		i += 4
		if utf16.IsSurrogate(r) {
			r2 := rune(-1)
			if i+2 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if r2, err = hex(raw, i+3); err != nil {
					return "", err
				}
			}
			if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
				i += 6
			}
		}
		out = utf8.AppendRune(out, r)
	}
	return string(out), nil
}

// hex reads the four digits of an escape.
func hex(raw []byte, at int) (rune, error) {
	if at+4 <= len(raw) {
		if n, err := strconv.ParseUint(string(raw[at:at+4]), 16, 16); err == nil {
			return rune(n), nil
		}
	}
	return 0, messagef("JSON: got an escape %q, want four hexadecimal digits", raw[at-2:min(len(raw), at+4)])
}

// word reads a number or a literal: everything up to a delimiter. Whoever
// converts it finds out whether it is one.
func (s *scanner) word() ([]byte, error) {
	s.space()
	i := s.at
	for i < len(s.text) && !delimits[s.text[i]] {
		i++
	}
	if i == s.at {
		return nil, s.unexpected("a value")
	}
	word := s.text[s.at:i]
	s.at = i
	return word, nil
}

// delimits says which bytes end a number or a literal.
var delimits = func() (d [256]bool) {
	for _, c := range " \t\n\r,]}[{:\"" {
		d[c] = true
	}
	return d
}()

// value skips a value of any kind and returns its text. Brackets are matched;
// numbers and literals are not looked into.
func (s *scanner) value() ([]byte, error) {
	s.space()
	from := s.at
	switch s.space() {
	case '"':
		_, err := s.raw()
		return s.text[from:s.at], err
	case '[', '{':
	default:
		return s.word()
	}
	var open [maxDepth]byte
	depth := 0
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '[', '{':
			if depth == maxDepth {
				return nil, messagef("JSON: got more than %d arrays and objects within each other, want fewer", maxDepth)
			}
			open[depth] = c + 2 // its end, in ASCII
			depth++
		case ']', '}':
			if open[depth-1] != c {
				return nil, s.unexpected(strconv.Quote(string(open[depth-1])))
			}
			if depth--; depth == 0 {
				s.at++
				return s.text[from:s.at], nil
			}
		case '"':
			if _, err := s.raw(); err != nil {
				return nil, err
			}
			continue
		}
		s.at++
	}
	return nil, s.unexpected("the end of an array or object")
}

// integer reads a whole number.
func (s *scanner) integer() (int64, error) {
	s.space()
	from := s.at
	word, err := s.word()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(word), 10, 64)
	if err != nil {
		s.at = from
		return 0, messagef("JSON: got %q at byte %d, want an integer of 64 bits", clip(word), from)
	}
	return n, nil
}

// boolean reads true or false.
func (s *scanner) boolean() (bool, error) {
	s.space()
	from := s.at
	word, err := s.word()
	if err != nil {
		return false, err
	}
	if b := string(word); b == "true" || b == "false" {
		return b == "true", nil
	}
	return false, messagef("JSON: got %q at byte %d, want true or false", clip(word), from)
}

// clip shortens text for an error.
func clip(text []byte) []byte {
	if len(text) > 40 {
		return append(bytes.Clone(text[:40]), "..."...)
	}
	return text
}
