package opcases

import (
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(movementCases)

func movementCases() map[string][]optest.Case {
	return map[string][]optest.Case{
		"transpose": {
			{Args: args{num(f32, 2, 3, 4)}}, {Args: args{num(f16, 2, 3, 4)}, Attrs: attr("perm", ints(0, 2, 1))},
			{Args: args{num(f64, 1, 3, 1, 4)}, Attrs: attr("perm", ints(1, 0, 3, 2))}, {Args: args{num(i8, 257, 263)}}, {Args: args{num(f32, 0, 3)}}, {Args: args{num(f32, 5, 5)}}, {Args: args{num(u8, 2, 70, 70)}, Attrs: attr("perm", ints(0, 2, 1))}, {Args: args{num(f32, 300, 300)}},
			{Args: args{num(f16, 6, 3, 6, 5)}, Attrs: attr("perm", ints(2, 1, 0, 3))}, {Args: args{num(f64, 3, 4, 3, 4)}, Attrs: attr("perm", ints(2, 3, 0, 1))},
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
