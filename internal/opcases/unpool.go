package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(unpoolCases)

func unpoolCases() map[string][]optest.Case {
	window := attr("kernel_shape", ints(2, 2), "strides", ints(2, 2))
	places := optest.Of([]int64{5, 7, 13, 15}, 1, 1, 2, 2)
	return map[string][]optest.Case{
		"max_unpool": {
			{Args: args{num(f32, 1, 1, 2, 2), places}, Attrs: window}, {Args: args{num(f16, 1, 1, 2, 2), places, list(1, 1, 5, 6)}, Attrs: window},
			{Args: args{num(f64, 1, 1, 2, 2), places}, Attrs: window},
		},
		"col2im": {
			{Args: args{num(f32, 2, 12, 12), list(4, 5), list(2, 2)}}, {Args: args{num(i8, 1, 4, 4), list(5, 5), list(2, 2)}, Attrs: attr("dilations", ints(2, 2), "strides", ints(2, 2))},
			{Args: args{num(f16, 1, 8, 2), list(1, 2, 3), list(1, 2, 2)}}, {Args: args{num(f32, 40, 4, 1600), list(41, 41), list(2, 2)}},
		},
		"det":              {{Args: args{num(f32, 2, 3, 3)}}, {Args: args{num(f64, 4, 4)}}, {Args: args{num(f16, 3, 1, 2, 2)}}, {Args: args{num(f32, 2000, 5, 5)}}},
		"inverse":          {{Args: args{num(f32, 2, 3, 3)}}, {Args: args{num(f64, 4, 4)}}, {Args: args{num(f16, 3, 1, 2, 2)}}, {Args: args{num(f32, 2000, 5, 5)}}},
		"reverse_sequence": {{Args: args{num(i32, 4, 3, 2), list(0, 2, 4)}}, {Args: args{num(boo, 2, 5), list(5, 3)}, Attrs: attr("batch_axis", 0, "time_axis", 1)}, {Args: args{num(f16, 3, 2, large), list(3, 2)}}},
		"cum_prod": {
			cumCase[float32](true, num(f32, 3, 4), 1), cumCase[int32](true, num(i32, 3, 4), -2, "exclusive", 1, "reverse", 1), {Args: args{num(f16, 3, 4), one(0)}},
		},
		"compress": {
			{Args: args{num(f32, 3, 2), optest.Of([]bool{false, true, true}, 3)}, Attrs: attr("axis", 0)}, {Args: args{num(f16, 3, 2), optest.Of([]bool{true, false}, 2)}, Attrs: attr("axis", -1)},
			{Args: args{num(i64, 3, 2), optest.Of([]bool{true, false, true, true}, 4)}}, {Args: args{num(boo, 3), optest.Of([]bool{}, 0)}},
		},
		"unique": {
			{Args: args{num(i8, 40)}, Results: 4}, {Args: args{num(i32, 9, 2)}, Attrs: attr("axis", 0, "sorted", 0), Results: 4}, {Args: args{num(f16, 2, 3, 2)}, Attrs: attr("axis", 1)},
			{Args: args{num(boo, 5)}, Results: 2}, {Args: args{num(f64, 0)}, Results: 4}, {Args: args{num(u8, large)}, Results: 4},
		},
		"non_max_suppression": {
			{Args: args{num(f32, 2, 9, 4), num(f32, 2, 3, 9), one(4), optest.Of([]float32{0.1}), optest.Of([]float32{-1}, 1)}}, {Args: args{num(f32, 1, 9, 4), num(f32, 1, 1, 9)}},
			{Args: args{num(f32, 1, 30, 4), num(f32, 1, 1, 30), one(1 << 60), optest.Of([]float32{0.5}, 1)}, Attrs: attr("center_point_box", 1)}, {Args: args{num(f32, 1, 0, 4), num(f32, 1, 2, 0), one(3)}},
		},
		"non_zero": {{Args: args{optest.Of([]float32{0, 1, 0, -2}, 2, 2)}}, {Args: args{num(boo, 3, 4, 5)}}, {Args: args{optest.Of([]int8{5})}}, {Args: args{num(i64, large)}}},
		"affine_grid": {
			{Args: args{num(f32, 2, 2, 3), list(2, 3, 4, 5)}}, {Args: args{num(f16, 1, 3, 4), list(1, 3, 2, 4, 5)}, Attrs: attr("align_corners", 1)},
			{Args: args{num(f64, 1, 2, 3), list(1, 3, 90, 101)}},
		},
	}
}
