package reduce_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestLRN(t *testing.T) { kerneltest.EachVariant(t, testLRN) }

func testLRN(t *testing.T, v *kernel.Variant) {
	for _, l := range []reduce.LRN{
		{Outer: 1, Channels: 1, Inner: 1, Size: 1},
		{Outer: 2, Channels: 5, Inner: 3, Size: 4},
		{Outer: 2, Channels: 5, Inner: 3, Size: 5},
		{Outer: 1, Channels: 48, Inner: 27 * 27, Size: 5},
		{Outer: 3, Channels: 7, Inner: 300, Size: 3},
		{Outer: 1, Channels: 3, Inner: 40, Size: 9},
		{Outer: 1, Channels: 4, Inner: 17, Size: 1 << 30},
		{Outer: 1, Channels: 1100, Inner: 17, Size: 300},
	} {
		for _, beta := range []float64{0.75, 0.5, 1, 0.3} {
			l.Alpha, l.Beta, l.Bias = 0.8, beta, 1.5
			n := l.Outer * l.Channels * l.Inner
			lrnOf(t, v, l, kerneltest.Uniform(kerneltest.NewRand(60), n), 2e-6)
			lrnOf(t, v, l, kerneltest.F64s(kerneltest.Uniform(kerneltest.NewRand(61), n)), 1e-12)
		}
	}
}

// lrnOf compares with the definition, and in place with elsewhere.
func lrnOf[T float32 | float64](t *testing.T, v *kernel.Variant, l reduce.LRN, x []T, tolerance float64) {
	t.Helper()
	s := kerneltest.NewSpace(t)
	src, dst, place := kerneltest.In(s, "src", x), kerneltest.Out[T](s, "dst", len(x)), kerneltest.InOut(s, "in place", x)
	scratch := kerneltest.Out[T](s, "scratch", l.ScratchElements())
	kerneltest.Backwards(l.Tiles(), func(i int) {
		reduce.LRNTile(v, &l, i, scratch, dst, src)
		reduce.LRNTile(v, &l, i, scratch, place, place)
	})
	s.Check()
	kerneltest.WantEqual(t, place, dst)
	want := ref.LRN(ref.Map(x, func(v T) float64 { return float64(v) }), l.Outer, l.Channels, l.Inner, l.Size, l.Alpha, l.Beta, l.Bias)
	for i := range want {
		if d := math.Abs(float64(dst[i]) - want[i]); !(d <= tolerance) {
			t.Fatalf("%+v: element %d: got %v, want %v within %v", l, i, dst[i], want[i], tolerance)
		}
	}
}

// The bound of the scratch holds for all smaller sizes.
func TestLRNScratch(t *testing.T) {
	for _, size := range []int{1, 2, 5, 64, 1 << 30} {
		for _, most := range [][2]int{{1, 1}, {7, 300}, {96, 4000}, {3000, 20}} {
			limit := (&reduce.LRN{Outer: 1, Channels: most[0], Inner: most[1], Size: size}).MostScratchElements()
			for _, c := range []int{1, 2, 3, most[0] / 2, most[0]} {
				for _, n := range []int{1, 15, 16, 17, 250, most[1]} {
					l := reduce.LRN{Outer: 1, Channels: min(max(c, 1), most[0]), Inner: min(n, most[1]), Size: size}
					if got := l.ScratchElements(); got > limit {
						t.Errorf("%+v: got %d elements of scratch, want %d at most, as bounded for %v", l, got, limit, most)
					}
				}
			}
		}
	}
}
