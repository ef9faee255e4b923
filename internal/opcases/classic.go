package opcases

import (
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op/optest"
)

var _ = family(classicCases)

func classicCases() map[string][]optest.Case {
	return map[string][]optest.Case{
		"row_distance": {
			distanceCase[float32](num(f32, 5, 3), num(f32, 7, 3), 3, "sqeuclidean"), distanceCase[float64](num(f64, 130, 6), num(f64, 66, 6), 6, "euclidean"),
			distanceCase[float32](num(f32, 1, 9), num(f32, 4, 9), 9, "euclidean"), {Args: args{num(f32, 0, 3), num(f32, 4, 3)}}, {Args: args{num(f32, 4, 0), num(f32, 2, 0)}},
			{Args: args{num(f32, 2, 3), num(f32, 2, 4)}, Fails: "features"}, {Args: args{num(f32, 2, 3), num(f64, 2, 3)}, Fails: "operand 1"},
			{Args: args{num(f32, 2, 3), num(f32, 2, 3)}, Attrs: attr("metric", "cosine"), Fails: "metric"},
		},
		"couple_pairs": {
			couplingCase(2, 0.3, 0.9, 0.5, 1e-7), couplingCase(3, 0.7, 0.2, 0.4, 0.5, 0.5, 0.5, 0.99, 0.01, 0.3), couplingCase(4, 0.6, 0.7, 0.8, 0.55, 0.65, 0.6),
			{Args: args{num(f32, 0, 3)}, Attrs: attr("classes", 3)}, {Args: args{num(f32, 2, 2)}, Attrs: attr("classes", 3), Fails: "operand 0"},
			{Args: args{num(f32, 2, 1)}, Attrs: attr("classes", 1), Fails: "classes"}, {Args: args{num(f64, 2, 1)}, Attrs: attr("classes", 2), Fails: "operand 0"},
		},
	}
}

func distanceCase[T number](a, b optest.Operand, features int, metric string) optest.Case {
	wide := func(o optest.Operand) []float64 {
		return ref.Map(elements[T](o), func(v T) float64 { return float64(v) })
	}
	want := ref.Map(ref.Distances(wide(a), wide(b), features, metric == "euclidean"), func(v float64) T { return T(v) })
	return optest.Case{Args: args{a, b}, Attrs: attr("metric", metric), Want: args{optest.Of(want, a.Shape.Size(0), b.Shape.Size(0))}, Within: 1e-5}
}

// couplingCase couples rows of pairs. The operator stops within 0.005.
func couplingCase(classes int, pairs ...float64) optest.Case {
	each := classes * (classes - 1) / 2
	var want []float32
	for at := 0; at < len(pairs); at += each {
		for _, p := range ref.CouplePairs(pairs[at:][:each], classes) {
			want = append(want, float32(p))
		}
	}
	rows := len(pairs) / each
	x := optest.Of(ref.Map(pairs, func(v float64) float32 { return float32(v) }), rows, each)
	return optest.Case{Args: args{x}, Attrs: attr("classes", classes), Want: args{optest.Of(want, rows, classes)}, Within: 0.02}
}
