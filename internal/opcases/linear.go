package opcases

import (
	"math"

	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(productCases)

func productCases() map[string][]optest.Case {
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
			withoutAddend(float32(math.NaN()), 2, 2), withoutAddend(float32(math.Inf(1)), 2), withoutAddend(math.NaN(), 2, 1), withoutAddend(math.Inf(-1)),
		},
	}
}

// withoutAddend is a gemm whose beta is 0: its addend of such numbers, in these
// sizes, is not read.
func withoutAddend[T float32 | float64](v T, sizes ...int) optest.Case {
	n := 1
	for _, size := range sizes {
		n *= size
	}
	c := make([]T, n)
	for i := range c {
		c[i] = v
	}
	return optest.Case{Attrs: attr("beta", 0.0), Args: args{optest.Of([]T{1, 2, 3, 4}, 2, 2), optest.Of([]T{5, 6, 7, 8}, 2, 2), optest.Of(c, sizes...)},
		Want: args{optest.Of([]T{19, 22, 43, 50}, 2, 2)}}
}
