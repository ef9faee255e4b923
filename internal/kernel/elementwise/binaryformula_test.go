package elementwise_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	table "github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// isWithin reports whether a float32 result of a function of x and another
// operand is within the function's error of want. Loops that are written by
// hand have no row for it: they may be off by two units in the last place.
func isWithin(f *table.Binary, x, got float32, want float64) bool {
	bound := f.MaxError
	if f.Formula == nil {
		bound = table.Bound{Ulps: 2}
	}
	return kerneltest.SameValue(got, want, unitsAt(bound, float64(x))) || math.Abs(float64(got)-want) <= bound.Absolute
}

// binaryFault is functionFault for the results of a function of pairs.
func binaryFault(f *table.Binary, reference func(x, y float64) float64, pairs [][2]float32, got []float32, wide []float64) string {
	if reference == nil {
		return f.Name + noReference
	}
	for i, p := range pairs {
		want := reference(float64(p[0]), float64(p[1]))
		if !isWithin(f, p[0], got[i], want) {
			return fmt.Sprintf("%s(%v, %v): got %v, want %v", f.Name, p[0], p[1], got[i], want)
		}
		slack := max(1e-13, unitsAt(f.MaxError, float64(p[0]))*0x1p-51)*math.Abs(want) + f.MaxError.Absolute*0x1p-28 + 1e-300
		if !(math.Abs(wide[i]-want) <= slack) && wide[i] != want && (wide[i] == wide[i] || want == want) {
			return fmt.Sprintf("%s(%v, %v) in float64: got %v, want %v", f.Name, p[0], p[1], wide[i], want)
		}
	}
	return ""
}

// pairsOf are operands of all magnitudes with each other, special numbers among
// them, and many near 1.
func pairsOf() (pairs [][2]float32) {
	for _, x := range kerneltest.Specials {
		for _, y := range kerneltest.Specials {
			pairs = append(pairs, [2]float32{x, y})
		}
	}
	r := kerneltest.NewRand(11)
	x, y := kerneltest.Uniform(r, 2000), kerneltest.Uniform(r, 2000)
	for i := range x {
		pairs = append(pairs, [2]float32{x[i], y[i]}, [2]float32{4 * x[i], 1000 * y[i]})
	}
	return pairs
}

// binaryFormulaFault compares the step-by-step evaluation of a formula with a
// reference.
func binaryFormulaFault(f *table.Binary, reference func(x, y float64) float64) string {
	e, pairs := f.Expression(), pairsOf()
	got, wide := make([]float32, len(pairs)), make([]float64, len(pairs))
	for i, p := range pairs {
		wide[i] = e.Eval(float64(p[0]), float64(p[1]))
		got[i] = float32(wide[i])
	}
	return binaryFault(f, reference, pairs, got, wide)
}

func TestBinaryFormulas(t *testing.T) {
	found := 0
	for _, f := range table.Binaries() {
		if f.Formula == nil {
			continue
		}
		found++
		if fault := binaryFormulaFault(f, ref.BinaryOf(f.Name)); fault != "" {
			t.Error(fault)
		}
	}
	if found == 0 {
		t.Error("no function of two operands has a formula, want prelu at least")
	}
}

// TestWrongBinaryFormulas makes a function up, whose formula is right at first.
func TestWrongBinaryFormulas(t *testing.T) {
	reference := func(x, y float64) float64 { return (x - y) * (x - y) }
	type value = table.Value
	for name, c := range map[string]struct {
		formula   table.BinaryFormula
		reference func(x, y float64) float64
		want      string
	}{
		"right": {func(b *table.Builder, x, y value) value { d := b.Sub(x, y); return b.Mul(d, d) }, reference, ""},
		"sign":  {func(b *table.Builder, x, y value) value { d := b.Add(x, y); return b.Mul(d, d) }, reference, "got "},
		"factor": {func(b *table.Builder, x, y value) value {
			d := b.Sub(x, y)
			return b.Mul(d, b.Mul(d, b.Const(1.000001)))
		}, reference, "got "},
		"cancels": {func(b *table.Builder, x, y value) value {
			return b.Add(b.Sub(b.Mul(x, x), b.Mul(b.Const(2), b.Mul(x, y))), b.Mul(y, y))
		}, reference, "got "},
		"operand":      {func(b *table.Builder, x, _ value) value { return b.Mul(x, x) }, reference, "got "},
		"no reference": {func(b *table.Builder, x, y value) value { return b.Mul(x, y) }, nil, "made_up" + noReference},
	} {
		f := &table.Binary{Name: "made_up", MaxError: table.Bound{Ulps: 3}, Formula: c.formula}
		got := binaryFormulaFault(f, c.reference)
		if c.want == "" && got != "" || c.want != "" && !(strings.HasPrefix(got, "made_up") && strings.Contains(got, c.want)) {
			t.Errorf("%s: got the fault %q, want one with %q", name, got, c.want)
		}
	}
}

// TestBinaryReferences looks for functions of floats without a reference.
func TestBinaryReferences(t *testing.T) {
	made := &table.Binary{Name: "made_up", Types: table.Floats}
	for _, f := range append(table.Binaries(), made) {
		if f.Predicate || f.Types&table.Floats == 0 {
			continue
		}
		fault := binaryFault(f, ref.BinaryOf(f.Name), nil, nil, nil)
		if missing := fault == f.Name+noReference; missing != (f == made) {
			t.Errorf("%s: got %q", f.Name, fault)
		}
	}
}
