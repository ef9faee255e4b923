package plan

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Report writes the formulas as text: for each structure the expressions, and
// for each line the breakpoints and a picture of the bytes of a run.
func (f *Formulas) Report(w io.Writer) error {
	var out bytes.Buffer
	f.writeSummary(&out, "formulas")
	for i := range f.Structures {
		f.Structures[i].write(&out, i+1)
	}
	for i := range f.Lines {
		f.Lines[i].write(&out)
	}
	if f.Worst.Sizes != "" {
		fmt.Fprintf(&out, "\nthe most bytes of a run: %s at %s\n", FormatBytes(f.Worst.PerRun), printable(f.Worst.Sizes))
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Summary writes how many structures the sizes need, and which sizes have none.
func (f *Formulas) Summary(w io.Writer) error {
	var out bytes.Buffer
	f.writeSummary(&out, "structures")
	out.WriteString("\n")
	for i, s := range f.Structures {
		fmt.Fprintf(&out, "  structure %d: %s of sizes, from %s\n", i+1, plural(s.Sizes, "set"), printable(s.First))
	}
	_, err := w.Write(out.Bytes())
	return err
}

func (f *Formulas) writeSummary(out *bytes.Buffer, what string) {
	var dims []string
	for _, d := range f.Dims {
		text := fmt.Sprintf("%s = %d to %d", d.Name, d.Lo, d.Hi)
		if d.Lo == d.Hi {
			text = fmt.Sprintf("%s = %d", d.Name, d.Lo)
		}
		dims = append(dims, text)
	}
	how := "every one planned"
	if !f.Every {
		how = "those along the lines below, not every one"
	}
	fmt.Fprintf(out, "%s over %s\n\n  %s, %s; %s\n", what, printable(strings.Join(dims, ", ")), plural(f.Sizes, "set")+" of sizes", how, plural(len(f.Structures), "structure"))
	for _, p := range f.Pinned {
		fmt.Fprintf(out, "  %s of sizes without a structure, from %s: %s\n", plural(p.Sizes, "set"), printable(p.First), printable(p.Reason))
	}
	for _, p := range f.Refused {
		fmt.Fprintf(out, "  %s of sizes without a plan, from %s: %s\n", plural(p.Sizes, "set"), printable(p.First), printable(p.Reason))
	}
}

func (s *StructureFormulas) write(out *bytes.Buffer, number int) {
	fmt.Fprintf(out, "\nstructure %d: %s of sizes, from %s\n", number, plural(s.Sizes, "set"), printable(s.First))
	for _, line := range []struct{ label, text string }{{"weights", s.Weights}, {"inputs", s.Inputs}, {"outputs", s.Outputs}} {
		if line.text == "" {
			line.text = "not derived: see the figures"
		}
		fmt.Fprintf(out, "  %-9s %s\n", line.label, printable(line.text))
	}
	if len(s.Underived) > 0 {
		fmt.Fprintf(out, "  arena     not derived: no expression of %s\n", printable(strings.Join(s.Underived, ", ")))
		return
	}
	switch {
	case len(s.Moments) == 0:
		fmt.Fprintf(out, "  arena     0\n")
	case len(s.Moments) == 1:
		fmt.Fprintf(out, "  arena     %s\n", s.Moments[0].Bytes)
	default:
		fmt.Fprintf(out, "  arena     the largest of\n")
		for i := range s.Moments {
			fmt.Fprintf(out, "            %c  %s\n", letter(i), s.Moments[i].Bytes)
		}
	}
	fmt.Fprintf(out, "            %s\n", s.meaning())
	for i := range s.Moments {
		m := &s.Moments[i]
		fmt.Fprintf(out, "  at %c, %s, worst for %s of sizes from %s:\n", letter(i), printable(m.Where), plural(m.Sizes, "set"), printable(m.First))
		for _, v := range m.Values[:min(len(m.Values), momentRows)] {
			fmt.Fprintf(out, "    %s\n", printable(v))
		}
		if more := len(m.Values) - momentRows; more > 0 {
			fmt.Fprintf(out, "    and %s\n", plural(more, "smaller value"))
		}
	}
}

// momentRows is how many values the report lists of a moment.
const momentRows = 6

// letter names the moments of a structure: A, B, and so on.
func letter(i int) rune {
	if i >= 26 {
		return '*'
	}
	return rune('A' + i)
}

// meaning says how the expression relates to the plans.
func (s *StructureFormulas) meaning() string {
	bound := "the lower bound of the arena"
	if !s.Exact {
		bound = "at least the lower bound of the arena"
	}
	if s.Over <= 1 {
		return bound + ", and the arena of every plan"
	}
	return fmt.Sprintf("%s; the plans' arenas are up to %.1f%% larger", bound, 100*(s.Over-1))
}

func (l *Line) write(out *bytes.Buffer) {
	title := l.Dim
	if l.Others != "" {
		title += ", with " + l.Others
	}
	fmt.Fprintf(out, "\nalong %s\n", printable(title))
	for _, b := range l.Breakpoints {
		fmt.Fprintf(out, "  from %-6d %s\n", b.Size, printable(b.What))
	}
	if len(l.Scratch) > 0 {
		var words []string
		for _, s := range l.Scratch[:min(len(l.Scratch), scratchRows)] {
			words = append(words, s.text(l.Dim))
		}
		if more := len(l.Scratch) - scratchRows; more > 0 {
			words = append(words, fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(out, "  scratch per thread, a table of the sizes that were planned:\n    %s\n", printable(strings.Join(words, "; ")))
	}
	l.plot(out)
}

// scratchRows is how many segments of scratch the report lists.
const scratchRows = 12

func (s Segment) text(dim string) string {
	at := fmt.Sprint(s.From)
	if s.To > s.From {
		at = fmt.Sprintf("%d to %d", s.From, s.To)
	}
	if s.Slope == 0 {
		return fmt.Sprintf("%s: %s", at, FormatBytes(s.Base))
	}
	sign, rest := "+", s.Base-s.Slope*int64(s.From)
	if rest < 0 {
		sign, rest = "-", -rest
	}
	if rest == 0 {
		return fmt.Sprintf("%s: %d·%s", at, s.Slope, dim)
	}
	return fmt.Sprintf("%s: %d·%s %s %d", at, s.Slope, dim, sign, rest)
}

const (
	plotWidth  = 64
	plotHeight = 10
)

// plot draws the bytes of a run against the size, a column for one or more
// sizes.
func (l *Line) plot(out *bytes.Buffer) {
	var points []FiguresAt
	for _, p := range l.Points {
		if p.Failed == "" {
			points = append(points, p)
		}
	}
	if len(points) < 2 {
		return
	}
	first, last := points[0].Size, points[len(points)-1].Size
	width := min(plotWidth, len(points))
	columns, most := make([]int64, width), int64(1)
	for _, p := range points {
		x := (p.Size - first) * width / (last - first + 1)
		columns[x] = max(columns[x], p.PerRun)
		most = max(most, p.PerRun)
	}
	marks := []rune(strings.Repeat(" ", width))
	for _, b := range l.Breakpoints {
		if b.Size > first && b.Size <= last {
			marks[(b.Size-first)*width/(last-first+1)] = '^'
		}
	}
	steps := []rune(" ▁▂▃▄▅▆▇█")
	fmt.Fprintf(out, "  bytes of a run\n")
	for row := plotHeight - 1; row >= 0; row-- {
		label := ""
		if row == plotHeight-1 {
			label = FormatBytes(most)
		}
		line := make([]rune, width)
		for x, n := range columns {
			eighths := int(float64(n)/float64(most)*plotHeight*8+0.5) - 8*row
			line[x] = steps[min(max(eighths, 0), 8)]
		}
		fmt.Fprintf(out, "  %11s │%s\n", label, strings.TrimRight(string(line), " "))
	}
	fmt.Fprintf(out, "  %11s └%s\n", "0", strings.Repeat("─", width))
	if text := strings.TrimRight(string(marks), " "); text != "" {
		fmt.Fprintf(out, "  %11s  %s\n", "breakpoints", text)
	}
	from, to := fmt.Sprint(first), fmt.Sprint(last)
	fmt.Fprintf(out, "  %11s  %s%s%s\n", "", from, strings.Repeat(" ", max(1, width-len(from)-len(to))), to)
}
