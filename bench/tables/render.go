package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// table is a table of a page: which results it shows, and how.
type table struct {
	name  string
	files []string // in results, without ".json"
	build func(*sheet)
}

// sheet is a table that is being built. A figure that the results do not have
// is its error.
type sheet struct {
	from   map[string]*results.Result
	header []string
	rows   [][]string
	below  string // a sentence made of figures, between table and origin
	err    error
}

func render(name, folder string) (string, error) {
	for _, t := range definitions {
		if t.name == name {
			return t.render(folder)
		}
	}
	return "", fmt.Errorf("got a name without a definition")
}

func (t table) render(folder string) (string, error) {
	s := &sheet{from: map[string]*results.Result{}}
	for _, file := range t.files {
		r, err := results.Read(filepath.Join(folder, file+".json"))
		if err != nil {
			return "", err
		}
		s.from[file] = r
	}
	t.build(s)
	if s.err != nil {
		return "", s.err
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(s.header)
	b.WriteString("|" + strings.Repeat("---|", len(s.header)) + "\n")
	for _, row := range s.rows {
		if len(row) != len(s.header) {
			return "", fmt.Errorf("got a row of %d cells, want %d: %q", len(row), len(s.header), row)
		}
		line(row)
	}
	b.WriteByte('\n')
	if s.below != "" {
		b.WriteString(s.below + "\n\n")
	}
	for _, file := range t.files {
		b.WriteString(origin(s.from[file]) + "\n")
	}
	return b.String(), nil
}

// origin says where the figures of a table come from, in a sentence of small
// print.
func origin(r *results.Result) string {
	day, _ := time.Parse(time.DateOnly, r.Date) // Read has looked
	machine := strings.Replace(r.Origin(), r.Date+"; ", "", 1)
	note := ""
	if r.Note != "" {
		note = "; " + r.Note
	}
	return fmt.Sprintf("<sub>%s: %s; `%s`%s.</sub>", day.Format("2 January 2006"), machine, r.Command, note)
}

// result returns one of the files.
func (s *sheet) result(file string) *results.Result { return s.from[file] }

// figure returns one figure of one case, which must be there.
func (s *sheet) figure(file, name string, words ...string) float64 {
	f, ok := s.find(file, name, words...)
	if !ok {
		s.fail("%s: got no figure %q of %q, want one", file, name, words)
	}
	return f.Median
}

func (s *sheet) find(file, name string, words ...string) (results.Figure, bool) {
	row, ok := s.from[file].Find(words...)
	if !ok {
		return results.Figure{}, false
	}
	f, ok := row.Figures[name]
	return f, ok
}

func (s *sheet) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *sheet) row(cells ...string) { s.rows = append(s.rows, cells) }

// words lists the different words at a place of the cases, in their order.
func words(r *results.Result, at int) (list []string) {
	seen := map[string]bool{}
	for _, row := range r.Rows {
		if w := row.Case[at]; !seen[w] {
			seen[w] = true
			list = append(list, w)
		}
	}
	return list
}

// ms, mib, ratio, parts, micros and speed write figures as the tables show
// them.
func ms(v float64) string {
	switch {
	case v < 0.01:
		return fmt.Sprintf("%.3f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func mib(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }

func ratio(v float64) string { return fmt.Sprintf("%.2f", v) }

func micros(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	digits := whole(v)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func speed(v float64) string { return fmt.Sprintf("%.1f", v) }

// versus is two figures side by side.
func versus(a, b float64, format func(float64) string) string { return format(a) + " / " + format(b) }

func difference(v, of float64) string {
	if v == 0 {
		return "0"
	}
	return fmt.Sprintf("%.0e of %.2g", v, of)
}
