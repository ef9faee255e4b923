package optest_test

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op/optest"
)

// activationSamples are those that elementwiseSamples does not make from the
// table.
func activationSamples() map[string][]optest.Case {
	out := map[string][]optest.Case{
		"prelu":       {{Args: args{num(f32, 3, 4), num(f32, 4)}}, {Args: args{num(f16, 3, 4), num(f16, 3, 1)}}, {Args: args{num(f32, large), num(f32, large)}}, {Args: args{num(i64, 5), num(i64, 5)}}},
		"is_nan":      {{Args: args{num(f32, large)}}, {Args: args{num(f64, 3)}}, {Args: args{num(f16, 3)}}},
		"is_inf":      {{Args: args{num(f32, large)}}, {Args: args{num(f64, 3)}, Attrs: attr("detect_negative", 0)}, {Args: args{num(f16, 3)}}},
		"bitwise_not": {{Args: args{num(i8, large)}}, {Args: args{num(i64, 3)}}},
		"bit_shift":   {{Args: args{num(u8, 3, 4), num(u8, 4)}, Attrs: attr("direction", "LEFT")}, {Args: args{num(u8, 9), num(u8, 9)}, Attrs: attr("direction", "RIGHT")}},
		"shrink":      {{Args: args{num(i8, 9)}}},
	}
	for _, name := range []string{"bitwise_and", "bitwise_or", "bitwise_xor"} {
		out[name] = binarySamples(i8, i32, i64, u8)
	}
	return out
}

func quantizeSamples() map[string][]optest.Case {
	k := func(v float32) optest.Operand { return optest.Of([]float32{v}) }
	conv := args{num(u8, 1, 4, 6, 5), k(0.5), optest.Of([]uint8{3}), num(i8, 6, 2, 3, 3), num(f32, 6), num(i8, 6), k(2), optest.Of([]int8{-1}), num(i32, 6)}
	grouped := attr("group", 2, "pads", ints(1, 0, 1, 1), "strides", ints(2, 1))
	return map[string][]optest.Case{
		"quantize_linear": {
			{Args: args{num(f32, 3, 5), k(0.25), optest.Of([]uint8{7})}}, {Args: args{num(f32, large), k(0.5)}}, {Args: args{num(f16, 3, 5), num(f16, 5), num(i8, 5)}},
			{Args: args{num(f32, 3, 5), scales(1, 2, 3)}, Attrs: attr("axis", 0, "output_dtype", dtype.I4)}, {Args: args{num(f32, 2, 5), num(f32, 2, 3)}, Attrs: attr("block_size", 2, "output_dtype", i8)},
			{Args: args{num(i32, 9), k(3)}}, {Args: args{num(f32, 4, 0), k(3)}}, {Args: args{num(f32, 300), k(3)}, Attrs: attr("output_dtype", dtype.F8E4M3FN)},
		},
		"dequantize_linear": {
			{Args: args{num(u8, 3, 5), k(0.25), optest.Of([]uint8{7})}}, {Args: args{num(i8, large), k(0.5)}}, {Args: args{num(i32, 3, 5), num(f16, 5)}},
			{Args: args{num(i8, 2, 5), num(f32, 2, 3)}, Attrs: attr("block_size", 2, "output_dtype", dtype.BF16)}, {Args: args{num(u8, 0), k(3)}},
		},
		"dynamic_quantize_linear": {{Args: args{num(f32, 3, 5)}, Results: 3}, {Args: args{num(f32, large)}, Results: 3}, {Args: args{num(f32, 0)}, Results: 3}},
		"matmul_integer": {
			{Args: args{num(u8, 3, 4), num(i8, 4, 5), optest.Of([]uint8{3}), num(i8, 5)}}, {Args: args{num(i8, 2, 3, 4), num(i8, 4, 5), num(i8, 3)}}, {Args: args{num(u8, 4), num(u8, 4)}}, {Args: args{num(u8, 130, 65), num(u8, 65, 140)}},
		},
		"qlinear_matmul": {
			{Args: args{num(u8, 3, 4), num(f32, 3), num(u8, 3), num(i8, 4, 5), k(0.1), optest.Of([]int8{1}), k(0.5), optest.Of([]uint8{9})}},
			{Args: args{num(i8, 70, 64), k(0.1), optest.Of([]int8{0}), num(u8, 2, 64, 50), k(0.1), optest.Of([]uint8{4}), k(0.5), optest.Of([]int8{9})}},
		},
		"conv_integer": {{Args: args{num(u8, 2, 3, 9), num(i8, 4, 3, 2)}}, {Args: args{conv[0], conv[3], conv[2], conv[5]}, Attrs: grouped}, {Args: args{num(u8, 1, 8, 30, 30), num(u8, 8, 8, 3, 3)}}},
		"qlinear_conv": {{Args: conv, Attrs: grouped}, {Args: conv[:8], Attrs: grouped}},
	}
}

func attentionSamples() map[string][]optest.Case {
	q, k, v := num(f32, 2, 4, 3, 8), num(f32, 2, 2, 5, 8), num(f32, 2, 2, 5, 6)
	past := args{q, k, v, num(f32, 3, 9), num(f32, 2, 2, 4, 8), num(f32, 2, 2, 4, 6)}
	packed := attr("q_num_heads", 4, "kv_num_heads", 2)
	return map[string][]optest.Case{
		"attention": {
			{Args: args{q, k, v}}, {Args: past, Results: 4, Attrs: attr("qk_matmul_output_mode", 3)}, {Args: args{q, k, v, num(boo, 2, 1, 3, 5)}, Attrs: attr("is_causal", 1, "softcap", 2.0)},
			{Args: args{num(f32, 2, 3, 32), num(f32, 2, 5, 16), num(f32, 2, 5, 12)}, Attrs: packed, Results: 3}, {Args: args{q, k, v, absent, absent, absent, list(5, 2)}, Attrs: attr("is_causal", 1, "left_window_size", 2)},
			{Args: args{num(f16, 1, 2, 3, 8), num(f16, 1, 2, 5, 8), num(f16, 1, 2, 5, 8)}}, {Args: args{num(f32, 1, 4, 60, 32), num(f32, 1, 4, 61, 32), num(f32, 1, 4, 61, 32)}}, {Args: args{num(f64, 1, 1, 2, 3), num(f64, 1, 1, 0, 3), num(f64, 1, 1, 0, 3)}},
		},
		"rotary_embedding": {
			{Args: args{num(f32, 2, 4, 3, 8), num(f32, 9, 4), num(f32, 9, 4), optest.Of([]int64{0, 8, 3, 1, 1, 2}, 2, 3)}}, {Args: args{num(f32, 2, 3, 32), num(f32, 2, 3, 2), num(f32, 2, 3, 2)}, Attrs: attr("num_heads", 4, "rotary_embedding_dim", 4)},
			{Args: args{num(f16, 2, 4, 3, 8), num(f16, 2, 3, 4), num(f16, 2, 3, 4)}, Attrs: attr("interleaved", 1)}, {Args: args{num(f32, 2, 8, 70, 64), num(f32, 2, 70, 32), num(f32, 2, 70, 32)}},
		},
		"rms_normalization": {{Args: args{num(f32, 3, 4, 5), num(f32, 5)}}, {Args: args{num(f16, 3, 4, 5), num(f16, 4, 1)}, Attrs: attr("axis", 1)}, {Args: args{num(f32, 90, 801), num(f32, 801)}}},
	}
}

func recurrentSamples() map[string][]optest.Case {
	out := map[string][]optest.Case{}
	for name, gates := range map[string]int{"rnn": 1, "gru": 3, "lstm": 4} {
		x, lengths := num(f32, 4, 3, 5), optest.Of([]int32{4, 0, 2}, 3)
		all := args{x, num(f32, 2, gates*6, 5), num(f32, 2, gates*6, 6), num(f32, 2, 2*gates*6), lengths, num(f32, 2, 3, 6)}
		results := 2
		if name == "lstm" {
			all, results = append(all, num(f32, 2, 3, 6), num(f32, 2, 18)), 3
		}
		out[name] = []optest.Case{
			{Args: args{x, num(f32, 1, gates*6, 5), num(f32, 1, gates*6, 6)}, Results: results},
			{Args: all, Results: results, Attrs: attr("direction", "bidirectional", "clip", 2.0)},
			{Args: args{num(f16, 3, 4, 5), num(f16, 1, gates*6, 5), num(f16, 1, gates*6, 6)}, Attrs: attr("layout", 1, "direction", "reverse"), Results: results},
			{Args: args{num(f64, 0, 3, 5), num(f64, 1, gates*6, 5), num(f64, 1, gates*6, 6)}, Results: results},
		}
	}
	out["rnn"] = append(out["rnn"], optest.Case{Args: args{num(f32, 4, 3, 5), num(f32, 1, 6, 5), num(f32, 1, 6, 6)},
		Attrs: attr("activations", []string{"HardSigmoid"}, "activation_alpha", []float64{0.5}, "activation_beta", []float64{0.25})})
	return out
}

func selectionSamples() map[string][]optest.Case {
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

func gridSamples() map[string][]optest.Case {
	return map[string][]optest.Case{"grid_sample": {
		{Args: args{num(f32, 2, 3, 4, 5), num(f32, 2, 6, 7, 2)}, Attrs: attr("padding_mode", "reflection")}, {Args: args{num(f32, 1, 2, 3, 4, 5), num(f32, 1, 2, 2, 2, 3)}, Attrs: attr("mode", "cubic", "padding_mode", "border")},
		{Args: args{num(f16, 1, 2, 9), num(f16, 1, 4, 1)}, Attrs: attr("mode", "nearest")}, {Args: args{num(f64, 1, 2, 9), num(f64, 1, 0, 1)}}, {Args: args{num(f32, 1, 8, 9, 9), num(f32, 1, 60, 61, 2)}},
	}}
}
