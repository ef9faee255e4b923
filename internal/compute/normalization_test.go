package compute

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
)

func TestSoftmax(t *testing.T) {
	for _, dt := range floatTypes {
		x := random(dt, 1, -5, 5, 3, 4, 5)
		for _, axis := range []int{0, 1, 2, -1} {
			lists := folded(x, []int{(axis + 3) % 3})
			data, i := floats(x), 0
			var want, logs []float64
			each([]int{3, 4, 5}, func(index []int) {
				group := [][]int{{4 * 5, 5, 1}, {5, 0, 1}, {4, 1, 0}}[(axis+3)%3]
				if (axis+3)%3 == 0 {
					group = []int{0, 5, 1}
				}
				list := lists[index[0]*group[0]+index[1]*group[1]+index[2]*group[2]]
				s := sum(list, math.Exp)
				want, logs = append(want, math.Exp(data[i])/s), append(logs, data[i]-math.Log(s))
				i++
			})
			expect(t, fmt.Sprintf("softmax %v axis %d", dt, axis), eval(t, "softmax", attrs("axis", axis), x), []int{3, 4, 5}, want, tolerance(dt))
			expect(t, fmt.Sprintf("log_softmax %v axis %d", dt, axis), eval(t, "log_softmax", attrs("axis", axis), x), []int{3, 4, 5}, logs, 2*tolerance(dt))
		}
	}
	huge := arg([]float32{1000, 1001, float32(math.Inf(-1)), -1000}, 2, 2)
	expect(t, "softmax", eval(t, "softmax", nil, huge), []int{2, 2}, []float64{1 / (1 + math.E), math.E / (1 + math.E), 0, 1}, 1e-6)
	eval(t, "softmax", nil, random(dtype.F32, 1, -3, 3, 60, 1000))
	eval(t, "softmax", attrs("axis", 1), random(dtype.F32, 1, -3, 3, 30, 100, 20))
	expect(t, "softmax", eval(t, "softmax", nil, arg([]float32{}, 2, 0)), []int{2, 0}, nil, 0)
}

// normalized returns (x-mean)/sqrt(variance+epsilon) of each list.
func normalized(list []float64, epsilon float64) (out []float64, mean, inv float64) {
	n := float64(len(list))
	mean = sum(list, func(v float64) float64 { return v }) / n
	inv = 1 / math.Sqrt(sum(list, func(v float64) float64 { return (v - mean) * (v - mean) })/n+epsilon)
	for _, v := range list {
		out = append(out, (v-mean)*inv)
	}
	return out, mean, inv
}

func TestLayerNorm(t *testing.T) {
	for _, dt := range floatTypes {
		x := random(dt, 1, -3, 5, 2, 3, 4)
		for _, c := range []struct {
			axis        int
			scale, bias []int // nil: none
		}{{-1, []int{4}, []int{4}}, {2, []int{4}, nil}, {1, []int{3, 4}, []int{3, 4}}, {1, []int{4}, []int{3, 1}}, {0, []int{2, 3, 4}, []int{1}}, {-2, []int{}, nil}} {
			axis := (c.axis + 3) % 3
			scale := random(dt, 2, 0.5, 2, c.scale...)
			in := []op.Arg{x, scale}
			var bias op.Arg
			if c.bias != nil {
				bias = random(dt, 3, -1, 1, c.bias...)
				in = append(in, bias)
			}
			sizes := []int{2, 3, 4}
			row := product(sizes[axis:])
			var want, means, invs []float64
			data := floats(x)
			for r := 0; r < len(data); r += row {
				y, mean, inv := normalized(data[r:r+row], 1e-5)
				means, invs = append(means, mean), append(invs, inv)
				i := 0
				each(sizes[axis:], func(index []int) {
					v := y[i] * at(scale, floats(scale), index)
					if c.bias != nil {
						v += at(bias, floats(bias), index)
					}
					want = append(want, v)
					i++
				})
			}
			got := run(t, call(t, "layer_normalization", attrs("axis", c.axis), 3, in...))
			name, stat := fmt.Sprintf("layer_normalization %v axis %d", dt, c.axis), []int{2, 3, 4}
			for i := axis; i < 3; i++ {
				stat[i] = 1
			}
			expect(t, name, got[0], sizes, want, 3*tolerance(dt))
			expect(t, name, got[1], stat, means, 2e-6)
			expect(t, name, got[2], stat, invs, 1e-5)
			one := eval(t, "layer_normalization", attrs("axis", c.axis), in...)
			expect(t, name, one, sizes, want, 3*tolerance(dt))
		}
	}
	x, s := random(dtype.F32, 1, -3, 5, 50, 400), random(dtype.F32, 2, 0, 1, 400)
	eval(t, "layer_normalization", nil, x, s, s)
	c := call(t, "layer_normalization", nil, 2, x, s)
	all := run(t, c)
	c = call(t, "layer_normalization", nil, 2, x, s)
	c.Out[0], c.Results[0] = absent, op.Type{}
	expect(t, "mean alone", run(t, c)[1], []int{50, 1}, floats(all[1]), 0)
}

func TestChannelNorms(t *testing.T) {
	for _, dt := range floatTypes {
		x, scale, bias := random(dt, 1, -2, 4, 2, 6, 2, 3), random(dt, 2, 0.5, 2, 6), random(dt, 3, -1, 1, 6)
		data, a, b := floats(x), floats(scale), floats(bias)
		check := func(name string, got op.Arg, length int) {
			t.Helper()
			var want []float64
			for r := 0; r < len(data); r += length {
				y, _, _ := normalized(data[r:r+length], 0.01)
				for i, v := range y {
					ch := (r + i) / 6 % 6
					want = append(want, v*a[ch]+b[ch])
				}
			}
			expect(t, fmt.Sprintf("%s %v", name, dt), got, []int{2, 6, 2, 3}, want, 3*tolerance(dt))
		}
		e := attrs("epsilon", 0.01)
		check("instance_normalization", eval(t, "instance_normalization", e, x, scale, bias), 6)
		check("group_normalization 2", eval(t, "group_normalization", e.With("num_groups", int64(2)), x, scale, bias), 18)
		check("group_normalization 6", eval(t, "group_normalization", e.With("num_groups", int64(6)), x, scale, bias), 6)
	}
	big, s := random(dtype.F32, 1, -1, 1, 2, 8, 50, 60), random(dtype.F32, 2, 0, 1, 8)
	eval(t, "instance_normalization", nil, big, s, s)
	eval(t, "group_normalization", attrs("num_groups", 4), big, s, s)
}

func TestBatchNorm(t *testing.T) {
	for _, dt := range floatTypes {
		for _, dims := range [][]int{{2, 3, 4}, {4, 3}, {2, 3, 2, 2}} {
			x := random(dt, 1, -2, 4, dims...)
			scale, bias := random(dt, 2, 0.5, 2, 3), random(dt, 3, -1, 1, 3)
			mean, variance := random(dtype.F32, 4, -1, 1, 3), random(dtype.F32, 5, 0.5, 2, 3)
			area := product(dims[2:])
			apply := func(mean, variance []float64) (want []float64) {
				for i, v := range floats(x) {
					c := i / area % 3
					want = append(want, (v-mean[c])/math.Sqrt(variance[c]+0.01)*floats(scale)[c]+floats(bias)[c])
				}
				return want
			}
			name := fmt.Sprintf("batch_normalization %v %v", dt, dims)
			in := []op.Arg{x, scale, bias, mean, variance}
			want := apply(floats(mean), floats(variance))
			expect(t, name, eval(t, "batch_normalization", attrs("epsilon", 0.01), in...), dims, want, 3*tolerance(dt))

			var axes []int
			for i := range dims {
				if i != 1 {
					axes = append(axes, i)
				}
			}
			var own, spread, nextMean, nextVariance []float64
			for c, l := range folded(x, axes) {
				_, m, inv := normalized(l, 0)
				own, spread = append(own, m), append(spread, 1/(inv*inv))
				nextMean = append(nextMean, 0.75*floats(mean)[c]+0.25*m)
				nextVariance = append(nextVariance, 0.75*floats(variance)[c]+0.25/(inv*inv))
			}
			got := run(t, call(t, "batch_normalization", attrs("epsilon", 0.01, "training_mode", 1, "momentum", 0.75), 3, in...))
			expect(t, name+" training", got[0], dims, apply(own, spread), 4*tolerance(dt))
			expect(t, name+" mean", got[1], []int{3}, nextMean, 2e-6)
			expect(t, name+" variance", got[2], []int{3}, nextVariance, 1e-5)
		}
	}
	big, s := random(dtype.F32, 1, -1, 1, 2, 16, 60, 60), random(dtype.F32, 2, 0.5, 1, 16)
	eval(t, "batch_normalization", nil, big, s, s, s, s)
	vector, one := random(dtype.F32, 1, -1, 1, 7), arg([]float32{1}, 1)
	eval(t, "batch_normalization", nil, vector, one, one, one, one)
}
