package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"
)

// lengths meet every remainder of vectors of up to 16 elements, twice.
var lengths = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 63, 64, 65, 100}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// uniform gives n numbers in [-1, 1).
func uniform(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// small gives n integers in [-3, 3]: sums of their products are exact in float32, so that results can be compared bit by bit however a
// kernel orders its additions.
func small(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.IntN(7) - 3)
	}
	return x
}

// specials are the numbers at which float32 functions go wrong.
var specials = func() []float32 {
	var x []float32
	for _, v := range []float32{0, 1, 0.5, 2, 3, 10, 20, 30, 87.3, 88.7, 88.8, 89, 103.9, 104, 105, 709, 1e4, 1e10, 1 << 23, 1 << 24, 1e30,
		math.MaxFloat32, math.SmallestNonzeroFloat32, 0x1p-126, 0x1p-140, 1e-3, 1e-6, 1e-30, 0.25, 1.5, 2.5, 3.5, 0.49999997,
		float32(math.Pi), float32(math.Inf(1))} {
		x = append(x, v, -v)
	}
	return append(x, float32(math.NaN()))
}()

// spread gives the specials, n numbers of all magnitudes, and n in [-20, 20).
func spread(r *rand.Rand, n int) []float32 {
	x := append([]float32(nil), specials...)
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

// sameValue tells whether got is want rounded to float32, give or take some units in the last place. NaN equals NaN.
func sameValue(got float32, want, ulps float64) bool {
	switch {
	case math.IsNaN(want) || got != got:
		return math.IsNaN(want) && got != got
	case math.IsInf(float64(got), 0):
		// A result that rounds beyond the largest number may be off the other way.
		return math.Abs(want) > math.MaxFloat32*(1-ulps*0x1p-24) && (want > 0) == (got > 0)
	case math.Abs(want) > math.MaxFloat32*(1+ulps*0x1p-24):
		return false
	}
	return math.Abs(float64(got)-want) <= ulps*ulp(want)
}

func wantValues(t testing.TB, got []float32, want []float64, ulps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d elements, want %d", len(got), len(want))
	}
	for i := range got {
		if !sameValue(got[i], want[i], ulps) {
			t.Fatalf("element %d: got %v, want %v", i, got[i], want[i])
		}
	}
}

// wantNear compares with an error relative to the magnitude of the largest expected element: for results whose terms cancel.
func wantNear(t testing.TB, got []float32, want []float64, rel float64) {
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

func wantEqual[T comparable](t testing.TB, got, want []T) {
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

func f64s(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func rowMajor(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// broadcastStrides are those of a contiguous tensor read as a larger shape.
func broadcastStrides(shape, to []int) []int {
	own := rowMajor(shape)
	s := make([]int, len(to))
	for k := range shape {
		if shape[k] != 1 {
			s[len(to)-len(shape)+k] = own[k]
		}
	}
	return s
}
