package ortdiff_test

import (
	"math/rand/v2"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
)

var (
	floats  = []dtype.DType{dtype.F32, dtype.F32, dtype.F32, dtype.F64, dtype.F16, dtype.BF16}
	ints    = []dtype.DType{dtype.I64, dtype.I32, dtype.I8, dtype.I16}
	uints   = []dtype.DType{dtype.U8, dtype.U16, dtype.U32, dtype.U64}
	numbers = append(append(append([]dtype.DType{dtype.F32, dtype.F32}, floats...), ints...), uints...)
	wide    = append([]dtype.DType{dtype.I32, dtype.I64, dtype.U32, dtype.U64}, floats...)
	all     = append([]dtype.DType{dtype.Bool, dtype.C64}, numbers...)
)

// unaries draw models of the operators of one operand that take any numbers: of
// the functions, and these.
var unaries = functionGenerators(elementwise.Functions(), map[string]func(*drawer){
	"IsNaN": unary(floats, nil), "Not": unary(bools, nil), "BitwiseNot": unary(integers, nil), "Identity": unary(moved, nil), "Size": unary(moved, nil),
	"Gelu": unary(floats, func(d *drawer) { d.maybe("approximate", pick(d, "none", "tanh")) }),
	"IsInf": unary(floats, func(d *drawer) {
		d.maybe("detect_negative", d.chance(0.5))
		d.maybe("detect_positive", d.chance(0.5))
	}),
	"Shape": unary(moved, func(d *drawer) {
		if d.m.opset >= 15 {
			d.maybe("start", d.between(-5, 5))
			d.maybe("end", d.between(-5, 5))
		}
	}),
})

func unary(types []dtype.DType, attrs func(d *drawer)) func(*drawer) {
	return func(d *drawer) {
		d.node("?")
		d.in(pick(d, types...), d.dims(0, 4)...)
		if attrs != nil {
			attrs(d)
		}
		d.outs(1)
	}
}

// function draws models of the operator of a function: its types, and its
// parameters from where their rows allow it.
func function(f *elementwise.Function) func(*drawer) {
	return unary(typesOf(f.Types), func(d *drawer) {
		for _, p := range f.Params {
			d.maybe(p.Name, pick(d, p.Default, p.Min, p.Max, p.Min+(p.Max-p.Min)*d.Float64()))
		}
	})
}

// typesOf returns the element types of a set, frequent ones more than once.
func typesOf(t elementwise.Types) (types []dtype.DType) {
	for _, class := range []struct {
		has   elementwise.Types
		types []dtype.DType
	}{{elementwise.Floats, floats}, {elementwise.Ints, ints}, {elementwise.Uints, uints}, {elementwise.Bools, bools}} {
		if t&class.has != 0 {
			types = append(types, class.types...)
		}
	}
	return types
}

// isExact reports whether results of a function leave no choice of rounding.
func isExact(f *elementwise.Function) bool { return f.MaxError == elementwise.Bound{} }

// functionGenerators adds the generators of the operators of functions to a
// table.
func functionGenerators(functions []*elementwise.Function, table map[string]func(*drawer)) map[string]func(*drawer) {
	for _, f := range functions {
		if f.ONNX != "" {
			table[f.ONNX] = function(f)
		}
	}
	return table
}

func init() {
	for name, g := range unaries {
		generators[name] = func(d *drawer) {
			g(d)
			d.n.op = name
		}
	}
	for _, f := range elementwise.Functions() {
		if f.ONNX != "" && !isExact(f) {
			tolerances[f.ONNX] = polynomials
		}
	}
	tolerances["Gelu"] = polynomials
}

var polynomials = tolerance{4, 4, 0, "polynomials of their own on both sides"}

// TestFunctionGenerators draws models of a row that is in no table.
func TestFunctionGenerators(t *testing.T) {
	f := &elementwise.Function{
		Name: "squash", ONNX: "Squash", Types: elementwise.Ints | elementwise.Bools,
		Params: []elementwise.Param{{Name: "alpha", Default: 5, Min: 1, Max: 2}, {Name: "beta", Min: -4, Max: -3}},
	}
	generator := functionGenerators([]*elementwise.Function{f, {Name: "without_operator", Types: elementwise.Floats}}, map[string]func(*drawer){})
	if len(generator) != 1 {
		t.Fatalf("got %d generators, want one", len(generator))
	}
	types, values, without := map[dtype.DType]bool{}, map[string]map[float32]bool{"alpha": {}, "beta": {}}, 0
	for i := range 200 {
		d := newDrawer(rand.New(rand.NewPCG(1, uint64(i))), 4)
		generator["Squash"](d)
		types[d.m.values[0].dt] = true
		if len(d.n.attrs) == 0 {
			without++
		}
		for _, a := range d.n.attrs {
			values[a.name][a.value.(float32)] = true
		}
	}
	if len(types) != 5 || without == 0 {
		t.Errorf("got types %v, %d models without attributes, want 5 types and some", types, without)
	}
	for i, p := range f.Params {
		if len(values[p.Name]) < 10 {
			t.Errorf("%s: got the values %v, want more", p.Name, values[p.Name])
		}
		for v := range values[p.Name] {
			if v := float64(v); v != f.Params[i].Default && (v < p.Min || v > p.Max) {
				t.Errorf("%s: got %v, want %v or %v to %v", p.Name, v, p.Default, p.Min, p.Max)
			}
		}
	}
}
