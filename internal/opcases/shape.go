package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(shapeCases)

func shapeCases() map[string][]optest.Case {
	return map[string][]optest.Case{
		"identity":  {{Args: args{num(f32, 3, 4)}}, {Args: args{num(boo)}}},
		"copy":      {{Args: args{num(f32, 3, 4)}}, {Args: args{num(i8, large)}}, {Args: args{num(f64, 0)}}},
		"reshape":   {{Args: args{num(f32, 3, 4), list(2, -1)}}, {Args: args{num(f16, 3, 4), list(0, 2, 2)}}, {Args: args{num(f32, 0, 4), list(4, 0)}, Attrs: attr("allowzero", 1)}},
		"squeeze":   {{Args: args{num(f32, 1, 3, 1)}}, {Args: args{num(i64, 1, 3, 1), list(-1)}}},
		"unsqueeze": {{Args: args{num(f32, 3), list(0, 2)}}},
		"flatten":   {{Args: args{num(f32, 2, 3, 4)}}, {Args: args{num(f32, 2, 3, 4)}, Attrs: attr("axis", -1)}},
		"shape":     {{Args: args{num(f32, 2, 3, 4)}}, {Args: args{num(f32, 2, 3, 4)}, Attrs: attr("start", -2, "end", -1)}},
		"size":      {{Args: args{num(f32, 2, 3)}}, {Args: args{num(f32, 0)}}},
	}
}
