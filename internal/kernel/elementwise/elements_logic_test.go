package elementwise_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
)

// elementLogic takes every byte that is not 0 for true.
func elementLogic(t *testing.T, v *kernel.Variant) {
	bools := kerneltest.Cycle([]uint8{0, 1, 0, 2, 255, 128, 0, 0, 1})
	for _, n := range laneLengths {
		a, b := bools(n, 0), bools(n, 4)
		for _, op := range []kernel.PredicateOp{kernel.And, kernel.Or, kernel.Xor} {
			loopPredicate(t, v, op, 0, a, b)
		}
		s := kerneltest.NewSpace(t)
		x, dst, same, numbers := kerneltest.In(s, "a", a), kerneltest.Out[uint8](s, "dst", n), kerneltest.Out[uint8](s, "same", n), kerneltest.InOut(s, "in place", a)
		elementwise.Not(v, dst, x)
		elementwise.Not(v, numbers, numbers)
		elementwise.Cast(v, same, dtype.Bool, x, dtype.Bool, 0, n, elementwise.CastMode{})
		s.Check()
		wantSame(t, numbers, dst)
		for i, v := range a {
			if dst[i] != truth(v == 0) || same[i] != truth(v != 0) {
				t.Fatalf("%d elements: element %d: not of %d is %d, and as a bool it is %d", n, i, v, dst[i], same[i])
			}
		}
	}
	for _, n := range laneLengths {
		s := kerneltest.NewSpace(t)
		x, y, dst := kerneltest.In(s, "f32", kerneltest.Cycle(kerneltest.Specials)(n, 1)), kerneltest.In(s, "f64", kerneltest.Cycle(kerneltest.F64s(kerneltest.Specials))(n, 1)), kerneltest.Out[uint8](s, "dst", n)
		elementwise.IsNaN(v, dst, x)
		for i, v := range x {
			if dst[i] != truth(math.IsNaN(float64(v))) {
				t.Fatalf("%d elements: element %d: is_nan of %v is %d", n, i, v, dst[i])
			}
		}
		elementwise.IsNaN(v, dst, y)
		for i, v := range y {
			if dst[i] != truth(math.IsNaN(v)) {
				t.Fatalf("%d elements: element %d: is_nan of %v is %d", n, i, v, dst[i])
			}
		}
		s.Check()
	}
}

// loopWhere picks from two rows, a row and one element, and two elements.
func loopWhere[W comparable](t *testing.T, v *kernel.Variant) {
	size := kerneltest.SizeOf[W]()
	for _, n := range laneLengths {
		for form := range 4 {
			cv := kerneltest.Cycle([]uint8{0, 1, 0, 2, 255, 128, 0, 0, 1})(n, 2)
			av, bv := kerneltest.Words[W](n, 1), kerneltest.Words[W](n, 100)
			step := []int{1, 1}
			if form&1 != 0 {
				av, step[0] = av[:1], 0
			}
			if form&2 != 0 {
				bv, step[1] = bv[:1], 0
			}
			nest := new(kernel.Nest)
			nest.Prepare([]int{n}, []int{1}, []int{1}, step[:1], step[1:])
			s := kerneltest.NewSpace(t)
			c, a, b, dst := kerneltest.In(s, "cond", cv), kerneltest.In(s, "a", av), kerneltest.In(s, "b", bv), kerneltest.Out[W](s, "dst", n)
			elementwise.Where(v, nest, 0, n, size, kerneltest.AsBytes(dst), c, kerneltest.AsBytes(a), kerneltest.AsBytes(b))
			if form&1 == 0 {
				place := kerneltest.InOut(s, "in place of a", av)
				elementwise.Where(v, nest, 0, n, size, kerneltest.AsBytes(place), c, kerneltest.AsBytes(place), kerneltest.AsBytes(b))
				kerneltest.WantEqual(t, place, dst)
			}
			if form&2 == 0 {
				place := kerneltest.InOut(s, "in place of b", bv)
				elementwise.Where(v, nest, 0, n, size, kerneltest.AsBytes(place), c, kerneltest.AsBytes(a), kerneltest.AsBytes(place))
				kerneltest.WantEqual(t, place, dst)
			}
			s.Check()
			for i := range dst {
				want := bv[i%len(bv)]
				if cv[i] != 0 {
					want = av[i%len(av)]
				}
				if dst[i] != want {
					t.Fatalf("form %d, %d elements: element %d: got %v, want %v", form, n, i, dst[i], want)
				}
			}
		}
	}
}

// elementCasts holds rows of all lengths to those of one element, which
// testCast holds to ref.
func elementCasts(t *testing.T, v *kernel.Variant) {
	for _, from := range castTypes() {
		for _, to := range castTypes() {
			if from.Size() == 0 || to.Size() == 0 {
				continue
			}
			src := kerneltest.CastSource(t, from, 400)
			for _, n := range laneLengths {
				if n > 400 {
					continue
				}
				s := kerneltest.NewSpace(t)
				x, dst := kerneltest.CastSlice(s, "src", from, src, true), kerneltest.CastSlice(s, "dst", to, make([]byte, n*to.Size()), false)
				one := kerneltest.CastSlice(s, "one", to, make([]byte, n*to.Size()), false)
				elementwise.Cast(v, dst, to, x, from, 0, n, elementwise.CastMode{})
				for i := range n {
					elementwise.Cast(v, one, to, x, from, i, i+1, elementwise.CastMode{})
				}
				s.Check()
				if string(dst) != string(one) {
					t.Fatalf("%s to %s: %d elements: %s", from, to, n, firstOther(dst, one, to.Size()))
				}
			}
		}
	}
}

func firstOther(got, want []byte, size int) string {
	for i := 0; i < len(want); i += size {
		if string(got[i:i+size]) != string(want[i:i+size]) {
			return fmt.Sprintf("element %d: got bytes %x, want %x", i/size, got[i:i+size], want[i:i+size])
		}
	}
	return "no element differs"
}
