package conv

import (
	"math"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/gemm"
)

// behind is n elements at a distance in bytes.
func behind(p *float32, bytes, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Add(unsafe.Pointer(p), bytes)), n)
}

func portablePadRows(kind kernel.PadKind, call kernel.PadCall) {
	for i := range call.Rows {
		src := behind(call.Src, i*call.SrcStep, call.N)
		dst := behind(call.Dst, i*call.DstStep, call.Width)
		if kind == kernel.PadPairs {
			takePairs(dst, behind(call.Dst1, i*call.DstStep, call.Width), src, &call)
			continue
		}
		kernel.Repeat(dst[:call.Left], call.Fill)
		to := dst[call.Left:][:call.N]
		copy(to, src)
		if kind == kernel.PadAffine {
			for k, v := range to {
				to[k] = max(v*call.Scale+call.Shift, call.Floor)
			}
		}
		kernel.Repeat(dst[call.Left+call.N:], call.Fill)
	}
}

func takePairs(even, odd, src []float32, call *kernel.PadCall) {
	evens, odds := (len(src)+1)/2, len(src)/2
	kernel.Repeat(even[:call.Left], call.Fill)
	kernel.Repeat(even[call.Left+evens:], call.Fill)
	kernel.Repeat(odd[:call.Left1], call.Fill)
	kernel.Repeat(odd[call.Left1+odds:], call.Fill)
	even, odd = even[call.Left:][:evens], odd[call.Left1:][:odds]
	for k := range odd {
		pair := src[2*k:][:2]
		even[k], odd[k] = pair[0], pair[1]
	}
	if evens > odds {
		even[odds] = src[2*odds]
	}
}

func portableWindowRows(kind kernel.WindowKind, call kernel.WindowCall) {
	offsets := unsafe.Slice(call.Offsets, call.Taps)
	for i := range call.Rows {
		out := behind(call.Out, i*call.OutStep, call.Cols)
		switch kind {
		case kernel.WindowSum:
			portableWindowSum(out, &call, offsets, i)
		case kernel.WindowMax:
			portableWindowMax(out, &call, offsets, i*call.RowStep)
		default:
			copy(out, behind(call.Src, i*call.RowStep+int(offsets[0]), call.Cols))
			for _, o := range offsets[1:] {
				elementwise.PortableBinaryVV(kernel.Add, out, out, behind(call.Src, i*call.RowStep+int(o), call.Cols))
			}
			elementwise.PortableBinaryVV(kernel.Mul, out, out, behind(call.Scale, 0, call.Cols))
		}
	}
}

// portableWindowSum takes three taps at a time, so that an output is read and
// written once for them. The residual may be the output.
func portableWindowSum(out []float32, call *kernel.WindowCall, offsets []int32, row int) {
	n, at := len(out), row*call.RowStep
	if call.Residual == nil {
		kernel.Repeat(out, call.Bias)
	} else {
		for k, v := range behind(call.Residual, row*call.ResidualStep, n) {
			out[k] = v + call.Bias
		}
	}
	weights := unsafe.Slice(call.Weights, call.Taps)
	k := 0
	for ; k+3 <= len(offsets); k += 3 {
		w0, w1, w2 := weights[k], weights[k+1], weights[k+2]
		x0, x1, x2 := behind(call.Src, at+int(offsets[k]), n), behind(call.Src, at+int(offsets[k+1]), n), behind(call.Src, at+int(offsets[k+2]), n)
		x1, x2 = x1[:len(x0)], x2[:len(x0)]
		to := out[:len(x0)]
		for i, v := range x0 {
			to[i] += w0*v + w1*x1[i] + w2*x2[i]
		}
	}
	for ; k < len(offsets); k++ {
		gemm.AddScaled(kernel.Portable, out, behind(call.Src, at+int(offsets[k]), n), weights[k])
	}
	if !math.IsInf(float64(call.Low), -1) || !math.IsInf(float64(call.High), 1) {
		for i, v := range out {
			out[i] = min(max(v, call.Low), call.High)
		}
	}
}

// portableWindowMax takes two taps at a time. A last one alone is seen twice.
func portableWindowMax(out []float32, call *kernel.WindowCall, offsets []int32, at int) {
	n := len(out)
	for k := 0; k < len(offsets); k += 2 {
		a, b := behind(call.Src, at+int(offsets[k]), n), behind(call.Src, at+int(offsets[min(k+1, len(offsets)-1)]), n)
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
