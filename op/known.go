package op

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/tenure-go/tenure/dtype"
)

// known returns the bytes of an operand whose value is known, nil bytes for a
// value without elements.
func (s *Sig) known(arg int) ([]byte, bool) {
	if !s.Has(arg) {
		return nil, false
	}
	t := s.Args[arg]
	if !t.IsStatic() {
		return nil, false // a known value has a known type
	}
	if t.Shape.NumElements() == 0 {
		return nil, true
	}
	if s.Known == nil {
		return nil, false
	}
	data, ok := s.Known(arg)
	want, err := t.Bytes()
	return data, ok && err == nil && want == len(data)
}

// KnownInts returns the value of an integer operand, and false when the
// operand is absent, its value is not known, or it is not of integers that
// fit an int64.
func (s *Sig) KnownInts(arg int) ([]int64, bool) { return s.AppendKnownInts(nil, arg) }

// AppendKnownInts is KnownInts that appends to dst.
func (s *Sig) AppendKnownInts(dst []int64, arg int) ([]int64, bool) {
	data, ok := s.known(arg)
	if !ok || !integers.has(s.Args[arg].DType) {
		return nil, false
	}
	dt := s.Args[arg].DType
	size := dt.Size()
	dst = slices.Grow(dst, len(data)/size)
	for ; len(data) >= size; data = data[size:] {
		v, ok := intAt(dt, data)
		if !ok {
			return nil, false
		}
		dst = append(dst, v)
	}
	return dst, true
}

func intAt(dt dtype.DType, data []byte) (int64, bool) {
	switch dt {
	case dtype.I8:
		return int64(int8(data[0])), true
	case dtype.U8:
		return int64(data[0]), true
	case dtype.I16:
		return int64(int16(binary.LittleEndian.Uint16(data))), true
	case dtype.U16:
		return int64(binary.LittleEndian.Uint16(data)), true
	case dtype.I32:
		return int64(int32(binary.LittleEndian.Uint32(data))), true
	case dtype.U32:
		return int64(binary.LittleEndian.Uint32(data)), true
	}
	v := int64(binary.LittleEndian.Uint64(data))
	return v, dt == dtype.I64 || v >= 0
}

// KnownFloats returns the value of a float or integer operand, and false when
// the operand is absent, its value is not known, or it is of another type.
func (s *Sig) KnownFloats(arg int) ([]float64, bool) {
	data, ok := s.known(arg)
	if !ok {
		return nil, false
	}
	dt := s.Args[arg].DType
	if integers.has(dt) {
		ints, ok := s.KnownInts(arg)
		out := make([]float64, len(ints))
		for i, v := range ints {
			out[i] = float64(v)
		}
		return out, ok
	}
	if !floats.has(dt) {
		return nil, false
	}
	size := dt.Size()
	out := make([]float64, 0, len(data)/size)
	for ; len(data) >= size; data = data[size:] {
		out = append(out, floatAt(dt, data))
	}
	return out, true
}

func floatAt(dt dtype.DType, data []byte) float64 {
	switch dt {
	case dtype.F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(data))
	case dtype.F16:
		return float64(dtype.Float16(binary.LittleEndian.Uint16(data)).Float32())
	case dtype.BF16:
		return float64(dtype.BFloat16(binary.LittleEndian.Uint16(data)).Float32())
	}
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(data)))
}
