// Package opcases has calls of the built-in operators that a kernel computes.
//
//	for _, c := range opcases.All()["trilu"] {
//		err := optest.Check(op.Builtin().Lookup("trilu"), c)
//		...
//	}
//
// An operator stands here once, in its family's file, and several tests find
// it: op/optest holds it to its declarations and to the results that a case
// wants, refills tasks between sizes, and internal/ortdiff compares it with
// ONNX Runtime. The results are computed by the slow functions of
// internal/kernel/ref, never by the kernels.
//
// # Memory
//
// Operands are on the Go heap, belong to the package and must not be written.
//
// # Concurrency
//
// Functions may be called from any goroutine.
package opcases

import (
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
)

// families make the cases of some operators each.
var families []func() map[string][]optest.Case

// family adds the operators of a file.
func family(cases func() map[string][]optest.Case) bool {
	families = append(families, cases)
	return true
}

// All returns the cases of each operator by its name. An operator that is not
// in the table of package op is a panic.
var All = sync.OnceValue(func() map[string][]optest.Case {
	all := map[string][]optest.Case{}
	for _, cases := range families {
		for name, list := range cases() {
			if op.Builtin().Lookup(name) == nil {
				panic("BUG: opcases: cases of " + name + ", which is not in the table")
			}
			all[name] = append(all[name], list...)
		}
	}
	return all
})

// IsAny reports whether the operand stands for any numbers: those that
// [optest.Random] draws.
func IsAny(o optest.Operand) bool {
	if o.IsZero() || !o.DType.IsFloat() && !o.DType.IsInt() && o.DType != dtype.Bool || o.DType.Size() == 0 || o.DType.IsFloat() && o.DType.Size() < 2 {
		return false
	}
	return string(o.Data) == string(optest.Random(o.DType, o.Shape.Sizes()...).Data)
}

type (
	args  = []optest.Operand
	attrs = []op.Attr
)

var (
	num    = optest.Random
	absent optest.Operand
	floats = []dtype.DType{dtype.F32, dtype.F64, dtype.F16, dtype.BF16}
)

const (
	f32  = dtype.F32
	f64  = dtype.F64
	f16  = dtype.F16
	bf16 = dtype.BF16
	i8   = dtype.I8
	u8   = dtype.U8
	i32  = dtype.I32
	i64  = dtype.I64
	boo  = dtype.Bool
)

// large has several tiles in every elementwise kernel, and a tail.
const large = 70_001

func list(v ...int64) optest.Operand     { return optest.Of(v, len(v)) }
func one(v int64) optest.Operand         { return optest.Of([]int64{v}) }
func scales(v ...float32) optest.Operand { return optest.Of(v, len(v)) }
func ints(v ...int64) []int64            { return v }

// attr makes attributes of names and values in turn.
func attr(pairs ...any) attrs {
	var out attrs
	for i := 0; i < len(pairs); i += 2 {
		v := pairs[i+1]
		if n, ok := v.(int); ok {
			v = int64(n)
		}
		out = append(out, op.Attr{Name: pairs[i].(string), Value: v})
	}
	return out
}

// number is an element type that Go computes with.
type number interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64 | float32 | float64
}

// elements returns the elements of an operand, which must have type T.
func elements[T dtype.Element](o optest.Operand) []T {
	if o.DType != dtype.Of[T]() {
		panic("BUG: opcases: got an operand of " + o.DType.String() + ", want " + dtype.Of[T]().String())
	}
	out := make([]T, o.Shape.NumElements())
	if len(out) > 0 {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), len(o.Data)), o.Data)
	}
	return out
}
