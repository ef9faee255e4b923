package elementwise_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	table "github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// formulaFault compares the step-by-step evaluation of a formula with a
// reference.
func formulaFault(f *table.Function, reference func(x, a, b float64) float64, p [2]float32, x []float32) string {
	e := f.Expression()
	got, wide := make([]float32, len(x)), make([]float64, len(x))
	for i, x := range x {
		wide[i] = e.Eval(float64(x), float64(p[0]), float64(p[1]))
		got[i] = float32(wide[i])
	}
	return functionFault(f, reference, p, x, got, wide)
}

func TestFormulas(t *testing.T) {
	for _, f := range table.Functions() {
		for _, p := range paramsOf(f) {
			if fault := formulaFault(f, ref.UnaryOf(f.Name), p, operandsOf(f)); fault != "" {
				t.Error(fault)
				break
			}
		}
	}
}

// TestWrongFormulas makes a function up, whose formula is right at first.
func TestWrongFormulas(t *testing.T) {
	reference := func(x, a, _ float64) float64 { return -x * math.Expm1(-a*math.Abs(x)) }
	for name, c := range map[string]struct {
		formula table.Formula
		want    string
	}{
		"right": {func(b *table.Builder, x table.Value, p []table.Value) table.Value {
			return b.Neg(b.Mul(x, b.Expm1(b.Neg(b.Mul(p[0], b.Abs(x))))))
		}, ""},
		"cancels": {func(b *table.Builder, x table.Value, p []table.Value) table.Value {
			u := b.Mul(p[0], b.Abs(x))
			return b.Mul(x, b.Sub(b.Const(1), b.Div(b.Const(1), b.Exp(u))))
		}, "float64"},
		"sign": {func(b *table.Builder, x table.Value, p []table.Value) table.Value {
			return b.Mul(x, b.Expm1(b.Neg(b.Mul(p[0], b.Abs(x)))))
		}, "got "},
		"factor": {func(b *table.Builder, x table.Value, p []table.Value) table.Value {
			return b.Mul(x, b.Mul(b.Const(-1.000001), b.Expm1(b.Neg(b.Mul(p[0], b.Abs(x))))))
		}, "got "},
		"parameter": {func(b *table.Builder, x table.Value, _ []table.Value) table.Value {
			return b.Neg(b.Mul(x, b.Expm1(b.Neg(b.Abs(x)))))
		}, "; 0.5, 0"},
		"NaN": {func(b *table.Builder, x table.Value, p []table.Value) table.Value {
			u := b.Select(b.Less(x, b.Const(0)), x, b.Select(b.Less(b.Const(0), x), x, b.Const(0)))
			return b.Neg(b.Mul(u, b.Expm1(b.Neg(b.Mul(p[0], b.Abs(u))))))
		}, "(NaN"},
	} {
		f := &table.Function{
			Name: "made_up", Params: []table.Param{{Name: "alpha", Default: 1, Min: 0.5, Max: 2}}, MaxError: table.Bound{Ulps: 2}, Formula: c.formula,
		}
		got := ""
		for _, p := range paramsOf(f) {
			if got == "" {
				got = formulaFault(f, reference, p, operandsOf(f))
			}
		}
		if c.want == "" && got != "" || c.want != "" && !(strings.HasPrefix(got, "made_up") && strings.Contains(got, c.want)) {
			t.Errorf("%s: got the fault %q, want one with %q", name, got, c.want)
		}
	}
}

// TestReferences looks for functions without a reference, and for references of
// nothing.
func TestReferences(t *testing.T) {
	made := &table.Function{Name: "made_up", Formula: func(_ *table.Builder, x table.Value, _ []table.Value) table.Value { return x }}
	for _, f := range append(table.Functions(), made) {
		fault := functionFault(f, ref.UnaryOf(f.Name), [2]float32{}, nil, nil, nil)
		if missing := strings.Contains(fault, f.Name+": there is no reference"); missing != (f == made) {
			t.Errorf("%s: got %q", f.Name, fault)
		}
	}
	for name := range moreParams {
		if !slices.ContainsFunc(table.Functions(), func(f *table.Function) bool { return f.Name == name && len(f.Params) > 0 }) {
			t.Errorf("there are parameters for %s, which is no function that takes any", name)
		}
	}
}
