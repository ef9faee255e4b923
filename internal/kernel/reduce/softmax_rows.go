package reduce

import (
	"math"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// cachedRow is the length up to which a row and its result stay in a core's
// second cache.
const cachedRow = 64 << 10

// RowSoftmax reads and writes a row that the caches hold several times. Of a
// longer one it takes the largest element and the sum together, piece by piece,
// and computes the exponentials again when it writes them.
func RowSoftmax(v *kernel.Variant, dst, src []float32, log bool) {
	if v.Rows.SoftmaxRow == nil {
		SoftmaxOf(dst, src, log)
		return
	}
	if len(src) == 0 {
		return
	}
	dst = dst[:len(src)]
	if len(src) <= kernel.SumElements && !log {
		v.Rows.SoftmaxRow(len(src), &dst[0], &src[0])
		return
	}
	if len(src) <= cachedRow && !log {
		peak, sum := RowMax(v, src), 0.0
		for at := 0; at < len(src); at += kernel.SumElements {
			sum += float64(v.Rows.ExpSum(min(len(src)-at, kernel.SumElements), &dst[at], &src[at], peak))
		}
		v.Rows.BinaryVS[kernel.Mul].Short.Run(dst, dst, float32(1/sum))
		return
	}
	peak, sum := expSums(v, src)
	if log {
		v.Rows.BinaryVS[kernel.Sub].Short.Run(dst, src, peak)
		v.Rows.BinaryVS[kernel.Sub].Short.Run(dst, dst, float32(math.Log(sum)))
		return
	}
	v.Rows.ExpScale.Run(dst, src, peak, float32(1/sum))
}

// rowsSoftmax is softmax of whole rows at once, where there are loops for rows
// like these, and reports whether there are. With a temp that takes a row,
// results are written past the caches; streamEnd must follow. It writes a row
// while it takes the exponentials of the next, and looks for the largest
// element of a row two rows before those are taken, so that nothing waits for
// it.
func rowsSoftmax(v *kernel.Variant, n int, dst, temp, src []float32) bool {
	stream := temp != nil
	if v.Rows.SoftmaxNext == nil || n == 0 || len(dst) == 0 || n > kernel.SumElements || stream && !kernel.IsWhole(v, dst, n) {
		return false
	}
	src = src[:len(dst)]
	next := v.Rows.SoftmaxNext
	if stream {
		next, temp = v.Rows.SoftmaxNextStream, temp[:n]
	}
	exponentials := func(at int) []float32 { // of a row
		if stream {
			return temp
		}
		return dst[at : at+n]
	}
	var peaks [3]float32 // of the next row and those after it
	for i := range min(len(peaks), len(dst)/n) {
		peaks[i] = v.Rows.Max(n, &src[i*n], lowest)
	}
	from := exponentials(0)
	sum := v.Rows.ExpSum(n, &from[0], &src[0], peaks[0])
	for at := n; at < len(dst); at += n {
		later := at + 2*n
		if later >= len(dst) {
			later = at // whose largest element is not used
		}
		to := exponentials(at)
		var top float32
		top, sum = next(n, &dst[at-n], &from[0], &to[0], &src[at], &src[later], peaks[1], 1/sum)
		from, peaks = to, [3]float32{peaks[1], peaks[2], top}
	}
	last := dst[len(dst)-n:]
	v.Rows.BinaryVS[kernel.Mul].Short.Run(from, from, 1/sum)
	if stream {
		elementwise.StreamRow(v, last, from)
	}
	return true
}

// expSums is the largest element of a row and the sum of exp(x-peak). What was
// added up about a smaller one is scaled down.
func expSums(v *kernel.Variant, x []float32) (peak float32, sum float64) {
	peak = float32(math.Inf(-1))
	for len(x) > 0 {
		n := min(len(x), kernel.SumElements)
		if top := v.Rows.Max(n, &x[0], peak); top != peak {
			if sum > 0 {
				sum *= math.Exp(float64(peak) - float64(top))
			}
			peak = top
		}
		if math.IsInf(float64(peak), -1) {
			x = x[n:] // nothing but -Inf so far
			continue
		}
		sum += float64(v.Rows.ExpOnlySum(n, &x[0], peak))
		x = x[n:]
	}
	return peak, sum
}

// RowExpSum replaces the elements of a row by exp(x[i]-peak), and returns their
// sum.
func RowExpSum(v *kernel.Variant, x []float32, peak float32) float32 {
	sum := 0.0
	if v.Rows.ExpSum == nil {
		for i, e := range x {
			x[i] = expOf(e - peak)
			sum += float64(x[i])
		}
		return float32(sum)
	}
	for len(x) > 0 {
		n := min(len(x), kernel.SumElements)
		sum += float64(v.Rows.ExpSum(n, &x[0], &x[0], peak))
		x = x[n:]
	}
	return float32(sum)
}

// expColumns is dst[i] = exp(src[i]-peak[i]), added to sum[i].
func expColumns(v *kernel.Variant, dst, src, peak, sum []float32) {
	f := v.Rows.ExpSumColumns
	if f == nil {
		expAddOf(dst, src, peak, sum)
		return
	}
	dst, peak, sum = dst[:len(src)], peak[:len(src)], sum[:len(src)]
	for len(src) > 0 {
		n := min(len(src), kernel.AsmElements)
		f(n, &dst[0], &src[0], &peak[0], &sum[0])
		dst, src, peak, sum = dst[n:], src[n:], peak[n:], sum[n:]
	}
}
