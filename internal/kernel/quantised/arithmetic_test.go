package quantised_test

import (
	"testing"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/quantised"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestArithmetic(t *testing.T) {
	kerneltest.EachVariant(t, func(t *testing.T, v *kernel.Variant) {
		for _, product := range []bool{false, true} {
			arithmetic[uint8, uint8, uint8](t, v, product)
			arithmetic[int8, int8, int8](t, v, product)
			arithmetic[uint8, int8, uint8](t, v, product)
			arithmetic[int8, uint8, int8](t, v, product)
		}
	})
}

func arithmetic[A, B, Y quantised.Byte](t *testing.T, v *kernel.Variant, product bool) {
	t.Helper()
	const rows = 3
	for _, n := range []int{1, 7, 8, 9, 31, 64, 100, 1024, 1025, 2500} {
		for _, scales := range [][3]float32{{0.02, 0.05, 0.11}, {0.5, 0.25, 0.5}, {3, 700, 0.4}, {1, -1, 2}} {
			scaleA, scaleB, scaleY := scales[0], scales[1], scales[2]
			zeroA, zeroB, zeroY := A(3), B(100), Y(7)
			a, ai := randomBytes[A](rows*n, 93)
			b, bi := randomBytes[B](n, 94)
			if n%2 == 0 { // one number of b for a row
				b, bi = b[:rows], bi[:rows]
			}
			s := kerneltest.NewSpace(t)
			x, y := kerneltest.In(s, "a", a), kerneltest.In(s, "b", b)
			dst, scratch := kerneltest.Out[Y](s, "dst", rows*n), kerneltest.Out[float32](s, "scratch", quantised.ArithmeticScratch/4)
			k := quantised.Arithmetic{Product: product, SignedA: byteType[A]() == dtype.I8, SignedB: byteType[B]() == dtype.I8, SignedY: byteType[Y]() == dtype.I8}
			scale := func(x float32) quantised.Numbers { return numbersOf(dtype.F32, []float32{x}) }
			k.Set(scale(scaleA), numbersOf(byteType[A](), []A{zeroA}), scale(scaleB), numbersOf(byteType[B](), []B{zeroB}), scale(scaleY), numbersOf(byteType[Y](), []Y{zeroY}))
			var nest kernel.Nest
			if n%2 == 0 {
				nest.Prepare([]int{rows, n}, []int{n, 1}, []int{n, 1}, []int{1, 0})
			} else {
				nest.Prepare([]int{rows, n}, []int{n, 1}, []int{n, 1}, []int{0, 1})
			}
			kerneltest.InRanges(nest.Elements(), func(lo, hi int) {
				k.Run(v, &nest, lo, hi, kerneltest.AsBytes(dst), kerneltest.AsBytes(x), kerneltest.AsBytes(y), kerneltest.AsBytes(scratch))
			})
			s.Check()
			lo, hi := quantised.IntRange(byteType[Y]())
			f := ref.QuantizedSum
			if product {
				f = ref.QuantizedProduct
			}
			for i := range rows * n {
				at := i % n
				if n%2 == 0 {
					at = i / n
				}
				want := f(ai[i], bi[at], scaleA, scaleB, scaleY, int(zeroA), int(zeroB), int(zeroY), lo, hi)
				if float64(dst[i]) != want {
					t.Fatalf("%d elements, scales %v, product %v: element %d of %d and %d: got %v, want %v", n, scales, product, i, ai[i], bi[at], dst[i], want)
				}
			}
		}
	}
}
