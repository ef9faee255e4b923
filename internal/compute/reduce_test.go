package compute

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

// folded returns the elements that each result of a reduction is computed from.
func folded(x op.Arg, axes []int) [][]float64 {
	sizes, data := x.Shape.Sizes(), floats(x)
	var kept, gone []int
	for i, n := range sizes {
		if slices.Contains(axes, i) {
			kept, gone = append(kept, 1), append(gone, n)
		} else {
			kept, gone = append(kept, n), append(gone, 1)
		}
	}
	var lists [][]float64
	each(kept, func(k []int) {
		var list []float64
		each(gone, func(g []int) {
			pos := 0
			for i := range sizes {
				pos += (k[i] + g[i]) * x.Shape.Strides()[i]
			}
			list = append(list, data[pos])
		})
		lists = append(lists, list)
	})
	return lists
}

func sum(list []float64, f func(float64) float64) float64 {
	s := 0.0
	for _, v := range list {
		s += f(v)
	}
	return s
}

var reductions = map[string]func(list []float64) float64{
	"reduce_sum":  func(l []float64) float64 { return sum(l, func(v float64) float64 { return v }) },
	"reduce_mean": func(l []float64) float64 { return sum(l, func(v float64) float64 { return v }) / float64(len(l)) },
	"reduce_prod": func(l []float64) float64 {
		p := 1.0
		for _, v := range l {
			p *= v
		}
		return p
	},
	"reduce_max":         func(l []float64) float64 { return slices.Max(l) },
	"reduce_min":         func(l []float64) float64 { return slices.Min(l) },
	"reduce_l1":          func(l []float64) float64 { return sum(l, math.Abs) },
	"reduce_l2":          func(l []float64) float64 { return math.Sqrt(sum(l, func(v float64) float64 { return v * v })) },
	"reduce_sum_square":  func(l []float64) float64 { return sum(l, func(v float64) float64 { return v * v }) },
	"reduce_log_sum":     func(l []float64) float64 { return math.Log(sum(l, func(v float64) float64 { return v })) },
	"reduce_log_sum_exp": func(l []float64) float64 { return math.Log(sum(l, math.Exp)) },
}

func TestReduce(t *testing.T) {
	for name, f := range reductions {
		for _, dt := range append(floatTypes, intTypes...) {
			if !admits(name, dt) {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", name, dt), func(t *testing.T) {
				lo := -3.0
				if !dt.IsSigned() || name == "reduce_log_sum" {
					lo = 1
				}
				for k, c := range []struct{ dims, axes []int }{
					{[]int{2, 3, 4}, []int{1}}, {[]int{2, 3, 4}, []int{0, 2}}, {[]int{2, 3, 4}, []int{2}}, {[]int{2, 3, 4}, []int{0}},
					{[]int{2, 3, 4}, []int{0, 1, 2}}, {[]int{1, 5}, []int{0}}, {[]int{3, 2, 2, 2}, []int{1, 3}},
				} {
					x := random(dt, uint64(k), lo, 3, c.dims...)
					lists := folded(x, c.axes)
					want := make([]float64, len(lists))
					for i, l := range lists {
						if want[i] = f(l); dt.IsInt() {
							want[i] = math.Trunc(want[i])
						}
					}
					var list []int64
					keep, drop := slices.Clone(c.dims), []int{}
					for i, n := range c.dims {
						if slices.Contains(c.axes, i) {
							list, keep[i] = append(list, int64(i-len(c.dims)*(i%2))), 1
						} else {
							drop = append(drop, n)
						}
					}
					expect(t, name, eval(t, name, nil, x, ints(list...)), keep, want, 4*tolerance(dt))
					expect(t, name, eval(t, name, attrs("keepdims", 0), x, ints(list...)), drop, want, 4*tolerance(dt))
				}
			})
		}
	}
}

func TestReduceWithoutAxes(t *testing.T) {
	x := arg([]float32{1, 2, 3, 4}, 2, 2)
	for _, in := range [][]op.Arg{{x}, {x, absent}, {x, ints()}} {
		expect(t, "reduce_sum", eval(t, "reduce_sum", nil, in...), []int{1, 1}, []float64{10}, 0)
		expect(t, "reduce_sum", eval(t, "reduce_sum", attrs("noop_with_empty_axes", 1), in...), []int{2, 2}, []float64{1, 2, 3, 4}, 0)
	}
	none := arg([]float32{}, 2, 0)
	expect(t, "reduce_sum", eval(t, "reduce_sum", nil, none, ints(1)), []int{2, 1}, []float64{0, 0}, 0)
	expect(t, "reduce_max", eval(t, "reduce_max", nil, none, ints(1)), []int{2, 1}, []float64{math.Inf(-1), math.Inf(-1)}, 0)
	expect(t, "reduce_sum", eval(t, "reduce_sum", nil, none, ints(0)), []int{1, 0}, nil, 0)
	b := arg([]bool{true, false, true, true}, 2, 2)
	b.Data[0] = 7 // true has many values
	expect(t, "reduce_max", eval(t, "reduce_max", nil, b, ints(1)), []int{2, 1}, []float64{1, 1}, 0)
	expect(t, "reduce_min", eval(t, "reduce_min", nil, b, ints(1)), []int{2, 1}, []float64{0, 1}, 0)
}

func TestReduceOverSeveralTiles(t *testing.T) {
	x := random(dtype.F32, 1, -1, 1, 40, 50, 60)
	for _, axes := range [][]int{{0}, {1}, {2}, {0, 2}} {
		var list []int64
		keep := []int{40, 50, 60}
		for _, a := range axes {
			list, keep[a] = append(list, int64(a)), 1
		}
		var want []float64
		for _, l := range folded(x, axes) {
			want = append(want, sum(l, func(v float64) float64 { return v })/float64(len(l)))
		}
		expect(t, "reduce_mean", eval(t, "reduce_mean", nil, x, ints(list...)), keep, want, 1e-6)
	}
}

func TestArgExtremes(t *testing.T) {
	for _, dt := range append(floatTypes, intTypes...) {
		x := fromFloats(dt, []float64{1, 3, 3, 0, 2, 0, 5, 1, 5, 4, 4, 2}, 2, 3, 2)
		for _, c := range []struct {
			name string
			a    op.Attrs
			dims []int
			want []float64
		}{
			{"arg_max", attrs("axis", 1), []int{2, 1, 2}, []float64{1, 0, 0, 1}},
			{"arg_max", attrs("axis", 1, "select_last_index", 1), []int{2, 1, 2}, []float64{1, 0, 1, 1}},
			{"arg_min", attrs("axis", -2, "keepdims", 0), []int{2, 2}, []float64{0, 1, 2, 0}},
			{"arg_min", attrs("axis", -2, "keepdims", 0, "select_last_index", 1), []int{2, 2}, []float64{0, 2, 2, 0}},
			{"arg_max", attrs("axis", 0), []int{1, 3, 2}, []float64{1, 0, 1, 1, 1, 1}},
			{"arg_max", attrs("axis", 2), []int{2, 3, 1}, []float64{1, 0, 0, 0, 0, 0}},
		} {
			expect(t, fmt.Sprintf("%s %v", c.name, dt), eval(t, c.name, c.a, x), c.dims, c.want, 0)
		}
	}
	big := random(dtype.F32, 1, -1, 1, 2000, 100)
	var want []float64
	for _, l := range folded(big, []int{1}) {
		want = append(want, float64(slices.Index(l, slices.Max(l))))
	}
	expect(t, "arg_max", eval(t, "arg_max", attrs("axis", 1), big), []int{2000, 1}, want, 0)
}
