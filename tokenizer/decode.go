package tokenizer

import (
	"strings"
	"unicode/utf8"

	"github.com/tenure-go/tenure/tokenizer/internal/pattern"
)

// Decode returns the text of ids. Unknown ids are left out, and with
// skipSpecial the special tokens.
func (t *Tokenizer) Decode(ids []int64, skipSpecial bool) string {
	tokens := make([]string, 0, len(ids))
	for _, id := range ids {
		text, ok := t.Token(id)
		if ok && !(skipSpecial && t.added.special[text]) {
			tokens = append(tokens, text)
		}
	}
	if t.decoder == nil {
		return strings.Join(tokens, " ")
	}
	return strings.Join(t.decoder.decode(tokens), "")
}

// A decoder turns the texts of tokens into parts of the text.
type decoder interface {
	decode(tokens []string) []string
}

type decoders []decoder

func (ds decoders) decode(tokens []string) []string {
	for _, d := range ds {
		tokens = d.decode(tokens)
	}
	return tokens
}

// byteDecoder turns characters of the byte-level alphabet into bytes.
type byteDecoder struct{}

func (byteDecoder) decode(tokens []string) []string {
	var out []byte
	for _, text := range tokens {
		from := len(out)
		for _, r := range text {
			if int(r) >= len(runeBytes) || runeBytes[r] < 0 {
				out = append(out[:from], text...) // not of the alphabet
				break
			}
			out = append(out, byte(runeBytes[r]))
		}
	}
	return []string{lossy(out)}
}

// lossy replaces what is not UTF-8: one U+FFFD for the longest part that a
// character could begin with, as the Unicode standard recommends.
func lossy(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	out := make([]byte, 0, len(data)+8)
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 {
			size = incomplete(data)
			out = utf8.AppendRune(out, utf8.RuneError)
		} else {
			out = append(out, data[:size]...)
		}
		data = data[size:]
	}
	return string(out)
}

// incomplete returns the length of the longest part of data that a character
// begins with, and at least 1.
func incomplete(data []byte) int {
	size, low, high := 0, byte(0x80), byte(0xbf)
	switch b := data[0]; {
	case 0xc2 <= b && b <= 0xdf:
		size = 2
	case 0xe0 <= b && b <= 0xef:
		size = 3
	case 0xf0 <= b && b <= 0xf4:
		size = 4
	default:
		return 1
	}
	switch data[0] {
	case 0xe0:
		low = 0xa0
	case 0xed:
		high = 0x9f
	case 0xf0:
		low = 0x90
	case 0xf4:
		high = 0x8f
	}
	n := 1
	for n < size && n < len(data) && low <= data[n] && data[n] <= high {
		n++
		low, high = 0x80, 0xbf
	}
	return n
}

// byteFallback turns tokens like <0x41> into the text of their bytes. If the
// bytes of a run are no text, each becomes U+FFFD.
type byteFallback struct{}

func (byteFallback) decode(tokens []string) []string {
	var out []string
	var run []byte
	flush := func() {
		if utf8.Valid(run) && len(run) > 0 {
			out = append(out, string(run))
		} else {
			for range run {
				out = append(out, string(utf8.RuneError))
			}
		}
		run = run[:0]
	}
	for _, text := range tokens {
		if b, ok := byteOf(text); ok {
			run = append(run, b)
			continue
		}
		flush()
		out = append(out, text)
	}
	flush()
	return out
}

func byteOf(text string) (byte, bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	if text[3] == '+' { // as Rust's parser has it, +F is a number
		low, ok := hexDigit(text[4])
		return low, ok
	}
	high, okHigh := hexDigit(text[3])
	low, okLow := hexDigit(text[4])
	return high<<4 | low, okHigh && okLow
}

func hexDigit(b byte) (byte, bool) {
	switch {
	case '0' <= b && b <= '9':
		return b - '0', true
	case 'a' <= b|0x20 && b|0x20 <= 'f':
		return b | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// wordDecoder joins words by spaces, and continuations to what is before them.
type wordDecoder struct {
	prefix  string
	cleanup bool
}

func (d wordDecoder) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, text := range tokens {
		if i > 0 {
			if rest, ok := strings.CutPrefix(text, d.prefix); ok {
				text = rest
			} else {
				text = " " + text
			}
		}
		if d.cleanup {
			text = cleanup(text)
		}
		out[i] = text
	}
	return out
}

// cleanup takes out spaces that tokenizing put before signs.
func cleanup(text string) string {
	for _, pair := range [][2]string{
		{" .", "."}, {" ?", "?"}, {" !", "!"}, {" ,", ","}, {" ' ", "'"}, {" n't", "n't"}, {" 'm", "'m"},
		{" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"},
	} {
		text = strings.ReplaceAll(text, pair[0], pair[1])
	}
	return text
}

// metaspaceDecoder turns the replacement into spaces, but in the first token
// into nothing where one was prepended.
type metaspaceDecoder struct {
	replacement string
	never       bool
}

func (d metaspaceDecoder) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, text := range tokens {
		to := " "
		if i == 0 && !d.never {
			to = ""
		}
		out[i] = strings.ReplaceAll(text, d.replacement, to)
	}
	return out
}

// suffixDecoder turns the suffix of words into spaces.
type suffixDecoder string

func (d suffixDecoder) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	for i, text := range tokens {
		to := " "
		if i == len(tokens)-1 {
			to = ""
		}
		out[i] = strings.ReplaceAll(text, string(d), to)
	}
	return out
}

// fuse joins all parts.
type fuse struct{}

func (fuse) decode(tokens []string) []string { return []string{strings.Join(tokens, "")} }

// stripDecoder removes a character from the ends of parts, up to a number of
// times.
type stripDecoder struct {
	content     rune
	start, stop int
}

func (d stripDecoder) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	content := string(d.content)
	for i, text := range tokens {
		// In the reference library both ends are counted in the whole part,
		// so that a part of this character alone can lose it once for both.
		rest := text
		for range d.start {
			cut, ok := strings.CutPrefix(rest, content)
			if !ok {
				break
			}
			rest = cut
		}
		end := text
		for range d.stop {
			cut, ok := strings.CutSuffix(end, content)
			if !ok {
				break
			}
			end = cut
		}
		start := len(text) - len(rest)
		out[i] = text[min(start, len(end)):len(end)]
	}
	return out
}

func (n replacing) decode(tokens []string) []string {
	out := make([]string, len(tokens))
	var st pattern.Stack
	var matches []int
	for i, text := range tokens {
		var err error
		matches, err = n.re.AppendMatches(matches[:0], &st, []byte(text))
		if err != nil || len(matches) == 0 {
			out[i] = text
			continue
		}
		var b strings.Builder
		last := 0
		for j := 0; j < len(matches); j += 2 {
			b.WriteString(text[last:matches[j]])
			b.WriteString(n.content)
			last = matches[j+1]
		}
		b.WriteString(text[last:])
		out[i] = b.String()
	}
	return out
}

// ctc drops repeated tokens and padding.
type ctc struct {
	pad, delimiter string
	cleanup        bool
}

func (d ctc) decode(tokens []string) []string {
	var out []string
	for i, text := range tokens {
		if i > 0 && text == tokens[i-1] {
			continue
		}
		text = strings.ReplaceAll(text, d.pad, "")
		if d.cleanup {
			text = strings.ReplaceAll(cleanup(text), d.delimiter, " ")
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out
}
