package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(otherCases)

func otherCases() map[string][]optest.Case {
	return map[string][]optest.Case{
		"constant":          {{Attrs: attrs{{Name: "floats", Value: []float64{1, 2}}, {Name: "dims", Value: ints(2)}}}, {Attrs: attr("ints", ints(7), "dtype", i64, "dims", ints(3, 4))}},
		"constant_of_shape": {{Args: args{list(3, 4)}, Attrs: attr("value", 1.5)}, {Args: args{list(large)}, Attrs: attr("ints", ints(1), "dtype", boo)}, {Args: args{list()}}},
		"range":             {{Args: args{one(3), one(20), one(4)}}, {Args: args{optest.Of([]float32{1}), optest.Of([]float32{-1}), optest.Of([]float32{-0.3})}}},
		"resize": {
			{Args: args{num(f32, 1, 2, 4, 5), absent, scales(1, 1, 2, 0.6)}}, {Args: args{num(f32, 1, 2, 4, 5), absent, absent, list(1, 2, 7, 9)}, Attrs: attr("mode", "linear")},
			{Args: args{num(f32, 1, 2, 4, 5), absent, absent, list(7, 9)}, Attrs: attrs{{Name: "axes", Value: ints(2, 3)}, {Name: "mode", Value: "linear"}, {Name: "coordinate_transformation_mode", Value: "align_corners"}}},
		},
	}
}
