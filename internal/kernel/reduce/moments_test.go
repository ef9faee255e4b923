package reduce_test

import (
	"math"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/reduce"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

func TestMoments(t *testing.T) { kerneltest.EachVariant(t, testMoments) }

func testMoments(t *testing.T, v *kernel.Variant) {
	r := kerneltest.NewRand(31)
	for _, c := range [][3]int{{1, 1, 1}, {2, 3, 5}, {3, 1, 7}, {1, 4, 33}, {0, 2, 3}} {
		x := kerneltest.Uniform(r, c[0]*c[1]*c[2])
		mean, variance := ref.Moments(c[0], c[1], c[2], kerneltest.F64s(x))
		s := kerneltest.NewSpace(t)
		src, m, va := kerneltest.In(s, "src", x), kerneltest.Out[float32](s, "mean", c[1]), kerneltest.Out[float32](s, "variance", c[1])
		reduce.ChannelMoments(v, c[0], c[1], c[2], m, va, src)
		s.Check()
		for i := range m {
			if c[0] == 0 {
				if m[i] == m[i] || va[i] == va[i] {
					t.Fatalf("%v: got %v and %v of no elements, want NaN", c, m[i], va[i])
				}
				continue
			}
			if math.Abs(float64(m[i])-mean[i]) > 1e-6 || math.Abs(float64(va[i])-variance[i]) > 1e-6 {
				t.Fatalf("%v: got %v and %v, want %v and %v", c, m[i], va[i], mean[i], variance[i])
			}
		}
	}
}
