package ortdiff_test

import (
	"maps"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/elementwise"
)

func init() {
	for name, gates := range map[string]int{"RNN": 1, "GRU": 3, "LSTM": 4} {
		generators[name] = func(d *drawer) { d.recurrent(name, gates) }
		tolerances[name] = tolerance{64, 256, 0, "sums in another order, fed back in each step; functions of their own on both sides"}
	}
}

func (d *drawer) recurrent(name string, gates int) {
	d.node(name)
	dt := pick(d, dtype.F32, dtype.F32, dtype.F32, dtype.F64)
	direction := pick(d, "forward", "reverse", "bidirectional")
	dirs := 1
	if direction == "bidirectional" {
		dirs = 2
	}
	time, batch, in, hidden := d.between(1, 5), d.between(1, 4), d.between(1, 4), d.between(1, 5)
	layout := d.m.opset >= 14 && d.chance(0.3)
	x, state := []int{time, batch, in}, []int{dirs, batch, hidden}
	if layout {
		x, state = []int{batch, time, in}, []int{batch, dirs, hidden}
		d.attr("layout", 1)
	}
	small := func(dims ...int) { // weights that keep the states in the range where functions bend
		list := make([]float64, elements(dims))
		for i := range list {
			list[i] = d.NormFloat64() * 0.5
		}
		d.with(dt, dims, encodeFloats(dt, list...))
	}
	maybe := func(p float64, dims ...int) {
		if d.chance(p) {
			small(dims...)
		} else {
			d.skip()
		}
	}
	small(x...)
	small(dirs, gates*hidden, in)
	small(dirs, gates*hidden, hidden)
	maybe(0.7, dirs, 2*gates*hidden)
	if d.chance(0.5) {
		lengths := make([]int64, batch)
		for i := range lengths {
			lengths[i] = int64(d.between(1, time))
		}
		d.with(dtype.I32, []int{batch}, encodeInts(dtype.I32, lengths...))
	} else {
		d.skip()
	}
	maybe(0.5, state...)
	if name == "LSTM" {
		maybe(0.5, state...)
		maybe(0.4, dirs, 3*hidden)
	}
	if direction != "forward" || d.chance(0.3) {
		d.attr("direction", direction)
	}
	d.attr("hidden_size", hidden)
	if d.m.opset < 7 {
		d.maybe("output_sequence", 1)
	}
	if d.chance(0.3) {
		d.attr("clip", pick(d, 0.3, 1, 5))
	}
	if d.chance(0.4) {
		count := map[string]int{"RNN": 1, "GRU": 2, "LSTM": 3}[name] * dirs
		if name == "RNN" && d.chance(0.2) {
			count = 2 // as ONNX Runtime writes it for one direction too
		}
		d.activations(count)
	}
	if name == "GRU" {
		d.maybe("linear_before_reset", d.IntN(2))
	}
	if name == "LSTM" && d.chance(0.2) {
		d.attr("input_forget", 1)
	}
	outs := 2
	if name == "LSTM" {
		outs = 3
	}
	d.outs(d.between(1, outs))
}

// cellFunctions are the functions of gates by name, with how many numbers they
// take.
var cellFunctions = func() map[string]int {
	functions := map[string]int{"ScaledTanh": 2}
	for _, f := range elementwise.Functions() {
		if f.Cell != "" {
			functions[f.Cell] = len(f.Params)
		}
	}
	return functions
}()

// activations draws the functions of the gates, with numbers for those that
// take some.
func (d *drawer) activations(n int) {
	var names []string
	var alpha, beta []float32
	for range n {
		name := pick(d, slices.Sorted(maps.Keys(cellFunctions))...)
		names = append(names, name)
		switch cellFunctions[name] {
		case 1:
			alpha = append(alpha, pick[float32](d, 0.1, 0.5, 1.5))
		case 2:
			alpha, beta = append(alpha, pick[float32](d, 0.2, 0.5, 1)), append(beta, pick[float32](d, 0.5, 0.3))
		}
	}
	d.attr("activations", names)
	if alpha != nil {
		d.attr("activation_alpha", alpha)
	}
	if beta != nil {
		d.attr("activation_beta", beta)
	}
}
