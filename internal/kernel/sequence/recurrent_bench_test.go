package sequence_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

// BenchmarkRecurrent runs cells over 100 steps in one direction, on one thread,
// with packed weights and as many inputs as states.
func BenchmarkRecurrent(b *testing.B) {
	v := kerneltest.Best()
	for _, c := range []struct {
		kind          sequence.CellKind
		name          string
		gates, hidden int
	}{
		{sequence.LSTMCell, "lstm", 4, 16}, {sequence.LSTMCell, "lstm", 4, 64}, {sequence.LSTMCell, "lstm", 4, 256}, {sequence.LSTMCell, "lstm", 4, 512},
		{sequence.GRUCell, "gru", 3, 192}, {sequence.RNNCell, "rnn", 1, 256},
	} {
		for _, batch := range []int{1, 4, 8} {
			b.Run(fmt.Sprintf("%s/hidden=%d/batch=%d", c.name, c.hidden, batch), func(b *testing.B) {
				sigmoid, tanh := sequence.CellFunc{Op: kernel.Sigmoid}, sequence.CellFunc{Op: kernel.Tanh}
				r := sequence.Recurrent{Kind: c.kind, Steps: 100, Batch: batch, Input: c.hidden, Hidden: c.hidden, Dirs: 1, Packed: true}
				r.Funcs = map[sequence.CellKind][]sequence.CellFunc{sequence.RNNCell: {tanh}, sequence.GRUCell: {sigmoid, tanh}, sequence.LSTMCell: {sigmoid, tanh, tanh}}[c.kind]
				r.Prepare(v)
				small := func(n int) []float32 {
					x := kerneltest.Ramp(n)
					for i := range x {
						x[i] = float32(i%17-8) / 256
					}
					return x
				}
				g := sequence.RecurrentArgs[float32]{X: small(100 * batch * c.hidden), W: small(r.WElements()), R: small(r.RElements()), Bias: small(2 * c.gates * c.hidden), Y: small(100 * batch * c.hidden)}
				scratch := make([]float32, r.ScratchElements())
				for b.Loop() {
					for t := range r.Tiles() {
						sequence.RecurrentTile(v, &r, t, &g, scratch)
					}
				}
				kerneltest.ReportFlops(b, 100*batch*4*c.gates*c.hidden*c.hidden)
			})
		}
	}
}
