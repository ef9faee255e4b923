package onnx

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/onnx/wire/wiretest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// A description needs no operator to be known, and counts nested graphs.
func TestDescribe(t *testing.T) {
	memorytest.Check(t)
	m := wiretest.ParseText(t, `
		opset 13
		opset acme 2
		func acme::F(x) -> (y)
		  opset 13
		  y = Relu(x)
		end
		input x f32[n,2]
		input w f32[2]
		input s sequence
		init w f32[2] 1 2
		graph yes
		  c = Constant() {value = i64[3] 1 2 3}
		  a = Relu(x)
		  output a f32[n,2]
		end
		a = Frobnicate(x)
		b = acme::Unknown(a)
		y = If(b) {then_branch = yes, else_branch = yes}
		output y f32[n,2]
	`)
	d, err := Describe(writeModel(t, m))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"Relu": 3, "Constant": 2, "Frobnicate": 1, "acme::Unknown": 1, "If": 1}
	if !maps.Equal(d.Operators, want) {
		t.Errorf("operators: got %v, want %v", d.Operators, want)
	}
	if d.Weights != 3 || d.WeightBytes != 8+2*24 {
		t.Errorf("got %d weights of %d bytes, want 3 of 56", d.Weights, d.WeightBytes)
	}
	if len(d.Inputs) != 2 || d.Inputs[0].Type.String() != "f32[n,2]" || !d.Inputs[1].Type.IsZero() {
		t.Errorf("inputs: got %v, want x and s, whose type is not known", d.Inputs)
	}
	if len(d.Outputs) != 1 || d.Opsets["acme"] != 2 || !slices.Equal(d.Functions, []string{"F"}) {
		t.Errorf("got outputs %v, opsets %v, functions %v", d.Outputs, d.Opsets, d.Functions)
	}
	empty := filepath.Join(t.TempDir(), "empty.onnx")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Describe(empty); !errors.Is(err, tensor.ErrCorrupt) {
		t.Errorf("empty file: got %v, want ErrCorrupt", err)
	}
}
