package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
)

var lowest = float32(math.Inf(-1))

// rowMoments is the mean and the variance of a row. It takes one pass about a
// number that lies among those of the row, which loses nothing where that is
// within a few deviations of the mean. Where it is not, a second pass about the
// mean does.
func rowMoments(v *kernel.Variant, x []float32) (mean, variance float64) {
	if v.Rows.NormBias == nil {
		return momentsOf(x)
	}
	about := pivot(x)
	mean, variance = momentsFrom(v, x, about)
	return retryMoments(v, x, about, mean, variance)
}

func pivot(x []float32) float32 {
	n := len(x)
	return (x[0] + x[n/4] + x[n/2] + x[n-n/4-1]) / 4
}

// retryMoments takes the moments about the mean where they were taken about a
// number far from it.
func retryMoments(v *kernel.Variant, x []float32, about float32, mean, variance float64) (float64, float64) {
	if off := mean - float64(about); !(off*off <= 4*variance) {
		return momentsFrom(v, x, float32(mean))
	}
	return mean, variance
}

// momentsFrom computes the moments from the sums of the distances from a number
// and of their squares.
func momentsFrom(v *kernel.Variant, x []float32, pivot float32) (mean, variance float64) {
	var off, squares float64
	count := float64(len(x))
	for len(x) > 0 {
		n := min(len(x), kernel.SumElements)
		d, q := v.Rows.Deviations(n, &x[0], pivot)
		off, squares = off+float64(d), squares+float64(q)
		x = x[n:]
	}
	return momentsAbout(pivot, off, squares, count)
}

func momentsAbout(pivot float32, off, squares, count float64) (mean, variance float64) {
	off /= count
	return float64(pivot) + off, max(0, squares/count-off*off)
}

// farElements is the number of elements from which on rows are likely to come
// from memory.
const farElements = 8 << 20

// rowsNorm normalises whole rows at once, where there are loops for rows like
// these, and reports whether there are. With stream, results are written past
// the caches; streamEnd must follow.
func rowsNorm(v *kernel.Variant, n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32, stream bool) bool {
	if v.Rows.NormBias == nil || n.Len == 0 || n.Len > kernel.SumElements || stream && !kernel.IsWhole(v, dst, n.Len) {
		return false
	}
	dst, src, scale, bias = dst[:hi*n.Len], src[:hi*n.Len], scale[:n.Len], bias[:n.Len]
	if !stream && n.Rows*n.Len < farElements {
		normNear(v, n, lo, hi, dst, src, scale, bias, mean, invStd)
		return true
	}
	normFar(v, n, lo, hi, dst, src, scale, bias, mean, invStd, stream)
	return true
}

func noteMoments(row int, mean, invStd []float32, m, inv float64) {
	if mean != nil {
		mean[row] = float32(m)
	}
	if invStd != nil {
		invStd[row] = float32(inv)
	}
}

// normFar takes the moments of a row that comes from memory in a pass that
// prefetches a later row: it writes nothing, so that memory reads in that time
// and writes in the other pass.
func normFar(v *kernel.Variant, n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32, stream bool) {
	normalise := v.Rows.NormBias
	if stream {
		normalise = v.Rows.NormBiasStream
	}
	for row := lo; row < hi; row++ {
		x := src[row*n.Len:][:n.Len]
		about := pivot(x)
		off, squares := v.Rows.DeviationsAhead(n.Len, &x[0], about)
		m, variance := momentsAbout(about, float64(off), float64(squares), float64(n.Len))
		m, variance = retryMoments(v, x, about, m, variance)
		inv := 1 / math.Sqrt(variance+n.Epsilon)
		noteMoments(row, mean, invStd, m, inv)
		normalise(n.Len, &dst[row*n.Len], &x[0], &scale[0], &bias[0], float32(m), float32(inv))
	}
}

// normNear takes the moments of a row that the caches hold while it writes the
// one before it.
func normNear(v *kernel.Variant, n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32) {
	m, variance := rowMoments(v, src[lo*n.Len:][:n.Len])
	for row := lo; row < hi; row++ {
		inv := 1 / math.Sqrt(variance+n.Epsilon)
		noteMoments(row, mean, invStd, m, inv)
		to, x := &dst[row*n.Len], &src[row*n.Len]
		if row+1 == hi {
			v.Rows.NormBias(n.Len, to, x, &scale[0], &bias[0], float32(m), float32(inv))
			break
		}
		next := src[(row+1)*n.Len:][:n.Len]
		about := pivot(next)
		off, squares := v.Rows.NormNext(n.Len, to, x, &scale[0], &bias[0], &next[0], float32(m), float32(inv), about)
		m, variance = momentsAbout(about, float64(off), float64(squares), float64(n.Len))
		m, variance = retryMoments(v, next, about, m, variance)
	}
}

// rowNorm is (src[i]-mean) * inv * scale[i] + bias[i], of which bias may be
// nil.
func rowNorm(v *kernel.Variant, dst, src, scale, bias []float32, mean, inv float32) {
	if v.Rows.NormBias == nil {
		normOf(dst, src, scale, bias, mean, inv)
		return
	}
	dst, scale = dst[:len(src)], scale[:len(src)]
	for len(src) > 0 {
		n := min(len(src), kernel.AsmElements)
		if bias == nil {
			v.Rows.NormScale(n, &dst[0], &src[0], &scale[0], mean, inv)
		} else {
			_ = bias[n-1]
			v.Rows.NormBias(n, &dst[0], &src[0], &scale[0], &bias[0], mean, inv)
			bias = bias[n:]
		}
		src, dst, scale = src[n:], dst[n:], scale[n:]
	}
}
