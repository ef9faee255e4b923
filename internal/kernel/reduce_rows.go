package kernel

import "math"

// The row loops of reductions in float32. What they add up they return in float64, so that a long row does not lose its small numbers.

// rowSum is the sum of x[i].
func rowSum(v *Variant, x []float32) (sum float64) {
	f := v.Rows.Sum
	if f == nil {
		return portableSum(x)
	}
	for ; len(x) > asmElements; x = x[asmElements:] {
		sum += f(asmElements, &x[0])
	}
	if len(x) > 0 {
		sum += f(len(x), &x[0])
	}
	return sum
}

// rowSquares is the sum of (x[i]-about)^2.
func rowSquares(v *Variant, x []float32, about float32) (sum float64) {
	f := v.Rows.Squares
	if f == nil {
		return portableSquares(x, about)
	}
	for len(x) > 0 {
		n := min(len(x), asmElements)
		sum += f(n, &x[0], about)
		x = x[n:]
	}
	return sum
}

// rowMax is -Inf of none, NaN if any is.
func rowMax(v *Variant, x []float32) float32 {
	if v.Rows.Max == nil {
		return portableMax(x)
	}
	return peakRow(v.Rows.Max, x, lowest)
}

// rowMin is Inf of none, NaN if any is.
func rowMin(v *Variant, x []float32) float32 {
	if v.Rows.Min == nil {
		return portableMin(x)
	}
	return peakRow(v.Rows.Min, x, float32(math.Inf(1)))
}

func peakRow(f func(n int, x *float32, s float32) float32, x []float32, peak float32) float32 {
	for len(x) > 0 {
		n := min(len(x), asmElements)
		peak = f(n, &x[0], peak)
		x = x[n:]
	}
	return peak
}

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
func sumRun[T Number](v *Variant, x []T) float64 {
	if f, ok := any(x).([]float32); ok {
		return rowSum(v, f)
	}
	return sumChains(x)
}

// squareRun is rowSquares for any type.
func squareRun[T Number](v *Variant, x []T, about T) float64 {
	if f, ok := any(x).([]float32); ok {
		return rowSquares(v, f, float32(about))
	}
	return squareChains(x, about)
}

// foldRun folds neighbours into one result.
func foldRun[T Number](v *Variant, kind ReduceKind, acc float64, run []T) float64 {
	switch kind {
	case ReduceSum, ReduceMean, ReduceLogSum:
		return acc + sumRun(v, run)
	case ReduceL2, ReduceSumSquare:
		return acc + squareRun(v, run, 0)
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
			return max(acc, float64(rowMax(v, f)))
		}
		for _, x := range run {
			acc = max(acc, float64(x))
		}
	case ReduceMin:
		if f, ok := any(run).([]float32); ok {
			return min(acc, float64(rowMin(v, f)))
		}
		for _, x := range run {
			acc = min(acc, float64(x))
		}
	}
	return acc
}
