package plan

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Range is the promise for runs of many sizes: the plan of each size is proved,
// and no run of any of them takes more bytes than a figure here says. A figure
// is the largest among all sizes, and some size takes as many bytes.
type Range struct {
	Dims          []RangeDim   `json:"dims"`
	Sizes         int          `json:"sizes"` // that are proved
	Arena         RangeFigure  `json:"arena"`
	Scratch       RangeFigure  `json:"scratch"` // of all threads
	IO            RangeFigure  `json:"io"`      // inputs and outputs
	Worst         RangeFigure  `json:"worst"`   // of one size: arena, scratch, inputs and outputs
	WeightBytes   int64        `json:"weight_bytes"`
	Threads       int          `json:"threads"`
	MaxConcurrent int          `json:"max_concurrent"`
	GivesBack     bool         `json:"gives_back"` // smaller sizes leave memory to the system
	Structures    int          `json:"structures"` // final programs that serve many sizes
	Instances     int          `json:"instances"`  // sizes that were planned with the structure of another one
	Pinned        []Pinned     `json:"pinned"`     // sizes that have a program of their own
	Refused       int          `json:"refused"`    // sizes that the model refuses
	Refusals      []Refusal    `json:"refusals"`   // the first of these
	Unpromised    []Unpromised `json:"unpromised"` // values of any size

	// Of ranges of many sizes: how many boxes of them were proved by
	// expressions, with so many of Sizes, and why sizes were planned one by
	// one. Of the sizes in boxes some may be refused by the model.
	Boxes         int      `json:"boxes"`
	ByExpressions int      `json:"by_expressions"`
	OneByOne      []Pinned `json:"one_by_one"`
}

// RangeDim is a dimension of the model's inputs and its sizes.
type RangeDim struct {
	Name  string `json:"name"`
	Most  int    `json:"most"`
	Sizes []int  `json:"sizes"` // in rising order; nil for all from 0 to Most
}

// RangeFigure is the largest number of bytes among all sizes, and the sizes at
// which it was found first, in the order of Dims. Larger sizes are met first.
type RangeFigure struct {
	Bytes int64 `json:"bytes"`
	At    []int `json:"at"`
	Bound bool  `json:"bound"` // no size takes more, and none is known to take as much
}

// Raise makes the figure that of these sizes, if it is larger, or the first, or
// reaches a bound.
func (f *RangeFigure) Raise(bytes int64, at []int) (raised bool) {
	if f.At != nil && (bytes < f.Bytes || bytes == f.Bytes && !f.Bound) {
		return false
	}
	f.Bytes, f.At, f.Bound = bytes, append([]int{}, at...), false
	return true
}

// Pinned is how many sizes have programs of their own, for one reason.
type Pinned struct {
	Reason string `json:"reason"`
	Sizes  int    `json:"sizes"`
}

// Refusal is a combination of sizes that the model does not take.
type Refusal struct {
	At     []int  `json:"at"`
	Reason string `json:"reason"`
}

// PerRun returns every byte that a run of any size takes besides the unpromised
// ones: arena, scratch, inputs and outputs. Runs share the weights.
func (r *Range) PerRun() int64 { return r.Arena.Bytes + r.Scratch.Bytes + r.IO.Bytes }

// Total returns every byte that MaxConcurrent runs of any sizes take besides
// the unpromised ones, weights included.
func (r *Range) Total() int64 { return r.WeightBytes + int64(r.MaxConcurrent)*r.PerRun() }

// Where names sizes in the order of Dims: "seq=512, batch=8".
func (r *Range) Where(at []int) string {
	if len(r.Dims) == 0 || len(at) != len(r.Dims) {
		return "the only size"
	}
	list := make([]string, len(at))
	for i, d := range r.Dims {
		list[i] = fmt.Sprintf("%s=%d", d.Name, at[i])
	}
	return strings.Join(list, ", ")
}

// String returns "seq up to 512", or "seq 16 to 512 (32 sizes)" where not every
// size is meant.
func (d RangeDim) String() string {
	switch n := len(d.Sizes); {
	case d.Sizes == nil:
		return fmt.Sprintf("%s up to %d", d.Name, d.Most)
	case n == 1:
		return fmt.Sprintf("%s=%d", d.Name, d.Most)
	default:
		return fmt.Sprintf("%s %d to %d (%d sizes)", d.Name, slices.Min(d.Sizes), d.Most, n)
	}
}

// Report writes the promise as text: the memory that a run of any size takes,
// the sizes that take the most, and how sizes were proved.
func (r *Range) Report(w io.Writer) error {
	var out bytes.Buffer
	var dims []string
	for _, d := range r.Dims {
		dims = append(dims, d.String())
	}
	if dims == nil {
		dims = []string{"no open dimensions"}
	}
	fmt.Fprintf(&out, "promise for %s: %s\n\n", printable(strings.Join(dims, ", ")), plural(r.Sizes, "size"))
	line := func(label string, bytes int64, note string) {
		fmt.Fprintf(&out, "%s\n", strings.TrimRight(fmt.Sprintf("  %-15s %9s  %s", label, FormatBytes(bytes), printable(note)), " "))
	}
	largest := func(f RangeFigure) string {
		if f.Bound {
			return "at most; no size is known to take as much"
		}
		return "the most at " + r.Where(f.At)
	}
	line("weights", r.WeightBytes, "in every form that a size reads")
	line("arena", r.Arena.Bytes, largest(r.Arena))
	line("scratch", r.Scratch.Bytes, largest(r.Scratch)+", for "+plural(r.Threads, "thread"))
	line("inputs, outputs", r.IO.Bytes, largest(r.IO))
	line("per run", r.PerRun(), r.perRunNote())
	runs := plural(r.MaxConcurrent, "concurrent run")
	if r.MaxConcurrent == 1 {
		runs = "1 run"
	}
	total := fmt.Sprintf("weights + %s = %d bytes", runs, r.Total())
	if n := len(r.Unpromised); n > 0 {
		total += fmt.Sprintf(", and the buffers of %s whose size depends on data", plural(n, "value"))
	}
	line("total", r.Total(), total)
	r.writeProofs(&out)
	for _, t := range r.tables() {
		if len(t.rows) > 0 {
			fmt.Fprintf(&out, "\n%s\n", printable(t.title))
			t.write(&out)
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// perRunNote says which size takes the bytes of a run. Where arena and scratch
// are kept it is that of the largest inputs and outputs.
func (r *Range) perRunNote() string {
	switch {
	case !r.GivesBack:
		return "arena and scratch taken once and kept; reached at " + r.Where(r.IO.At)
	case r.Worst.Bound:
		return fmt.Sprintf("smaller sizes give memory back; one size takes at most %s", FormatBytes(r.Worst.Bytes))
	case r.Worst.Bytes == r.PerRun():
		return "smaller sizes give memory back; reached at " + r.Where(r.Worst.At)
	}
	return fmt.Sprintf("smaller sizes give memory back; the most for one size is %s at %s", FormatBytes(r.Worst.Bytes), r.Where(r.Worst.At))
}

func (r *Range) writeProofs(out *bytes.Buffer) {
	pinned := 0
	for _, p := range r.Pinned {
		pinned += p.Sizes
	}
	fmt.Fprintf(out, "\n  each size is proved: %s, %s of them", plural(r.Structures, "structure"), plural(r.Instances, "instance"))
	if pinned > 0 {
		fmt.Fprintf(out, ", %s with a program of its own", plural(pinned, "size"))
	}
	if r.Boxes > 0 {
		fmt.Fprintf(out, "\n  %s in %s by expressions, %s one by one", plural(r.ByExpressions, "size"), boxesOf(r.Boxes), plural(r.Sizes-r.ByExpressions, "size"))
	}
	out.WriteByte('\n')
}

func boxesOf(n int) string {
	if n == 1 {
		return "1 box"
	}
	return fmt.Sprintf("%d boxes", n)
}

// tables returns the lists of the report.
func (r *Range) tables() []table {
	pinned := table{title: "sizes with a program of their own", columns: []string{"sizes", "reason"}}
	for _, p := range r.Pinned {
		pinned.rows = append(pinned.rows, []string{fmt.Sprint(p.Sizes), p.Reason})
	}
	refused := table{title: fmt.Sprintf("refused by the model, not part of the promise: %s", plural(r.Refused, "size")), columns: []string{"sizes", "reason"}}
	for _, f := range r.Refusals {
		refused.rows = append(refused.rows, []string{r.Where(f.At), f.Reason})
	}
	if more := r.Refused - len(r.Refusals); more > 0 {
		refused.more = fmt.Sprintf("and %d more", more)
	}
	unpromised := table{title: "unpromised: sizes that depend on data", columns: []string{"bytes", "value", "at", "reason"}}
	for _, u := range r.Unpromised {
		unpromised.rows = append(unpromised.rows, []string{"?", u.Value, u.Node, u.Reason})
	}
	unpromised.shorten()
	alone := table{title: "why sizes were planned one by one", columns: []string{"sizes", "not proved for a range"}}
	for _, p := range r.OneByOne {
		alone.rows = append(alone.rows, []string{fmt.Sprint(p.Sizes), p.Reason})
	}
	alone.shorten()
	return []table{pinned, alone, refused, unpromised}
}
