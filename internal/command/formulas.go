package command

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/plan/page"
)

// parseRanges reads --range seq=1..512.
func parseRanges(flags []string) (map[string]tenure.Sizes, error) {
	ranges := map[string]tenure.Sizes{}
	for _, f := range flags {
		i := strings.LastIndex(f, "=")
		if i <= 0 {
			return nil, usagef("--range %s: want NAME=FROM..TO", f)
		}
		name, text := f[:i], f[i+1:]
		from, to, ok := strings.Cut(text, "..")
		if !ok {
			from, to = "1", text
		}
		lo, err := strconv.Atoi(from)
		hi, wrong := strconv.Atoi(to)
		if err != nil || wrong != nil || lo < 0 || hi < lo {
			return nil, usagef("--range %s: got %q, want FROM..TO, or TO for 1..TO, with numbers of zero or more", f, text)
		}
		if _, twice := ranges[name]; twice {
			return nil, usagef("--range %s: %q is given twice", f, name)
		}
		ranges[name] = tenure.Sizes{Lo: lo, Hi: hi}
	}
	return ranges, nil
}

// complete adds the ranges of dimensions that neither --shape nor --range has:
// so many sizes that each set of them is planned.
func (b *bound) complete(m *tenure.Model, ranges map[string]tenure.Sizes) {
	given := map[string]bool{}
	for name := range ranges {
		given[name] = true
	}
	var open []string
	for _, name := range m.OpenDims() {
		if n, ok := b.dims[name]; ok && !given[name] {
			ranges[name] = tenure.Sizes{Lo: n, Hi: n}
		}
		if _, ok := ranges[name]; !ok && !b.isFixed(name) {
			open = append(open, name)
		}
	}
	sets := 4096
	for _, r := range ranges {
		sets /= min(r.Hi-r.Lo+1, sets)
	}
	most := 256
	for most > 2 && power(most, len(open)) > sets {
		most /= 2
	}
	for _, name := range open {
		ranges[name] = tenure.Sizes{Lo: 1, Hi: most}
	}
}

// isFixed reports whether a dimension is one of an input whose shape is given,
// and of no other input.
func (b *bound) isFixed(name string) bool {
	for _, in := range b.inputs {
		if _, ok := b.shapes[in.Name]; ok || in.Shape == nil {
			continue
		}
		for axis, d := range in.Shape.Dims() {
			if s, ok := d.Symbol(); ok && (s == name || strings.Contains(s, name)) || isUnknown(d) && name == in.Name+"["+strconv.Itoa(axis)+"]" {
				return false
			}
		}
	}
	return true
}

func power(n, k int) int {
	p := 1
	for range k {
		p = min(p*n, 1<<30)
	}
	return p
}

// formulasOf makes the formulas of a model's plans.
func formulasOf(cmd *cobra.Command, path string, given sizes, ranges map[string]tenure.Sizes, how []tenure.Option, opts []tenure.SessionOption) (*plan.Formulas, error) {
	var w work
	defer w.begin("planning")()
	m, err := loadModel(path, append(how, tenure.WithProgress(w.report))...)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	b, err := given.bind(m)
	if err != nil {
		return nil, err
	}
	b.complete(m, ranges)
	f, err := m.Formulas(cmd.Context(), b.shapes, ranges, opts...)
	return f, b.hint(err)
}

// planFormulas prints the formulas of a model's plans.
func planFormulas(cmd *cobra.Command, path string, given sizes, ranges []string, how []tenure.Option, opts []tenure.SessionOption, asJSON bool, svg, html string) error {
	open, err := parseRanges(ranges)
	if err != nil {
		return err
	}
	f, err := formulasOf(cmd, path, given, open, how, opts)
	if err != nil {
		return err
	}
	return writeDocument(cmd, documentOfFormulas(f), asJSON, svg, html)
}

func documentOfFormulas(f *plan.Formulas) document {
	return document{
		json: func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(f)
		},
		svg:    f.WriteSVG,
		html:   func(w io.Writer) error { return page.WriteFormulas(w, f) },
		report: f.Report,
	}
}
