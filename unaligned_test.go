package tenure_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// Weights that lie unaligned in the file are packed from there, whichever way
// the file came into memory, and others in the same file stay.
func TestUnalignedWeightsArePacked(t *testing.T) {
	const n = 160 // so that a weight is larger than what is copied at once
	for shift := range 4 {
		var g graph
		raw := make([]byte, 4*n*n)
		for i := range n * n {
			binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(float32(i%7)-3))
		}
		g.input("x", f32Type, 2, n)
		g.weight("pad"+string(make([]byte, shift)), f32Type, make([]byte, 4), 1)
		g.weight("a", f32Type, raw, n, n)
		g.weight("b", f32Type, raw, n, n)
		g.node("MatMul", []string{"x", "a"}, one("y"))
		g.node("MatMul", []string{"y", "b"}, one("z"))
		g.node("Add", []string{"z", "pad" + string(make([]byte, shift))}, one("s"))
		g.output("s")
		path := filepath.Join(t.TempDir(), "m.onnx")
		if err := os.WriteFile(path, g.file(), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []float32
		for name, model := range map[string]func(t tester) *tenure.Model{
			"mapped": func(t tester) *tenure.Model { return load(t, path) },
			"read":   func(t tester) *tenure.Model { return load(t, path, tenure.WithWeights(tenure.Read)) },
			"bytes":  func(t tester) *tenure.Model { return loadBytes(t, g.file()) },
		} {
			t.Run(name, func(t *testing.T) {
				memorytest.Check(t)
				s := session(t, model(t))
				data := make([]float32, 2*n)
				for i := range data {
					data[i] = float32(i%5) - 2
				}
				got := values(t, run(t, s, tenure.Inputs{"x": of(t, data, 2, n)})["s"])
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
