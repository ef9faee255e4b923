package signal_test

import (
	"math"
	"math/cmplx"
	"testing"

	"github.com/tenure-go/tenure/internal/kernel/kerneltest"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/internal/kernel/signal"
)

func TestFourier(t *testing.T) {
	t.Run("signal", testSignal)
	t.Run("mel", testMel)
}

// testSignal transforms rows that lie apart, of every length and of lengths
// that are padded or cut.
func testSignal(t *testing.T) {
	r := kerneltest.NewRand(140)
	for n := 1; n <= 40; n++ {
		for mode := range 8 {
			inverse, onesided, parts := mode&1 != 0, mode&2 != 0, 1+mode>>2
			if onesided && inverse {
				parts = 2
			}
			size := max(1, n+n%3-1)
			if onesided && inverse {
				size = n/2 + 1
			}
			s := signal.Signal{Fourier: signal.Fourier{Length: n, Inverse: inverse}, In: size, Out: n, Inner: 2, Parts: parts, OneSided: onesided && inverse}
			if onesided && !inverse {
				s.Out = n/2 + 1
			}
			s.Prepare()
			outParts := 2
			if s.OneSided {
				outParts = 1
			}
			x, window := kerneltest.Uniform(r, 2*size*parts), kerneltest.Uniform(r, size)
			sp := kerneltest.NewSpace(t)
			src, win := kerneltest.In(sp, "x", x), kerneltest.In(sp, "window", window)
			dst, scratch := kerneltest.Out[float32](sp, "dst", 2*s.Out*outParts), kerneltest.Out[complex128](sp, "scratch", s.ScratchNumbers())
			for row := range 2 {
				signal.SignalRow(&s, dst[row*outParts:], src[row*parts:], win, scratch)
			}
			sp.Check()
			for row := range 2 {
				wantSpectrum(t, &s, row, dst, x, window)
			}
		}
	}
}

func wantSpectrum(t *testing.T, s *signal.Signal, row int, got, x, window []float32) {
	t.Helper()
	full := make([]complex128, s.Length)
	for i := range min(s.In, s.Length) {
		at := (2*i + row) * s.Parts
		full[i] = complex(float64(x[at]), 0)
		if s.Parts == 2 {
			full[i] = complex(float64(x[at]), float64(x[at+1]))
		}
		full[i] *= complex(float64(window[i]), 0)
	}
	if s.OneSided {
		for i := range full {
			if i > s.Length/2 {
				full[i] = cmplx.Conj(full[s.Length-i])
			} else if i == 0 || 2*i == s.Length {
				full[i] = complex(real(full[i]), 0)
			}
		}
	}
	want := ref.DFT(full, s.Inverse)
	for i := range s.Out {
		v := complex(float64(got[2*i+row]), 0)
		if !s.OneSided {
			v = complex(float64(got[2*(2*i+row)]), float64(got[2*(2*i+row)+1]))
		} else if math.Abs(imag(want[i])) > 1e-9 {
			t.Fatalf("the reference of a mirrored spectrum is %v, want a real number", want[i])
		}
		if cmplx.Abs(v-want[i]) > 1e-5 {
			t.Fatalf("length %d of %d, parts %d, inverse %v: frequency %d: got %v, want %v", s.Length, s.In, s.Parts, s.Inverse, i, v, want[i])
		}
	}
}

// testMel looks at what triangles have: one peak of 1, and no weight beside
// their neighbours' peaks.
func testMel(t *testing.T) {
	const bins, length, rows = 8, 256, 129
	s := kerneltest.NewSpace(t)
	dst := kerneltest.Out[float64](s, "dst", rows*bins)
	if !signal.MelWeights(dst, bins, length, 8192, 0, 4096) {
		t.Fatal("got no weights")
	}
	s.Check()
	peak := func(b int) int {
		at := -1
		for i := range rows {
			if dst[i*bins+b] == 1 {
				if at >= 0 {
					t.Fatalf("bin %d has peaks at %d and %d", b, at, i)
				}
				at = i
			}
		}
		return at
	}
	for b := range bins {
		if peak(b) < 0 || b > 0 && peak(b) <= peak(b-1) {
			t.Fatalf("bin %d has its peak at %d", b, peak(b))
		}
		for i := range rows {
			beside := b > 0 && i <= peak(b-1) || b < bins-1 && i >= peak(b+1)
			if v := dst[i*bins+b]; v < 0 || v > 1 || beside && v != 0 {
				t.Fatalf("bin %d: got weight %v at %d, peak at %d", b, v, i, peak(b))
			}
		}
	}
	for _, bad := range [][3]float64{{100, 0, 4096}, {8192, 0, 9000}} {
		if signal.MelWeights(dst, bins, length, bad[0], bad[1], bad[2]) {
			t.Errorf("got weights for frequencies beyond the transform: %v", bad)
		}
	}
}
