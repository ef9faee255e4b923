package opcases

import "github.com/tenure-go/tenure/op/optest"

var _ = family(randomCases)

// randomCases are without results: numbers that are drawn have no reference.
// The tests of package philox compare their distributions.
func randomCases() map[string][]optest.Case {
	return map[string][]optest.Case{
		"random_uniform": {{Args: args{list(3, 4)}, Attrs: attr("low", -1.5, "dtype", f64, "seed", 1.0)}, {Args: args{list(5000)}, Attrs: attr("dtype", f16, "seed", 2.0)}, {Args: args{list()}, Attrs: attr("seed", -0.5)}},
		"random_normal":  {{Args: args{list(3, 5)}, Attrs: attr("mean", 2.5, "scale", 0.5, "seed", 3.0)}, {Args: args{list(0, 3)}, Attrs: attr("seed", 4.0)}},
	}
}
