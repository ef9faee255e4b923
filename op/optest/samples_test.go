package optest_test

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op/optest"
)

func shapeSamples() map[string][]optest.Case {
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

func movementSamples() map[string][]optest.Case {
	return map[string][]optest.Case{
		"transpose": {
			{Args: args{num(f32, 2, 3, 4)}}, {Args: args{num(f16, 2, 3, 4)}, Attrs: attr("perm", ints(0, 2, 1))},
			{Args: args{num(f64, 1, 3, 1, 4)}, Attrs: attr("perm", ints(1, 0, 3, 2))}, {Args: args{num(i8, 257, 263)}}, {Args: args{num(f32, 0, 3)}}, {Args: args{num(f32, 5, 5)}},
		},
		"concat": {
			{Args: args{num(f32, 2, 3), num(f32, 2, 4)}, Attrs: attr("axis", 1)}, {Args: args{num(i64, 1), num(i64, 2), num(i64, 1)}, Attrs: attr("axis", 0)},
			{Args: args{num(f32, 2, 0, 4), num(f32, 2, 3, 4)}, Attrs: attr("axis", 1)}, {Args: args{num(f32, 2, 3), num(f32, 0, 3)}, Attrs: attr("axis", 0)},
			{Args: args{num(u8, 3, 30_000), num(u8, 3, 40_001)}, Attrs: attr("axis", -1)}, {Args: args{num(f16, 5)}, Attrs: attr("axis", 0)},
		},
		"split": {
			{Args: args{num(f32, 7, 2)}, Results: 3}, {Args: args{num(f32, 3, 6)}, Attrs: attr("axis", 1), Results: 2},
			{Args: args{num(f64, 1, 5, 2), list(2, 0, 3)}, Attrs: attr("axis", 1), Results: 3}, {Args: args{num(i8, 0, 3)}, Results: 2},
		},
		"slice": {
			{Args: args{num(f32, 5, 4), list(1), list(3)}}, {Args: args{num(f32, 5, 4), list(1), list(3), list(1)}},
			{Args: args{num(f16, 5, 4), list(-1, 3), list(-9, 0), list(0, 1), list(-2, -1)}}, {Args: args{num(i64, 2, 3, 4), list(1, 1), list(2, 3)}},
			{Args: args{num(f32, 5), list(3), list(1)}}, {Args: args{num(f32, 300, 301), list(1), list(300), list(1)}},
		},
		"expand":         {{Args: args{num(f32, 3, 1), list(2, 1, 6)}}, {Args: args{num(f32, 3, 4), list(1, 1, 1)}}, {Args: args{num(boo), list(large)}}, {Args: args{num(f32, 1), list(0)}}},
		"tile":           {{Args: args{num(f32, 2, 3), list(2, 3)}}, {Args: args{num(f32, 2, 3), list(1, 1)}}, {Args: args{num(i64, 2, 3), list(0, 1)}}},
		"depth_to_space": {{Args: args{num(f32, 1, 8, 2, 3)}, Attrs: attr("blocksize", 2)}, {Args: args{num(f16, 2, 8, 2, 3)}, Attrs: attr("blocksize", 2, "mode", "CRD")}},
		"space_to_depth": {{Args: args{num(f32, 1, 2, 4, 6)}, Attrs: attr("blocksize", 2)}, {Args: args{num(i8, 1, 2, 4, 6)}, Attrs: attr("blocksize", 2, "mode", "CRD")}},
		"pad": {
			{Args: args{num(f32, 2, 3), list(0, 1, 0, 2)}}, {Args: args{num(f32, 2, 3), list(0, 0, 0, 0)}}, {Args: args{num(f32, 2, 3), list(0, -1, 1, 1), optest.Of([]float32{7})}},
			{Args: args{num(i32, 4), list(3, 2)}, Attrs: attr("mode", "reflect")}, {Args: args{num(f64, 4), list(5, 6)}, Attrs: attr("mode", "wrap")},
			{Args: args{num(f32, 3, 4), list(1, 2), absent, list(-1)}, Attrs: attr("mode", "edge")},
		},
	}
}

func indexingSamples() map[string][]optest.Case {
	return map[string][]optest.Case{
		"gather":          {{Args: args{num(f32, 5, 4), optest.Of([]int64{4, -5, 2, 2, 0, 1}, 2, 3)}}, {Args: args{num(i8, 5, 4), optest.Of([]int32{-1})}, Attrs: attr("axis", 1)}, {Args: args{num(f32, 3), optest.Of([]int64{}, 0)}}, {Args: args{num(f32, 4), list(3, 2, 1, 0)}}},
		"gather_elements": {{Args: args{num(f32, 3, 4), optest.Of([]int64{0, 3, -1, 2, 1, 0}, 2, 3)}, Attrs: attr("axis", 1)}},
		"gather_nd":       {{Args: args{num(f32, 2, 3, 4), optest.Of([]int64{0, 1, 1, -1}, 2, 2)}}, {Args: args{num(i64, 2, 3, 4), optest.Of([]int64{2, 0}, 2, 1)}, Attrs: attr("batch_dims", 1)}},
		"scatter_nd": {
			{Args: args{num(f32, 4, 5), optest.Of([]int64{2, 0}, 2, 1), num(f32, 2, 5)}}, {Args: args{num(f32, 4, 5), optest.Of([]int64{2, 2, -1, 0}, 2, 2), num(f32, 2)}, Attrs: attr("reduction", "add")},
			{Args: args{num(i32, 4), optest.Of([]int64{1, 1, 3}, 3, 1), num(i32, 3)}, Attrs: attr("reduction", "max")},
		},
		"scatter_elements": {
			{Args: args{num(f32, 3, 4), optest.Of([]int64{0, 3, -2, 1}, 1, 4), num(f32, 1, 4)}, Attrs: attr("axis", 1)}, {Args: args{num(i64, 3, 4), optest.Of([]int64{2, 0, 1, 1}, 1, 4), num(i64, 1, 4)}, Attrs: attr("reduction", "mul")},
		},
		"tensor_scatter": {
			{Args: args{num(f32, 2, 3, 8, 4), num(f32, 2, 3, 2, 4), list(5, 0)}}, {Args: args{num(f16, 2, 8, 3), num(f16, 2, 3, 3), list(6, 7)}, Attrs: attr("mode", "circular")}, {Args: args{num(i8, 2, 8, 3), num(i8, 2, 3, 3)}},
		},
		"trilu":   {{Args: args{num(f32, 4, 5)}}, {Args: args{num(boo, 2, 3, 4), one(-1)}, Attrs: attr("upper", 0)}, {Args: args{num(i64, 3, 3), one(1)}}},
		"cum_sum": {{Args: args{num(f32, 3, 4), one(1)}}, {Args: args{num(i32, 3, 4), one(-2)}, Attrs: attr("exclusive", 1, "reverse", 1)}},
		"one_hot": {
			{Args: args{optest.Of([]int64{0, 3, -1, 9}, 2, 2), one(4), num(f32, 2)}}, {Args: args{optest.Of([]int32{1, 2}, 2), optest.Of([]float32{3}, 1), optest.Of([]bool{false, true}, 2)}, Attrs: attr("axis", 0)},
		},
	}
}

func reductionSamples() map[string][]optest.Case {
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

func normalizationSamples() map[string][]optest.Case {
	out := map[string][]optest.Case{}
	for _, dt := range []dtype.DType{f32, f64, f16} {
		rows := 3
		if dt == f32 {
			rows = 90 // enough for several tiles
		}
		for name, cases := range map[string][]optest.Case{
			"softmax":                {{Args: args{num(dt, 3, 5)}}, {Args: args{num(dt, 3, 5, 2)}, Attrs: attr("axis", 1)}, {Args: args{num(dt, rows, 801)}}, {Args: args{num(dt, rows, 801)}, Attrs: attr("axis", 0)}},
			"log_softmax":            {{Args: args{num(dt, 3, 5)}}, {Args: args{num(dt, 3, 5, 2)}, Attrs: attr("axis", 0)}, {Args: args{num(dt, rows, 801)}}},
			"layer_normalization":    {{Args: args{num(dt, 3, 4, 5), num(dt, 5), num(dt, 5)}}, {Args: args{num(dt, 3, 4, 5), num(dt, 4, 5)}, Attrs: attr("axis", 1), Results: 3}, {Args: args{num(dt, rows, 801), num(dt, 801), num(dt, 1)}}},
			"batch_normalization":    {{Args: args{num(dt, 2, 3, 4, 5), num(dt, 3), num(dt, 3), num(dt, 3), positive(dt, 3)}}, {Args: args{num(dt, 2, 3, 120, 121), num(dt, 3), num(dt, 3), num(dt, 3), positive(dt, 3)}}},
			"instance_normalization": {{Args: args{num(dt, 2, 3, 4, 5), num(dt, 3), num(dt, 3)}}, {Args: args{num(dt, 1, 3, 160, 161), num(dt, 3), num(dt, 3)}}},
			"group_normalization":    {{Args: args{num(dt, 2, 6, 5), num(dt, 6), num(dt, 6)}, Attrs: attr("num_groups", 3)}},
		} {
			out[name] = append(out[name], cases...)
		}
	}
	return out
}

// positive has no number below zero.
func positive(dt dtype.DType, n int) optest.Operand {
	o := num(dt, n)
	for i := dt.Size() - 1; i < len(o.Data); i += dt.Size() {
		o.Data[i] &= 0x7f // the sign is the highest bit of the last byte
	}
	return o
}

func productSamples() map[string][]optest.Case {
	return map[string][]optest.Case{
		"matmul": {
			{Args: args{num(f32, 5, 7), num(f32, 7, 9)}}, {Args: args{num(f32, 7), num(f32, 7)}}, {Args: args{num(f32, 70, 70), num(f32, 70, 70)}}, {Args: args{num(f32, 3, 1, 5, 7), num(f32, 2, 7, 4)}}, {Args: args{num(f64, 2, 5, 7), num(f64, 7)}},
			{Args: args{num(i32, 3, 4), num(i32, 4, 5)}}, {Args: args{num(f16, 3, 4), num(f16, 4, 5)}}, {Args: args{num(f32, 130, 65), num(f32, 65, 140)}}, {Args: args{num(f32, 2, 0), num(f32, 0, 3)}}, {Args: args{num(f32, 1, 300), num(f32, 300, 500)}},
		},
		"gemm": {
			{Args: args{num(f32, 5, 7), num(f32, 7, 9)}}, {Args: args{num(f32, 7, 5), num(f32, 9, 7), num(f32, 9)}, Attrs: attr("transA", 1, "transB", 1, "alpha", 0.5)},
			{Args: args{num(f32, 5, 7), num(f32, 7, 9), num(f32, 5, 9)}}, {Args: args{num(f32, 5, 7), num(f32, 7, 9), num(f32, 5, 9)}, Attrs: attr("beta", -2.0, "alpha", 0.25)},
			{Args: args{num(f64, 5, 7), num(f64, 7, 9), num(f64, 5, 9)}, Attrs: attr("beta", 0.0)}, {Args: args{num(i64, 5, 7), num(i64, 7, 9), num(i64, 5, 1)}},
			{Args: args{num(f32, 130, 65), num(f32, 65, 140), num(f32, 130, 140)}}, {Args: args{num(f16, 5, 7), num(f16, 7, 9), num(f16, 5, 9)}}, {Args: args{num(f32, 5, 0), num(f32, 0, 9), num(f32, 5, 9)}},
		},
	}
}

func windowSamples() map[string][]optest.Case {
	pool := func(extra ...any) attrs {
		return attr(append([]any{"kernel_shape", ints(3, 2), "strides", ints(2, 1), "pads", ints(1, 0, 1, 1)}, extra...)...)
	}
	conv := args{num(f32, 1, 6, 9, 8), num(f32, 4, 6, 3, 3), num(f32, 4), num(f32, 1, 4, 7, 6), num(f32, 6), num(f32, 6)}
	out := map[string][]optest.Case{
		"conv": {
			{Args: conv[:2]}, {Args: conv[:3], Attrs: attr("pads", ints(1, 1, 1, 1), "strides", ints(2, 1))}, {Args: args{num(f32, 2, 4, 9, 9), num(f32, 4, 1, 3, 3)}, Attrs: attr("group", 4, "pads", ints(1, 1, 1, 1))},
			{Args: args{num(f32, 2, 4, 9), num(f32, 6, 2, 3)}, Attrs: attr("group", 2, "dilations", ints(2))}, {Args: args{num(f64, 1, 2, 5, 5, 5), num(f64, 3, 2, 2, 2, 2)}}, {Args: args{num(f32, 1, 32, 40, 40), num(f32, 48, 32, 1, 1)}},
			{Args: args{num(f32, 1, 16, 40, 40), num(f32, 24, 16, 3, 3)}, Attrs: attr("auto_pad", "SAME_UPPER")}, {Args: args{num(f16, 1, 3, 6, 6), num(f16, 2, 3, 3, 3)}},
		},
		"conv_transpose": {
			{Args: args{num(f32, 1, 3, 4, 5), num(f32, 3, 2, 3, 3), num(f32, 2)}, Attrs: attr("strides", ints(2, 2))}, {Args: args{num(f32, 2, 4, 5), num(f32, 4, 3, 2)}, Attrs: attr("group", 2, "dilations", ints(2))},
			{Args: args{num(f32, 1, 1, 3, 3), num(f32, 1, 2, 3, 3)}, Attrs: attr("strides", ints(3, 2), "output_shape", ints(10, 8))}, {Args: args{num(f64, 1, 2, 3), num(f64, 2, 2, 2)}},
		},
		"max_pool": {
			{Args: args{num(f32, 2, 3, 7, 8)}, Attrs: pool()}, {Args: args{num(f32, 2, 3, 7, 8)}, Attrs: pool("ceil_mode", 1), Results: 2}, {Args: args{num(i8, 1, 2, 9)}, Attrs: attr("kernel_shape", ints(3), "dilations", ints(2))},
			{Args: args{num(f16, 1, 2, 5, 5)}, Attrs: pool("storage_order", 1), Results: 2}, {Args: args{num(f32, 1, 30, 60, 61)}, Attrs: pool()},
		},
		"average_pool":        {{Args: args{num(f32, 2, 3, 7, 8)}, Attrs: pool()}, {Args: args{num(f64, 2, 3, 7, 8)}, Attrs: pool("ceil_mode", 1, "count_include_pad", 1)}, {Args: args{num(f16, 2, 3, 7, 8)}, Attrs: pool()}},
		"global_average_pool": {{Args: args{num(f32, 2, 3, 7, 8)}}, {Args: args{num(f16, 2, 3, 7)}}, {Args: args{num(f32, 4, 40, 30, 31)}}},
		"global_max_pool":     {{Args: args{num(f32, 2, 3, 7, 8)}}, {Args: args{num(f64, 2, 3, 7)}}},
		"fused_chain": {
			{Args: args{num(f32, 2, 3, 4)}, Attrs: attr("steps", []string{"abs 0"})},
			{Args: args{num(f32, 2, 3, 4), num(f32, 4), num(f32, 1), num(f32, 3, 1)}, Attrs: attr("steps", []string{"mul 0 1", "leaky_relu -1 0.1", "sub 2 -1", "add 3 -1", "mul 0 -1"})},
			{Args: args{num(f32, 70, 1000), num(f32, 70, 1000)}, Attrs: attr("steps", []string{"sigmoid 0", "mul -1 0", "mul -1 -1", "max -1 1", "clip -1 -2 2.5"})},
		},
		"fused_matmul": {
			{Args: args{num(f32, 2, 3, 7), num(f32, 7, 40)}},
			{Args: args{num(f32, 5, 7), num(f32, 9, 7), num(f32, 9)}, Attrs: attr("transB", 1, "activation", "gelu")},
			{Args: args{num(f32, 2, 3, 7), num(f32, 7, 40), absent, num(f32, 2, 3, 40)}, Attrs: attr("activation", "relu")},
			{Args: args{num(f32, 130, 300), num(f32, 300, 70), num(f32, 70), num(f32, 130, 70)}, Attrs: attr("activation", "clip", "alpha", -0.5, "beta", 3.0)},
			{Args: args{num(f32, 1, 300), num(f32, 300, 70), num(f32, 70), num(f32, 1, 70)}, Attrs: attr("activation", "gelu_tanh")},
			{Args: args{num(f32, 4, 20), num(f32, 20, 1), num(f32, 1), num(f32, 4, 1)}, Attrs: attr("activation", "silu")},
			{Args: args{num(f32, 2, 1, 3, 7), num(f32, 5, 40, 7), num(f32, 40), num(f32, 2, 5, 3, 40)}, Attrs: attr("transB", 1, "activation", "relu")},
		},
		"fused_conv": {{Args: conv[:2]}, {Args: conv[:3], Attrs: attr("activation", "sigmoid")}, {Args: conv, Attrs: attr("pre_relu", 1)}},
	}
	for _, activation := range []string{"", "relu", "leaky_relu", "sigmoid", "tanh", "clip"} {
		a := attr("activation", activation, "alpha", 0.25, "beta", 3.0)
		out["fused_conv"] = append(out["fused_conv"], optest.Case{Args: conv[:4], Attrs: a})
		for _, kind := range []string{"max", "average"} {
			pooled := append(attr("pool", kind, "pool_kernel", ints(2, 3), "pool_strides", ints(2, 1), "pool_pads", ints(0, 1, 1, 1), "pool_ceil", 1), a...)
			out["fused_conv"] = append(out["fused_conv"], optest.Case{Args: conv[:4], Attrs: pooled})
		}
	}
	kept := attr("pool", "max", "pool_kernel", ints(3, 3), "pool_pads", ints(1, 1, 1, 1)) // the residual has the result's shape
	out["fused_conv"] = append(out["fused_conv"], optest.Case{Args: conv[:4], Attrs: kept})
	depthwise := args{num(f32, 1, 8, 20, 20), num(f32, 8, 1, 3, 3), absent, num(f32, 1, 8, 18, 18)}
	pointwise := args{num(f32, 1, 32, 40, 40), num(f32, 48, 32, 1, 1), num(f32, 48), num(f32, 1, 48, 40, 40)}
	out["fused_conv"] = append(out["fused_conv"], optest.Case{Args: depthwise, Attrs: attr("group", 8)}, optest.Case{Args: pointwise, Attrs: attr("activation", "relu")})
	return out
}

func otherSamples() map[string][]optest.Case {
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
