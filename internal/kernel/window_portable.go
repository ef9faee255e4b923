package kernel

import (
	"math"
	"unsafe"
)

// behind is n elements at a distance in bytes.
func behind(p *float32, bytes, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(p), bytes)), n)
}

func portablePadRows(kind PadKind, call PadCall) {
	for i := range call.rows {
		src := behind(call.src, i*call.srcStep, call.n)
		dst := behind(call.dst, i*call.dstStep, call.width)
		if kind == PadPairs {
			takePairs(dst, behind(call.dst1, i*call.dstStep, call.width), src, &call)
			continue
		}
		repeat(dst[:call.left], call.fill)
		to := dst[call.left:][:call.n]
		copy(to, src)
		if kind == PadAffine {
			for k, v := range to {
				to[k] = max(v*call.scale+call.shift, call.floor)
			}
		}
		repeat(dst[call.left+call.n:], call.fill)
	}
}

func takePairs(even, odd, src []float32, call *PadCall) {
	evens, odds := (len(src)+1)/2, len(src)/2
	repeat(even[:call.left], call.fill)
	repeat(even[call.left+evens:], call.fill)
	repeat(odd[:call.left1], call.fill)
	repeat(odd[call.left1+odds:], call.fill)
	even, odd = even[call.left:][:evens], odd[call.left1:][:odds]
	for k := range odd {
		pair := src[2*k:][:2]
		even[k], odd[k] = pair[0], pair[1]
	}
	if evens > odds {
		even[odds] = src[2*odds]
	}
}

func portableWindowRows(kind WindowKind, call WindowCall) {
	offsets := unsafe.Slice(call.offsets, call.taps)
	for i := range call.rows {
		out := behind(call.out, i*call.outStep, call.cols)
		switch kind {
		case WindowSum:
			portableWindowSum(out, &call, offsets, i)
		case WindowMax:
			portableWindowMax(out, &call, offsets, i*call.rowStep)
		default:
			copy(out, behind(call.src, i*call.rowStep+int(offsets[0]), call.cols))
			for _, o := range offsets[1:] {
				portableBinaryVV(Add, out, out, behind(call.src, i*call.rowStep+int(o), call.cols))
			}
			portableBinaryVV(Mul, out, out, behind(call.scale, 0, call.cols))
		}
	}
}

// portableWindowSum takes three taps at a time, so that an output is read and written once for them. The residual may be the output.
func portableWindowSum(out []float32, call *WindowCall, offsets []int32, row int) {
	n, at := len(out), row*call.rowStep
	if call.residual == nil {
		repeat(out, call.bias)
	} else {
		for k, v := range behind(call.residual, row*call.residualStep, n) {
			out[k] = v + call.bias
		}
	}
	weights := unsafe.Slice(call.weights, call.taps)
	k := 0
	for ; k+3 <= len(offsets); k += 3 {
		w0, w1, w2 := weights[k], weights[k+1], weights[k+2]
		x0, x1, x2 := behind(call.src, at+int(offsets[k]), n), behind(call.src, at+int(offsets[k+1]), n), behind(call.src, at+int(offsets[k+2]), n)
		x1, x2 = x1[:len(x0)], x2[:len(x0)]
		to := out[:len(x0)]
		for i, v := range x0 {
			to[i] += w0*v + w1*x1[i] + w2*x2[i]
		}
	}
	for ; k < len(offsets); k++ {
		addScaled(Portable, out, behind(call.src, at+int(offsets[k]), n), weights[k])
	}
	if !math.IsInf(float64(call.low), -1) || !math.IsInf(float64(call.high), 1) {
		for i, v := range out {
			out[i] = min(max(v, call.low), call.high)
		}
	}
}

// portableWindowMax takes two taps at a time. A last one alone is seen twice.
func portableWindowMax(out []float32, call *WindowCall, offsets []int32, at int) {
	n := len(out)
	for k := 0; k < len(offsets); k += 2 {
		a, b := behind(call.src, at+int(offsets[k]), n), behind(call.src, at+int(offsets[min(k+1, len(offsets)-1)]), n)
		a, b = a[:len(out)], b[:len(out)]
		if k == 0 {
			for i := range out {
				out[i] = max(a[i], b[i])
			}
			continue
		}
		for i, v := range out {
			out[i] = max(v, a[i], b[i])
		}
	}
}
