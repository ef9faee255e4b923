package tensor

import (
	"fmt"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/shape"
)

// smallFloats maps the bit patterns of floats of at most a byte to their
// values.
var smallFloats = map[dtype.DType]func(pattern uint8) float32{
	dtype.F8E4M3FN:      func(p uint8) float32 { return dtype.Float8E4M3FN(p).Float32() },
	dtype.F8E4M3FNUZ:    func(p uint8) float32 { return dtype.Float8E4M3FNUZ(p).Float32() },
	dtype.F8E5M2:        func(p uint8) float32 { return dtype.Float8E5M2(p).Float32() },
	dtype.F8E5M2FNUZ:    func(p uint8) float32 { return dtype.Float8E5M2FNUZ(p).Float32() },
	dtype.F8E8M0:        func(p uint8) float32 { return dtype.Float8E8M0(p).Float32() },
	dtype.F8E3M4:        func(p uint8) float32 { return dtype.Float8E3M4(p).Float32() },
	dtype.F8E4M3:        func(p uint8) float32 { return dtype.Float8E4M3(p).Float32() },
	dtype.F8E4M3B11FNUZ: func(p uint8) float32 { return dtype.Float8E4M3B11FNUZ(p).Float32() },
	dtype.F6E2M3FN:      func(p uint8) float32 { return dtype.Float6E2M3FNFromBits(p).Float32() },
	dtype.F6E3M2FN:      func(p uint8) float32 { return dtype.Float6E3M2FNFromBits(p).Float32() },
	dtype.F4E2M1:        func(p uint8) float32 { return dtype.Float4E2M1FromBits(p).Float32() },
}

// patternAt returns the bits of an element of at most a byte.
func patternAt(dt dtype.DType, data []byte, i int) uint8 {
	if dt.Size() == 1 {
		return data[i]
	}
	return dt.PackedAt(data, i)
}

// Float32s returns the elements of a tensor of any real type as float32, in
// row-major order, in a new slice. Floats of up to 32 bits are exact; f64 and
// large integers are rounded to nearest; bool is 0 or 1.
func Float32s(x *Tensor) ([]float32, error) { return floats[float32]("float32s", x) }

// Float64s is [Float32s] with float64 elements: f64 and integers of up to 53
// bits are exact, larger ones are rounded to nearest.
func Float64s(x *Tensor) ([]float64, error) { return floats[float64]("float64s", x) }

func floats[F float32 | float64](op string, x *Tensor) ([]F, error) {
	if x == nil || x.buf == nil {
		return nil, errNil(op, x)
	}
	small := smallFloats[x.dt]
	if small == nil && !x.dt.IsInt() && x.dt != dtype.Bool && (!x.dt.IsFloat() || x.dt.Size() < 2) {
		return nil, fmt.Errorf("%s: got %s, want a real type: %w", op, x.describe(), ErrDType)
	}
	if _, err := shape.Bytes(dtype.F32, x.Shape()); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err := x.useHost(); err != nil {
		return nil, x.refusal(op, err)
	}
	defer x.endUse()
	data := x.bytes()
	if !x.layout.IsContiguous() {
		data = make([]byte, x.NumElements()*x.dt.Size())
		gather(data, x)
	}
	out := make([]F, x.NumElements())
	if small != nil {
		for i := range out {
			out[i] = F(small(patternAt(x.dt, data, i)))
		}
		return out, nil
	}
	widen(out, x.dt, data)
	return out, nil
}

func widen[F float32 | float64](out []F, dt dtype.DType, data []byte) {
	switch dt {
	case dtype.F32:
		convert[float32](out, data)
	case dtype.F64:
		convert[float64](out, data)
	case dtype.F16:
		for i := range out {
			out[i] = F(load[dtype.Float16](data[2*i:]).Float32())
		}
	case dtype.BF16:
		for i := range out {
			out[i] = F(load[dtype.BFloat16](data[2*i:]).Float32())
		}
	case dtype.I8:
		convert[int8](out, data)
	case dtype.I16:
		convert[int16](out, data)
	case dtype.I32:
		convert[int32](out, data)
	case dtype.I64:
		convert[int64](out, data)
	case dtype.U8, dtype.Bool:
		convert[uint8](out, data)
	case dtype.U16:
		convert[uint16](out, data)
	case dtype.U32:
		convert[uint32](out, data)
	case dtype.U64:
		convert[uint64](out, data)
	default: // packed integers
		for i := range out {
			out[i] = F(packedInt(dt, dt.PackedAt(data, i)))
		}
	}
}

type number interface {
	~float32 | ~float64 | ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func convert[T number, F float32 | float64](out []F, data []byte) {
	var zero T
	size := int(unsafe.Sizeof(zero))
	for i := range out {
		out[i] = F(load[T](data[size*i:]))
	}
}

// packedInt sign-extends an integer of less than a byte.
func packedInt(dt dtype.DType, pattern uint8) int {
	if dt.IsSigned() {
		unused := 8 - dt.Bits()
		return int(int8(pattern<<unused) >> unused)
	}
	return int(pattern)
}
