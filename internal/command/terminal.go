package command

import (
	"io"
	"strings"
)

// reportTo returns a writer for text that people read: control characters in
// names that a model's file chose do not reach the terminal.
func reportTo(w io.Writer) io.Writer { return reporter{w} }

type reporter struct{ io.Writer }

// Write writes whole lines, or parts that end between two characters.
func (r reporter) Write(text []byte) (int, error) {
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	if _, err := io.WriteString(r.Writer, strings.Join(lines, "\n")); err != nil {
		return 0, err
	}
	return len(text), nil
}

// clean keeps control characters, which another process or a file chose, from
// the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}
