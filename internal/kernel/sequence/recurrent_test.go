package sequence_test

import (
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/sequence"
)

func TestRecurrent(t *testing.T) { kerneltest.EachVariant(t, testRecurrent) }

func testRecurrent(t *testing.T, v *kernel.Variant) {
	for kind, name := range map[sequence.CellKind]string{sequence.RNNCell: "rnn", sequence.GRUCell: "gru", sequence.LSTMCell: "lstm"} {
		for mode := range 8 {
			r := sequence.Recurrent{Kind: kind, Steps: 4, Batch: 3, Input: 5, Hidden: 9, Dirs: 1 + mode%2, Reverse: mode == 4, BatchFirst: mode&2 != 0}
			r.LinearBeforeReset, r.InputForget = mode&4 != 0, mode == 7
			if mode == 6 {
				r.Clip = 0.5
			}
			recurrent(t, v, name, r, mode != 5)
			r.Packed = true
			recurrent(t, v, name, r, mode != 5)
		}
		for i, hidden := range []int{1, 3, 31, 100, 300} {
			r := sequence.Recurrent{Kind: kind, Steps: 1 + 9*i, Batch: []int{1, 8, 2, 17, 9}[i], Input: []int{600, 1, 7, 0, 64}[i], Hidden: hidden, Dirs: 1 + i%2, Packed: true, LinearBeforeReset: i%2 == 0}
			recurrent(t, v, name, r, i%2 == 0)
		}
	}
}

// cut reads a list of numbers as rows of rows.
func cut(x []float32, gates, rows int) (out [][][]float64) {
	n := len(x) / gates / rows
	for g := range gates {
		var m [][]float64
		for i := range rows {
			m = append(m, kerneltest.F64s(x[(g*rows+i)*n:][:n]))
		}
		out = append(out, m)
	}
	return out
}

func recurrent(t *testing.T, v *kernel.Variant, name string, r sequence.Recurrent, full bool) {
	t.Helper()
	rand := kerneltest.NewRand(90)
	gates := map[string]int{"rnn": 1, "gru": 3, "lstm": 4}[name]
	n, states := r.Hidden, r.Dirs*r.Batch*r.Hidden
	s := kerneltest.NewSpace(t)
	list := func(name string, count int) []float32 { return kerneltest.In(s, name, kerneltest.Uniform(rand, count)) }
	weights := func(name string, rows, size int) []float32 { // so small that sums of many stay as they are of few
		x := kerneltest.Uniform(rand, rows*size)
		for i := range x {
			x[i] *= min(1, float32(2/math.Sqrt(float64(max(1, size)))))
		}
		return kerneltest.In(s, name, x)
	}
	g := sequence.RecurrentArgs[float32]{
		X: list("x", r.Steps*r.Batch*r.Input), W: weights("w", r.Dirs*gates*n, r.Input), R: weights("r", r.Dirs*gates*n, n), Bias: list("bias", r.Dirs*2*gates*n),
		Y: kerneltest.Out[float32](s, "y", r.Steps*states), H: kerneltest.Out[float32](s, "h", states), C: kerneltest.Out[float32](s, "c", states),
	}
	if full {
		lengths := make([]int32, r.Batch)
		for i := range lengths {
			lengths[i] = []int32{int32(r.Steps), 0, int32(r.Steps) / 2}[i%3]
		}
		g.H0, g.C0, g.Peepholes, g.Lengths = list("h0", states), list("c0", states), list("peepholes", r.Dirs*3*n), kerneltest.In(s, "lengths", lengths)
	}
	sigmoid, tanh := sequence.CellFunc{Op: kernel.Sigmoid}, sequence.CellFunc{Op: kernel.Tanh}
	for range r.Dirs {
		r.Funcs = append(r.Funcs, map[string][]sequence.CellFunc{"rnn": {tanh}, "gru": {sigmoid, tanh}, "lstm": {sigmoid, tanh, tanh}}[name]...)
	}
	r.Prepare(v)
	w, rec := g.W, g.R
	if r.Packed {
		panels := func(name string, size int, src []float32, pack func(v *kernel.Variant, dst, src []float32)) []float32 {
			dst := kerneltest.Out[float32](s, name, r.Dirs*size)
			for dir := range r.Dirs {
				pack(v, dst[dir*size:][:size], src[dir*len(src)/r.Dirs:])
			}
			return dst
		}
		g.W, g.R = panels("panels of w", r.WElements(), w, r.PackW), panels("panels of r", r.RElements(), rec, r.PackR)
	}
	scratch := kerneltest.Out[float32](s, "scratch", r.ScratchElements())
	kerneltest.Backwards(r.Tiles(), func(i int) { sequence.RecurrentTile(v, &r, i, &g, scratch) })
	s.Check()
	ref.Each([]int{r.Dirs, r.Batch}, func(idx []int) {
		dir, b := idx[0], idx[1]
		cell := ref.Cell{Kind: name, Clip: r.Clip, InputForget: r.InputForget, LinearBeforeReset: r.LinearBeforeReset}
		cell.W, cell.R = cut(w[dir*gates*n*r.Input:][:gates*n*r.Input], gates, n), cut(rec[dir*gates*n*n:][:gates*n*n], gates, n)
		biases := cut(g.Bias[dir*2*gates*n:][:2*gates*n], 1, 2*gates)[0]
		cell.BiasW, cell.BiasR = biases[:gates], biases[gates:]
		if r.BatchFirst {
			idx = []int{b, dir}
		}
		order := []int{r.Dirs, r.Batch}
		if r.BatchFirst {
			order = []int{r.Batch, r.Dirs}
		}
		at, length := ref.At(order, idx)*n, r.Steps
		h, c := make([]float64, n), make([]float64, n)
		if full {
			h, c, length = kerneltest.F64s(g.H0[at:][:n]), kerneltest.F64s(g.C0[at:][:n]), int(g.Lengths[b])
			cell.Peepholes = cut(g.Peepholes[dir*3*n:][:3*n], 1, 3)[0]
		}
		for step := range r.Steps {
			time := step
			if step < length && (r.Reverse || dir == 1) {
				time = length - 1 - step
			}
			x, y := time*r.Batch+b, (time*r.Dirs+dir)*r.Batch+b
			if r.BatchFirst {
				x, y = b*r.Steps+time, (b*r.Steps+time)*r.Dirs+dir
			}
			want := make([]float64, n)
			if step < length {
				h, c = cell.Step(kerneltest.F64s(g.X[x*r.Input:][:r.Input]), h, c)
				want = h
			}
			kerneltest.WantClose(t, g.Y[y*n:][:n], want, 2e-6)
		}
		kerneltest.WantClose(t, g.H[at:][:n], h, 2e-6)
		if name == "lstm" {
			kerneltest.WantClose(t, g.C[at:][:n], c, 4e-6*max(1, slices.Max(c)/8, -slices.Min(c)/8)) // c grows from step to step
		}
	})
}
