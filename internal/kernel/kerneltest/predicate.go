package kerneltest

import (
	"math"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func testPredicate(t *testing.T, v *kernel.Variant) {
	for _, op := range kernel.PredicateOps() {
		t.Run(op.String(), func(t *testing.T) {
			predicate(t, v, op, specials)
			predicate(t, v, op, f64s(specials))
			predicate(t, v, op, intEdges[int8]())
			predicate(t, v, op, intEdges[int16]())
			predicate(t, v, op, intEdges[int32]())
			predicate(t, v, op, intEdges[int64]())
			predicate(t, v, op, intEdges[uint8]())
			predicate(t, v, op, intEdges[uint16]())
			predicate(t, v, op, intEdges[uint32]())
			predicate(t, v, op, intEdges[uint64]())
			predicateHalf(t, v, op)
		})
	}
	t.Run("classes", with(v, testClasses))
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
	s := newSpace(t)
	a, b, dst := in(s, "a", values), in(s, "b", values), out[uint8](s, "dst", k*k)
	inRanges(k*k, func(lo, hi int) { elementwise.Predicate(v, op, n, lo, hi, dst, a, b) })
	s.check()
	want := ref.Zip(values, []int{k, 1}, values, []int{k}, func(x, y T) uint8 {
		return truth(ref.Predicate(op.String(), order(x, y), x != 0, y != 0))
	})
	wantEqual(t, dst, want)
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
		values := ref.Map(specials, func(x float32) uint16 { return toHalf(dt, x) })
		k := len(values)
		n := broadcastNest([]int{k, k}, []int{k, 1}, []int{k})
		s := newSpace(t)
		a, b, dst := in(s, "a", values), in(s, "b", values), out[uint8](s, "dst", k*k)
		scratch := out[float32](s, "scratch", 9)
		inRanges(k*k, func(lo, hi int) { elementwise.PredicateHalf(v, op, n, lo, hi, dt, dst, a, b, scratch) })
		s.check()
		want := ref.Zip(values, []int{k, 1}, values, []int{k}, func(p, q uint16) uint8 {
			x, y := fromHalf(dt, p), fromHalf(dt, q)
			return truth(ref.Predicate(op.String(), order(x, y), x != 0, y != 0))
		})
		wantEqual(t, dst, want)
	}
}

func testClasses(t *testing.T, v *kernel.Variant) {
	s := newSpace(t)
	src, dst := in(s, "src", specials), out[uint8](s, "dst", len(specials))
	elementwise.IsNaN(v, dst, src)
	wantEqual(t, dst, ref.Map(specials, func(x float32) uint8 { return truth(math.IsNaN(float64(x))) }))
	for _, neg := range []bool{false, true} {
		for _, pos := range []bool{false, true} {
			elementwise.IsInf(dst, src, neg, pos)
			wantEqual(t, dst, ref.Map(specials, func(x float32) uint8 {
				return truth(neg && math.IsInf(float64(x), -1) || pos && math.IsInf(float64(x), 1))
			}))
		}
	}
	place := inout(s, "bools", []uint8{0, 1, 2, 255})
	elementwise.Not(v, place, place)
	wantEqual(t, place, []uint8{1, 0, 0, 0})
	s.check()
}

func where[W comparable](t *testing.T, v *kernel.Variant) {
	t.Helper()
	var zero W
	size := int(unsafe.Sizeof(zero))
	to, cShape, aShape, bShape := []int{3, 4, 5}, []int{4, 1}, []int{3, 4, 5}, []int{5}
	n := broadcastNest(to, cShape, aShape, bShape)
	cond := []uint8{0, 1, 0, 7}
	av, bv := words[W](60, 1), words[W](5, 100)
	s := newSpace(t)
	c, a, b, dst := in(s, "cond", cond), in(s, "a", av), in(s, "b", bv), out[W](s, "dst", 60)
	inRanges(60, func(lo, hi int) { elementwise.Where(v, n, lo, hi, size, asBytes(dst), c, asBytes(a), asBytes(b)) })
	var want []W
	ref.Each(to, func(idx []int) {
		v := ref.Broadcast(bv, bShape, idx)
		if ref.Broadcast(cond, cShape, idx) != 0 {
			v = ref.Broadcast(av, aShape, idx)
		}
		want = append(want, v)
	})
	wantEqual(t, dst, want)
	place := inout(s, "in place", av)
	elementwise.Where(v, n, 0, 60, size, asBytes(place), c, asBytes(place), asBytes(b))
	wantEqual(t, place, want)
	s.check()
}

// words gives n elements whose bytes count up from first.
func words[W any](n, first int) []W {
	w := make([]W, n)
	for i, b := 0, asBytes(w); i < len(b); i++ {
		b[i] = byte(first + i*7%251)
	}
	return w
}
