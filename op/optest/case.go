package optest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Case is one call of an operator.
type Case struct {
	Name    string // for errors
	Attrs   []op.Attr
	Args    []Operand
	Results int // 0 stands for 1

	// Want are the results, as a reference computes them; those past its end
	// are not compared. A number of a floating-point type may differ from the
	// wanted one w by Within * max(1, |w|). Other elements, and all if Within
	// is 0, must be equal bit by bit.
	Want   []Operand
	Within float64

	// Fails is a part of the error of a call that the shape rule or the kernel
	// refuses, "" for a call that has results.
	Fails string
}

// Operand is one operand of a case: a static type and its bytes. The zero
// Operand is an absent one.
type Operand struct {
	op.Type
	Data []byte
}

// Of returns an operand with a copy of the given elements. It panics when the
// sizes do not fit the elements: cases are written by hand.
func Of[T dtype.Element](data []T, sizes ...int) Operand {
	s := shape.MustOf(sizes...)
	if s.NumElements() != len(data) {
		panic(fmt.Sprintf("optest: got %d elements for %s, want %d", len(data), s, s.NumElements()))
	}
	var zero T
	bytes := make([]byte, len(data)*int(unsafe.Sizeof(zero)))
	if len(data) > 0 {
		copy(bytes, unsafe.Slice((*byte)(unsafe.Pointer(&data[0])), len(bytes)))
	}
	return Operand{op.Type{DType: dtype.Of[T](), Shape: s}, bytes}
}

// Random returns an operand of an integer, float or bool type with numbers
// from -4 to 4 (0 to 8 where there is no sign), the same for the same type. It
// panics on other types.
func Random(dt dtype.DType, sizes ...int) Operand {
	s := shape.MustOf(sizes...)
	r := rand.New(rand.NewPCG(uint64(dt), uint64(s.NumElements())))
	o := Operand{Type: op.Type{DType: dt, Shape: s}}
	for range s.NumElements() {
		o.Data = appendNumber(o.Data, dt, 8*r.Float64()-4)
	}
	return o
}

func appendNumber(data []byte, dt dtype.DType, v float64) []byte {
	var bits uint64
	switch {
	case dt == dtype.F32:
		bits = uint64(math.Float32bits(float32(v)))
	case dt == dtype.F64:
		bits = math.Float64bits(v)
	case dt == dtype.F16:
		bits = uint64(dtype.Float16FromFloat32(float32(v)))
	case dt == dtype.BF16:
		bits = uint64(dtype.BFloat16FromFloat32(float32(v)))
	case dt == dtype.Bool:
		bits = uint64(math.Float64bits(v) & 1)
	case dt.IsInt() && dt.Size() > 0 && dt.IsSigned():
		bits = uint64(int64(math.Round(v)))
	case dt.IsInt() && dt.Size() > 0:
		bits = uint64(math.Round(v + 4))
	default:
		panic("optest: got " + dt.String() + ", want an integer, float or bool type of whole bytes")
	}
	for i := range dt.Size() {
		data = append(data, byte(bits>>(8*i)))
	}
	return data
}
