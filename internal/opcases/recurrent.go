package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(recurrentCases)

func recurrentCases() map[string][]optest.Case {
	out := map[string][]optest.Case{}
	for name, gates := range map[string]int{"rnn": 1, "gru": 3, "lstm": 4} {
		x, lengths := num(f32, 4, 3, 5), optest.Of([]int32{4, 0, 2}, 3)
		all := args{x, num(f32, 2, gates*6, 5), num(f32, 2, gates*6, 6), num(f32, 2, 2*gates*6), lengths, num(f32, 2, 3, 6)}
		results := 2
		if name == "lstm" {
			all, results = append(all, num(f32, 2, 3, 6), num(f32, 2, 18)), 3
		}
		out[name] = []optest.Case{
			{Args: args{x, num(f32, 1, gates*6, 5), num(f32, 1, gates*6, 6)}, Results: results},
			{Args: all, Results: results, Attrs: attr("direction", "bidirectional", "clip", 2.0)},
			{Args: args{num(f16, 3, 4, 5), num(f16, 1, gates*6, 5), num(f16, 1, gates*6, 6)}, Attrs: attr("layout", 1, "direction", "reverse"), Results: results},
			{Args: args{num(f64, 0, 3, 5), num(f64, 1, gates*6, 5), num(f64, 1, gates*6, 6)}, Results: results},
		}
	}
	out["rnn"] = append(out["rnn"], optest.Case{Args: args{num(f32, 4, 3, 5), num(f32, 1, 6, 5), num(f32, 1, 6, 6)},
		Attrs: attr("activations", []string{"HardSigmoid"}, "activation_alpha", []float64{0.5}, "activation_beta", []float64{0.25})})
	return out
}
