package quantised

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
)

// Quant is how numbers of Inner elements per index of an axis of size Axis
// share scales: Block indices along the axis have one, and Blocked ones differ
// with the other axes, too. One scale for all is Axis 1 with everything inside.
type Quant struct {
	Axis, Inner, Block int
	Blocked            bool
}

// at returns which scale element i has, and how many elements from i on share
// it.
func (q *Quant) at(i int) (scale, run int) {
	in, a := i%q.Inner, i/q.Inner%q.Axis
	left := min(q.Block-a%q.Block, q.Axis-a)
	if !q.Blocked {
		return a / q.Block, left*q.Inner - in
	}
	outer := i / q.Inner / q.Axis
	scale = (outer*kernel.CeilDiv(q.Axis, q.Block)+a/q.Block)*q.Inner + in
	if q.Inner == 1 {
		return scale, left
	}
	return scale, 1
}

// Numbers are elements of any type that Cast takes.
type Numbers struct {
	DType dtype.DType
	Data  []byte
}

// At returns element i. Integers beyond 2^53 are rounded.
func (n Numbers) At(i int) float64 {
	switch n.DType { // the usual types of scales and zeros
	case dtype.F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(n.Data[4*i:])))
	case dtype.U8:
		return float64(n.Data[i])
	case dtype.I8:
		return float64(int8(n.Data[i]))
	}
	var buf [1]uint64
	b, dt := kernel.BytesOf(buf[:]), elementwise.Carrier(n.DType)
	if dt == n.DType {
		copy(b, elementwise.Part(n.Data, dt, i, i+1))
	} else {
		elementwise.Unpack(kernel.Portable, b[:dt.Size()], n.Data, n.DType, i, 1)
	}
	switch dt {
	case dtype.F32: // of fewer bits
		return float64(math.Float32frombits(uint32(buf[0])))
	case dtype.F64:
		return math.Float64frombits(buf[0])
	case dtype.I8:
		return float64(int8(buf[0]))
	case dtype.I16:
		return float64(int16(buf[0]))
	case dtype.I32:
		return float64(int32(buf[0]))
	case dtype.I64:
		return float64(int64(buf[0]))
	}
	return float64(buf[0])
}

// zeroAt is At where an absent list is of zeros.
func (n Numbers) zeroAt(i int) float64 {
	if n.Data == nil {
		return 0
	}
	return n.At(i)
}

// from returns the bytes from element i on, which starts a byte.
func (n Numbers) from(i int) []byte { return n.Data[i*n.DType.Bits()/8:] }

// endByte clears the byte that elements up to n fill in part.
func (n Numbers) endByte(count int) {
	if bits := count * n.DType.Bits(); bits%8 != 0 {
		n.Data[bits/8] = 0
	}
}

// IntRange returns the smallest and the largest number of an integer type of up
// to 32 bits.
func IntRange(dt dtype.DType) (lo, hi float64) {
	bits := dt.Bits()
	if dt.IsSigned() {
		return -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1) - 1
	}
	return 0, math.Ldexp(1, bits) - 1
}

// saturate rounds to the nearest integer, halves to the even one, moves by zero
// and holds the result in a range. NaN is zero.
func saturate(x float32, zero, lo, hi float64) int32 {
	v := math.RoundToEven(float64(x)) + zero
	if v != v {
		v = zero
	}
	return int32(min(max(v, lo), hi))
}

func isByte(dt dtype.DType) bool { return dt == dtype.I8 || dt == dtype.U8 }

// quantizeBytes is Quantize from float32 to bytes.
func quantizeBytes(v *kernel.Variant, q *Quant, lo, hi int, dst, x, scale, zero Numbers) {
	least, most := IntRange(dst.DType)
	in := kernel.View[float32](x.Data[4*lo : 4*hi])
	out := dst.Data[lo:hi]
	for i := 0; i < len(in); {
		at, run := q.at(lo + i)
		k, z := float32(scale.At(at)), zero.zeroAt(at)
		end := min(len(in), i+run)
		for i += quantizeRow(v, out[i:end], in[i:end], k, least, most, z); i < end; i++ {
			out[i] = byte(saturate(in[i]/k, z, least, most))
		}
	}
}

// dequantizeBytes is Dequantize from bytes to float32.
func dequantizeBytes(v *kernel.Variant, q *Quant, lo, hi int, dst, x, scale, zero Numbers) {
	in, out, signed := x.Data[lo:hi], kernel.View[float32](dst.Data[4*lo:4*hi]), x.DType == dtype.I8
	for i := 0; i < len(in); {
		at, run := q.at(lo + i)
		k, z := float32(scale.At(at)), zero.zeroAt(at)
		end := min(len(in), i+run)
		for i += dequantizeRow(v, out[i:end], in[i:end], signed, k, z); i < end; i++ {
			v := float64(in[i])
			if signed {
				v = float64(int8(in[i]))
			}
			out[i] = float32(v-z) * k
		}
	}
}

// rounder returns what rounds to a float type of 16 bits.
func rounder(dt dtype.DType) func(float32) float32 {
	switch dt {
	case dtype.F16:
		return func(x float32) float32 { return dtype.Float16FromFloat32(x).Float32() }
	case dtype.BF16:
		return func(x float32) float32 { return dtype.BFloat16FromFloat32(x).Float32() }
	}
	panic("BUG: kernel: got a division in " + dt.String() + ", want f16 or bf16")
}

// roundedQuotients divides x by scale in a float type of 16 bits.
func roundedQuotients(q *Quant, at0 int, x []float32, scale Numbers, dt dtype.DType) {
	round := rounder(dt)
	for i := 0; i < len(x); {
		at, run := q.at(at0 + i)
		k := round(float32(scale.At(at)))
		for end := min(len(x), i+run); i < end; i++ {
			x[i] = round(round(x[i]) / k)
		}
	}
}

// Quantize computes elements [lo, hi) of dst = x / scale + zero, where lo is a
// multiple of 128; zero may be absent. Integers saturate, floats do where asked
// to. The quotient has the precision of a float type: f32, f16 or bf16.
func Quantize(v *kernel.Variant, q *Quant, lo, hi int, dst, x, scale, zero Numbers, precision dtype.DType, saturates bool) {
	if precision == dtype.F32 && v.Bytes.Quantize != nil && x.DType == dtype.F32 && isByte(dst.DType) {
		quantizeBytes(v, q, lo, hi, dst, x, scale, zero)
		return
	}
	if precision == dtype.F32 && x.DType == dtype.F32 && isWord(dst.DType) {
		quantizeWords(q, lo, hi, dst, x, scale, zero)
		return
	}
	var in, out [elementwise.CastChunk]float32
	var whole [elementwise.CastChunk]int32
	least, most := IntRange(dst.DType)
	for ; lo < hi; lo += elementwise.CastChunk {
		n := min(hi-lo, elementwise.CastChunk)
		elementwise.CastElements(v, kernel.BytesOf(in[:n]), dtype.F32, x.from(lo), x.DType, 0, n, elementwise.CastMode{})
		if precision != dtype.F32 {
			roundedQuotients(q, lo, in[:n], scale, precision)
		}
		for i := 0; i < n; {
			at, run := q.at(lo + i)
			k, z := float32(scale.At(at)), zero.zeroAt(at)
			if precision != dtype.F32 {
				k = 1
			}
			for end := min(n, i+run); i < end; i++ {
				if v := in[i] / k; dst.DType.IsInt() {
					whole[i] = saturate(v, z, least, most)
				} else {
					out[i] = v + float32(z)
				}
			}
		}
		dst.endByte(lo + n)
		if dst.DType.IsInt() {
			elementwise.CastElements(v, dst.from(lo), dst.DType, kernel.BytesOf(whole[:n]), dtype.I32, 0, n, elementwise.CastMode{})
		} else {
			elementwise.CastElements(v, dst.from(lo), dst.DType, kernel.BytesOf(out[:n]), dtype.F32, 0, n, elementwise.CastMode{Saturate: saturates})
		}
	}
}

// Dequantize computes elements [lo, hi) of dst = (x - zero) * scale, where lo
// is a multiple of 128; zero may be absent.
func Dequantize(v *kernel.Variant, q *Quant, lo, hi int, dst, x, scale, zero Numbers) {
	if v.Bytes.DequantizeU8 != nil && dst.DType == dtype.F32 && isByte(x.DType) {
		dequantizeBytes(v, q, lo, hi, dst, x, scale, zero)
		return
	}
	if dst.DType == dtype.F32 && isWord(x.DType) {
		dequantizeWords(q, lo, hi, dst, x, scale, zero)
		return
	}
	var in [elementwise.CastChunk]float64
	var out [elementwise.CastChunk]float32
	for ; lo < hi; lo += elementwise.CastChunk {
		n := min(hi-lo, elementwise.CastChunk)
		elementwise.CastElements(v, kernel.BytesOf(in[:n]), dtype.F64, x.from(lo), x.DType, 0, n, elementwise.CastMode{})
		for i := 0; i < n; {
			at, run := q.at(lo + i)
			k, z := float32(scale.At(at)), zero.zeroAt(at)
			for end := min(n, i+run); i < end; i++ {
				out[i] = float32(in[i]-z) * k
			}
		}
		elementwise.CastElements(v, dst.from(lo), dst.DType, kernel.BytesOf(out[:n]), dtype.F32, 0, n, elementwise.CastMode{})
	}
}

// DynamicScale returns the scale and the zero under which uint8 holds x, and 0.
func DynamicScale(v *kernel.Variant, x []float32) (scale float32, zero uint8) {
	lo, hi := min(0, reduce.RowMin(v, x)), max(0, reduce.RowMax(v, x))
	if scale = (hi - lo) / 255; scale == 0 {
		return 1, 0
	}
	return scale, uint8(saturate(-lo/scale, 0, 0, 255))
}

// Byte is the element type of the integer products.
type Byte interface{ int8 | uint8 }

// Requant is the operation after a product of integers: the sum times the two
// scales over the scale of the result, moved by Zero and saturated. A scale of
// one element is that of all. Bias, which may be nil, is added to the sums of a
// product before: one for all, or one per column. A convolution has its bias
// beside.
type Requant struct {
	A, B, Y Numbers
	Zero    Numbers
	Bias    []int32
}

// addBias adds the bias of columns from col on to the addends of their sums.
func (r *Requant) addBias(from []int32, col int) {
	if r == nil || r.Bias == nil {
		return
	}
	for j := range from {
		from[j] += r.Bias[min(col+j, len(r.Bias)-1)]
	}
}

func one(n Numbers, i int) float64 {
	if len(n.Data) == n.DType.Size() {
		i = 0
	}
	return n.zeroAt(i)
}

// factors sets the factors of the sums of filters from the first on.
func (r *Requant) factors(dst []float32, first int) {
	a, y := float32(one(r.A, 0)), float32(one(r.Y, 0))
	if r.B.DType != dtype.F32 || len(r.B.Data) == 4 {
		for i := range dst {
			dst[i] = a * float32(one(r.B, first+i)) / y
		}
		return
	}
	for i, b := range kernel.View[float32](r.B.Data)[first:][:len(dst)] {
		dst[i] = a * b / y
	}
}

// words is the zero of the results for kernels that saturate to unsigned bytes:
// four words to add before, and what is taken from eight bytes afterwards.
func (r *Requant) words() (move, flip uint64) {
	zero := int16(one(r.Zero, 0))
	if lo, _ := IntRange(r.Zero.DType); lo < 0 {
		zero, flip = zero+128, 0x8080808080808080
	}
	return uint64(uint16(zero)) * 0x0001000100010001, flip
}

// apply requantises the sum at a row of A and a column of B.
func (r *Requant) apply(sum int32, row, col int) float64 {
	lo, hi := IntRange(r.Zero.DType)
	k := float32(one(r.A, row)) * float32(one(r.B, col)) / float32(one(r.Y, 0))
	return float64(saturate(float32(sum)*k, one(r.Zero, 0), lo, hi))
}
