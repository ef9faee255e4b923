package rules_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentColumns is the width of a comment that stands on lines of its own, a
// tab counting four.
const commentColumns = 80

var (
	prose  = regexp.MustCompile(`^//(   - |  \d+\. |     | )\S+ \S`)
	output = regexp.MustCompile(`(?m)^// (Unordered output|Output):`)
)

// wideComments returns the lines of the file, counted from 1, whose comments
// are prose and wider than commentColumns. Directives, code, tables, single
// words and the output of examples have the width that they need.
func wideComments(s source, text string) (wide []int) {
	lines := strings.Split(text, "\n")
	for _, g := range s.file.Comments {
		var whole strings.Builder
		for _, c := range g.List {
			whole.WriteString(c.Text + "\n")
		}
		if output.MatchString(whole.String()) {
			continue
		}
		for _, c := range g.List {
			n := s.fset.Position(c.Pos()).Line
			own := strings.TrimLeft(lines[n-1], "\t ") == c.Text
			columns := utf8.RuneCountInString(strings.ReplaceAll(lines[n-1], "\t", "    "))
			if own && prose.MatchString(c.Text) && columns > commentColumns {
				wide = append(wide, n)
			}
		}
	}
	return wide
}

// TestCommentWidth holds comments at one width.
func TestCommentWidth(t *testing.T) {
	for _, s := range everySource(t) {
		if s.isGen {
			continue
		}
		text, err := os.ReadFile(s.path)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range wideComments(s, string(text)) {
			t.Errorf("%s:%d: a comment wider than %d columns", s.path, n, commentColumns)
		}
	}
}
