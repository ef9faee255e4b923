package results

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

// Output says where a result goes.
type Output struct {
	json bool
	file string
}

// Wanted reports whether a result is to be printed as JSON or written to a
// file.
func (o *Output) Wanted() bool { return o.json || o.file != "" }

// Flags adds -json and -results.
func (o *Output) Flags(fs *flag.FlagSet) {
	fs.BoolVar(&o.json, "json", false, "print JSON instead of a table")
	fs.StringVar(&o.file, "results", "", "write the JSON to this file too, such as results/"+filepath.Base(fs.Name())+".json")
}

// Write prints r, as JSON or by table, and writes the file of -results if one
// was named. Table may be nil: then every figure is printed.
func (o *Output) Write(w io.Writer, r *Result, table func(io.Writer) error) error {
	if o.file != "" {
		var b strings.Builder
		if err := r.WriteJSON(&b); err != nil {
			return err
		}
		if err := os.WriteFile(o.file, []byte(b.String()), 0o666); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		return r.WriteJSON(w)
	case table != nil:
		return table(w)
	}
	return r.WriteText(w)
}

// WriteText prints every figure of the rows that keep accepts, or of all.
func (r *Result) WriteText(w io.Writer, keep ...func(Row) bool) error {
	fmt.Fprintf(w, "%s\n%s\n\n", r.Origin(), r.Command)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, name := range append(append([]string{}, r.Case...), r.Figures...) {
		fmt.Fprintf(t, "%s\t", name)
	}
	fmt.Fprintln(t)
rows:
	for _, row := range r.Rows {
		for _, k := range keep {
			if !k(row) {
				continue rows
			}
		}
		for _, word := range row.Case {
			fmt.Fprintf(t, "%s\t", word)
		}
		for _, name := range r.Figures {
			f, ok := row.Figures[name]
			if !ok {
				fmt.Fprint(t, "-\t")
				continue
			}
			fmt.Fprintf(t, "%s\t", f)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// Origin says on which machine, when and with which versions r was measured.
func (r *Result) Origin() string {
	var versions strings.Builder
	fmt.Fprintf(&versions, "Go %s", r.Versions["Go"])
	for _, name := range others(r.Versions) {
		fmt.Fprintf(&versions, ", %s %s", name, r.Versions[name])
	}
	processors := "processors"
	if r.Processors == 1 {
		processors = "processor"
	}
	return fmt.Sprintf("%s; %s, %d %s; %s, Tenure %s", r.Date, r.Machine, r.Processors, processors, versions.String(), r.Versions["Tenure"])
}

// String is the median, and the interval where there is one.
func (f Figure) String() string {
	if f.Interval == nil {
		return number(f.Median)
	}
	return fmt.Sprintf("%s (%s to %s)", number(f.Median), number(f.Interval[0]), number(f.Interval[1]))
}

// number has three digits that count, and all of those before the point.
func number(v float64) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0"
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 0.001:
		return strconv.FormatFloat(v, 'f', 2-int(math.Floor(math.Log10(a))), 64)
	}
	return strconv.FormatFloat(v, 'e', 1, 64)
}
