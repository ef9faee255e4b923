package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(reductionCases)

func reductionCases() map[string][]optest.Case {
	out := map[string][]optest.Case{
		"arg_max": {{Args: args{num(f32, 3, 4)}}, {Args: args{num(i8, 3, 4)}, Attrs: attr("axis", -1, "keepdims", 0, "select_last_index", 1)}, {Args: args{num(f64, 7, 2, 3)}, Attrs: attr("axis", 1)}},
	}
	out["arg_min"] = out["arg_max"]
	for _, name := range []string{"sum", "mean", "max", "min", "prod", "l1", "l2", "sum_square", "log_sum", "log_sum_exp"} {
		for _, dt := range floats {
			out["reduce_"+name] = append(out["reduce_"+name],
				optest.Case{Args: args{num(dt, 3, 4, 5), list(1)}},
				optest.Case{Args: args{num(dt, 3, 4, 5)}, Attrs: attr("keepdims", 0)},
			)
		}
		out["reduce_"+name] = append(out["reduce_"+name],
			optest.Case{Args: args{num(f32, 3, 4), list()}, Attrs: attr("noop_with_empty_axes", 1)},
			optest.Case{Args: args{num(f32, 200, 401), list(-1)}}, optest.Case{Args: args{num(f32, 200, 401), list(0)}}, optest.Case{Args: args{num(f32, large)}},
		)
	}
	return out
}
