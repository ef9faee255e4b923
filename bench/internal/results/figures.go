package results

import (
	"math"
	"math/big"
	"slices"
)

// Number is what samples may be.
type Number interface{ ~int64 | ~float64 }

// Once is a figure that was measured, or computed, once.
func Once[T Number](name string, v T) Named { return Named{name, Figure{Median: float64(v)}} }

// Samples is the median of samples, of which there is one at least, multiplied
// by scale.
func Samples[T Number](name string, scale float64, samples []T) Named {
	list := make([]float64, len(samples))
	for i, v := range samples {
		list[i] = float64(v) * scale
	}
	return Named{name, median(list)}
}

// Spread is a median over cases, with the smallest and the largest of them in
// place of an interval.
func Spread(name string, cases []float64) Named {
	list := slices.Sorted(slices.Values(cases))
	f := Figure{Median: list[len(list)/2], Pairs: len(list)}
	f.Interval = &[2]float64{list[0], list[len(list)-1]}
	return Named{name, f}
}

// Ratios is the median of a[i]/b[i], of samples that were taken in turns.
func Ratios[T Number](name string, a, b []T) Named {
	list := make([]float64, 0, len(a))
	for i := range min(len(a), len(b)) {
		if b[i] != 0 {
			list = append(list, float64(a[i])/float64(b[i]))
		}
	}
	return Named{name, median(list)}
}

// median sorts the list.
func median(list []float64) Figure {
	if len(list) == 0 {
		return Figure{}
	}
	slices.Sort(list)
	f := Figure{Median: (list[(len(list)-1)/2] + list[len(list)/2]) / 2, Pairs: len(list)}
	if rank, ok := Rank(len(list)); ok {
		f.Interval = &[2]float64{list[rank], list[len(list)-1-rank]}
	}
	return f
}

// manySamples is a number from which the exact sum would take longer than it is
// worth.
const manySamples = 1000

// Rank returns how many of n sorted values on either side the interval of the
// median leaves out: the most with which the true median lies outside in at
// most 5 of 100 cases, by the binomial distribution. Fewer than six values have
// no such interval.
func Rank(n int) (rank int, ok bool) {
	if n > manySamples {
		return int((float64(n)-1.96*math.Sqrt(float64(n)))/2) - 1, true // the distribution is normal then, to less than a rank
	}
	whole := new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(n)))
	outside := new(big.Rat)
	for i := int64(0); 2*i < int64(n); i++ {
		tail := new(big.Rat).SetInt(new(big.Int).Binomial(int64(n), i))
		outside.Add(outside, tail.Quo(tail.Add(tail, tail), whole))
		if outside.Cmp(big.NewRat(5, 100)) > 0 {
			break
		}
		rank, ok = int(i), true
	}
	return rank, ok
}
