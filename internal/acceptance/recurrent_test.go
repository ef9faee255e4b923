package acceptance_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/internal/modeltest"
	"github.com/tenure-go/tenure/internal/onnxtest"
	"github.com/tenure-go/tenure/memory/memorytest"
)

// recurrentFile is a bidirectional cell on x [steps, batch, 24]. Its weights
// are constants, or inputs w and r.
func recurrentFile(cell string, gates, hidden int64, constant bool) (file []byte, w, r []float32) {
	var g onnxtest.Graph
	g.Input("x", onnxtest.F32, "steps", "batch", 24)
	g.Input("lengths", onnxtest.I32, "batch")
	small := func(n int64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i*37%101-50) / 200
		}
		return x
	}
	w, r = small(2*gates*hidden*24), small(2*gates*hidden*hidden)
	if constant {
		g.Weight("w", onnxtest.F32, asBytes(w), 2, gates*hidden, 24)
		g.Weight("r", onnxtest.F32, asBytes(r), 2, gates*hidden, hidden)
	} else {
		g.Input("w", onnxtest.F32, 2, int(gates*hidden), 24)
		g.Input("r", onnxtest.F32, 2, int(gates*hidden), int(hidden))
	}
	g.Weight("b", onnxtest.F32, asBytes(small(4*gates*hidden)), 2, 2*gates*hidden)
	g.Node(cell, []string{"x", "w", "r", "b", "lengths"}, []string{"y", "h"}, onnxtest.Int("hidden_size", hidden), onnxtest.Text("direction", "bidirectional"))
	g.Output("y")
	g.Output("h")
	return g.File(), w, r
}

func asBytes(x []float32) (b []byte) {
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// TestRecurrentThreads runs cells on several threads, with weights that are
// packed when they are loaded and in every run: the results are the same bits,
// also for batches that are cut into tiles.
func TestRecurrentThreads(t *testing.T) {
	memorytest.Check(t)
	for cell, gates := range map[string]int64{"RNN": 1, "GRU": 3, "LSTM": 4} {
		packed, w, r := recurrentFile(cell, gates, 37, true)
		plain, _, _ := recurrentFile(cell, gates, 37, false)
		models := []*tenure.Model{modeltest.LoadBytes(t, packed), modeltest.LoadBytes(t, plain)}
		for _, batch := range []int{1, 3, 8, 21} {
			lengths := make([]int32, batch)
			for i := range lengths {
				lengths[i] = int32(13 - i%5)
			}
			var want []byte
			for i, m := range models {
				for _, threads := range []int{1, 2, 3, 8} {
					in := tenure.Inputs{"x": modeltest.Of(t, modeltest.Ramp(13*batch*24), 13, batch, 24), "lengths": modeltest.Of(t, lengths, batch)}
					if i == 1 {
						in["w"], in["r"] = modeltest.Of(t, w, 2, int(gates)*37, 24), modeltest.Of(t, r, 2, int(gates)*37, 37)
					}
					out := modeltest.Run(t, modeltest.Session(t, m, tenure.WithThreads(threads)), in)
					got := bytes.Join([][]byte{bytesIn(t, out["y"]), bytesIn(t, out["h"])}, nil)
					if want == nil {
						want = got
					}
					if !bytes.Equal(got, want) {
						t.Errorf("%s, batch %d, constant weights %t, %d threads: got other bits than with one thread", cell, batch, i == 0, threads)
					}
				}
			}
		}
	}
}
