package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(activationCases)

// activationCases are those that elementwiseCases does not make from the
// table.
func activationCases() map[string][]optest.Case {
	out := map[string][]optest.Case{
		"prelu":       {{Args: args{num(f32, 3, 4), num(f32, 4)}}, {Args: args{num(f16, 3, 4), num(f16, 3, 1)}}, {Args: args{num(f32, large), num(f32, large)}}, {Args: args{num(i64, 5), num(i64, 5)}}},
		"is_nan":      {{Args: args{num(f32, large)}}, {Args: args{num(f64, 3)}}, {Args: args{num(f16, 3)}}},
		"is_inf":      {{Args: args{num(f32, large)}}, {Args: args{num(f64, 3)}, Attrs: attr("detect_negative", 0)}, {Args: args{num(f16, 3)}}},
		"bitwise_not": {{Args: args{num(i8, large)}}, {Args: args{num(i64, 3)}}},
		"bit_shift":   {{Args: args{num(u8, 3, 4), num(u8, 4)}, Attrs: attr("direction", "LEFT")}, {Args: args{num(u8, 9), num(u8, 9)}, Attrs: attr("direction", "RIGHT")}},
		"shrink":      {{Args: args{num(i8, 9)}}},
	}
	for _, name := range []string{"bitwise_and", "bitwise_or", "bitwise_xor"} {
		out[name] = binaryCases(i8, i32, i64, u8)
	}
	return out
}
