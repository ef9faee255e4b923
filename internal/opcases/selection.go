package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(selectionCases)

func selectionCases() map[string][]optest.Case {
	targets := optest.Of([]int64{4, 0, 3, 1, 2, 2}, 3, 2)
	return map[string][]optest.Case{
		"nll_loss": {
			{Args: args{num(f32, 3, 5, 2), targets}}, {Args: args{num(f32, 3, 5, 2), targets, num(f32, 5)}, Attrs: attr("reduction", "none", "ignore_index", 3)},
			{Args: args{num(f16, 3, 5), optest.Of([]int32{0, 1, 4}, 3)}, Attrs: attr("reduction", "sum")},
		},
		"top_k": {
			{Args: args{num(f32, 3, 5), list(2)}, Results: 2}, {Args: args{num(i8, 3, 5, 2), list(3)}, Attrs: attr("axis", 1, "largest", 0), Results: 2},
			{Args: args{num(f16, 4), list(4)}, Results: 2}, {Args: args{num(f32, 60, 1000), list(5)}, Results: 2}, {Args: args{num(f32, 0, 3), list(0)}, Results: 2},
		},
		"bit_cast": {{Args: args{num(f32, 3, 5)}, Attrs: attr("to", i32)}, {Args: args{num(boo, 3)}, Attrs: attr("to", u8)}},
		"hardmax":  {{Args: args{num(f32, 3, 5)}}, {Args: args{num(f16, 3, 5, 2)}, Attrs: attr("axis", 1)}, {Args: args{num(f32, 300, 301)}}},
	}
}
