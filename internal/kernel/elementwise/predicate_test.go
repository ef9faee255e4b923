package elementwise_test

import (
	"math"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestPredicate(t *testing.T) { kerneltest.EachVariant(t, testPredicate) }

func testPredicate(t *testing.T, v *kernel.Variant) {
	for _, op := range kernel.PredicateOps() {
		t.Run(op.String(), func(t *testing.T) {
			predicate(t, v, op, kerneltest.Specials)
			predicate(t, v, op, kerneltest.F64s(kerneltest.Specials))
			predicate(t, v, op, kerneltest.IntEdges[int8]())
			predicate(t, v, op, kerneltest.IntEdges[int16]())
			predicate(t, v, op, kerneltest.IntEdges[int32]())
			predicate(t, v, op, kerneltest.IntEdges[int64]())
			predicate(t, v, op, kerneltest.IntEdges[uint8]())
			predicate(t, v, op, kerneltest.IntEdges[uint16]())
			predicate(t, v, op, kerneltest.IntEdges[uint32]())
			predicate(t, v, op, kerneltest.IntEdges[uint64]())
			predicateHalf(t, v, op)
		})
	}
	t.Run("classes", kerneltest.With(v, testClasses))
	t.Run("where", func(t *testing.T) {
		where[uint8](t, v)
		where[uint16](t, v)
		where[uint32](t, v)
		where[uint64](t, v)
		where[[2]uint64](t, v)
	})
}

func order[T kernel.Number](x, y T) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	case x == y:
		return 0
	}
	return 2
}

func predicate[T kernel.Number](t *testing.T, v *kernel.Variant, op kernel.PredicateOp, values []T) {
	t.Helper()
	k := len(values)
	n := broadcastNest([]int{k, k}, []int{k, 1}, []int{k})
	s := kerneltest.NewSpace(t)
	a, b, dst := kerneltest.In(s, "a", values), kerneltest.In(s, "b", values), kerneltest.Out[uint8](s, "dst", k*k)
	kerneltest.InRanges(k*k, func(lo, hi int) { elementwise.Predicate(v, op, n, lo, hi, dst, a, b) })
	s.Check()
	want := ref.Zip(values, []int{k, 1}, values, []int{k}, func(x, y T) uint8 {
		return truth(ref.Predicate(op.String(), order(x, y), x != 0, y != 0))
	})
	kerneltest.WantEqual(t, dst, want)
}

func truth(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

func predicateHalf(t *testing.T, v *kernel.Variant, op kernel.PredicateOp) {
	t.Helper()
	for _, dt := range []dtype.DType{dtype.F16, dtype.BF16} {
		values := ref.Map(kerneltest.Specials, func(x float32) uint16 { return kerneltest.ToHalf(dt, x) })
		k := len(values)
		n := broadcastNest([]int{k, k}, []int{k, 1}, []int{k})
		s := kerneltest.NewSpace(t)
		a, b, dst := kerneltest.In(s, "a", values), kerneltest.In(s, "b", values), kerneltest.Out[uint8](s, "dst", k*k)
		scratch := kerneltest.Out[float32](s, "scratch", 9)
		kerneltest.InRanges(k*k, func(lo, hi int) { elementwise.PredicateHalf(v, op, n, lo, hi, dt, dst, a, b, scratch) })
		s.Check()
		want := ref.Zip(values, []int{k, 1}, values, []int{k}, func(p, q uint16) uint8 {
			x, y := kerneltest.FromHalf(dt, p), kerneltest.FromHalf(dt, q)
			return truth(ref.Predicate(op.String(), order(x, y), x != 0, y != 0))
		})
		kerneltest.WantEqual(t, dst, want)
	}
}

func testClasses(t *testing.T, v *kernel.Variant) {
	s := kerneltest.NewSpace(t)
	src, dst := kerneltest.In(s, "src", kerneltest.Specials), kerneltest.Out[uint8](s, "dst", len(kerneltest.Specials))
	elementwise.IsNaN(v, dst, src)
	kerneltest.WantEqual(t, dst, ref.Map(kerneltest.Specials, func(x float32) uint8 { return truth(math.IsNaN(float64(x))) }))
	for _, neg := range []bool{false, true} {
		for _, pos := range []bool{false, true} {
			elementwise.IsInf(dst, src, neg, pos)
			kerneltest.WantEqual(t, dst, ref.Map(kerneltest.Specials, func(x float32) uint8 {
				return truth(neg && math.IsInf(float64(x), -1) || pos && math.IsInf(float64(x), 1))
			}))
		}
	}
	place := kerneltest.InOut(s, "bools", []uint8{0, 1, 2, 255})
	elementwise.Not(v, place, place)
	kerneltest.WantEqual(t, place, []uint8{1, 0, 0, 0})
	s.Check()
}

func where[W comparable](t *testing.T, v *kernel.Variant) {
	t.Helper()
	var zero W
	size := int(unsafe.Sizeof(zero))
	to, cShape, aShape, bShape := []int{3, 4, 5}, []int{4, 1}, []int{3, 4, 5}, []int{5}
	n := broadcastNest(to, cShape, aShape, bShape)
	cond := []uint8{0, 1, 0, 7}
	av, bv := kerneltest.Words[W](60, 1), kerneltest.Words[W](5, 100)
	s := kerneltest.NewSpace(t)
	c, a, b, dst := kerneltest.In(s, "cond", cond), kerneltest.In(s, "a", av), kerneltest.In(s, "b", bv), kerneltest.Out[W](s, "dst", 60)
	kerneltest.InRanges(60, func(lo, hi int) {
		elementwise.Where(v, n, lo, hi, size, kerneltest.AsBytes(dst), c, kerneltest.AsBytes(a), kerneltest.AsBytes(b))
	})
	var want []W
	ref.Each(to, func(idx []int) {
		v := ref.Broadcast(bv, bShape, idx)
		if ref.Broadcast(cond, cShape, idx) != 0 {
			v = ref.Broadcast(av, aShape, idx)
		}
		want = append(want, v)
	})
	kerneltest.WantEqual(t, dst, want)
	place := kerneltest.InOut(s, "in place", av)
	elementwise.Where(v, n, 0, 60, size, kerneltest.AsBytes(place), c, kerneltest.AsBytes(place), kerneltest.AsBytes(b))
	kerneltest.WantEqual(t, place, want)
	s.Check()
}
