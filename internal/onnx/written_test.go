package onnx

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// Files that the onnx package wrote (testdata/written/make.py).
func TestWrittenElsewhere(t *testing.T) {
	memorytest.Check(t)
	for _, tc := range []struct {
		path, program string
		weights       map[string][]float64
	}{
		{"testdata/written/lists.onnx", `func @lists(%x: f32[n,2], %wanted: bool[]) -> (f32[n,3], f32[3], f64[2], f16[2], bf16[2], i8[3], bool[2], i64[2], u32[2], i4[3]) {
  weight @matrix: f32[2,3]
  weight @"branch/then/Scale#0/factor": f32[]
  weight @"Scale#2/factor": f32[]
  weight @floats: f32[3]
  weight @doubles: f64[2]
  weight @halves: f16[2]
  weight @brains: bf16[2]
  weight @bytes: i8[3]
  weight @bools: bool[2]
  weight @longs: i64[2]
  weight @words: u32[2]
  weight @nibbles: i4[3]
  %y: f32[n,3] = matmul(%x, @matrix) "product"
  %z: f32[n,3] = if(%wanted) {
    %up: f32[n,3] = mul(%y, @"branch/then/Scale#0/factor") "branch/then/Scale#0/Mul#1"
    return %up
  } {
    %same: f32[n,3] = identity(%y) "branch/else/Identity#0"
    return %same
  } "branch"
  %out: f32[n,3] = mul(%z, @"Scale#2/factor") "Scale#2/Mul#1"
  return %out, @floats, @doubles, @halves, @brains, @bytes, @bools, @longs, @words, @nibbles
}
`, map[string][]float64{
			"floats": {0.5, 1, -2}, "doubles": {0.25, 1e300}, "halves": {0.5, -1}, "brains": {0.5, -1}, "bytes": {-128, 0, 127},
			"bools": {1, 0}, "longs": {-1, 1 << 62}, "words": {0, math.MaxUint32}, "matrix": {0, 1, 2, 3, 4, 5},
			"branch/then/Scale#0/factor": {0.5}, "Scale#2/factor": {2},
		}},
		{"testdata/written/external.onnx", `func @external(%i: i64[n]) -> (f32[n], i64[8]) {
  weight @a: f32[8]
  weight @b: i64[8]
  %y: f32[n] = gather(@a, %i) "Gather#0"
  return %y, @b
}
`, map[string][]float64{"a": {0, 1, 2, 3, 4, 5, 6, 7}, "b": {0, 3, 6, 9, 12, 15, 18, 21}}},
	} {
		m, err := Load(tc.path, Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if got := m.Program.String(); got != tc.program {
			t.Errorf("%s: got\n%s, want\n%s", tc.path, got, tc.program)
		}
		if err := ir.VerifyKnown(m.Program, ir.Known(m.Weights)); err != nil {
			t.Error(err)
		}
		for name, want := range tc.weights {
			for i, v := range want {
				if got := elementOf(t, m, name, i); got != v {
					t.Errorf("%s: element %d of %s: got %v, want %v", tc.path, i, name, got, v)
				}
			}
		}
		for _, w := range m.Program.Weights {
			if data, _ := m.Weights.Bytes(w); w.Name == "nibbles" && string(data) != "\x78\x01" {
				t.Errorf("%s: packed elements: got %x, want 7801", tc.path, data)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// elementOf returns element i of a weight.
func elementOf(t *testing.T, m *Model, name string, i int) float64 {
	t.Helper()
	for _, w := range m.Program.Weights {
		if w.Name != name {
			continue
		}
		data, _ := m.Weights.Bytes(w)
		dt := w.Type.DType
		if data = data[min(len(data), i*dt.Size()):]; len(data) == 0 {
			break
		}
		if v, ok := lift.DecodeFloat(dt, data); ok {
			return v
		}
		v, _ := lift.DecodeInt(dt, data)
		return float64(v)
	}
	t.Errorf("weight %s has no element %d", name, i)
	return math.NaN()
}
