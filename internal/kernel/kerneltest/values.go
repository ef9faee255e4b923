package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/ref"
)

// Lengths meet every remainder of vectors of up to 16 elements, twice.
var Lengths = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 63, 64, 65, 100}

// NewRand returns random numbers that are the same for the same seed.
func NewRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// Uniform returns n numbers in [-1, 1).
func Uniform(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// Small returns n integers in [-3, 3]: sums of their products are exact in
// float32, so that results can be compared bit by bit however a kernel orders
// its additions.
func Small(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(7) - 3)
	}
	return x
}

// Specials are the numbers at which float32 functions go wrong.
var Specials = func() []float32 {
	var x []float32
	for _, v := range []float32{0, 1, 0.5, 2, 3, 10, 20, 30, 87.3, 88.7, 88.8, 89, 103.9, 104, 105, 709, 1e4, 1e10, 1 << 23, 1 << 24, 1e30,
		math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-140, 1e-3, 1e-6, 1e-30, 0.25, 1.5, 2.5, 3.5, 0.49999997,
		float32(math.Pi), float32(math.Inf(1))} {
		x = append(x, v, -v)
	}
	return append(x, float32(math.NaN()))
}()

// Spread returns the Specials, n numbers of all magnitudes, and n in [-20, 20).
func Spread(r *rand.Rand, n int) []float32 {
	x := append([]float32(nil), Specials...)
	for range n {
		x = append(x, math.Float32frombits(r.Uint32()), 40*r.Float32()-20)
	}
	return x
}

// ulp is the distance from want to the next float32.
func ulp(want float64) float64 {
	_, exp := math.Frexp(want)
	return math.Ldexp(1, max(exp-24, -149))
}

// SameValue reports whether got is want rounded to float32, give or take some
// units in the last place. NaN equals NaN.
func SameValue(got float32, want, ulps float64) bool {
	switch {
	case math.IsNaN(want) || got != got:
		return math.IsNaN(want) && got != got
	case math.IsInf(float64(got), 0):
		// A result that rounds beyond the largest number may be off the other
		// way.
		return math.Abs(want) > math.MaxFloat32*(1-ulps*0x1p-24) && (want > 0) == (got > 0)
	case math.Abs(want) > math.MaxFloat32*(1+ulps*0x1p-24):
		return false
	}
	return math.Abs(float64(got)-want) <= ulps*ulp(want)
}

// WantValues fails the test if an element is not SameValue.
func WantValues(t testing.TB, got []float32, want []float64, ulps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d elements, want %d", len(got), len(want))
	}
	for i := range got {
		if !SameValue(got[i], want[i], ulps) {
			t.Fatalf("element %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// WantNear compares with an error relative to the magnitude of the largest
// expected element: for results whose terms cancel.
func WantNear(t testing.TB, got []float32, want []float64, rel float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d elements, want %d", len(got), len(want))
	}
	scale := 0.0
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= rel*scale) {
			t.Fatalf("element %d: got %v, want %v within %v", i, got[i], want[i], rel*scale)
		}
	}
}

// WantEqual fails the test if elements differ. NaN equals NaN.
func WantEqual[T comparable](t testing.TB, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d elements, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("element %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// F64s returns the numbers in float64.
func F64s(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

// RowMajor returns the strides of a contiguous tensor, in elements.
func RowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// BroadcastStrides are those of a contiguous tensor read as a larger shape.
func BroadcastStrides(shape, to []int) []int {
	own := RowMajor(shape)
	s := make([]int, len(to))
	for k := range shape {
		if shape[k] != 1 {
			s[len(to)-len(shape)+k] = own[k]
		}
	}
	return s
}

// InRanges runs f over 0..n in ranges of odd sizes, last range first: the split
// must not matter.
func InRanges(n int, f func(lo, hi int)) {
	for hi := n; hi > 0; {
		lo := max(0, hi-1-hi%13)
		f(lo, hi)
		hi = lo
	}
}

// IntEdges returns pairs of the numbers at the ends of T, small ones, and
// random ones.
func IntEdges[T kernel.Integer]() []T {
	r := NewRand(6)
	var zero T
	x := []T{0, 1, 2, 3, 7, 8, ^zero, ^zero - 1, ^zero >> 1, 1 << (8*unsafe.Sizeof(zero) - 1)}
	for range 10 {
		x = append(x, T(r.Uint64()), T(r.IntN(20)-10))
	}
	return x
}

// Backwards runs tiles from the last to the first: their order must not matter.
func Backwards(tiles int, f func(t int)) {
	for t := tiles - 1; t >= 0; t-- {
		f(t)
	}
}

// SizeOf returns the bytes of a T.
func SizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// WantClose fails the test if an element is off by more than abs.
func WantClose(t *testing.T, got []float32, want []float64, abs float64) {
	t.Helper()
	for i := range want {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= abs) {
			t.Fatalf("element %d of %d: got %v, want %v within %v", i, len(want), got[i], want[i], abs)
		}
	}
}

// Narrowed returns the numbers as int32.
func Narrowed(x []int64) []int32 { return ref.Map(x, func(v int64) int32 { return int32(v) }) }

// Cycle repeats values in an order in which every one meets many others at the
// same place of another row.
func Cycle[T any](values []T) func(n, from int) []T {
	return func(n, from int) []T {
		x := make([]T, n)
		for i := range x {
			x[i] = values[(from+i+i/len(values))%len(values)]
		}
		return x
	}
}

// Words returns n elements whose bytes count up from first.
func Words[W any](n, first int) []W {
	w := make([]W, n)
	for i, b := 0, AsBytes(w); i < len(b); i++ {
		b[i] = byte(first + i*7%251)
	}
	return w
}

// Poison fills scratch before each tile: a tile must not lean on what an
// earlier one left.
func Poison(scratch []float32) {
	for i := range scratch {
		scratch[i] = float32(math.NaN())
	}
}

// LongRow is longer than what any variant takes in one go, and ends in the
// middle of a vector.
const LongRow = 40_007
