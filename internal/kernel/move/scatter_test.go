package move_test

import (
	"fmt"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/move"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

var scatterOps = []move.ScatterOp{move.ScatterSet, move.ScatterAdd, move.ScatterMul, move.ScatterMin, move.ScatterMax}

func TestScatter(t *testing.T) {
	scatters[float32](t, dtype.F32)
	scatters[float64](t, dtype.F64)
	scatters[int8](t, dtype.I8)
	scatters[int16](t, dtype.I16)
	scatters[int32](t, dtype.I32)
	scatters[int64](t, dtype.I64)
	scatters[uint8](t, dtype.U8)
	scatters[uint16](t, dtype.U16)
	scatters[uint32](t, dtype.U32)
	scatters[uint64](t, dtype.U64)
	t.Run("half", testScatterHalf)
	t.Run("c128", func(t *testing.T) {
		scatterElements(t, move.ScatterSet, dtype.C128, kerneltest.Words[[2]uint64](24, 1), kerneltest.Words[[2]uint64](6, 90), []int{4, 6}, []int{2, 3}, 1,
			func(_, update [2]uint64) [2]uint64 { return update })
	})
}

// combineFunc is the definition of a scatter's reduction.
func combineFunc[T kernel.Number](op move.ScatterOp) func(old, update T) T {
	return func(old, update T) T {
		switch op {
		case move.ScatterAdd:
			return old + update
		case move.ScatterMul:
			return old * update
		case move.ScatterMin:
			return min(old, update)
		case move.ScatterMax:
			return max(old, update)
		}
		return update
	}
}

func scatters[T kernel.Number](t *testing.T, dt dtype.DType) {
	r := kerneltest.NewRand(11)
	values := func(n int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = T(r.IntN(100))
		}
		return x
	}
	for _, op := range scatterOps {
		t.Run(fmt.Sprint(dt, " ", op), func(t *testing.T) {
			for axis := range 2 { // more indices than places: updates meet
				scatterElements(t, op, dt, values(24), values(24), []int{4, 6}, []int{4, 6}, axis, combineFunc[T](op))
				scatterElements(t, op, dt, values(24), values(6), []int{4, 6}, []int{2, 3}, axis, combineFunc[T](op))
			}
			scatterND(t, op, dt, values(24), values(10*4), []int{2, 3, 4}, []int{10, 2}, combineFunc[T](op))
			scatterND(t, op, dt, values(24), values(2*5), []int{2, 3, 4}, []int{2, 5, 3}, combineFunc[T](op))
		})
	}
}

func testScatterHalf(t *testing.T) {
	r := kerneltest.NewRand(12)
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		values := func(n int) []uint16 {
			x := make([]uint16, n)
			for i := range x {
				x[i] = kerneltest.ToHalf(dt, 4*r.Float32()-2)
			}
			return x
		}
		for _, op := range scatterOps {
			f := func(old, update uint16) uint16 {
				return kerneltest.ToHalf(dt, combineFunc[float32](op)(kerneltest.FromHalf(dt, old), kerneltest.FromHalf(dt, update)))
			}
			scatterElements(t, op, dt, values(24), values(24), []int{4, 6}, []int{4, 6}, 0, f)
			scatterND(t, op, dt, values(24), values(10*4), []int{2, 3, 4}, []int{10, 2}, f)
		}
	}
}

func scatterElements[T comparable](t *testing.T, op move.ScatterOp, dt dtype.DType, data, updates []T, shape, indexShape []int, axis int, f func(old, update T) T) {
	t.Helper()
	idx := indices(kerneltest.NewRand(13), ref.Size(indexShape), shape[axis])
	want := ref.ScatterElements(data, shape, idx, indexShape, updates, axis, f)
	var spec move.ScatterElementsSpec
	spec.Prepare(shape, indexShape, axis, nil)
	s := kerneltest.NewSpace(t)
	dst, dst32, u := kerneltest.InOut(s, "dst", data), kerneltest.InOut(s, "dst32", data), kerneltest.In(s, "updates", updates)
	move.ScatterElements(&spec, op, dt, kerneltest.AsBytes(dst), kerneltest.In(s, "indices", idx), kerneltest.AsBytes(u))
	move.ScatterElements(&spec, op, dt, kerneltest.AsBytes(dst32), kerneltest.In(s, "indices32", kerneltest.Narrowed(idx)), kerneltest.AsBytes(u))
	s.Check()
	kerneltest.WantEqual(t, dst, want)
	kerneltest.WantEqual(t, dst32, want)
}

func scatterND[T comparable](t *testing.T, op move.ScatterOp, dt dtype.DType, data, updates []T, shape, indexShape []int, f func(old, update T) T) {
	t.Helper()
	idx := tuples(kerneltest.NewRand(14), shape, indexShape, 0)
	want := ref.ScatterND(data, shape, idx, indexShape, updates, f)
	var spec move.TuplesSpec
	spec.Prepare(shape, indexShape, 0, nil)
	s := kerneltest.NewSpace(t)
	dst, dst32, u := kerneltest.InOut(s, "dst", data), kerneltest.InOut(s, "dst32", data), kerneltest.In(s, "updates", updates)
	move.ScatterND(&spec, op, dt, kerneltest.AsBytes(dst), kerneltest.In(s, "indices", idx), kerneltest.AsBytes(u))
	move.ScatterND(&spec, op, dt, kerneltest.AsBytes(dst32), kerneltest.In(s, "indices32", kerneltest.Narrowed(idx)), kerneltest.AsBytes(u))
	s.Check()
	kerneltest.WantEqual(t, dst, want)
	kerneltest.WantEqual(t, dst32, want)
}
