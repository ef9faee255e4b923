package ptx

import (
	"fmt"
	"strings"
)

// token is a word, a number, a string or one character of punctuation. Words
// contain their dots: an instruction with its modifiers is one word.
type token struct {
	kind tokenKind
	text string
	line int
	from int // place in the text
}

type tokenKind uint8

const (
	end tokenKind = iota
	word
	number
	punct
)

func (t token) String() string {
	if t.kind == end {
		return "the end of the text"
	}
	return fmt.Sprintf("%q", t.text)
}

func isLetter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c == '%'
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// lex splits a text. The last token is an end.
func lex(text string) ([]token, error) {
	var tokens []token
	line := 1
	for i := 0; i < len(text); {
		c := text[i]
		start := i
		switch {
		case c == '\n':
			line++
			i++
			continue
		case c == ' ' || c == '\t' || c == '\r':
			i++
			continue
		case strings.HasPrefix(text[i:], "//"):
			for i < len(text) && text[i] != '\n' {
				i++
			}
			continue
		case strings.HasPrefix(text[i:], "/*"):
			n := strings.Index(text[i+2:], "*/")
			if n < 0 {
				return nil, fmt.Errorf("ptx.Parse: line %d: got a comment without an end, want */", line)
			}
			line += strings.Count(text[i:i+2+n], "\n")
			i += n + 4
			continue
		case isDigit(c):
			for i < len(text) && (isDigit(text[i]) || isLetter(text[i]) || text[i] == '.') {
				i++
			}
			tokens = append(tokens, token{number, text[start:i], line, start})
		case isLetter(c) || c == '.':
			i = endOfWord(text, i)
			tokens = append(tokens, token{word, text[start:i], line, start})
		case strings.IndexByte(",;[]{}()<>+-@!|:=", c) >= 0:
			i++
			tokens = append(tokens, token{punct, text[start:i], line, start})
		default:
			return nil, fmt.Errorf("ptx.Parse: line %d: got the character %q, want a statement", line, c)
		}
	}
	return append(tokens, token{end, "", line, len(text)}), nil
}

// endOfWord includes dots, and the double colons of modifiers.
func endOfWord(text string, i int) int {
	for i < len(text) {
		switch c := text[i]; {
		case isLetter(c) || isDigit(c) || c == '.':
			i++
		case strings.HasPrefix(text[i:], "::"):
			i += 2
		default:
			return i
		}
	}
	return i
}
