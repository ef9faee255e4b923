package jinja

import (
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is that of a token.
type kind int

const (
	end      kind = iota // of the template
	data                 // text between tags
	open                 // {%
	shut                 // %}
	show                 // {{
	shown                // }}
	name                 // for, x
	str                  // "a"
	integer              // 1
	float                // 1.5
	operator             // ==
)

type token struct {
	kind kind
	text string // of a str: what it stands for
	line int
}

// lexer cuts a template into tokens.
type lexer struct {
	text   string
	at     int
	line   int
	tokens []token
	fresh  bool // the text at this place begins a line
}

var (
	wordPattern   = regexp.MustCompile(`^[\pL_][\pL\pN_]*`)
	floatPattern  = regexp.MustCompile(`^(\d+_)*\d+((\.(\d+_)*\d+)?[eE][+-]?(\d+_)*\d+|\.(\d+_)*\d+)`)
	numberPattern = regexp.MustCompile(`^(0[bB](_?[01])+|0[oO](_?[0-7])+|0[xX](_?[\da-fA-F])+|[1-9](_?\d)*|0(_?0)*)`)
	endRaw        = regexp.MustCompile(`\{%([-+]?)\s*endraw\s*([-+]?)%\}`)
	beginRaw      = regexp.MustCompile(`^\{%[-+]?\s*raw\s*(-?)%\}`)
)

// operators are those of expressions, the longer ones first.
var operators = []string{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]", "(", ")", "{", "}", ">", "<", "=", ".", ":", "|", ",", ";"}

func lex(text string) []token {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\r", "\n")
	if !utf8.ValidString(text) {
		fail(1, "got bytes that are no UTF-8")
	}
	l := &lexer{text: strings.TrimSuffix(text, "\n"), line: 1, fresh: true}
	for l.at < len(l.text) {
		l.next()
	}
	return append(l.tokens, token{kind: end, line: l.line})
}

func (l *lexer) rest() string { return l.text[l.at:] }

// skip moves on by n bytes.
func (l *lexer) skip(n int) {
	l.line += strings.Count(l.text[l.at:][:n], "\n")
	l.at += n
	if n > 0 {
		l.fresh = l.text[l.at-1] == '\n'
	}
}

func (l *lexer) add(k kind, text string) { l.tokens = append(l.tokens, token{k, text, l.line}) }

// next reads text up to a tag, and the tag.
func (l *lexer) next() {
	rest := l.rest()
	n := -1
	for i := 0; i+1 < len(rest); i++ {
		if rest[i] == '{' && strings.IndexByte("{%#", rest[i+1]) >= 0 {
			n = i
			break
		}
	}
	if n < 0 {
		l.add(data, rest)
		l.skip(len(rest))
		return
	}
	tag, sign := rest[n+1], byte(0)
	if n+2 < len(rest) && (rest[n+2] == '-' || rest[n+2] == '+') {
		sign = rest[n+2]
	}
	if text := l.before(rest[:n], tag, sign); text != "" {
		l.add(data, text)
	}
	l.skip(n)
	switch {
	case tag == '#':
		l.comment()
	case tag == '%' && beginRaw.MatchString(l.rest()):
		l.raw()
	default:
		l.tag(tag, sign != 0)
	}
}

// before returns the text in front of a tag, without the white space that the
// tag takes away: all that it asks for, or that of a line in front of a block.
func (l *lexer) before(text string, tag, sign byte) string {
	if sign == '-' {
		return strings.TrimRight(text, " \t\n\v\f")
	}
	if tag == '{' || sign == '+' {
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || l.fresh) && strings.Trim(text[line:], " \t\v\f") == "" {
		return text[:line]
	}
	return text
}

// after skips the white space behind a tag whose end was read.
func (l *lexer) after(sign byte) {
	rest := l.rest()
	switch {
	case sign == '-':
		l.skip(len(rest) - len(strings.TrimLeft(rest, " \t\n\v\f")))
	case sign != '+' && strings.HasPrefix(rest, "\n"):
		l.skip(1)
	}
}

// signOf returns the sign in front of the end of a tag.
func signOf(text string) byte {
	if text != "" && (text[len(text)-1] == '-' || text[len(text)-1] == '+') {
		return text[len(text)-1]
	}
	return 0
}

func (l *lexer) comment() {
	n := strings.Index(l.rest()[2:], "#}")
	if n < 0 {
		fail(l.line, "got a comment without an end")
	}
	sign := signOf(l.rest()[2 : n+2])
	l.skip(n + 4)
	l.after(sign)
}

// raw reads text that has no tags.
func (l *lexer) raw() {
	m := beginRaw.FindStringSubmatch(l.rest())
	line := l.line
	l.skip(len(m[0]))
	if m[1] == "-" { // the line break behind it stays otherwise
		l.after('-')
	}
	e := endRaw.FindStringSubmatchIndex(l.rest())
	if e == nil {
		fail(line, "got raw without endraw")
	}
	text, signs := l.rest()[:e[0]], l.rest()[e[2]:e[3]]
	if text = l.before(text, '%', signOf(signs)); text != "" {
		l.add(data, text)
	}
	sign := signOf(l.rest()[e[4]:e[5]])
	l.skip(e[1])
	l.after(sign)
}

// tag reads the tokens of a tag.
func (l *lexer) tag(tag byte, signed bool) {
	begin, finish, closing := open, shut, "%}"
	if tag == '{' {
		begin, finish, closing = show, shown, "}}"
	}
	line, depth := l.line, 0
	l.add(begin, "")
	l.skip(2)
	if signed {
		l.skip(1)
	}
	for {
		rest := l.rest()
		l.skip(len(rest) - len(strings.TrimLeft(rest, " \t\n\v\f")))
		rest = l.rest()
		if rest == "" {
			fail(line, "got a tag without an end, want %s", closing)
		}
		sign := byte(0)
		if len(rest) > 2 && (rest[0] == '-' || rest[0] == '+' && tag == '%') && rest[1:3] == closing {
			sign, rest = rest[0], rest[1:]
		}
		if strings.HasPrefix(rest, closing) && depth == 0 {
			l.add(finish, "")
			l.skip(len(l.rest()) - len(rest) + 2)
			if tag == '%' || sign == '-' {
				l.after(sign)
			}
			return
		}
		depth += l.token()
	}
}

// token reads a token of an expression, and returns by how much it opens
// brackets.
func (l *lexer) token() int {
	rest := l.rest()
	if m := wordPattern.FindString(rest); m != "" {
		l.add(name, m)
		l.skip(len(m))
		return 0
	}
	if m := floatPattern.FindString(rest); m != "" {
		l.add(float, strings.ReplaceAll(m, "_", ""))
		l.skip(len(m))
		return 0
	}
	if m := numberPattern.FindString(rest); m != "" {
		l.add(integer, m)
		l.skip(len(m))
		return 0
	}
	if rest[0] == '"' || rest[0] == '\'' {
		l.quoted(rest[0])
		return 0
	}
	for _, o := range operators {
		if strings.HasPrefix(rest, o) {
			l.add(operator, o)
			l.skip(len(o))
			switch o {
			case "(", "[", "{":
				return 1
			case ")", "]", "}":
				return -1
			}
			return 0
		}
	}
	fail(l.line, "got the character %q in an expression", []rune(rest)[0])
	return 0
}

// quoted reads a string. It may contain line breaks.
func (l *lexer) quoted(quote byte) {
	rest := l.rest()
	n := 1
	for n < len(rest) && rest[n] != quote {
		if rest[n] == '\\' {
			n++
		}
		n++
	}
	if n >= len(rest) {
		fail(l.line, "got a string without an end")
	}
	l.add(str, l.unescape(rest[1:n]))
	l.skip(n + 1)
}

// escapes are those of one character.
var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", 'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '\\': `\`, '\'': "'", '"': `"`, '\n': ""}

// unescape returns what a string stands for, by Python's rules.
func (l *lexer) unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		c := s[i]
		digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
		switch {
		case digits > 0:
			if i+digits >= len(s) {
				fail(l.line, `got the escape \%c with fewer than %d digits`, c, digits)
			}
			n, err := strconv.ParseUint(s[i+1:i+1+digits], 16, 32)
			if err != nil || !utf8.ValidRune(rune(n)) {
				fail(l.line, `got the escape \%c%s, want a character`, c, s[i+1:i+1+digits])
			}
			b.WriteRune(rune(n))
			i += digits
		case c >= '0' && c <= '7':
			n := 0
			for j := 0; j < 3 && i < len(s) && s[i] >= '0' && s[i] <= '7'; j++ {
				n = 8*n + int(s[i]-'0')
				i++
			}
			i--
			b.WriteRune(rune(n))
		case c == 'N':
			fail(l.line, `got the escape \N, which is not supported`)
		default:
			if e, ok := escapes[c]; ok {
				b.WriteString(e)
			} else {
				b.WriteByte('\\')
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}
