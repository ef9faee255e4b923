package ortdiff_test

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
)

// number is an element: its value, and its bits where they say more.
type number struct {
	f    float64 // the real part of a complex one
	i    int64   // of integers and bool; for u64 its bits
	imag float64
	dt   dtype.DType
}

func (x number) String() string {
	switch {
	case x.dt == dtype.U64:
		return fmt.Sprint(uint64(x.i))
	case x.dt.IsComplex():
		return fmt.Sprint(complex(x.f, x.imag))
	case x.dt.IsFloat():
		return fmt.Sprint(x.f)
	}
	return fmt.Sprint(x.i)
}

// elements is how many elements a tensor of these sizes has.
func elements(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// decode gives the elements of a tensor. Those of fewer bits than a byte come
// with the padding of the last byte.
func decode(dt dtype.DType, data []byte) []number {
	if size := dt.Size(); size > 0 {
		out := make([]number, len(data)/size)
		for i := range out {
			out[i] = one(dt, data[i*size:])
		}
		return out
	}
	out := make([]number, len(data)*8/dt.Bits())
	for i := range out {
		out[i] = packed(dt, dt.PackedAt(data, i))
	}
	return out
}

func packed(dt dtype.DType, b uint8) number {
	x := number{dt: dt, i: int64(b)}
	switch dt {
	case dtype.I4:
		x.i = int64(int8(b<<4) >> 4)
	case dtype.I2:
		x.i = int64(int8(b<<6) >> 6)
	case dtype.F4E2M1:
		x.f = float64(dtype.Float4E2M1FromBits(b).Float32())
	}
	return x
}

func one(dt dtype.DType, b []byte) number {
	le := binary.LittleEndian
	x := number{dt: dt}
	switch dt {
	case dtype.F64:
		x.f = math.Float64frombits(le.Uint64(b))
	case dtype.F32:
		x.f = float64(math.Float32frombits(le.Uint32(b)))
	case dtype.F16:
		x.f = float64(dtype.Float16(le.Uint16(b)).Float32())
	case dtype.BF16:
		x.f = float64(dtype.BFloat16(le.Uint16(b)).Float32())
	case dtype.F8E4M3FN:
		x.f = float64(dtype.Float8E4M3FN(b[0]).Float32())
	case dtype.F8E4M3FNUZ:
		x.f = float64(dtype.Float8E4M3FNUZ(b[0]).Float32())
	case dtype.F8E5M2:
		x.f = float64(dtype.Float8E5M2(b[0]).Float32())
	case dtype.F8E5M2FNUZ:
		x.f = float64(dtype.Float8E5M2FNUZ(b[0]).Float32())
	case dtype.F8E8M0:
		x.f = float64(dtype.Float8E8M0(b[0]).Float32())
	case dtype.C64:
		x.f, x.imag = one(dtype.F32, b).f, one(dtype.F32, b[4:]).f
	case dtype.C128:
		x.f, x.imag = one(dtype.F64, b).f, one(dtype.F64, b[8:]).f
	case dtype.I8:
		x.i = int64(int8(b[0]))
	case dtype.U8, dtype.Bool:
		x.i = int64(b[0])
	case dtype.I16:
		x.i = int64(int16(le.Uint16(b)))
	case dtype.U16:
		x.i = int64(le.Uint16(b))
	case dtype.I32:
		x.i = int64(int32(le.Uint32(b)))
	case dtype.U32:
		x.i = int64(le.Uint32(b))
	case dtype.I64, dtype.U64:
		x.i = int64(le.Uint64(b))
	default:
		panic("BUG: no elements of " + dt.String())
	}
	return x
}

// encodeFloats puts numbers into elements of a float type, rounded.
func encodeFloats(dt dtype.DType, list ...float64) []byte {
	le := binary.LittleEndian
	var b []byte
	if dt.Size() == 0 {
		n, _ := dt.ByteLen(len(list))
		b = make([]byte, n)
	}
	for i, f := range list {
		switch dt {
		case dtype.F64:
			b = le.AppendUint64(b, math.Float64bits(f))
		case dtype.F32:
			b = le.AppendUint32(b, math.Float32bits(float32(f)))
		case dtype.F16:
			b = le.AppendUint16(b, uint16(dtype.Float16FromFloat32(float32(f))))
		case dtype.BF16:
			b = le.AppendUint16(b, uint16(dtype.BFloat16FromFloat32(float32(f))))
		case dtype.F8E4M3FN:
			b = append(b, byte(dtype.Float8E4M3FNFromFloat32(float32(f), true)))
		case dtype.F8E4M3FNUZ:
			b = append(b, byte(dtype.Float8E4M3FNUZFromFloat32(float32(f), true)))
		case dtype.F8E5M2:
			b = append(b, byte(dtype.Float8E5M2FromFloat32(float32(f), true)))
		case dtype.F8E5M2FNUZ:
			b = append(b, byte(dtype.Float8E5M2FNUZFromFloat32(float32(f), true)))
		case dtype.F4E2M1:
			dt.PackedPut(b, i, dtype.Float4E2M1FromFloat32(float32(f)).Bits())
		case dtype.C64:
			b = le.AppendUint64(b, uint64(math.Float32bits(float32(f)))|uint64(math.Float32bits(float32(-f/2)))<<32)
		case dtype.C128:
			b = le.AppendUint64(le.AppendUint64(b, math.Float64bits(f)), math.Float64bits(-f/2))
		default:
			panic("BUG: no floats of " + dt.String())
		}
	}
	return b
}

// encodeInts puts numbers into elements of an integer type or bool: the lowest
// bits of each.
func encodeInts(dt dtype.DType, list ...int64) []byte {
	if dt.Size() == 0 {
		n, _ := dt.ByteLen(len(list))
		b := make([]byte, n)
		for i, v := range list {
			dt.PackedPut(b, i, uint8(v))
		}
		return b
	}
	var b []byte
	for _, v := range list {
		b = append(b, binary.LittleEndian.AppendUint64(nil, uint64(v))[:dt.Size()]...)
	}
	return b
}
