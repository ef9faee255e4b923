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
		if s.Inner == 1 {
			softmaxRow(d, x, s.Log)
			continue
		}
		for i := range s.Inner {
			softmaxColumn(d[i:], x[i:], s.Axis, s.Inner, s.Log)
		}
	}
}

func softmaxRow[T Float](dst, src []T, log bool) {
	peak := T(math.Inf(-1))
	for _, x := range src {
		peak = max(peak, x)
	}
	sum := 0.0
	if log {
		for _, x := range src {
			sum += math.Exp(float64(x - peak))
		}
		shift := peak + T(math.Log(sum))
		for i, x := range src {
			dst[i] = x - shift
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

func softmaxColumn[T Float](dst, src []T, n, stride int, log bool) {
	peak := T(math.Inf(-1))
	for i := range n {
		peak = max(peak, src[i*stride])
	}
	sum := 0.0
	for i := range n {
		e := expOf(src[i*stride] - peak)
		sum += float64(e)
		if !log {
			dst[i*stride] = e
		}
	}
	scale, shift := T(1/sum), peak+T(math.Log(sum))
	for i := range n {
		if log {
			dst[i*stride] = src[i*stride] - shift
		} else {
			dst[i*stride] *= scale
		}
	}
}

// expOf is the fast exponential of float32 and the exact one of float64.
func expOf[T Float](x T) T {
	if f, ok := any(x).(float32); ok {
		return T(exp64(float64(f)))
	}
	return T(math.Exp(float64(x)))
}
