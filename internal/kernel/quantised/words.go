package quantised

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
)

// Conversions between float32 and integers of 16 bits, without a copy in
// another type between them.

func isWord(dt dtype.DType) bool { return dt == dtype.I16 || dt == dtype.U16 }

// roundWhole is added and subtracted to round numbers of less than 22 bits to
// the nearest integer, halves to the even one.
const roundWhole = 3 << 22

// quantizeWords is Quantize from float32 to 16 bits.
func quantizeWords(q *Quant, lo, hi int, dst, x, scale, zero Numbers) {
	least, most := IntRange(dst.DType)
	in, out := kernel.View[float32](x.Data[4*lo:4*hi]), kernel.View[uint16](dst.Data[2*lo:2*hi])
	for i := 0; i < len(in); {
		at, run := q.at(lo + i)
		k, z := float32(scale.At(at)), zero.zeroAt(at)
		end := min(len(in), i+run)
		quantizeWordRow(out[i:end], in[i:end], k, float32(least-z), float32(most-z), int32(z))
		i = end
	}
}

func quantizeWordRow(dst []uint16, x []float32, k, low, high float32, zero int32) {
	dst = dst[:len(x)]
	for i, v := range x {
		// Without branches but for NaN: half of the numbers before a bound lie
		// beyond it.
		if v = min(max(v/k, low), high); v != v {
			v = 0
		}
		v = float32(v + roundWhole)
		dst[i] = uint16(int32(v-roundWhole) + zero)
	}
}

// dequantizeWords is Dequantize from 16 bits to float32.
func dequantizeWords(q *Quant, lo, hi int, dst, x, scale, zero Numbers) {
	in, out, signed := kernel.View[uint16](x.Data[2*lo:2*hi]), kernel.View[float32](dst.Data[4*lo:4*hi]), x.DType == dtype.I16
	for i := 0; i < len(in); {
		at, run := q.at(lo + i)
		k, z := float32(scale.At(at)), int32(zero.zeroAt(at))
		end := min(len(in), i+run)
		to := out[i:end]
		if signed {
			for j, v := range in[i:end] {
				to[j] = float32(int32(int16(v))-z) * k
			}
		} else {
			for j, v := range in[i:end] {
				to[j] = float32(int32(v)-z) * k
			}
		}
		i = end
	}
}
