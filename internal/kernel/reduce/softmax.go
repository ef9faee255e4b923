package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// Softmax is exp(x) / sum(exp(x)) along one axis of [Outer, Axis, Inner], or
// its logarithm. A row is read whole before it is overwritten, so that the
// output may be the operand's bytes.
type Softmax struct {
	Outer, Axis, Inner int
	Log                bool
}

// softmaxGrain is the number of elements of one tile.
const softmaxGrain = 8 << 10

// rowsPerTile is how many rows a tile has. Among many rows it has more: at a
// tile's beginning nothing is prefetched.
func rowsPerTile(rows, length int) int {
	const tiles = 256 // enough for threads to end together
	grain := softmaxGrain
	if rows*length >= 1<<20 {
		grain = max(kernel.RangeElements, rows*length/tiles)
	}
	return max(1, grain/max(length, 1))
}

// softmaxWidth is the most columns that are computed together, so that memory
// is read along its rows; columnBytes is the largest block of them, which stays
// in a cache between its passes.
const (
	softmaxWidth = 512
	columnBytes  = 256 << 10
)

// width returns the columns of a block.
func (s *Softmax) width() int {
	fit := columnBytes / 4 / max(s.Axis, 1) &^ 15
	return min(max(fit, 64), softmaxWidth)
}

// units returns how many rows, or blocks of columns, there are, and how many
// make a tile.
func (s *Softmax) units() (n, perTile int) {
	if s.Inner == 1 {
		return s.Outer, rowsPerTile(s.Outer, s.Axis)
	}
	w := s.width()
	return s.Outer * kernel.CeilDiv(s.Inner, w), max(1, softmaxGrain/max(s.Axis*min(w, s.Inner), 1))
}

// Tiles returns the number of tiles.
func (s *Softmax) Tiles() int {
	n, perTile := s.units()
	return kernel.CeilDiv(n, perTile)
}

// ScratchBytes returns the scratch of a worker.
func (s *Softmax) ScratchBytes() int {
	if s.Inner == 1 {
		return 0
	}
	return 4 * 8 * s.width()
}

// SoftmaxTile computes one tile.
func SoftmaxTile[T kernel.Float](v *kernel.Variant, s *Softmax, tile int, scratch []float64, dst, src []T) {
	n, perTile := s.units()
	lo, hi := tile*perTile, min((tile+1)*perTile, n)
	if f, ok := any(dst).([]float32); ok && s.Inner == 1 && !s.Log && v.Rows.SoftmaxNext != nil {
		if rowsSoftmax(v, s.Axis, f[lo*s.Axis:hi*s.Axis], nil, any(src).([]float32)[lo*s.Axis:hi*s.Axis]) {
			return
		}
	}
	for u := lo; u < hi; u++ {
		if s.Inner != 1 {
			blocks := kernel.CeilDiv(s.Inner, s.width())
			o, at := u/blocks, u%blocks*s.width()
			size := s.Axis * s.Inner
			softmaxColumns(v, s, scratch, dst[o*size+at:(o+1)*size], src[o*size+at:(o+1)*size], min(s.width(), s.Inner-at))
			continue
		}
		d, x := dst[u*s.Axis:(u+1)*s.Axis], src[u*s.Axis:(u+1)*s.Axis]
		if f, ok := any(d).([]float32); ok {
			RowSoftmax(v, f, any(x).([]float32), s.Log)
		} else {
			SoftmaxOf(d, x, s.Log)
		}
	}
}

// StreamRows is the length up to which rows may be streamed: their intermediate
// results stay in the first cache.
const StreamRows = 4 << 10

// SoftmaxStream is SoftmaxTile for rows of StreamRows elements at most (Inner
// is 1), with a result that is written past the caches. dst is not src, and
// scratch takes a row.
func SoftmaxStream(v *kernel.Variant, s *Softmax, tile int, scratch, dst, src []float32) {
	n, perTile := s.units()
	row := scratch[:s.Axis]
	lo, hi := tile*perTile*s.Axis, min((tile+1)*perTile, n)*s.Axis
	if !s.Log && v.Rows.SoftmaxNext != nil && rowsSoftmax(v, s.Axis, dst[lo:hi], row, src[lo:hi]) {
		elementwise.StreamEnd(v)
		return
	}
	for at := lo; at < hi; at += s.Axis {
		RowSoftmax(v, row, src[at:at+s.Axis], s.Log)
		elementwise.StreamRow(v, dst[at:at+s.Axis], row)
	}
	elementwise.StreamEnd(v)
}

func SoftmaxOf[T kernel.Float](dst, src []T, log bool) {
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

// sumRows is how many rows are added up in float32 before it goes on in
// float64.
const sumRows = 256

// softmaxColumns computes n columns, which begin with dst and src.
func softmaxColumns[T kernel.Float](v *kernel.Variant, s *Softmax, scratch []float64, dst, src []T, n int) {
	sum, rest := scratch[:n], kernel.View[T](kernel.BytesOf(scratch[n:4*n]))
	peak, part, temp := rest[:n], rest[n:2*n], rest[2*n:3*n]
	clear(sum)
	clear(part)
	copy(peak, src)
	for k := 1; k < s.Axis; k++ {
		largerOf(v, peak, src[k*s.Inner:][:n])
	}
	for k := range s.Axis {
		d := dst[k*s.Inner:][:n]
		if s.Log {
			d = temp
		}
		expAndAdd(v, d, src[k*s.Inner:][:n], peak, part)
		if k == s.Axis-1 || k%sumRows == sumRows-1 {
			for i, x := range part {
				sum[i] += float64(x)
			}
			clear(part)
		}
	}
	for i := range sum {
		if s.Log {
			part[i] = T(math.Log(sum[i]))
		} else {
			part[i] = T(1 / sum[i])
		}
	}
	for k := range s.Axis {
		d := dst[k*s.Inner:][:n]
		if s.Log {
			rowOf(v, kernel.Sub, d, src[k*s.Inner:][:n], peak)
			rowOf(v, kernel.Sub, d, d, part)
		} else {
			rowOf(v, kernel.Mul, d, d, part)
		}
	}
}

func largerOf[T kernel.Float](v *kernel.Variant, peak, x []T) {
	if p, ok := any(peak).([]float32); ok {
		elementwise.BinaryRowVV(v, kernel.Max, p, p, any(x).([]float32))
		return
	}
	for i, v := range x {
		peak[i] = max(peak[i], v)
	}
}

// expAndAdd is dst = exp(x-peak), added to sum.
func expAndAdd[T kernel.Float](v *kernel.Variant, dst, x, peak, sum []T) {
	if d, ok := any(dst).([]float32); ok {
		expColumns(v, d, any(x).([]float32), any(peak).([]float32), any(sum).([]float32))
		return
	}
	expAddOf(dst, x, peak, sum)
}

func expAddOf[T kernel.Float](dst, x, peak, sum []T) {
	for i, v := range x {
		e := expOf(v - peak[i])
		dst[i] = e
		sum[i] += e
	}
}

func rowOf[T kernel.Float](v *kernel.Variant, op kernel.BinaryOp, dst, x, y []T) {
	if d, ok := any(dst).([]float32); ok {
		elementwise.BinaryRowVV(v, op, d, any(x).([]float32), any(y).([]float32))
		return
	}
	r := kernel.EvenRun(len(dst))
	elementwise.FloatStrided(op, &r, dst, x, y)
}

// expOf is the fast exponential of float32 and the exact one of float64.
func expOf[T kernel.Float](x T) T {
	if f, ok := any(x).(float32); ok {
		return T(elementwise.Exp32(f))
	}
	return T(math.Exp(float64(x)))
}
