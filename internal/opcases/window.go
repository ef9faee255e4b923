package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(windowCases)

func windowCases() map[string][]optest.Case {
	pool := func(extra ...any) attrs {
		return attr(append([]any{"kernel_shape", ints(3, 2), "strides", ints(2, 1), "pads", ints(1, 0, 1, 1)}, extra...)...)
	}
	conv := args{num(f32, 1, 6, 9, 8), num(f32, 4, 6, 3, 3), num(f32, 4), num(f32, 1, 4, 7, 6), num(f32, 6), num(f32, 6)}
	out := map[string][]optest.Case{
		"conv": {
			{Args: conv[:2]}, {Args: conv[:3], Attrs: attr("pads", ints(1, 1, 1, 1), "strides", ints(2, 1))}, {Args: args{num(f32, 2, 4, 9, 9), num(f32, 4, 1, 3, 3)}, Attrs: attr("group", 4, "pads", ints(1, 1, 1, 1))},
			{Args: args{num(f32, 2, 4, 9), num(f32, 6, 2, 3)}, Attrs: attr("group", 2, "dilations", ints(2))}, {Args: args{num(f64, 1, 2, 5, 5, 5), num(f64, 3, 2, 2, 2, 2)}}, {Args: args{num(f32, 1, 32, 40, 40), num(f32, 48, 32, 1, 1)}},
			{Args: args{num(f32, 1, 16, 40, 40), num(f32, 24, 16, 3, 3)}, Attrs: attr("auto_pad", "SAME_UPPER")}, {Args: args{num(f16, 1, 3, 6, 6), num(f16, 2, 3, 3, 3)}},
			{Args: args{num(bf16, 1, 8, 40, 40), num(bf16, 24, 8, 3, 3), num(bf16, 24)}, Attrs: attr("auto_pad", "SAME_UPPER")}, {Args: args{num(f16, 2, 8, 20, 20), num(f16, 8, 1, 3, 3)}, Attrs: attr("group", 8, "strides", ints(2, 1))},
		},
		"conv_transpose": {
			{Args: args{num(f32, 1, 3, 4, 5), num(f32, 3, 2, 3, 3), num(f32, 2)}, Attrs: attr("strides", ints(2, 2))}, {Args: args{num(f32, 2, 4, 5), num(f32, 4, 3, 2)}, Attrs: attr("group", 2, "dilations", ints(2))},
			{Args: args{num(f32, 1, 1, 3, 3), num(f32, 1, 2, 3, 3)}, Attrs: attr("strides", ints(3, 2), "output_shape", ints(10, 8))}, {Args: args{num(f16, 1, 6, 9, 20), num(f16, 6, 20, 3, 3), num(f16, 20)}, Attrs: attr("strides", ints(2, 2))},
			{Args: args{num(f64, 1, 2, 3), num(f64, 2, 2, 2)}},
		},
		"max_pool": {
			{Args: args{num(f32, 2, 3, 7, 8)}, Attrs: pool()}, {Args: args{num(f32, 2, 3, 7, 8)}, Attrs: pool("ceil_mode", 1), Results: 2}, {Args: args{num(i8, 1, 2, 9)}, Attrs: attr("kernel_shape", ints(3), "dilations", ints(2))},
			{Args: args{num(f16, 1, 2, 5, 5)}, Attrs: pool("storage_order", 1), Results: 2}, {Args: args{num(f32, 1, 30, 60, 61)}, Attrs: pool()},
			{Args: args{num(f32, 1, 2, 2, 5)}, Attrs: attr("kernel_shape", ints(4, 3), "strides", ints(3, 2), "ceil_mode", 1), Results: 2}, {Args: args{num(f32, 2, 3, 1)}, Attrs: attr("kernel_shape", ints(2), "strides", ints(2), "ceil_mode", 1)},
		},
		"average_pool": {{Args: args{num(f32, 2, 3, 7, 8)}, Attrs: pool()}, {Args: args{num(f64, 2, 3, 7, 8)}, Attrs: pool("ceil_mode", 1, "count_include_pad", 1)}, {Args: args{num(f16, 2, 3, 7, 8)}, Attrs: pool()},
			{Args: args{num(f32, 1, 2, 2, 5)}, Attrs: attr("kernel_shape", ints(4, 3), "strides", ints(3, 2), "ceil_mode", 1)}, {Args: args{num(f32, 2, 3, 2)}, Attrs: attr("kernel_shape", ints(4), "strides", ints(2), "ceil_mode", 1, "count_include_pad", 1, "pads", ints(1, 0))}},
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
			{Args: args{num(f16, 5, 70), num(f16, 70, 40), num(f16, 40), num(f16, 5, 40)}, Attrs: attr("activation", "gelu")},
			{Args: args{num(bf16, 2, 3, 7), num(bf16, 40, 7), num(bf16, 40)}, Attrs: attr("transB", 1, "activation", "silu")},
		},
		"fused_conv": {
			{Args: conv[:2]}, {Args: conv[:3], Attrs: attr("activation", "sigmoid")}, {Args: conv, Attrs: attr("pre_relu", 1)},
			{Args: args{num(f32, 2, 6, 9, 8), conv[1], conv[2], num(f32, 2, 4, 7, 6)}, Attrs: attr("activation", "relu")},
			{Args: args{num(f32, 2, 6, 9, 8), conv[1], conv[2]}, Attrs: attr("pool", "max", "pool_kernel", ints(2, 2), "pool_strides", ints(2, 2))},
			{Args: args{num(f16, 2, 6, 30, 28), num(f16, 24, 6, 3, 3), num(f16, 24)}, Attrs: attr("activation", "relu", "pool", "average", "pool_kernel", ints(2, 2), "pool_strides", ints(2, 2), "pool_pads", ints(1, 0, 0, 1))},
			{Args: args{num(bf16, 1, 6, 9, 8), num(bf16, 4, 6, 3, 3), absent, num(bf16, 1, 4, 7, 6), num(f32, 6), num(f32, 6)}, Attrs: attr("pre_relu", 1)},
		},
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
	small := args{num(f32, 1, 8, 20, 20), num(f32, 20, 8, 1, 1), num(f32, 20), absent, absent, absent, num(f32, 20, 1, 3, 3), num(f32, 20)}
	for _, activation := range []string{"", "clip", "silu", "hard_swish", "gelu", "gelu_tanh"} {
		a := attr("activation", activation, "alpha", 0.25, "beta", 3.0, "pool", "depthwise", "pool_kernel", ints(3, 3), "pool_strides", ints(1, 2), "pool_pads", ints(1, 0, 4, 1),
			"pool_activation", activation, "pool_alpha", -0.5, "pool_beta", 2.0)
		out["fused_conv"] = append(out["fused_conv"], optest.Case{Args: small, Attrs: a}, optest.Case{Args: small[:7], Attrs: a})
	}
	return out
}
