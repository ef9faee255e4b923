package plan

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// reportRows is how many entries the report shows of a long list; the document
// has all of them.
const reportRows = 20

// Report writes p as text: the memory that a run takes, the moment of its peak
// and the values live then, the values that were put in place, those that were
// not, and why.
func (p *Plan) Report(w io.Writer) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "plan for %s\n\n", printable(p.subject()))
	for _, f := range p.figures() {
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(fmt.Sprintf("  %-15s %9s  %s", f.label, FormatBytes(f.bytes), f.note), " "))
	}
	fmt.Fprintf(&out, "\n  arena / lower bound = %s\n", p.ratio())
	for _, t := range p.tables() {
		fmt.Fprintf(&out, "\n%s\n", printable(t.title))
		t.write(&out)
	}
	_, err := w.Write(out.Bytes())
	return err
}

// printable escapes line ends and characters that a terminal might obey: names
// come from files.
func printable(name string) string {
	var out strings.Builder
	for _, r := range name {
		if strconv.IsPrint(r) {
			out.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			out.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return out.String()
}

// subject names the inputs that the plan was made for, or its model where it
// has none.
func (p *Plan) subject() string {
	if len(p.Shapes) == 0 {
		return "model " + p.Model
	}
	var shapes []string
	for _, s := range p.Shapes {
		text := s.Name + ": " + s.Type
		if s.Donated {
			text += " (donated)"
		}
		shapes = append(shapes, text)
	}
	return strings.Join(shapes, ", ")
}

// figure is a line of the summary.
type figure struct {
	label string
	bytes int64
	note  string
}

func (p *Plan) figures() []figure {
	figures := []figure{
		{"weights", p.WeightBytes, p.packedNote()},
		{"arena", p.ArenaBytes, fmt.Sprintf("lower bound %s", FormatBytes(p.LowerBoundBytes))},
		{"scratch", p.ScratchBytes, fmt.Sprintf("%s × %s", plural(p.Threads, "thread"), FormatBytes(p.ScratchPerThread))},
		{"inputs, outputs", p.IOBytes, ""},
		{"per run", p.PerRun(), "arena, scratch, inputs and outputs"},
		{"total", p.Total(), fmt.Sprintf("weights + %s = %d bytes", p.runs(), p.Total())},
	}
	if n := len(p.Unpromised); n > 0 {
		figures[len(figures)-1].note += fmt.Sprintf(", and the buffers of %s whose size depends on data", plural(n, "value"))
	}
	return figures
}

// runs is the factor of the bytes per run in the total.
func (p *Plan) runs() string {
	if p.MaxConcurrent == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d concurrent runs", p.MaxConcurrent)
}

// ratio describes the arena's size relative to the lower bound.
func (p *Plan) ratio() string {
	switch {
	case p.ArenaBytes == p.LowerBoundBytes:
		return "1.000: optimal for this order and aliasing"
	case p.LowerBoundBytes == 0:
		return fmt.Sprintf("%d / 0", p.ArenaBytes)
	}
	return fmt.Sprintf("%.3f: %s above", float64(p.ArenaBytes)/float64(p.LowerBoundBytes), FormatBytes(p.ArenaBytes-p.LowerBoundBytes))
}

// table is a list of the report. The first column is bytes, right-aligned.
type table struct {
	title   string
	columns []string
	rows    [][]string
	more    string // the line for the omitted rows of a shortened list
}

// tables returns the lists of the report that have something to say.
func (p *Plan) tables() []table {
	var tables []table
	for _, t := range []table{p.peakTable(), p.inPlaceTable(), p.declinedTable(), p.movedTable(), p.copyTable(), p.packedTable(), p.unpromisedTable()} {
		if len(t.rows) > 0 {
			tables = append(tables, t)
		}
	}
	return tables
}

func (p *Plan) peakTable() table {
	live := p.live()
	t := table{columns: []string{"bytes", "value", "type", "place"}}
	for _, v := range live {
		t.rows = append(t.rows, []string{FormatBytes(v.Size), v.Name, v.Type, v.life()})
	}
	t.shorten()
	if len(p.Steps) > 0 {
		s := p.Steps[p.Peak.Step]
		t.title = fmt.Sprintf("peak: %s live in %s, at step %d of %d, %s", FormatBytes(p.Peak.Bytes), plural(len(live), "value"),
			p.Peak.Step, len(p.Steps), s.Where())
	}
	return t
}

// live returns the values that live at the peak, largest first.
func (p *Plan) live() []*Value {
	at := map[int]bool{}
	for _, id := range p.Peak.Live {
		at[id] = true
	}
	var live []*Value
	for i := range p.Values {
		if at[p.Values[i].ID] {
			live = append(live, &p.Values[i])
		}
	}
	slices.SortStableFunc(live, func(a, b *Value) int { return -cmp.Compare(a.Size, b.Size) })
	return live
}

// inPlaceTable counts by operator: a network has hundreds of them.
func (p *Plan) inPlaceTable() table {
	type group struct {
		op   string
		kind AliasKind
	}
	ops := make(map[int]string, len(p.Steps))
	for _, s := range p.Steps {
		ops[s.Call] = s.Op
	}
	count := map[group]int{}
	sum := map[group]int64{}
	var groups []group
	var total int64
	for _, x := range p.InPlace {
		g := group{ops[x.Call], x.Kind}
		if count[g] == 0 {
			groups = append(groups, g)
		}
		count[g]++
		sum[g] += x.Bytes
		total += x.Bytes
	}
	slices.SortStableFunc(groups, func(a, b group) int { return -cmp.Compare(sum[a], sum[b]) })
	t := table{
		title:   fmt.Sprintf("in place: %s, %s that needed no place of their own", plural(len(p.InPlace), "result"), FormatBytes(total)),
		columns: []string{"bytes", "results", "operator", "kind"},
	}
	for _, g := range groups {
		t.rows = append(t.rows, []string{FormatBytes(sum[g]), fmt.Sprint(count[g]), g.op, string(g.kind)})
	}
	t.shorten()
	return t
}

// packedNote says how much of the weights is packed for kernels.
func (p *Plan) packedNote() string {
	if len(p.Packed) == 0 {
		return ""
	}
	var packed, unloaded int64
	for _, w := range p.Packed {
		packed += w.Bytes
		unloaded += w.Unloaded
	}
	return fmt.Sprintf("%s packed in %s, in place of %s", plural(len(p.Packed), "weight"), FormatBytes(packed), FormatBytes(unloaded))
}

// packedTable lists the weights that kernels read in a form of their own.
func (p *Plan) packedTable() table {
	list := slices.Clone(p.Packed)
	slices.SortStableFunc(list, func(a, b Packed) int { return -cmp.Compare(a.Bytes, b.Bytes) })
	t := table{title: "packed: " + plural(len(list), "weight"), columns: []string{"bytes", "weight", "form"}}
	for _, w := range list {
		t.rows = append(t.rows, []string{FormatBytes(w.Bytes), w.Weight, w.Form})
	}
	t.shorten()
	return t
}

func (p *Plan) declinedTable() table {
	list := slices.Clone(p.Declined)
	slices.SortStableFunc(list, func(a, b Declined) int { return -cmp.Compare(a.Bytes, b.Bytes) })
	t := table{columns: []string{"bytes", "value", "at", "reason"}}
	var total int64
	for _, d := range list {
		total += d.Bytes
		t.rows = append(t.rows, []string{FormatBytes(d.Bytes), d.Value, d.Where(), d.Reason})
	}
	t.title = fmt.Sprintf("not in place: %s, %s", plural(len(list), "operand"), FormatBytes(total))
	t.shorten()
	return t
}

// Moved returns the bytes that a run moves without computing anything, if it
// runs each step once: the sum of [Step.Moved].
func (p *Plan) Moved() (sum int64) {
	for _, s := range p.Steps {
		sum += s.Moved
	}
	return sum
}

// movedTable lists the steps that move bytes and compute nothing.
func (p *Plan) movedTable() table {
	list := slices.DeleteFunc(slices.Clone(p.Steps), func(s Step) bool { return s.Moved == 0 })
	slices.SortStableFunc(list, func(a, b Step) int { return -cmp.Compare(a.Moved, b.Moved) })
	t := table{columns: []string{"bytes", "at"}}
	for _, s := range list {
		t.rows = append(t.rows, []string{FormatBytes(s.Moved), s.Where()})
	}
	t.title = fmt.Sprintf("moved and not computed: %s in a run, by %s", FormatBytes(p.Moved()), plural(len(list), "step"))
	t.shorten()
	return t
}

func (p *Plan) copyTable() table {
	list := slices.Clone(p.Copies)
	slices.SortStableFunc(list, func(a, b Copy) int { return -cmp.Compare(a.Bytes, b.Bytes) })
	t := table{columns: []string{"bytes", "value", "at", "reason"}}
	var total int64
	for _, c := range list {
		total += c.Bytes
		t.rows = append(t.rows, []string{FormatBytes(c.Bytes), c.Value, c.Node, c.Reason})
	}
	t.title = fmt.Sprintf("copies: %d, %s", len(list), FormatBytes(total))
	t.shorten()
	return t
}

func (p *Plan) unpromisedTable() table {
	t := table{title: "unpromised: sizes that depend on data", columns: []string{"bytes", "value", "at", "reason"}}
	for _, u := range p.Unpromised {
		t.rows = append(t.rows, []string{"?", u.Value, u.Node, u.Reason})
	}
	t.shorten()
	return t
}

// shorten cuts the list to reportRows, unless that would save no line.
func (t *table) shorten() {
	if left := len(t.rows) - reportRows; left > 1 {
		t.rows = t.rows[:reportRows]
		t.more = fmt.Sprintf("and %d more in the document", left)
	}
}

func (t *table) write(out *bytes.Buffer) {
	width := make([]int, len(t.columns))
	var lines [][]string
	for _, row := range append([][]string{t.columns}, t.rows...) {
		var line []string
		for i, cell := range row {
			line = append(line, printable(cell))
			width[i] = max(width[i], utf8.RuneCountInString(line[i]))
		}
		lines = append(lines, line)
	}
	for _, line := range lines {
		text := fmt.Sprintf("  %*s", max(width[0], 11), line[0])
		for i, cell := range line[1:] {
			text += fmt.Sprintf("  %-*s", width[i+1], cell)
		}
		out.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	if t.more != "" {
		fmt.Fprintf(out, "  %*s  %s\n", max(width[0], 11), "...", t.more)
	}
}

// Where names the step in errors and reports: by its node in the model file and
// its operator, or by its operator where it comes from no node.
func (s Step) Where() string {
	if s.Node == "" {
		return s.Op
	}
	return fmt.Sprintf("node %q (%s)", s.Node, s.Op)
}

// Where names the step that reads the operand, as [Step.Where].
func (d Declined) Where() string { return Step{Op: d.Op, Node: d.Node}.Where() }

// life says where and during which steps v lives.
func (v *Value) life() string {
	where := fmt.Sprintf("at %d", v.Offset)
	if v.Strides != nil {
		where += fmt.Sprintf(" to %d, strides %s", v.Offset+v.Extent(), strings.Trim(fmt.Sprint(v.Strides), "[]"))
	}
	first, last := v.Start/2, max(v.Start, v.End-1)/2
	if first == last {
		return fmt.Sprintf("%s, step %d", where, first)
	}
	return fmt.Sprintf("%s, steps %d to %d", where, first, last)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// FormatBytes writes a byte count the way the reports do: "512 B", "4.0 KiB",
// "6.89 MiB".
func FormatBytes(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	size, units := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	// 999.5 would print as four digits.
	for size >= 1023.5 && len(units) > 1 {
		size, units = size/unit, units[1:]
	}
	switch {
	case size < 9.995:
		return fmt.Sprintf("%.2f %s", size, units[0])
	case size < 99.95:
		return fmt.Sprintf("%.1f %s", size, units[0])
	}
	return fmt.Sprintf("%.0f %s", size, units[0])
}
