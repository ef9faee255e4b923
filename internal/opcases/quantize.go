package opcases

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(quantizeCases)

func quantizeCases() map[string][]optest.Case {
	k := func(v float32) optest.Operand { return optest.Of([]float32{v}) }
	conv := args{num(u8, 1, 4, 6, 5), k(0.5), optest.Of([]uint8{3}), num(i8, 6, 2, 3, 3), num(f32, 6), num(i8, 6), k(2), optest.Of([]int8{-1}), num(i32, 6)}
	grouped := attr("group", 2, "pads", ints(1, 0, 1, 1), "strides", ints(2, 1))
	pair := func(a, b optest.Operand, za, zb, zy optest.Operand) optest.Case {
		return optest.Case{Args: args{a, k(0.3), za, b, k(0.02), zb, k(0.25), zy}}
	}
	zu, zi := optest.Of([]uint8{3}), optest.Of([]int8{-5})
	pairs := []optest.Case{pair(num(u8, 3, 5), num(u8, 3, 5), zu, zu, zi), pair(num(u8, 2, 70, 65), num(i8, 70, 65), zu, zi, zu), pair(num(i8, 2, 3, 7, 5), num(i8, 3, 1, 1), zi, zi, zi),
		pair(num(i8, 2, 1, 40), num(u8, 3, 1), zi, zu, zu), pair(num(u8, 0, 3), num(u8, 3), zu, zu, zu), pair(num(u8, large), num(u8, 1), zu, zu, zu)}
	return map[string][]optest.Case{
		"qlinear_add": pairs, "qlinear_mul": pairs,
		"quantize_linear": {
			{Args: args{num(f32, 3, 5), k(0.25), optest.Of([]uint8{7})}}, {Args: args{num(f32, large), k(0.5)}}, {Args: args{num(f16, 3, 5), positive(f16, 5), num(i8, 5)}},
			{Args: args{num(f32, 3, 5), scales(1, 2, 3)}, Attrs: attr("axis", 0, "output_dtype", dtype.I4)}, {Args: args{num(f32, 2, 5), positive(f32, 2, 3)}, Attrs: attr("block_size", 2, "output_dtype", i8)},
			{Args: args{num(i32, 9), k(3)}}, {Args: args{num(f32, 4, 0), k(3)}}, {Args: args{num(f32, 300), k(3)}, Attrs: attr("output_dtype", dtype.F8E4M3FN)},
		},
		"dequantize_linear": {
			{Args: args{num(u8, 3, 5), k(0.25), optest.Of([]uint8{7})}}, {Args: args{num(i8, large), k(0.5)}}, {Args: args{num(i32, 3, 5), num(f16, 5)}},
			{Args: args{num(i8, 2, 5), num(f32, 2, 3)}, Attrs: attr("block_size", 2, "output_dtype", dtype.BF16)}, {Args: args{num(u8, 0), k(3)}},
		},
		"dynamic_quantize_linear": {{Args: args{num(f32, 3, 5)}, Results: 3}, {Args: args{num(f32, large)}, Results: 3}, {Args: args{num(f32, 0)}, Results: 3}},
		"lookup": {
			{Args: args{num(u8, 3, 5), num(i8, 256)}}, {Args: args{num(i8, large), num(u8, 256)}}, {Args: args{num(i8, 2, 3, 65), num(i8, 256)}}, {Args: args{num(u8, 0), num(u8, 256)}},
		},
		"matmul_integer": {{Args: args{num(u8, 2, 3, 6), num(i8, 2, 6, 5)}},
			{Args: args{num(u8, 3, 4), num(i8, 4, 5), optest.Of([]uint8{3}), num(i8, 5)}}, {Args: args{num(i8, 2, 3, 4), num(i8, 4, 5), num(i8, 3)}}, {Args: args{num(u8, 4), num(u8, 4)}}, {Args: args{num(u8, 130, 65), num(u8, 65, 140)}},
		},
		"qlinear_matmul": {
			{Args: args{num(u8, 3, 4), num(f32, 3), num(u8, 3), num(i8, 4, 5), k(0.1), optest.Of([]int8{1}), k(0.5), optest.Of([]uint8{9})}},
			{Args: args{num(i8, 70, 64), k(0.1), optest.Of([]int8{0}), num(u8, 2, 64, 50), k(0.1), optest.Of([]uint8{4}), k(0.5), optest.Of([]int8{9})}},
			{Args: args{num(u8, 70, 64), k(0.1), optest.Of([]uint8{3}), num(i8, 64, 50), positive(f32, 50), num(i8, 50), k(0.5), optest.Of([]int8{9}), num(i32, 50)}},
			{Args: args{num(i8, 3, 7), k(0.1), optest.Of([]int8{3}), num(i8, 7, 20), k(0.1), optest.Of([]int8{0}), k(0.5), optest.Of([]int8{9}), num(i32, 1)}},
		},
		"conv_integer": {{Args: args{num(u8, 2, 3, 9), num(i8, 4, 3, 2)}}, {Args: args{conv[0], conv[3], conv[2], conv[5]}, Attrs: grouped}, {Args: args{num(u8, 1, 8, 30, 30), num(u8, 8, 8, 3, 3)}}},
		"qlinear_conv": {{Args: conv, Attrs: grouped}, {Args: conv[:8], Attrs: grouped}, {Args: append(args{num(u8, 2, 4, 6, 5)}, conv[1:]...), Attrs: grouped}},
	}
}
