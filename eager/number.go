package eager

import (
	enc "encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/dtype"
)

// encode returns v as one element of dt. It fails unless dt is a real type that
// holds it: an integer type holds whole numbers within its range, a float type
// any number, rounded.
func encode(dt dtype.DType, v float64) ([]byte, error) {
	switch dt {
	case dtype.F32:
		return enc.NativeEndian.AppendUint32(nil, math.Float32bits(float32(v))), nil
	case dtype.F64:
		return enc.NativeEndian.AppendUint64(nil, math.Float64bits(v)), nil
	case dtype.F16:
		return enc.NativeEndian.AppendUint16(nil, uint16(dtype.Float16FromFloat32(float32(v)))), nil
	case dtype.BF16:
		return enc.NativeEndian.AppendUint16(nil, uint16(dtype.BFloat16FromFloat32(float32(v)))), nil
	}
	if !dt.IsInt() || dt.Size() == 0 {
		return nil, fmt.Errorf("got %s, want a real element type of whole bytes: %w", dt, dtype.ErrDType)
	}
	lo, hi := 0.0, math.Ldexp(1, dt.Bits())
	if dt.IsSigned() {
		lo, hi = -hi/2, hi/2
	}
	if v != math.Trunc(v) || v < lo || v >= hi {
		return nil, fmt.Errorf("got number %v, want a whole one that %s holds: %w", v, dt, dtype.ErrDType)
	}
	bits := uint64(int64(v))
	if !dt.IsSigned() {
		bits = uint64(v)
	}
	return enc.NativeEndian.AppendUint64(nil, bits)[:dt.Size()], nil // all our targets have the low byte first
}

func appendInt(data []byte, v int) []byte { return enc.NativeEndian.AppendUint64(data, uint64(v)) }
