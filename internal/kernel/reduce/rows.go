package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

// The row loops of reductions in float32. What they add up they return in
// float64, so that a long row does not lose its small numbers.

// RowSum is the sum of x[i].
func RowSum(v *kernel.Variant, x []float32) (sum float64) {
	f := v.Rows.Sum
	if f == nil {
		return portableSum(x)
	}
	for ; len(x) > kernel.AsmElements; x = x[kernel.AsmElements:] {
		sum += f(kernel.AsmElements, &x[0])
	}
	if len(x) > 0 {
		sum += f(len(x), &x[0])
	}
	return sum
}

// rowSquares is the sum of (x[i]-about)^2.
func rowSquares(v *kernel.Variant, x []float32, about float32) (sum float64) {
	f := v.Rows.Squares
	if f == nil {
		return portableSquares(x, about)
	}
	for len(x) > 0 {
		n := min(len(x), kernel.AsmElements)
		sum += f(n, &x[0], about)
		x = x[n:]
	}
	return sum
}

// RowMax is -Inf of none, NaN if any is.
func RowMax(v *kernel.Variant, x []float32) float32 {
	if v.Rows.Max == nil {
		return portableMax(x)
	}
	return peakRow(v.Rows.Max, x, lowest)
}

// RowMin is Inf of none, NaN if any is.
func RowMin(v *kernel.Variant, x []float32) float32 {
	if v.Rows.Min == nil {
		return portableMin(x)
	}
	return peakRow(v.Rows.Min, x, float32(math.Inf(1)))
}

func peakRow(f func(n int, x *float32, s float32) float32, x []float32, peak float32) float32 {
	for len(x) > 0 {
		n := min(len(x), kernel.AsmElements)
		peak = f(n, &x[0], peak)
		x = x[n:]
	}
	return peak
}

// portableSum adds in four chains, which the processor runs side by side.
func portableSum(x []float32) float64 { return sumChains(x) }

func sumChains[T kernel.Number](x []T) float64 {
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

func squareChains[T kernel.Number](x []T, about T) float64 {
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

func portableMax[T kernel.Float](x []T) T {
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

func portableMin[T kernel.Float](x []T) T {
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

// sumRun is RowSum for any type.
func sumRun[T kernel.Number](v *kernel.Variant, x []T) float64 {
	if f, ok := any(x).([]float32); ok {
		return RowSum(v, f)
	}
	return sumChains(x)
}

// squareRun is rowSquares for any type.
func squareRun[T kernel.Number](v *kernel.Variant, x []T, about T) float64 {
	if f, ok := any(x).([]float32); ok {
		return rowSquares(v, f, float32(about))
	}
	return squareChains(x, about)
}

// foldRun folds neighbours into one result.
func foldRun[T kernel.Number](v *kernel.Variant, kind Kind, acc float64, run []T) float64 {
	switch kind {
	case Sum, Mean, LogSum:
		return acc + sumRun(v, run)
	case L2, SumSquare:
		return acc + squareRun(v, run, 0)
	case Prod:
		for _, x := range run {
			acc *= float64(x)
		}
	case L1:
		for _, x := range run {
			acc += math.Abs(float64(x))
		}
	case Max:
		if f, ok := any(run).([]float32); ok {
			return max(acc, float64(RowMax(v, f)))
		}
		for _, x := range run {
			acc = max(acc, float64(x))
		}
	case Min:
		if f, ok := any(run).([]float32); ok {
			return min(acc, float64(RowMin(v, f)))
		}
		for _, x := range run {
			acc = min(acc, float64(x))
		}
	}
	return acc
}
