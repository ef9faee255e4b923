package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(roiCases)

func roiCases() map[string][]optest.Case {
	boxes := optest.Of([]float32{0, 0, 5, 5, 1, 2, 3, 8}, 2, 4)
	heads := []any{"q_num_heads", 4, "kv_num_heads", 2}
	rule := func(name string) attrs { return attr(append([]any{"update_rule", name}, heads...)...) }
	return map[string][]optest.Case{
		"roi_align": {
			{Args: args{num(f32, 2, 3, 9, 8), boxes, list(1, 0)}, Attrs: attr("output_height", 2, "output_width", 3)},
			{Args: args{num(f32, 2, 3, 9, 8), boxes, list(1, 0)}, Attrs: attr("mode", "max", "sampling_ratio", 2, "coordinate_transformation_mode", "output_half_pixel")},
			{Args: args{num(f16, 1, 1, 4, 4), num(f16, 3, 4), list(0, 0, 0)}}, {Args: args{num(f64, 1, 1, 4, 4), num(f64, 0, 4), list()}},
		},
		"max_roi_pool": {
			{Args: args{num(f32, 2, 3, 9, 8), optest.Of([]float32{0, 0, 0, 5, 5, 1, 1, 2, 3, 8}, 2, 5)}, Attrs: attr("pooled_shape", ints(2, 3))},
			{Args: args{num(f64, 1, 1, 4, 4), optest.Of([]float64{0, 1, 1, 3, 2}, 1, 5)}, Attrs: attr("pooled_shape", ints(1, 1), "spatial_scale", 0.5)},
		},
		"deform_conv": {
			{Args: args{num(f32, 2, 4, 5, 6), num(f32, 6, 2, 2, 2), num(f32, 2, 16, 4, 5)}, Attrs: attr("group", 2, "offset_group", 2)},
			{Args: args{num(f16, 1, 2, 5), num(f16, 3, 2, 3), num(f16, 1, 3, 5), num(f16, 3), num(f16, 1, 3, 5)}, Attrs: attr("pads", ints(1, 1))},
			{Args: args{num(f64, 1, 1, 3, 3, 3), num(f64, 1, 1, 2, 2, 2), num(f64, 1, 24, 2, 2, 2)}}, {Args: args{num(f32, 1, 8, 40, 40), num(f32, 4, 8, 3, 3), num(f32, 1, 18, 38, 38)}},
		},
		"linear_attention": {
			{Args: args{num(f32, 2, 3, 16), num(f32, 2, 3, 8), num(f32, 2, 3, 10)}, Attrs: rule("linear"), Results: 2},
			{Args: args{num(f32, 2, 3, 16), num(f32, 2, 3, 8), num(f32, 2, 3, 10), num(f32, 2, 2, 4, 5), num(f32, 2, 3, 8)}, Attrs: rule("gated"), Results: 2},
			{Args: args{num(f16, 2, 3, 16), num(f16, 2, 3, 8), num(f16, 2, 3, 10), num(f32, 2, 2, 4, 5), absent, num(f16, 2, 3, 1)}, Attrs: rule("delta"), Results: 2},
			{Args: args{num(f64, 2, 3, 16), num(f64, 2, 3, 8), num(f64, 2, 3, 10), absent, num(f64, 2, 3, 2), num(f64, 2, 3, 2)}, Attrs: rule("gated_delta")},
			{Args: args{num(f32, 1, 0, 16), num(f32, 1, 0, 8), num(f32, 1, 0, 10), num(f32, 1, 2, 4, 5)}, Attrs: rule("linear"), Results: 2},
		},
	}
}
