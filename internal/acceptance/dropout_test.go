package acceptance_test

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
	"github.com/tenure-go/tenure/tensor"
)

// TestDropout trains: elements are dropped with the given ratio, the others
// divided by what is kept, and the mask says which. Sessions of one seed drop
// the same elements, runs of a session others, and a seed of the node counts
// before that of the session. Without training nothing is dropped.
func TestDropout(t *testing.T) {
	memorytest.Check(t)
	const n = 20000
	file := func(seed ...onnxtest.Message) []byte {
		var g onnxtest.Graph
		g.Input("x", onnxtest.F32, "n")
		g.Input("training", onnxtest.Bool)
		g.Weight("ratio", onnxtest.F32, binary.LittleEndian.AppendUint32(nil, math.Float32bits(0.3)))
		g.Node("Dropout", []string{"x", "ratio", "training"}, []string{"y", "mask"}, seed...)
		g.Output("y")
		g.Output("mask")
		return g.File()
	}
	ones := modeltest.Of(t, slices.Repeat([]float32{1}, n), n)
	run := func(s *tenure.Session, training bool) []float32 {
		out := modeltest.Run(t, s, tenure.Inputs{"x": ones, "training": modeltest.Of(t, []bool{training})})
		y := slices.Clone(modeltest.Values(t, out["y"]))
		mask := modeltest.Must(tensor.Values[bool](out["mask"]))
		kept := 0
		for i, v := range y {
			want := float32(0)
			if mask[i] {
				want = 1
				kept++
				if training {
					want = 1 / float32(1-float32(0.3))
				}
			}
			if math.Abs(float64(v-want)) > 1e-6 {
				t.Fatalf("element %d: got %v, want %v", i, v, want)
			}
		}
		if share := float64(kept) / n; training && math.Abs(share-0.7) > 0.02 || !training && kept != n {
			t.Errorf("training %v: got a share of %v that is kept", training, share)
		}
		return y
	}
	m := modeltest.LoadBytes(t, file())
	one, same, other := modeltest.Session(t, m, tenure.WithSeed(7)), modeltest.Session(t, m, tenure.WithSeed(7)), modeltest.Session(t, m, tenure.WithSeed(8))
	first, second := run(one, true), run(one, true)
	if slices.Equal(first, second) || !slices.Equal(first, run(same, true)) || !slices.Equal(second, run(same, true)) || slices.Equal(first, run(other, true)) {
		t.Error("want the same elements in sessions of one seed, and others in each run and of another seed")
	}
	run(one, false)
	seeded := modeltest.LoadBytes(t, file(onnxtest.Int("seed", 5)))
	if a, b := modeltest.Session(t, seeded, tenure.WithSeed(1)), modeltest.Session(t, seeded, tenure.WithSeed(2)); !slices.Equal(run(a, true), run(b, true)) {
		t.Error("want the same elements by the seed of the node")
	}
}
