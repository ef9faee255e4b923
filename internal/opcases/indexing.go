package opcases

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(indexingCases)

func indexingCases() map[string][]optest.Case {
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
		"shift": {
			shiftCase(num(f32, 5, 3), num(f32, 2, 3), 0), shiftCase(num(f32, 2, 6, 3), num(f32, 2, 1, 3), 1), shiftCase(num(f32, 2, 3, 4), num(f32, 2, 3, 7), -1), shiftCase(num(f32, 4), num(f32, 0), 0),
			{Args: args{num(i8, 2, 5), num(i8, 2, 2)}, Attrs: attr("axis", 1)}, {Args: args{num(f16, 0, 3), num(f16, 2, 3)}},
			{Args: args{num(f32, 2, 5), num(f32, 3, 2)}, Attrs: attr("axis", 1), Fails: "rows: got f32[3,2] for f32[2,5]"}, {Args: args{num(f32, 5), num(i32, 5)}, Fails: "operand 1"},
		},
		"trilu": {
			triluCase[float32](num(f32, 4, 5), absent), triluCase[bool](num(boo, 2, 3, 4), one(-1), "upper", 0), triluCase[int64](num(i64, 3, 3), one(1), "upper", 1),
			{Args: args{num(f32, 4)}, Fails: "got f32[4], want"}, {Args: args{num(f32, 4, 4)}, Attrs: attr("upper", 2), Fails: "upper"},
		},
		"cum_sum": {
			cumCase[float32](false, num(f32, 3, 4), 1), cumCase[int32](false, num(i32, 3, 4), -2, "exclusive", 1, "reverse", 1), cumCase[int64](false, num(i64, 2, 3, 2), 1, "reverse", 1),
			{Args: args{num(f32, 3), one(1)}, Fails: "axis"},
		},
		"one_hot": {
			oneHotCase([]int64{0, 3, -1, 9}, optest.Of([]int64{0, 3, -1, 9}, 2, 2), 4, []float32{-1, 5}), oneHotCase([]int64{1, 2}, optest.Of([]int32{1, 2}, 2), 3, []bool{false, true}, "axis", 0),
			oneHotCase([]int64{1, 2, 0, 2}, optest.Of([]float32{1, 2, 0, 2}, 2, 2), 3, []int16{7, 8}, "axis", -2), {Args: args{list(1, 2), one(0), num(f32, 2)}, Fails: "depth"},
		},
	}
}

// shiftCase drops what the rows push out of x.
func shiftCase(x, rows optest.Operand, axis int) optest.Case {
	at := (axis + x.Shape.Rank()) % x.Shape.Rank()
	outer, n, add := 1, x.Shape.Size(at), rows.Shape.Size(at)
	for i := range at {
		outer *= x.Shape.Size(i)
	}
	inner := 1
	for i := at + 1; i < x.Shape.Rank(); i++ {
		inner *= x.Shape.Size(i)
	}
	old, fresh := elements[float32](x), elements[float32](rows)
	var want []float32
	for o := range outer {
		all := slices.Concat(old[o*n*inner:(o+1)*n*inner], fresh[o*add*inner:(o+1)*add*inner])
		want = append(want, all[len(all)-n*inner:]...)
	}
	return optest.Case{Args: args{x, rows}, Attrs: attr("axis", axis), Want: args{optest.Of(want, x.Shape.Sizes()...)}}
}

// triluCase keeps a triangle of matrices of T.
func triluCase[T dtype.Element](x, diagonal optest.Operand, pairs ...any) optest.Case {
	c := optest.Case{Args: args{x, diagonal}, Attrs: attr(pairs...)}
	k := 0
	if !diagonal.IsZero() {
		k = int(elements[int64](diagonal)[0])
	}
	upper := len(pairs) == 0 || pairs[1] != 0
	data, rank := elements[T](x), x.Shape.Rank()
	rows, cols := x.Shape.Size(rank-2), x.Shape.Size(rank-1)
	var want []T
	for ; len(data) > 0; data = data[rows*cols:] {
		want = append(want, ref.Trilu(data[:rows*cols], rows, cols, k, upper)...)
	}
	c.Want = args{optest.Of(want, x.Shape.Sizes()...)}
	return c
}

// cumCase adds up or multiplies along an axis of x. Its numbers are small
// enough for sums in any order of types with enough bits.
func cumCase[T number](product bool, x optest.Operand, axis int64, pairs ...any) optest.Case {
	c := optest.Case{Args: args{x, one(axis)}, Attrs: attr(pairs...), Within: 1e-6}
	on := map[any]bool{}
	for i := 0; i < len(pairs); i += 2 {
		on[pairs[i]] = pairs[i+1] == 1
	}
	wide := ref.Map(elements[T](x), func(v T) float64 { return float64(v) })
	at := (int(axis) + x.Shape.Rank()) % x.Shape.Rank()
	want := ref.Scan(wide, x.Shape.Sizes(), at, product, on["exclusive"], on["reverse"])
	c.Want = args{optest.Of(ref.Map(want, func(v float64) T { return T(v) }), x.Shape.Sizes()...)}
	return c
}

// oneHotCase expands indices, whose numbers at has, along an axis of the given
// depth.
func oneHotCase[T dtype.Element](at []int64, indices optest.Operand, depth int64, values []T, pairs ...any) optest.Case {
	c := optest.Case{Args: args{indices, one(depth), optest.Of(values, 2)}, Attrs: attr(pairs...)}
	sizes := indices.Shape.Sizes()
	axis := len(sizes)
	if len(pairs) > 0 {
		axis = (pairs[1].(int) + axis + 1) % (axis + 1)
	}
	outer, inner := ref.Size(sizes[:axis]), ref.Size(sizes[axis:])
	to := append(append(slices.Clone(sizes[:axis]), int(depth)), sizes[axis:]...)
	c.Want = args{optest.Of(ref.OneHot(at, outer, int(depth), inner, values[0], values[1]), to...)}
	return c
}
