package opcases

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(attentionCases)

func attentionCases() map[string][]optest.Case {
	q, k, v := num(f32, 2, 4, 3, 8), num(f32, 2, 2, 5, 8), num(f32, 2, 2, 5, 6)
	past := args{q, k, v, num(f32, 3, 9), num(f32, 2, 2, 4, 8), num(f32, 2, 2, 4, 6)}
	packed := attr("q_num_heads", 4, "kv_num_heads", 2)
	return map[string][]optest.Case{
		"attention": {
			{Args: args{q, k, v}}, {Args: past, Results: 4, Attrs: attr("qk_matmul_output_mode", 3)}, {Args: args{q, k, v, num(boo, 2, 1, 3, 5)}, Attrs: attr("is_causal", 1, "softcap", 2.0)},
			{Args: args{num(f32, 2, 3, 32), num(f32, 2, 5, 16), num(f32, 2, 5, 12)}, Attrs: packed, Results: 3}, {Args: args{q, k, v, absent, absent, absent, list(5, 2)}, Attrs: attr("is_causal", 1, "left_window_size", 2)},
			{Args: args{num(f16, 1, 2, 3, 8), num(f16, 1, 2, 5, 8), num(f16, 1, 2, 5, 8)}}, {Args: args{num(f32, 1, 4, 60, 32), num(f32, 1, 4, 61, 32), num(f32, 1, 4, 61, 32)}}, {Args: args{num(f64, 1, 1, 2, 3), num(f64, 1, 1, 0, 3), num(f64, 1, 1, 0, 3)}},
		},
		"fused_attention": {
			{Args: args{num(f32, 3, 8), num(f32, 5, 8), num(f32, 5, 6)}, Attrs: attr("scale", 0.5)},
			{Args: args{q, k, v, num(f32, 3, 5)}}, {Args: args{q, k, v, num(f32, 2, 1, 1, 5), num(boo, 1, 4, 3, 1)}, Attrs: attr("fill", -1.5, "mask_after", 1, "mask_hides", 1)},
			{Args: args{num(f32, 2, 3, 4, 8), num(f32, 2, 5, 2, 8), num(f32, 5, 2, 2, 6), absent, num(boo, 3, 5)}, Attrs: attr("q_perm", ints(0, 2, 1, 3), "k_perm", ints(0, 2, 1, 3), "v_perm", ints(1, 2, 0, 3), "y_perm", ints(0, 2, 1, 3), "fill", -1e9)},
			{Args: args{num(f32, 1, 3, 2, 30, 20), num(f32, 4, 1, 2, 20, 70), num(f32, 4, 3, 2, 70, 40)}, Attrs: attr("k_perm", ints(0, 1, 2, 4, 3), "nan_to_zero", 1)},
			{Args: args{num(f32, 2, 70, 24), num(f32, 2, 1100, 24), num(f32, 2, 1100, 33), num(f32, 70, 1)}}, {Args: args{num(f32, 2, 3, 8), num(f32, 2, 0, 8), num(f32, 2, 0, 4)}},
			{Args: args{num(f16, 2, 4, 3, 8), num(f16, 2, 2, 5, 8), num(f16, 2, 2, 5, 6), num(f16, 4, 3, 5), num(boo, 5), num(f32, 3, 1)}, Attrs: attr("softcap", 2.0, "mask_after", 2)},
			{Args: args{num(dtype.BF16, 1, 70, 24), num(dtype.BF16, 1, 24, 1100), num(dtype.BF16, 1, 1100, 33)}, Attrs: attr("k_perm", ints(0, 2, 1))},
			{Args: args{num(f64, 2, 3, 8), num(f64, 2, 5, 8), num(f64, 2, 5, 4), num(f64, 3, 5), num(boo, 3, 1), num(f64, 5)}, Attrs: attr("softcap", 0.5, "nan_to_zero", 1)},
			{Args: args{num(f32, 6, 2, 7, 4), num(f32, 6, 2, 7, 4), num(f32, 6, 2, 7, 4), num(f32, 1, 2, 7, 7), absent, num(f32, 1, 3, 1, 7, 7)}},
			{Args: args{num(f32, 6, 7, 4), num(f32, 6, 7, 4), num(f32, 6, 7, 4), num(f32, 6, 1, 7), num(boo, 2, 1, 1, 7), num(f32, 1, 3, 7, 7)}},
		},
		"rotary_embedding": {
			{Args: args{num(f32, 2, 4, 3, 8), num(f32, 9, 4), num(f32, 9, 4), optest.Of([]int64{0, 8, 3, 1, 1, 2}, 2, 3)}}, {Args: args{num(f32, 2, 3, 32), num(f32, 2, 3, 2), num(f32, 2, 3, 2)}, Attrs: attr("num_heads", 4, "rotary_embedding_dim", 4)},
			{Args: args{num(f16, 2, 4, 3, 8), num(f16, 2, 3, 4), num(f16, 2, 3, 4)}, Attrs: attr("interleaved", 1)}, {Args: args{num(f32, 2, 8, 70, 64), num(f32, 2, 70, 32), num(f32, 2, 70, 32)}},
		},
		"rms_normalization": {{Args: args{num(f32, 3, 4, 5), num(f32, 5)}}, {Args: args{num(f16, 3, 4, 5), num(f16, 4, 1)}, Attrs: attr("axis", 1)}, {Args: args{num(f32, 90, 801), num(f32, 801)}}},
	}
}
