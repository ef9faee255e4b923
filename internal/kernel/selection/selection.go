package selection

import "github.com/tenure-go/tenure/internal/kernel"

// Loss is the negative log likelihood of x [Batch, Classes, Area] at targets
// [Batch, Area].
type Loss struct {
	Batch, Classes, Area int
	Ignore               int64 // the target that counts for nothing, if HasIgnore
	HasIgnore            bool
	Sum, Mean            bool // one number; the mean is by weight
}

// NLLLoss computes the loss; weights are per class, and may be absent.
func NLLLoss[T kernel.Float, I kernel.Index](l *Loss, dst, x []T, targets []I, weights []T) {
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

// TopK is the K largest, or Smallest, of each row of Axis elements that lie
// Inner apart.
type TopK struct {
	Axis, Inner, K int
	Smallest       bool
}

// picks reports whether so few elements are wanted that they are picked from a
// row, and not the row sorted.
func (s *TopK) picks() bool { return s.K <= 32 && 4*s.K <= s.Axis }

// Scratch is how many numbers TopKRows wants.
func (s *TopK) Scratch() int {
	if s.picks() {
		return orderWords * s.K
	}
	return 2 * orderWords * s.Axis
}

// TopKRows computes rows [lo, hi). NaN is the smallest, and of equal elements
// the first comes first.
func TopKRows[T kernel.Number](s *TopK, lo, hi int, values []T, places []int64, src []T, scratch []int64) {
	if s.K == 0 {
		return
	}
	flip := ^uint64(0)
	if s.Smallest {
		flip = 0
	}
	for row := lo; row < hi; row++ {
		base, to := row/s.Inner*s.Axis*s.Inner+row%s.Inner, row/s.Inner*s.K*s.Inner+row%s.Inner
		var order []orderItem
		if s.picks() {
			order = orderItems(scratch, s.K)
			pickItems(order, src, base, s.Inner, s.Axis, flip)
		} else {
			items := orderItems(scratch, 2*s.Axis)
			orderKeys(items[:s.Axis], src, base, s.Inner, flip, false)
			order = sortItems(items[:s.Axis], items[s.Axis:])[:s.K]
		}
		for i, it := range order {
			if values != nil {
				values[to+i*s.Inner] = src[base+int(it.at)*s.Inner]
			}
			if places != nil {
				places[to+i*s.Inner] = it.at
			}
		}
	}
}

// HardmaxRows writes 1 at the first largest element of rows [lo, hi) of axis
// elements that lie inner apart, and 0 elsewhere. dst may be src exactly.
func HardmaxRows[T kernel.Float](lo, hi, axis, inner int, dst, src []T) {
	for row := lo; row < hi; row++ {
		base, best := row/inner*axis*inner+row%inner, 0
		largest := src[base]
		for i := range axis {
			x := src[base+i*inner]
			dst[base+i*inner] = 0
			if x > largest {
				largest, best = x, i
			}
		}
		dst[base+best*inner] = 1
	}
}
