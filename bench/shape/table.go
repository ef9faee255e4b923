package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/bench/internal/results"
)

// figures are the repetitions of one benchmark, by unit.
type figures map[string][]float64

// table is the benchmarks by case and by who was measured, in the order in
// which they came.
type table struct {
	cases, who []string
	figures    map[[2]string]figures
}

// printTable reads benchmarks from in and writes a table for each group of
// cases to out.
func printTable(in io.Reader, out io.Writer, output results.Output) error {
	groups := map[string]*table{}
	var order []string
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := strings.Split(strings.TrimPrefix(fields[0], "Benchmark"), "/")
		if len(name) != 3 {
			return fmt.Errorf("got benchmark %s, want Benchmark/case/who", fields[0])
		}
		if dash := strings.LastIndexByte(name[2], '-'); dash >= 0 {
			name[2] = name[2][:dash] // the number of processors
		}
		t := groups[name[0]]
		if t == nil {
			t = &table{figures: map[[2]string]figures{}}
			groups[name[0]] = t
			order = append(order, name[0])
		}
		if err := t.add(name[1], name[2], fields[2:]); err != nil {
			return fmt.Errorf("%s: %w", fields[0], err)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	r := results.New("shape", nil, "group", "case", "who")
	r.Command = "(cd .. && go test ./shape -run '^$' -bench . -benchtime 100ms -count 5 -timeout 1h) | go run ./shape table"
	r.Note = "the least of each one's repetitions"
	for _, name := range order {
		groups[name].addTo(r, name)
	}
	return output.Write(out, r, func(out io.Writer) error {
		for _, name := range order {
			if _, err := fmt.Fprintf(out, "## %s\n\n%s\n", name, groups[name]); err != nil {
				return err
			}
		}
		return nil
	})
}

// addTo adds a row for each case of each group.
func (t *table) addTo(r *results.Result, group string) {
	for _, what := range t.cases {
		for _, who := range t.who {
			f, ok := t.figures[[2]string{what, who}]
			if !ok {
				continue
			}
			var list []results.Named
			for _, unit := range [][2]string{{"ns/op", "ns"}, {"allocs/op", "allocations"}, {"bytes/shape", "bytes"}} {
				if all, ok := f[unit[0]]; ok {
					list = append(list, results.Once(unit[1], least(all)))
				}
			}
			words := func(s string) string { return strings.ReplaceAll(s, "_", " ") }
			r.Add([]string{group, words(what), words(who)}, list...)
		}
	}
}

// add takes the pairs of figure and unit of one line.
func (t *table) add(what, who string, pairs []string) error {
	if !slices.Contains(t.cases, what) {
		t.cases = append(t.cases, what)
	}
	if !slices.Contains(t.who, who) {
		t.who = append(t.who, who)
	}
	key := [2]string{what, who}
	if t.figures[key] == nil {
		t.figures[key] = figures{}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		n, err := strconv.ParseFloat(pairs[i], 64)
		if err != nil {
			return fmt.Errorf("got figure %q: %w", pairs[i], err)
		}
		t.figures[key][pairs[i+1]] = append(t.figures[key][pairs[i+1]], n)
	}
	return nil
}

// String returns the table as Markdown.
func (t *table) String() string {
	var b strings.Builder
	words := func(s string) string { return strings.ReplaceAll(s, "_", " ") }
	b.WriteString("| |")
	for _, who := range t.who {
		fmt.Fprintf(&b, " %s |", words(who))
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(t.who)) + "\n")
	for _, what := range t.cases {
		fmt.Fprintf(&b, "| %s |", words(what))
		for _, who := range t.who {
			fmt.Fprintf(&b, " %s |", t.cell(what, who))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (t *table) cell(what, who string) string {
	f, ok := t.figures[[2]string{what, who}]
	if !ok {
		return ""
	}
	if bytes, ok := f["bytes/shape"]; ok {
		return fmt.Sprintf("%.0f B", least(bytes))
	}
	text := fmt.Sprintf("%.1f ns", least(f["ns/op"]))
	if trie := t.figures[[2]string{what, "trie"}]; trie != nil && who != "trie" {
		text += fmt.Sprintf(", %.1fx", least(f["ns/op"])/least(trie["ns/op"]))
	}
	if n := least(f["allocs/op"]); n > 0 {
		text += fmt.Sprintf(", %.0f allocs", n)
	}
	return text
}

// least is the figure to take: what other processes add to a time is never
// less than nothing.
func least(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Min(all)
}
