package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(gridCases)

func gridCases() map[string][]optest.Case {
	return map[string][]optest.Case{"grid_sample": {
		{Args: args{num(f32, 2, 3, 4, 5), num(f32, 2, 6, 7, 2)}, Attrs: attr("padding_mode", "reflection")}, {Args: args{num(f32, 1, 2, 3, 4, 5), num(f32, 1, 2, 2, 2, 3)}, Attrs: attr("mode", "cubic", "padding_mode", "border")},
		{Args: args{num(f16, 1, 2, 9), num(f16, 1, 4, 1)}, Attrs: attr("mode", "nearest")}, {Args: args{num(f64, 1, 2, 9), num(f64, 1, 0, 1)}}, {Args: args{num(f32, 1, 8, 9, 9), num(f32, 1, 60, 61, 2)}},
	}}
}
