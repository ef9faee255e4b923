package kernel

import "math"

// The row loops of reductions, softmax and normalisations in float32. They are dispatch points. What they add up they return in float64,
// so that a long row does not lose its small numbers.
var (
	rowSum     = portableSum          // of x[i]
	rowSquares = portableSquares      // of (x[i]-about)^2
	rowMax     = portableMax[float32] // -Inf of none, NaN if any is
	rowMin     = portableMin[float32] // Inf of none, NaN if any is
	rowMoments = portableMoments      // mean and variance
	rowSoftmax = portableSoftmax
	expColumns = portableExpColumns // dst[i] = exp(src[i]-peak[i]), added to sum[i]
	rowNorm    = portableNorm

	// Whole rows at once, where a variant has code for them; false: it has none for rows like these. With stream, or a temp that takes a
	// row, results are written past the caches; streamEnd must follow.
	rowsNorm    func(n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32, stream bool) bool
	rowsSoftmax func(n int, dst, temp, src []float32) bool
)

// portableSum adds in four chains, which the processor runs side by side.
func portableSum(x []float32) float64 { return sumChains(x) }

func sumChains[T Number](x []T) float64 {
	var a, b, c, d float64
	for len(x) >= 4 {
		a += float64(x[0])
		b += float64(x[1])
		c += float64(x[2])
		d += float64(x[3])
		x = x[4:]
	}
	for _, v := range x {
		a += float64(v)
	}
	return (a + b) + (c + d)
}

func portableSquares(x []float32, about float32) float64 { return squareChains(x, about) }

func squareChains[T Number](x []T, about T) float64 {
	var a, b, c, d float64
	m := float64(about)
	for len(x) >= 4 {
		p, q, r, s := float64(x[0])-m, float64(x[1])-m, float64(x[2])-m, float64(x[3])-m
		a += p * p
		b += q * q
		c += r * r
		d += s * s
		x = x[4:]
	}
	for _, v := range x {
		a += (float64(v) - m) * (float64(v) - m)
	}
	return (a + b) + (c + d)
}

func portableMax[T Float](x []T) T {
	a, b := T(math.Inf(-1)), T(math.Inf(-1))
	for len(x) >= 2 {
		a, b = max(a, x[0]), max(b, x[1])
		x = x[2:]
	}
	for _, v := range x {
		a = max(a, v)
	}
	return max(a, b)
}

func portableMin[T Float](x []T) T {
	a, b := T(math.Inf(1)), T(math.Inf(1))
	for len(x) >= 2 {
		a, b = min(a, x[0]), min(b, x[1])
		x = x[2:]
	}
	for _, v := range x {
		a = min(a, v)
	}
	return min(a, b)
}

// sumRun is rowSum for any type.
func sumRun[T Number](x []T) float64 {
	if f, ok := any(x).([]float32); ok {
		return rowSum(f)
	}
	return sumChains(x)
}

// squareRun is rowSquares for any type.
func squareRun[T Number](x []T, about T) float64 {
	if f, ok := any(x).([]float32); ok {
		return rowSquares(f, float32(about))
	}
	return squareChains(x, about)
}

// foldRun folds neighbours into one result.
func foldRun[T Number](kind ReduceKind, acc float64, run []T) float64 {
	switch kind {
	case ReduceSum, ReduceMean, ReduceLogSum:
		return acc + sumRun(run)
	case ReduceL2, ReduceSumSquare:
		return acc + squareRun(run, 0)
	case ReduceProd:
		for _, x := range run {
			acc *= float64(x)
		}
	case ReduceL1:
		for _, x := range run {
			acc += math.Abs(float64(x))
		}
	case ReduceMax:
		if f, ok := any(run).([]float32); ok {
			return max(acc, float64(rowMax(f)))
		}
		for _, x := range run {
			acc = max(acc, float64(x))
		}
	case ReduceMin:
		if f, ok := any(run).([]float32); ok {
			return min(acc, float64(rowMin(f)))
		}
		for _, x := range run {
			acc = min(acc, float64(x))
		}
	}
	return acc
}
