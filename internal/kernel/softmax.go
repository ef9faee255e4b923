package kernel

import "math"

// Softmax is exp(x) / sum(exp(x)) along one axis of [Outer, Axis, Inner], or
// its logarithm. A row is read whole before it is overwritten, so that the
// output may be the operand's bytes.
type Softmax struct {
	Outer, Axis, Inner int
	Log                bool
}

// softmaxGrain is the number of elements of one tile.
const softmaxGrain = 8 << 10

// perTile returns the outer indices of one tile.
func (s *Softmax) perTile() int { return max(1, softmaxGrain/max(s.Axis*s.Inner, 1)) }

// Tiles returns the number of tiles.
func (s *Softmax) Tiles() int { return (s.Outer + s.perTile() - 1) / s.perTile() }

// SoftmaxTile computes one tile.
func SoftmaxTile[T Float](s *Softmax, tile int, dst, src []T) {
	lo := tile * s.perTile()
	size := s.Axis * s.Inner
	for o := lo; o < min(lo+s.perTile(), s.Outer); o++ {
		d, x := dst[o*size:(o+1)*size], src[o*size:(o+1)*size]
		if s.Inner != 1 {
			softmaxColumns(s, d, x)
		} else if f, ok := any(d).([]float32); ok {
			rowSoftmax(f, any(x).([]float32), s.Log)
		} else {
			softmaxOf(d, x, s.Log)
		}
	}
}

func portableSoftmax(dst, src []float32, log bool) { softmaxOf(dst, src, log) }

func softmaxOf[T Float](dst, src []T, log bool) {
	peak, sum := portableMax(src), 0.0
	if log {
		for _, x := range src {
			sum += float64(expOf(x - peak))
		}
		shift := T(math.Log(sum))
		for i, x := range src {
			dst[i] = x - peak - shift
		}
		return
	}
	for i, x := range src {
		e := expOf(x - peak)
		dst[i] = e
		sum += float64(e)
	}
	scale := T(1 / sum)
	for i := range dst {
		dst[i] *= scale
	}
}

// softmaxWidth columns are computed together, so that memory is read along
// its rows.
const softmaxWidth = 32

func softmaxColumns[T Float](s *Softmax, dst, src []T) {
	var peaks [softmaxWidth]T
	var sums [softmaxWidth]float64
	for at := 0; at < s.Inner; at += softmaxWidth {
		n := min(softmaxWidth, s.Inner-at)
		peak, sum := peaks[:n], sums[:n]
		copy(peak, src[at:])
		clear(sum)
		for k := 1; k < s.Axis; k++ {
			for i, x := range src[k*s.Inner+at:][:n] {
				peak[i] = max(peak[i], x)
			}
		}
		for k := range s.Axis {
			d := dst[k*s.Inner+at:][:n]
			for i, x := range src[k*s.Inner+at:][:n] {
				e := expOf(x - peak[i])
				sum[i] += float64(e)
				if !s.Log {
					d[i] = e
				}
			}
		}
		for i := range sum {
			if s.Log {
				sum[i] = math.Log(sum[i])
			} else {
				sum[i] = 1 / sum[i]
			}
		}
		for k := range s.Axis {
			d := dst[k*s.Inner+at:][:n]
			for i, x := range src[k*s.Inner+at:][:n] {
				if s.Log {
					d[i] = x - peak[i] - T(sum[i])
				} else {
					d[i] *= T(sum[i])
				}
			}
		}
	}
}

// expOf is the fast exponential of float32 and the exact one of float64.
func expOf[T Float](x T) T {
	if f, ok := any(x).(float32); ok {
		return T(exp32(f))
	}
	return T(math.Exp(float64(x)))
}
