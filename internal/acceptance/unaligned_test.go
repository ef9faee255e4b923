package acceptance_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// Weights that lie unaligned in the file are packed from there, whichever way
// the file came into memory, and others in the same file stay.
func TestUnalignedWeightsArePacked(t *testing.T) {
	const n = 160 // a weight is larger than the part that is copied at once
	for shift := range 4 {
		var g onnxtest.Graph
		raw := make([]byte, 4*n*n)
		for i := range n * n {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(float32(i%7)-3))
		}
		g.Input("x", onnxtest.F32, 2, n)
		g.Weight("pad"+string(make([]byte, shift)), onnxtest.F32, make([]byte, 4), 1)
		g.Weight("a", onnxtest.F32, raw, n, n)
		g.Weight("b", onnxtest.F32, raw, n, n)
		g.Node("MatMul", []string{"x", "a"}, []string{"y"})
		g.Node("MatMul", []string{"y", "b"}, []string{"z"})
		g.Node("Add", []string{"z", "pad" + string(make([]byte, shift))}, []string{"s"})
		g.Output("s")
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, g.File(), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []float32
		for name, model := range map[string]func(t modeltest.TB) *tenure.Model{
			"mapped": func(t modeltest.TB) *tenure.Model { return modeltest.Load(t, path) },
			"read":   func(t modeltest.TB) *tenure.Model { return modeltest.Load(t, path, tenure.WithWeights(tenure.Read)) },
			"bytes":  func(t modeltest.TB) *tenure.Model { return modeltest.LoadBytes(t, g.File()) },
		} {
			t.Run(name, func(t *testing.T) {
				memorytest.Check(t)
				s := modeltest.Session(t, model(t))
				data := make([]float32, 2*n)
				for i := range data {
					data[i] = float32(i%5) - 2
				}
				got := modeltest.Values(t, modeltest.Run(t, s, tenure.Inputs{"x": modeltest.Of(t, data, 2, n)})["s"])
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					t.Errorf("got %v ..., want %v ...", got[:4], want[:4])
				}
			})
		}
	}
}
