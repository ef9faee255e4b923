package tenure_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// formulaText computes the value of a printed formula, without package
// symbolic.
type formulaText struct {
	rest  string
	sizes map[string]int64
}

func (f *formulaText) take(word string) bool {
	f.rest = strings.TrimLeft(f.rest, " ")
	if !strings.HasPrefix(f.rest, word) {
		return false
	}
	f.rest = f.rest[len(word):]
	return true
}

func (f *formulaText) sum() int64 {
	n := f.product()
	for {
		switch {
		case f.take("+"):
			n += f.product()
		case f.take("-"):
			n -= f.product()
		default:
			return n
		}
	}
}

func (f *formulaText) product() int64 {
	n := f.factor()
	for f.take("·") {
		n *= f.factor()
	}
	return n
}

func (f *formulaText) factor() int64 {
	n := f.atom()
	switch {
	case f.take("²"):
		return n * n
	case f.take("³"):
		return n * n * n
	}
	return n
}

func (f *formulaText) atom() int64 {
	quotient := func(up bool, end string) int64 {
		x := f.product()
		if !f.take("/") {
			panic("no / in a quotient before " + f.rest)
		}
		d := f.atom()
		if !f.take(end) {
			panic("no end of a quotient before " + f.rest)
		}
		if up {
			x += d - 1
		}
		q := x / d
		if x%d < 0 {
			q--
		}
		return q
	}
	switch {
	case f.take("-"):
		return -f.factor()
	case f.take("("):
		n := f.sum()
		f.take(")")
		return n
	case f.take("⌈"):
		return quotient(true, "⌉")
	case f.take("⌊"):
		return quotient(false, "⌋")
	}
	for _, name := range []string{"max(", "min("} {
		if f.take(name) {
			x := f.sum()
			f.take(",")
			y := f.sum()
			f.take(")")
			if name == "max(" {
				return max(x, y)
			}
			return min(x, y)
		}
	}
	longest := ""
	for name := range f.sizes {
		if strings.HasPrefix(f.rest, name) && len(name) > len(longest) {
			longest = name
		}
	}
	if f.take(longest) && longest != "" {
		return f.sizes[longest]
	}
	var n int64
	digits := len(f.rest) - len(strings.TrimLeft(f.rest, "0123456789"))
	if _, err := fmt.Sscan(f.rest[:digits], &n); err != nil {
		panic("no number before " + f.rest)
	}
	f.rest = f.rest[digits:]
	return n
}

func valueOf(t *testing.T, text string, sizes map[string]int64) int64 {
	t.Helper()
	f := &formulaText{text, sizes}
	n := f.sum()
	if f.rest != "" {
		t.Fatalf("%s: got %q that is not read", text, f.rest)
	}
	return n
}

// compareFormulas makes the formulas of a model over ranges, and compares what
// is printed with the document of the plan of every set of sizes.
func compareFormulas(t *testing.T, m *tenure.Model, shapes tenure.Shapes, dims map[string]tenure.Sizes, structures int) *plan.Formulas {
	t.Helper()
	f, err := m.Formulas(context.Background(), shapes, dims, tenure.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	if !f.Every || len(f.Structures) > structures || len(f.Structures) == 0 || len(f.Pinned) > 0 {
		t.Errorf("got %d structures, %d pinned, every size %v, want 1 to %d, none and true", len(f.Structures), len(f.Pinned), f.Every, structures)
	}
	for i, s := range f.Structures {
		if len(s.Underived) > 0 || s.Inputs == "" || s.Outputs == "" || s.Weights == "" {
			t.Errorf("structure %d: got no formula of %v, inputs %q, outputs %q, weights %q, want all", i+1, s.Underived, s.Inputs, s.Outputs, s.Weights)
		}
	}
	for _, l := range f.Lines {
		for _, p := range l.Points {
			if p.Failed == "" {
				comparePoint(t, m, f, shapes, p)
			}
		}
	}
	return f
}

func comparePoint(t *testing.T, m *tenure.Model, f *plan.Formulas, fixed tenure.Shapes, p plan.FiguresAt) {
	t.Helper()
	sizes := map[string]int64{}
	for _, word := range strings.Split(p.Sizes, ", ") {
		name, n, _ := strings.Cut(word, " = ")
		var size int64
		if _, err := fmt.Sscan(n, &size); err != nil {
			t.Fatal(err)
		}
		sizes[name] = size
	}
	shapes := tenure.Shapes{}
	for _, in := range m.Inputs() {
		if shapes[in.Name] = fixed[in.Name]; shapes[in.Name] != nil {
			continue
		}
		for axis, d := range in.Shape.Dims() {
			n, ok := d.Size()
			if symbol, named := d.Symbol(); named {
				n = int(valueOf(t, symbol, sizes)) // a name, or a sum of names
			} else if !ok {
				n = int(sizes[fmt.Sprintf("%s[%d]", in.Name, axis)])
			}
			shapes[in.Name] = append(shapes[in.Name], n)
		}
	}
	d, err := m.Plan(context.Background(), shapes, tenure.WithThreads(1))
	if err != nil {
		t.Fatal(err)
	}
	if p.LowerBound != d.LowerBoundBytes || p.IO != d.IOBytes || p.Scratch != d.ScratchPerThread || p.PerRun-p.Arena != d.ScratchBytes+d.IOBytes {
		t.Errorf("%s: got bound %d, io %d, scratch %d, run %d, want those of the plan: %d, %d, %d, %d", p.Sizes,
			p.LowerBound, p.IO, p.Scratch, p.PerRun, d.LowerBoundBytes, d.IOBytes, d.ScratchPerThread, d.PerRun())
	}
	s := f.Structures[p.Structure]
	most := int64(0)
	for i, moment := range s.Moments {
		n := valueOf(t, moment.Bytes, sizes)
		if n > most {
			most = n
		}
		if i == p.Moment && n != max(n, most) {
			t.Errorf("%s: moment %d has %d bytes, want the most", p.Sizes, i, n)
		}
	}
	if most < d.LowerBoundBytes || s.Exact && most != d.LowerBoundBytes || float64(d.ArenaBytes) > s.Over*float64(most)*1.1 {
		t.Errorf("%s: the formulas of the arena are %d at most, want the bound %d (exact: %v; arena %d, over %v)", p.Sizes, most, d.LowerBoundBytes, s.Exact, d.ArenaBytes, s.Over)
	}
	if got := valueOf(t, s.Inputs, sizes) + valueOf(t, s.Outputs, sizes); got != d.IOBytes {
		t.Errorf("%s: the formulas of inputs and outputs are %d, want %d", p.Sizes, got, d.IOBytes)
	}
	if got := valueOf(t, s.Weights, sizes); got != p.Weights {
		t.Errorf("%s: the formula of weights is %d, want %d", p.Sizes, got, p.Weights)
	}
}

// TestFormulasOfModels compares the formulas of models with open dimensions
// with their plans, at every size of the lines. Making them compares every
// other size.
func TestFormulasOfModels(t *testing.T) {
	for _, c := range []struct {
		model      string
		dims       map[string]tenure.Sizes
		structures int
	}{
		{"bert_tiny", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 3}, "sequence": {Lo: 1, Hi: 24}}, 4},
		{"gpt2_tiny", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 2}, "sequence": {Lo: 1, Hi: 8}, "past_sequence": {Lo: 0, Hi: 6}}, 16},
		{"magika_standard_v3_3", map[string]tenure.Sizes{"unk__214": {Lo: 1, Hi: 4}}, 2},
		{"resnet18_thin", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 5}}, 2},
		{"resnet18_thin_bn", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 2}, "height": {Lo: 30, Hi: 40}, "width": {Lo: 30, Hi: 36}}, 4},
		{"silero_vad_op18_ifless", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 3}, "sequence": {Lo: 256, Hi: 262}}, 0}, // it has branches
		{"unet_tiny", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 2}, "height": {Lo: 8, Hi: 16}, "width": {Lo: 12, Hi: 16}}, 16},
		{"vit_tiny", map[string]tenure.Sizes{"batch": {Lo: 1, Hi: 5}}, 2},
	} {
		t.Run(c.model, func(t *testing.T) {
			path := filepath.Join("..", "shared", "models", c.model, "model.onnx")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("needs %s", path)
			}
			m, err := tenure.Load(path)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if c.structures > 0 {
				compareFormulas(t, m, nil, c.dims, c.structures)
				return
			}
			f, err := m.Formulas(context.Background(), nil, c.dims)
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range f.Structures {
				if !slices.Contains(s.Underived, "a program with branches") {
					t.Errorf("structure %d: got no formulas of %v, want that the program has branches", i+1, s.Underived)
				}
			}
		})
	}
}

// TestFormulas compares the formulas of a written program.
func TestFormulas(t *testing.T) {
	p, err := ir.Parse(`func @f(%x: f32[rows,"rows + 1",3], %y: f32[?,8]) {
		%e = exp(%x)
		%s = softmax(%e) {axis = 1}
		%t = transpose(%s) {perm = [2,0,1]}
		%u = tanh(%t)
		%v = exp(%y)
		%w = softmax(%v) {axis = -1}
		return %u, %w
	}`, op.Builtin())
	if err != nil {
		t.Fatal(err)
	}
	m, err := tenure.LoadProgram(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if got := fmt.Sprint(m.OpenDims()); got != "[rows y[0]]" {
		t.Errorf("got the open dimensions %s, want rows and y[0]", got)
	}
	f := compareFormulas(t, m, nil, map[string]tenure.Sizes{"rows": {Lo: 1, Hi: 40}, "y[0]": {Lo: 1, Hi: 30}}, 4)
	if f.Sizes != 1200 || len(f.Lines) != 2 || len(f.Lines[0].Points) != 40 {
		t.Errorf("got %d sizes and %d lines, want 1200 and 2", f.Sizes, len(f.Lines))
	}
	var text, drawing strings.Builder
	if err := f.Report(&text); err != nil {
		t.Error(err)
	}
	if err := f.WriteSVG(&drawing); err != nil || !strings.HasPrefix(drawing.String(), "<svg") {
		t.Errorf("got %v and no drawing", err)
	}
	for _, want := range []string{"12·rows·(rows + 1)", "bytes of a run", "along y[0], with rows = 40"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("got the report\n%s\nwant %q in it", text.String(), want)
		}
	}
	large, err := m.Formulas(context.Background(), tenure.Shapes{"y": {2, 8}}, map[string]tenure.Sizes{"rows": {Lo: 1, Hi: 20_000}})
	if err != nil {
		t.Fatal(err)
	}
	if large.Every || large.Lines[0].Points[len(large.Lines[0].Points)-1].Size != 20_000 {
		t.Error("got every size of 20000 planned, or not the largest, want a part of them and the largest")
	}
	for _, dims := range []map[string]tenure.Sizes{nil, {"rows": {Lo: 3, Hi: 2}, "y[0]": {Lo: 1, Hi: 1}}, {"rows": {Lo: 1, Hi: 2}, "y[0]": {Lo: 1, Hi: 1}, "cols": {Lo: 1, Hi: 1}}} {
		if _, err := m.Formulas(context.Background(), nil, dims); err == nil {
			t.Errorf("got no error for %v, want one", dims)
		}
	}
}
