package kernel

import (
	"math"
	"unsafe"
)

var lowest = float32(math.Inf(-1))

// sumElements is how much of a row is added up in float32 before it goes on in float64: a lane adds up a hundredth of it.
const sumElements = 4 << 10

func (v *rowCode) installRows() {
	rowSum = func(x []float32) (sum float64) {
		for ; len(x) > asmElements; x = x[asmElements:] {
			sum += v.sum(asmElements, &x[0])
		}
		if len(x) > 0 {
			sum += v.sum(len(x), &x[0])
		}
		return sum
	}
	rowSquares = func(x []float32, about float32) (sum float64) {
		for len(x) > 0 {
			n := min(len(x), asmElements)
			sum += v.squares(n, &x[0], about)
			x = x[n:]
		}
		return sum
	}
	rowMax = func(x []float32) float32 { return peakRow(v.max, x, lowest) }
	rowMin = func(x []float32) float32 { return peakRow(v.min, x, float32(math.Inf(1))) }
	rowMoments = v.moments
	rowSoftmax = v.softmax
	expColumns = func(dst, src, peak, sum []float32) {
		dst, peak, sum = dst[:len(src)], peak[:len(src)], sum[:len(src)]
		for len(src) > 0 {
			n := min(len(src), asmElements)
			v.expSumColumns(n, &dst[0], &src[0], &peak[0], &sum[0])
			dst, src, peak, sum = dst[n:], src[n:], peak[n:], sum[n:]
		}
	}
	rowNorm = v.norm
	rowsNorm, rowsSoftmax = v.normRows, v.softmaxRows
	streamRow = v.streamRow
	streamEnd = v.fence
	turnWords = func(dst []uint32, dstP int, src []uint32, from, srcQ, np, nq int) bool {
		return turnSquares(v.transpose, v.bytes/4, dst, dstP, src, from, srcQ, np, nq)
	}
	turnHalves = func(dst []uint16, dstP int, src []uint16, from, srcQ, np, nq int) bool {
		return turnSquares(turnHalves256, 8, dst, dstP, src, from, srcQ, np, nq)
	}
	turnBytes = func(dst []uint8, dstP int, src []uint8, from, srcQ, np, nq int) bool {
		return turnSquares(turnBytes256, 8, dst, dstP, src, from, srcQ, np, nq)
	}
	vectorHalves = true
}

func peakRow(f func(n int, x *float32, s float32) float32, x []float32, peak float32) float32 {
	for len(x) > 0 {
		n := min(len(x), asmElements)
		peak = f(n, &x[0], peak)
		x = x[n:]
	}
	return peak
}

// moments takes one pass about a number that lies among those of the row, which loses nothing where that is within a few deviations of the
// mean. Where it is not, a second pass about the mean does.
func (v *rowCode) moments(x []float32) (mean, variance float64) {
	about := pivot(x)
	mean, variance = v.about(x, about)
	return v.retry(x, about, mean, variance)
}

func pivot(x []float32) float32 {
	n := len(x)
	return (x[0] + x[n/4] + x[n/2] + x[n-n/4-1]) / 4
}

func (v *rowCode) retry(x []float32, about float32, mean, variance float64) (float64, float64) {
	if off := mean - float64(about); !(off*off <= 4*variance) {
		return v.about(x, float32(mean))
	}
	return mean, variance
}

// about computes the moments from the sums of the distances from a number and of their squares.
func (v *rowCode) about(x []float32, pivot float32) (mean, variance float64) {
	var off, squares float64
	count := float64(len(x))
	for len(x) > 0 {
		n := min(len(x), sumElements)
		d, q := v.deviations(n, &x[0], pivot)
		off, squares = off+float64(d), squares+float64(q)
		x = x[n:]
	}
	return momentsAbout(pivot, off, squares, count)
}

func momentsAbout(pivot float32, off, squares, count float64) (mean, variance float64) {
	off /= count
	return float64(pivot) + off, max(0, squares/count-off*off)
}

// farElements is the number of elements from which on rows are likely to come from memory.
const farElements = 8 << 20

func (v *rowCode) normRows(n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32, stream bool) bool {
	if n.Len == 0 || n.Len > sumElements || stream && !v.isWhole(dst, n.Len) {
		return false
	}
	dst, src, scale, bias = dst[:hi*n.Len], src[:hi*n.Len], scale[:n.Len], bias[:n.Len]
	if !stream && n.Rows*n.Len < farElements {
		v.normNear(n, lo, hi, dst, src, scale, bias, mean, invStd)
		return true
	}
	v.normFar(n, lo, hi, dst, src, scale, bias, mean, invStd, stream)
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

// normFar takes the moments of a row that comes from memory in a pass that asks for a later row: it writes nothing, so that memory reads
// in that time and writes in the other pass.
func (v *rowCode) normFar(n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32, stream bool) {
	normalise := v.normBias
	if stream {
		normalise = v.normBiasStream
	}
	for row := lo; row < hi; row++ {
		x := src[row*n.Len:][:n.Len]
		about := pivot(x)
		off, squares := v.deviationsAhead(n.Len, &x[0], about)
		m, variance := momentsAbout(about, float64(off), float64(squares), float64(n.Len))
		m, variance = v.retry(x, about, m, variance)
		inv := 1 / math.Sqrt(variance+n.Epsilon)
		noteMoments(row, mean, invStd, m, inv)
		normalise(n.Len, &dst[row*n.Len], &x[0], &scale[0], &bias[0], float32(m), float32(inv))
	}
}

// normNear takes the moments of a row that the caches hold while it writes the one before it.
func (v *rowCode) normNear(n *Norm, lo, hi int, dst, src, scale, bias, mean, invStd []float32) {
	m, variance := v.moments(src[lo*n.Len:][:n.Len])
	for row := lo; row < hi; row++ {
		inv := 1 / math.Sqrt(variance+n.Epsilon)
		noteMoments(row, mean, invStd, m, inv)
		to, x := &dst[row*n.Len], &src[row*n.Len]
		if row+1 == hi {
			v.normBias(n.Len, to, x, &scale[0], &bias[0], float32(m), float32(inv))
			break
		}
		next := src[(row+1)*n.Len:][:n.Len]
		about := pivot(next)
		off, squares := v.normNext(n.Len, to, x, &scale[0], &bias[0], &next[0], float32(m), float32(inv), about)
		m, variance = momentsAbout(about, float64(off), float64(squares), float64(n.Len))
		m, variance = v.retry(next, about, m, variance)
	}
}

// isWhole tells whether rows of n elements can be written past the caches as they are.
func (v *rowCode) isWhole(dst []float32, n int) bool {
	return (int(uintptr(unsafe.Pointer(unsafe.SliceData(dst))))|4*n)%v.bytes == 0
}

// cachedRow is the length up to which a row and its result stay in a core's second cache.
const cachedRow = 64 << 10

// softmax reads and writes a row that the caches hold several times. Of a longer one it takes the largest element and the sum together,
// piece by piece, and computes the exponentials again when it writes them.
func (v *rowCode) softmax(dst, src []float32, log bool) {
	if len(src) == 0 {
		return
	}
	dst = dst[:len(src)]
	if len(src) <= sumElements && !log {
		v.softmaxRow(len(src), &dst[0], &src[0])
		return
	}
	if len(src) <= cachedRow && !log {
		peak, sum := rowMax(src), 0.0
		for at := 0; at < len(src); at += sumElements {
			sum += float64(v.expSum(min(len(src)-at, sumElements), &dst[at], &src[at], peak))
		}
		v.mulScalar.run(dst, dst, float32(1/sum))
		return
	}
	peak, sum := v.expSums(src)
	if log {
		v.subScalar.run(dst, src, peak)
		v.subScalar.run(dst, dst, float32(math.Log(sum)))
		return
	}
	v.expScale.run(dst, src, peak, float32(1/sum))
}

// softmaxRows writes a row while it takes the exponentials of the next, and looks for the largest element of a row two rows before those
// are taken, so that nothing waits for it. temp, if any, takes a row.
func (v *rowCode) softmaxRows(n int, dst, temp, src []float32) bool {
	stream := temp != nil
	if n == 0 || len(dst) == 0 || n > sumElements || stream && !v.isWhole(dst, n) {
		return false
	}
	src = src[:len(dst)]
	next := v.softmaxNext
	if stream {
		next, temp = v.softmaxNextStream, temp[:n]
	}
	exponentials := func(at int) []float32 { // of a row
		if stream {
			return temp
		}
		return dst[at : at+n]
	}
	var peaks [3]float32 // of the next row and those after it
	for i := range min(len(peaks), len(dst)/n) {
		peaks[i] = v.max(n, &src[i*n], lowest)
	}
	from := exponentials(0)
	sum := v.expSum(n, &from[0], &src[0], peaks[0])
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
	v.mulScalar.run(from, from, 1/sum)
	if stream {
		v.streamRow(last, from)
	}
	return true
}

// expSums is the largest element of a row and the sum of exp(x-peak). What was added up about a smaller one is scaled down.
func (v *rowCode) expSums(x []float32) (peak float32, sum float64) {
	peak = float32(math.Inf(-1))
	for len(x) > 0 {
		n := min(len(x), sumElements)
		if top := v.max(n, &x[0], peak); top != peak {
			if sum > 0 {
				sum *= math.Exp(float64(peak) - float64(top))
			}
			peak = top
		}
		if math.IsInf(float64(peak), -1) {
			x = x[n:] // nothing but -Inf so far
			continue
		}
		sum += float64(v.expOnlySum(n, &x[0], peak))
		x = x[n:]
	}
	return peak, sum
}

func (v *rowCode) norm(dst, src, scale, bias []float32, mean, inv float32) {
	dst, scale = dst[:len(src)], scale[:len(src)]
	for len(src) > 0 {
		n := min(len(src), asmElements)
		if bias == nil {
			v.normScale(n, &dst[0], &src[0], &scale[0], mean, inv)
		} else {
			_ = bias[n-1]
			v.normBias(n, &dst[0], &src[0], &scale[0], &bias[0], mean, inv)
			bias = bias[n:]
		}
		src, dst, scale = src[n:], dst[n:], scale[n:]
	}
}
