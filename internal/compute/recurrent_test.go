package compute

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/tenure-go/tenure/op"
)

func TestRecurrent(t *testing.T) {
	x, w, r := arg([]float32{1, 2, 3}, 3, 1, 1), arg([]float32{0.5}, 1, 1, 1), arg([]float32{0.25}, 1, 1, 1)
	var states []float64
	h := 0.0
	for _, v := range []float64{1, 2, 3} {
		h = math.Tanh(0.5*v + 0.25*h)
		states = append(states, h)
	}
	out := run(t, call(t, "rnn", nil, 2, x, w, r))
	expect(t, "y", out[0], []int{3, 1, 1, 1}, states, 1e-6)
	expect(t, "h", out[1], []int{1, 1, 1}, states[2:], 1e-6)
	affine := attrs("activations", []string{"Affine"}, "activation_alpha", []float64{2}, "activation_beta", []float64{1})
	expect(t, "affine", eval(t, "rnn", affine, x, w, r), []int{3, 1, 1, 1}, []float64{2, 4, 6}, 0) // x + h/2 + 1
	scaled := attrs("activations", []string{"ScaledTanh"}, "activation_alpha", []float64{2}, "activation_beta", []float64{0.5})
	first := 2 * math.Tanh(0.25)
	second := 2 * math.Tanh(0.5*(1+first/4))
	expect(t, "scaled tanh", eval(t, "rnn", scaled, x, w, r), []int{3, 1, 1, 1}, []float64{first, second, 2 * math.Tanh(0.5*(1.5+second/4))}, 1e-6)
	both := run(t, call(t, "rnn", attrs("direction", "bidirectional"), 2, x, arg([]float32{0.5, 0.5}, 2, 1, 1), arg([]float32{0.25, 0.25}, 2, 1, 1)))
	backwards := math.Tanh(0.5*1 + 0.25*math.Tanh(0.5*2+0.25*math.Tanh(1.5)))
	expect(t, "both", both[1], []int{2, 1, 1}, []float64{states[2], backwards}, 1e-6)

	short := call(t, "rnn", nil, 2, x, w, r, absent, arg([]int32{4}, 1))
	freshResults(short)
	if err := Eval(short); err == nil || !strings.Contains(err.Error(), "got length 4 for sample 0, want 0 to 3") {
		t.Errorf("got error %v", err)
	}
	sig := &op.Sig{Def: op.Builtin().Lookup("rnn"), Attrs: attrs("activations", []string{"Sine"}), Args: []op.Type{x.Type, w.Type, r.Type}, Results: make([]op.Type, 1)}
	if err := op.InferTypes(sig); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("got error %v, want one of what is not supported", err)
	}
}
