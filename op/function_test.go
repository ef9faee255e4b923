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
// and the import that follow from it, the verifier, and the interpreter with the
// formula as the kernel.
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
	arg := op.Arg{Type: op.Type{DType: dtype.F32, Shape: shape.MustOf(2, 4)}, Data: unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))}
	arg.Layout = shape.RowMajor(arg.Shape)
	results, err := in.Run(model, arg)
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

// importRow imports a model with a node of the row's operator, the only one that
// there is.
func importRow(t *testing.T, f *elementwise.Function, opset int, dt, attrs string) (*ir.Program, error) {
	t.Helper()
	registry, err := op.Builtin().With(op.FunctionDef(f))
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("opset %d\ninput x %s[2,4]\ny = %s(x) %s\noutput y %s[2,4]\n", opset, dt, f.ONNX, attrs, dt)
	store := weights.New(weights.Options{})
	defer store.Close()
	r, err := lift.Import(wiretest.ParseText(t, text), lift.Options{
		Registry: registry, Operators: lift.Tables{"": standard.Functions([]*elementwise.Function{f}, nil)}, Weights: store, FileSize: len(text),
	})
	switch {
	case err != nil:
		return nil, err
	case len(r.Missing) > 0:
		return nil, fmt.Errorf("not supported: %v", r.Missing)
	}
	return r.Program, nil
}

func float32s(data []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(data))), len(data)/4)
}

// TestARowIsChecked holds the operator of a row to what the row says.
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
