package ref

import "math"

// Reduce computes one number from all elements that differ only along the
// reduced axes, which keep no place in the result. kind is "sum", "mean",
// "prod", "max", "min", "l1", "l2", "sum_square", "log_sum" or "log_sum_exp".
func Reduce(kind string, x []float64, shape []int, reduced []bool) []float64 {
	var kept []int
	for i, n := range shape {
		if !reduced[i] {
			kept = append(kept, n)
		}
	}
	groups := make([][]float64, Size(kept))
	Each(shape, func(idx []int) {
		var at []int
		for i, k := range idx {
			if !reduced[i] {
				at = append(at, k)
			}
		}
		g := &groups[At(kept, at)]
		*g = append(*g, x[At(shape, idx)])
	})
	return Map(groups, func(g []float64) float64 { return reduceOne(kind, g) })
}

func reduceOne(kind string, x []float64) float64 {
	fold := func(first float64, f func(acc, x float64) float64) float64 {
		for _, v := range x {
			first = f(first, v)
		}
		return first
	}
	sum := func(f func(x float64) float64) float64 {
		return fold(0, func(acc, x float64) float64 { return acc + f(x) })
	}
	same := func(x float64) float64 { return x }
	square := func(x float64) float64 { return x * x }
	switch kind {
	case "sum":
		return sum(same)
	case "mean":
		return sum(same) / float64(len(x))
	case "prod":
		return fold(1, func(acc, x float64) float64 { return acc * x })
	case "max":
		return fold(math.Inf(-1), func(acc, x float64) float64 { return Binary("max", acc, x) })
	case "min":
		return fold(math.Inf(1), func(acc, x float64) float64 { return Binary("min", acc, x) })
	case "l1":
		return sum(math.Abs)
	case "l2":
		return math.Sqrt(sum(square))
	case "sum_square":
		return sum(square)
	case "log_sum":
		return math.Log(sum(same))
	case "log_sum_exp":
		peak := reduceOne("max", x)
		if math.IsInf(peak, 0) || math.IsNaN(peak) {
			peak = 0
		}
		return peak + math.Log(sum(func(x float64) float64 { return math.Exp(x - peak) }))
	}
	panic("ref: no reduction " + kind)
}

// ArgExtreme is where along the axis of [outer, axis, inner] the largest or
// smallest element is; a NaN is either. Of equal ones it is the first, or the
// last.
func ArgExtreme(x []float64, outer, axis, inner int, smallest, last bool) []int64 {
	var out []int64
	Each([]int{outer, inner}, func(idx []int) {
		at := 0
		for k := range axis {
			v, best := x[(idx[0]*axis+k)*inner+idx[1]], x[(idx[0]*axis+at)*inner+idx[1]]
			tie := v == best || math.IsNaN(v) && math.IsNaN(best)
			better := v > best
			if smallest {
				better = v < best
			}
			better = better && !math.IsNaN(best) || math.IsNaN(v) && !math.IsNaN(best)
			if better || tie && last {
				at = k
			}
		}
		out = append(out, int64(at))
	})
	return out
}

// Softmax is exp(x)/sum(exp(x)) along the axis of [outer, axis, inner], or its
// logarithm.
func Softmax(x []float64, outer, axis, inner int, log bool) []float64 {
	out := make([]float64, len(x))
	Each([]int{outer, inner}, func(idx []int) {
		at := func(k int) int { return (idx[0]*axis+k)*inner + idx[1] }
		peak := math.Inf(-1)
		for k := range axis {
			peak = Binary("max", peak, x[at(k)])
		}
		sum := 0.0
		for k := range axis {
			sum += math.Exp(x[at(k)] - peak)
		}
		for k := range axis {
			out[at(k)] = x[at(k)] - peak - math.Log(sum)
			if !log {
				out[at(k)] = math.Exp(x[at(k)]-peak) / sum
			}
		}
	})
	return out
}

// Norm normalises one row: it returns (x - mean) / sqrt(variance + epsilon),
// mean and 1/sqrt(variance + epsilon). Without a mean (RMS) the variance is the
// mean of the squares.
func Norm(x []float64, epsilon float64, rms bool) (y []float64, mean, inv float64) {
	if !rms {
		mean = reduceOne("mean", x)
	}
	centred := Map(x, func(v float64) float64 { return v - mean })
	inv = 1 / math.Sqrt(reduceOne("sum_square", centred)/float64(len(x))+epsilon)
	return Map(centred, func(v float64) float64 { return v * inv }), mean, inv
}

// LRN divides each element of x [outer, channels, inner] by a power of the sum
// of the squares of size channels around its own.
func LRN(x []float64, outer, channels, inner, size int, alpha, beta, bias float64) []float64 {
	shape := []int{outer, channels, inner}
	out := make([]float64, len(x))
	Each(shape, func(idx []int) {
		sum := 0.0
		for c := max(0, idx[1]-(size-1)/2); c <= min(channels-1, idx[1]+size/2); c++ {
			v := x[At(shape, []int{idx[0], c, idx[2]})]
			sum += v * v
		}
		at := At(shape, idx)
		out[at] = x[at] / math.Pow(bias+alpha/float64(size)*sum, beta)
	})
	return out
}
