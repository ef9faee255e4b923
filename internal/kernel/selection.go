package kernel

import (
	"cmp"
	"slices"
)

// Loss is the negative log likelihood of x [Batch, Classes, Area] at targets [Batch, Area].
type Loss struct {
	Batch, Classes, Area int
	Ignore               int64 // the target that counts for nothing, if HasIgnore
	HasIgnore            bool
	Sum, Mean            bool // one number; the mean is by weight
}

// NLLLoss computes the loss; weights are per class, and may be absent.
func NLLLoss[T Float, I Index](l *Loss, dst, x []T, targets []I, weights []T) {
	sum, count := 0.0, 0.0
	for i, target := range targets {
		loss := 0.0
		if !l.HasIgnore || int64(target) != l.Ignore {
			w := 1.0
			if weights != nil {
				w = float64(weights[target])
			}
			loss = -w * float64(x[(i/l.Area*l.Classes+int(target))*l.Area+i%l.Area])
			count += w
		}
		sum += loss
		if !l.Sum && !l.Mean {
			dst[i] = T(loss)
		}
	}
	switch {
	case l.Mean:
		dst[0] = T(sum / count)
	case l.Sum:
		dst[0] = T(sum)
	}
}

// TopK is the K largest, or Smallest, of each row of Axis elements that lie Inner apart.
type TopK struct {
	Axis, Inner, K int
	Smallest       bool
}

// TopKRows computes rows [lo, hi). NaN is the smallest, and of equal elements the first comes first. scratch has Axis numbers.
func TopKRows[T Number](s *TopK, lo, hi int, values []T, places []int64, src []T, scratch []int64) {
	order := scratch[:s.Axis]
	for row := lo; row < hi; row++ {
		base, to := row/s.Inner*s.Axis*s.Inner+row%s.Inner, row/s.Inner*s.K*s.Inner+row%s.Inner
		for i := range order {
			order[i] = int64(i)
		}
		slices.SortFunc(order, func(a, b int64) int {
			c := cmp.Compare(src[base+int(b)*s.Inner], src[base+int(a)*s.Inner])
			if s.Smallest {
				c = -c
			}
			if c == 0 {
				c = cmp.Compare(a, b)
			}
			return c
		})
		for i, at := range order[:s.K] {
			if values != nil {
				values[to+i*s.Inner] = src[base+int(at)*s.Inner]
			}
			if places != nil {
				places[to+i*s.Inner] = at
			}
		}
	}
}

// HardmaxRows writes 1 at the first largest element of rows [lo, hi) of axis elements that lie inner apart, and 0 elsewhere.
func HardmaxRows[T Float](lo, hi, axis, inner int, dst, src []T) {
	for row := lo; row < hi; row++ {
		base, best := row/inner*axis*inner+row%inner, 0
		for i := range axis {
			dst[base+i*inner] = 0
			if src[base+i*inner] > src[base+best*inner] {
				best = i
			}
		}
		dst[base+best*inner] = 1
	}
}
