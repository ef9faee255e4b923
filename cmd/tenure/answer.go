package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/onnx"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// answer is what a run gave, for people and for programs.
type answer struct {
	names    []tenure.Info
	out      tenure.Outputs
	plan     *plan.Plan
	took     time.Duration
	top      int
	measured int64
	compared []comparison // nil unless asked for
}

// comparison is one output against its reference.
type comparison struct {
	Output string  `json:"output"`
	Equal  bool    `json:"equal"`
	Max    float64 `json:"max_difference"`
	Says   string  `json:"says,omitempty"`
}

// compareAll compares the outputs with output_0.pb, ... beside the inputs.
func (f *runFlags) compareAll(m *tenure.Model, out tenure.Outputs) ([]comparison, error) {
	var all []comparison
	for i, info := range m.Outputs() {
		want, _, err := onnx.ReadTensorFile(filepath.Join(f.inputsFrom, fmt.Sprintf("output_%d.pb", i)))
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", info.Name, err)
		}
		c, err := compare(out[info.Name], want, f.rtol, f.atol)
		_ = want.Release() // held by nobody else
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", info.Name, err)
		}
		c.Output = info.Name
		all = append(all, c)
	}
	return all, nil
}

// compare holds |got-want| <= atol + rtol*|want| for every element.
func compare(got, want *tensor.Tensor, rtol, atol float64) (comparison, error) {
	if got.DType() != want.DType() || got.Shape() != want.Shape() {
		return comparison{Max: math.MaxFloat64, Says: fmt.Sprintf("got %s%s, want %s%s", got.DType(), got.Shape(), want.DType(), want.Shape())}, nil
	}
	a, err := tensor.Float64s(got)
	if err != nil {
		return comparison{}, err
	}
	b, err := tensor.Float64s(want)
	if err != nil {
		return comparison{}, err
	}
	c := comparison{Equal: true}
	for i := range a {
		if a[i] == b[i] || math.IsNaN(a[i]) && math.IsNaN(b[i]) {
			continue
		}
		d := math.Abs(a[i] - b[i])
		if math.IsNaN(d) {
			d = math.MaxFloat64
		}
		if !(d <= atol+rtol*math.Abs(b[i])) && c.Equal {
			c.Equal, c.Says = false, fmt.Sprintf("element %d: got %g, want %g", i, a[i], b[i])
		}
		c.Max = max(c.Max, d)
	}
	return c, nil
}

// verdict is the error of a run whose outputs are not what they should be.
func (a *answer) verdict() error {
	var bad []string
	for _, c := range a.compared {
		if !c.Equal {
			bad = append(bad, fmt.Sprintf("%s: %s", c.Output, c.Says))
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d outputs differ from the reference: %s", len(bad), len(a.compared), strings.Join(bad, "; "))
}

func (a *answer) print(w io.Writer) error {
	var b strings.Builder
	for _, info := range a.names {
		x := a.out[info.Name]
		fmt.Fprintf(&b, "%s: %s%s\n", info.Name, x.DType(), x.Shape())
		if top, err := topOf(x, a.top); err == nil && top != nil {
			printTop(&b, x, top)
			continue
		}
		b.WriteString("  " + strings.ReplaceAll(strings.TrimSpace(x.String()), "\n", "\n  ") + "\n")
	}
	for _, c := range a.compared {
		state := "equal within the tolerance"
		if !c.Equal {
			state = "DIFFERS, " + c.Says
		}
		fmt.Fprintf(&b, "compare %s: %s (largest difference %.3g)\n", c.Output, state, c.Max)
	}
	p := a.plan
	fmt.Fprintf(&b, "memory: promised %s (arena %s, scratch %s, inputs and outputs %s), measured %s; weights %s\n",
		plan.FormatBytes(promised(p)), plan.FormatBytes(p.ArenaBytes), plan.FormatBytes(p.ScratchBytes), plan.FormatBytes(p.IOBytes),
		plan.FormatBytes(a.measured), plan.FormatBytes(p.WeightBytes))
	fmt.Fprintf(&b, "time: %s for %d steps\n", a.took.Round(10*time.Microsecond), len(p.Steps))
	_, err := io.WriteString(w, b.String())
	return err
}

// ranked is one element of an output.
type ranked struct {
	Index int     `json:"index"`
	Value float64 `json:"value"`
}

// topOf returns the n largest elements of each row of an output that reads as
// scores: floats in one row or a few. Other outputs give nil.
func topOf(x *tensor.Tensor, n int) ([][]ranked, error) {
	s := x.Shape()
	const maxRows = 8
	if n == 0 || !x.DType().IsFloat() || s.Rank() == 0 || s.NumElements() == 0 {
		return nil, nil
	}
	width := 0
	for _, size := range s.Sizes() {
		if size > 1 && width > 1 {
			if width > maxRows {
				return nil, nil
			}
		}
		width = max(width, size)
	}
	if width < 2 || s.NumElements()/width > maxRows || s.NumElements() < n {
		return nil, nil
	}
	// Rows are the largest dimension; what stands inside it must be of size 1.
	axis := slices.Index(s.Sizes(), width)
	if s.Strides()[axis] != 1 {
		return nil, nil
	}
	data, err := tensor.Float64s(x)
	if err != nil {
		return nil, err
	}
	var rows [][]ranked
	for at := 0; at < len(data); at += width {
		row := make([]ranked, width)
		for i, v := range data[at : at+width] {
			row[i] = ranked{i, v}
		}
		slices.SortStableFunc(row, func(a, b ranked) int { return cmp.Compare(b.Value, a.Value) })
		rows = append(rows, row[:min(n, width)])
	}
	return rows, nil
}

func printTop(b *strings.Builder, x *tensor.Tensor, rows [][]ranked) {
	for i, row := range rows {
		if len(rows) > 1 {
			fmt.Fprintf(b, "  row %d\n", i)
		}
		for _, r := range row {
			fmt.Fprintf(b, "  %6d  %.6g\n", r.Index, r.Value)
		}
	}
	if n := x.NumElements(); n > len(rows)*len(rows[0]) {
		fmt.Fprintf(b, "  (the largest %d of %d)\n", len(rows[0]), n/len(rows))
	}
}

// maxListed is how many elements of an output JSON holds; --output saves all.
const maxListed = 1000

type outputJSON struct {
	Name   string     `json:"name"`
	DType  string     `json:"dtype"`
	Shape  []int      `json:"shape"`
	Top    [][]ranked `json:"top,omitempty"`
	Values []float64  `json:"values,omitempty"`
}

type answerJSON struct {
	Outputs       []outputJSON `json:"outputs"`
	Compared      []comparison `json:"compared,omitempty"`
	ArenaBytes    int64        `json:"arena_bytes"`
	ScratchBytes  int64        `json:"scratch_bytes"`
	IOBytes       int64        `json:"io_bytes"`
	WeightBytes   int64        `json:"weight_bytes"`
	PromisedBytes int64        `json:"promised_bytes"` // arena, scratch, inputs and outputs
	MeasuredBytes int64        `json:"measured_bytes"` // of the same
	Seconds       float64      `json:"seconds"`
}

func (a *answer) json() answerJSON {
	p := a.plan
	j := answerJSON{Compared: a.compared, ArenaBytes: p.ArenaBytes, ScratchBytes: p.ScratchBytes, IOBytes: p.IOBytes,
		WeightBytes: p.WeightBytes, PromisedBytes: promised(p), MeasuredBytes: a.measured, Seconds: a.took.Seconds()}
	for _, info := range a.names {
		x := a.out[info.Name]
		o := outputJSON{Name: info.Name, DType: x.DType().String(), Shape: x.Shape().Sizes()}
		o.Top, _ = topOf(x, a.top)
		if values, err := tensor.Float64s(x); err == nil && len(values) <= maxListed && finite(values) {
			o.Values = values
		}
		j.Outputs = append(j.Outputs, o)
	}
	return j
}

// finite reports whether JSON can hold the numbers.
func finite(values []float64) bool {
	return !slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
}
