package op_test

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/internal/onnx/standard"
	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// squash is the row of an operator that is in no table.
var squash = elementwise.Function{
	Name: "squash", ONNX: "Squash", Since: 20, Doc: "computes alpha * x / (1 + |x|) + beta of each element of x",
	Types: elementwise.Signed, Params: []elementwise.Param{{Name: "alpha", Default: 0.5, Min: 0.1, Max: 3}, {Name: "beta", Min: -1, Max: 1}},
	Formula: func(b *elementwise.Builder, x elementwise.Value, p []elementwise.Value) elementwise.Value {
		return b.MulAdd(p[0], b.Div(x, b.Add(b.Const(1), b.Abs(x))), p[1])
	},
	MaxError: elementwise.Bound{Ulps: 4, Absolute: 0x1p-22}, Chained: true,
}

// squashed is its reference.
func squashed(x, alpha, beta float64) float64 { return alpha*x/(1+math.Abs(x)) + beta }

// TestARowIsAnOperator takes a row to a model's results: through the definition
// and the import that follow from it, the verifier, and the interpreter with
// the formula as the kernel.
func TestARowIsAnOperator(t *testing.T) {
	for _, c := range []struct {
		attrs       string
		alpha, beta float64
	}{{"", 0.5, 0}, {"{alpha = 2.5}", 2.5, 0}, {"{beta = -0.75, alpha = 0.25}", 0.25, -0.75}} {
		if err := compareRow(t, &squash, c.attrs, squashed, c.alpha, c.beta); err != nil {
			t.Error(err)
		}
	}
	// A formula is held to the reference: one that forgets a parameter fails.
	wrong := squash
	wrong.Formula = func(b *elementwise.Builder, x elementwise.Value, p []elementwise.Value) elementwise.Value {
		return b.Mul(p[0], b.Div(x, b.Add(b.Const(1), b.Abs(x))))
	}
	if compareRow(t, &wrong, "{beta = 0.5}", squashed, 0.5, 0.5) == nil {
		t.Error("a formula without beta agrees with the reference, want a difference")
	}
}

// compareRow imports a model of one node and compares its results.
func compareRow(t *testing.T, f *elementwise.Function, attrs string, reference func(x, alpha, beta float64) float64, alpha, beta float64) error {
	t.Helper()
	model, err := importRow(t, f, 20, "f32", attrs)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(model); err != nil {
		t.Fatal(err)
	}
	expression := f.Expression()
	in := ir.Interpreter{Eval: func(c *op.Call) error {
		params := make([]float64, len(f.Params))
		for i, p := range f.Params {
			params[i] = c.Float(p.Name)
		}
		x, y := float32s(c.In[0].Data), float32s(c.Out[0].Data)
		for i := range x {
			y[i] = float32(expression.Eval(float64(x[i]), params...))
		}
		return nil
	}}
	x := []float32{-1e30, -3, -0.5, 0, 1e-20, 0.75, 4, 1e30}
	results, err := in.Run(model, float32Arg(x, 2, 4))
	if err != nil {
		t.Fatal(err)
	}
	for i, got := range float32s(results[0].Data) {
		want := reference(float64(x[i]), alpha, beta)
		if math.Abs(float64(got)-want) > 0x1p-22*(1+math.Abs(want)) {
			return fmt.Errorf("%s(%v; %v, %v): got %v, want %v", f.Name, x[i], alpha, beta, got, want)
		}
	}
	return nil
}

// importRow imports a model with a node of the row's operator, the only one
// that there is.
func importRow(t *testing.T, f *elementwise.Function, opset int, dt, attrs string) (*ir.Program, error) {
	t.Helper()
	text := fmt.Sprintf("opset %d\ninput x %s[2,4]\ny = %s(x) %s\noutput y %s[2,4]\n", opset, dt, f.ONNX, attrs, dt)
	return importText(t, op.FunctionDef(f), standard.Functions([]*elementwise.Function{f}, nil), text)
}

// importText imports a model of the operators of a table, one of which is not
// built in.
func importText(t *testing.T, def *op.Def, table map[string]lift.Operator, text string) (*ir.Program, error) {
	t.Helper()
	registry, err := op.Builtin().With(def)
	if err != nil {
		t.Fatal(err)
	}
	store := weights.New(weights.Options{})
	defer store.Close()
	r, err := lift.Import(wiretest.ParseText(t, text), lift.Options{
		Registry: registry, Operators: lift.Tables{"": table}, Weights: store, FileSize: len(text),
	})
	switch {
	case err != nil:
		return nil, err
	case len(r.Missing) > 0:
		return nil, fmt.Errorf("not supported: %v", r.Missing)
	}
	return r.Program, nil
}

// squareDifference is the row of an operator of two operands that is in no
// table.
var squareDifference = elementwise.Binary{
	Name: "square_difference", ONNX: "SquareDifference", Since: 20, Doc: "squares the differences of x and y, with broadcasting",
	Types: elementwise.Signed, MaxError: elementwise.Bound{Ulps: 3}, Chained: true,
	Formula: func(b *elementwise.Builder, x, y elementwise.Value) elementwise.Value {
		d := b.Sub(x, y)
		return b.Mul(d, d)
	},
}

// TestABinaryRowIsAnOperator is TestARowIsAnOperator for a function of two
// operands, of which the second broadcasts.
func TestABinaryRowIsAnOperator(t *testing.T) {
	if err := compareBinaryRow(t, &squareDifference); err != nil {
		t.Error(err)
	}
	wrong := squareDifference
	wrong.Formula = func(b *elementwise.Builder, x, y elementwise.Value) elementwise.Value {
		return b.Sub(b.Mul(x, x), b.Mul(y, y))
	}
	if compareBinaryRow(t, &wrong) == nil {
		t.Error("a formula of the difference of squares agrees with the reference, want a difference")
	}
	for _, c := range []struct {
		opset int
		dt    string
		ok    bool
	}{
		{20, "f32", true}, {28, "f16", true}, {20, "i8", true},
		{19, "f32", false}, // before Since
		{20, "u8", false},  // not among Types
	} {
		if _, err := importBinaryRow(t, &squareDifference, c.opset, c.dt); (err == nil) != c.ok {
			t.Errorf("opset %d, %s: got error %v, want success %v", c.opset, c.dt, err, c.ok)
		}
	}
}

// compareBinaryRow imports a model of one node and compares its results.
func compareBinaryRow(t *testing.T, f *elementwise.Binary) error {
	t.Helper()
	model, err := importBinaryRow(t, f, 20, "f32")
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(model); err != nil {
		t.Fatal(err)
	}
	expression := f.Expression()
	in := ir.Interpreter{Eval: func(c *op.Call) error {
		x, y, z := float32s(c.In[0].Data), float32s(c.In[1].Data), float32s(c.Out[0].Data)
		for i := range z {
			z[i] = float32(expression.Eval(float64(x[i]), float64(y[i%len(y)])))
		}
		return nil
	}}
	x, y := []float32{-1e10, -3, -0.5, 0, 1e-20, 0.75, 4, 1e10}, []float32{1, -2, 0.25, 3}
	results, err := in.Run(model, float32Arg(x, 2, 4), float32Arg(y, 4))
	if err != nil {
		t.Fatal(err)
	}
	got := float32s(results[0].Data)
	if len(got) != len(x) {
		return fmt.Errorf("%s: got %d elements, want %d", f.Name, len(got), len(x))
	}
	for i := range got {
		want := math.Pow(float64(x[i])-float64(y[i%4]), 2)
		if math.Abs(float64(got[i])-want) > 0x1p-22*want {
			return fmt.Errorf("%s(%v, %v): got %v, want %v", f.Name, x[i], y[i%4], got[i], want)
		}
	}
	return nil
}

func importBinaryRow(t *testing.T, f *elementwise.Binary, opset int, dt string) (*ir.Program, error) {
	t.Helper()
	text := fmt.Sprintf("opset %d\ninput x %s[2,4]\ninput y %s[4]\nz = %s(x, y)\noutput z %s[2,4]\n", opset, dt, dt, f.ONNX, dt)
	return importText(t, op.BinaryFunctionDef(f), standard.Functions(nil, []*elementwise.Binary{f}), text)
}

func float32Arg(x []float32, sizes ...int) op.Arg {
	arg := op.Arg{Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(sizes...)}, Data: unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))}
	arg.Layout = shape.RowMajor(arg.Shape)
	return arg
}

func float32s(data []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
}

// TestARowIsChecked compares the operator of a row with the row.
func TestARowIsChecked(t *testing.T) {
	for _, c := range []struct {
		opset     int
		dt, attrs string
		ok        bool
	}{
		{20, "f32", "", true}, {28, "f16", "{alpha = 1.5}", true}, {20, "i8", "", true},
		{19, "f32", "", false},              // before Since
		{20, "u8", "", false},               // not among Types
		{20, "f32", "{gamma = 1.5}", false}, // not among Params
	} {
		if _, err := importRow(t, &squash, c.opset, c.dt, c.attrs); (err == nil) != c.ok {
			t.Errorf("opset %d, %s, attributes %q: got error %v, want success %v", c.opset, c.dt, c.attrs, err, c.ok)
		}
	}
	def := op.FunctionDef(&squash)
	typ := op.Type{DType: dtype.F32, Shape: shape.MustOf(3)}
	sig := &op.Sig{Def: def, Args: []op.Type{typ}, Results: make([]op.Type, 1)}
	if err := op.InferTypes(sig); err != nil || sig.Results[0] != typ {
		t.Errorf("got %v, error %v, want %v", sig.Results, err, typ)
	}
	if kind, offset := sig.AliasOf(0, 0); kind != op.Same || offset != 0 {
		t.Errorf("got alias %v at %d, want the operand's bytes", kind, offset)
	}
	if def.Doc != squash.Doc || sig.Float("alpha") != 0.5 || sig.Float("beta") != 0 {
		t.Errorf("got %+v, want the row's documentation and defaults", def)
	}
}
