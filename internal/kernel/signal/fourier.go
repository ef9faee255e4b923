package signal

import (
	"math"
	"math/bits"
	"math/cmplx"

	"github.com/tenure-go/tenure/internal/kernel"
)

// Fourier is a discrete Fourier transform of Length numbers, forward or
// inverse. Lengths that are no power of two are convolutions of one, by
// Bluestein's way.
type Fourier struct {
	Length  int
	Inverse bool

	size    int          // the power of two that is transformed
	roots   []complex128 // of size, the first half of the circle
	chirp   []complex128 // exp(-i*pi*k*k/Length), nil for powers of two
	filter  []complex128 // the transformed convolution with its conjugate
	swapped []int32      // where each element goes first
}

// Prepare makes the tables.
func (f *Fourier) Prepare() {
	f.size = 1 << bits.Len(uint(f.Length-1))
	if f.size != f.Length {
		f.size = 1 << bits.Len(uint(2*f.Length-2))
	}
	f.roots = make([]complex128, f.size/2)
	for k := range f.roots {
		f.roots[k] = circle(int64(k), int64(f.size))
	}
	f.swapped = make([]int32, f.size)
	shift := 32 - bits.Len(uint(f.size-1))
	for k := range f.swapped {
		f.swapped[k] = int32(bits.Reverse32(uint32(k)) >> shift)
	}
	if f.size == f.Length {
		return
	}
	n := int64(f.Length)
	f.chirp, f.filter = make([]complex128, n), make([]complex128, f.size)
	for k := range n {
		f.chirp[k] = circle(k*k%(2*n), 2*n)
		f.filter[k] = cmplx.Conj(f.chirp[k])
		if k > 0 {
			f.filter[f.size-int(k)] = f.filter[k]
		}
	}
	f.powerOfTwo(f.filter)
}

// circle is exp(-2*pi*i*k/n).
func circle(k, n int64) complex128 {
	sin, cos := math.Sincos(2 * math.Pi * float64(k) / float64(n))
	return complex(cos, -sin)
}

// ScratchNumbers is how many complex numbers Transform needs.
func (f *Fourier) ScratchNumbers() int { return f.size }

// Transform transforms x, of ScratchNumbers numbers of which the first Length
// count, into its first Length numbers.
func (f *Fourier) Transform(x []complex128) {
	n := f.Length
	if f.Inverse { // the conjugate of the transform of the conjugate
		for i := range n {
			x[i] = cmplx.Conj(x[i])
		}
	}
	if f.chirp == nil {
		f.powerOfTwo(x[:n])
	} else {
		f.bluestein(x[:f.size])
	}
	if f.Inverse {
		scale := 1 / float64(n)
		for i := range n {
			x[i] = complex(real(x[i])*scale, -imag(x[i])*scale)
		}
	}
}

func (f *Fourier) bluestein(x []complex128) {
	for i := range f.Length {
		x[i] *= f.chirp[i]
	}
	clear(x[f.Length:])
	f.powerOfTwo(x)
	for i := range x {
		x[i] = cmplx.Conj(x[i] * f.filter[i]) // so that the way forward is the way back
	}
	f.powerOfTwo(x)
	scale := complex(1/float64(f.size), 0)
	for i := range f.Length {
		x[i] = cmplx.Conj(x[i]) * f.chirp[i] * scale
	}
}

// powerOfTwo transforms f.size numbers.
func (f *Fourier) powerOfTwo(x []complex128) {
	for i, j := range f.swapped {
		if i < int(j) {
			x[i], x[j] = x[j], x[i]
		}
	}
	for half := 1; half < f.size; half *= 2 {
		step := f.size / 2 / half
		for from := 0; from < f.size; from += 2 * half {
			a, b := x[from:from+half], x[from+half:from+2*half]
			for k := range a {
				t := b[k] * f.roots[k*step]
				a[k], b[k] = a[k]+t, a[k]-t
			}
		}
	}
}

// Signal is the layout of the data: rows of In numbers, of Parts parts each,
// that lie Inner apart, into rows of Out numbers.
type Signal struct {
	Fourier
	In, Out, Inner int
	Parts          int  // 1: real, 2: complex
	OneSided       bool // half of the spectrum is there, the other one is its mirror: results are real
}

// SignalRow transforms one row: dst and src start at its first number, window
// may be nil, scratch has ScratchNumbers numbers.
func SignalRow[T kernel.Float](s *Signal, dst, src, window []T, scratch []complex128) {
	x := scratch[:s.size]
	clear(x)
	for i := range min(s.In, s.Length) {
		at := i * s.Inner * s.Parts
		v := complex(float64(src[at]), 0)
		if s.Parts == 2 {
			v = complex(float64(src[at]), float64(src[at+1]))
		}
		if window != nil {
			v *= complex(float64(window[i]), 0)
		}
		x[i] = v
	}
	parts := 2
	if s.OneSided {
		s.mirror(x)
		parts = 1
	}
	s.Transform(x)
	for i := range s.Out {
		at := i * s.Inner * parts
		dst[at] = T(real(x[i]))
		if parts == 2 {
			dst[at+1] = T(imag(x[i]))
		}
	}
}

// mirror completes the spectrum of a real signal.
func (s *Signal) mirror(x []complex128) {
	n := s.Length
	x[0] = complex(real(x[0]), 0)
	if n%2 == 0 {
		x[n/2] = complex(real(x[n/2]), 0)
	}
	for i := n/2 + 1; i < n; i++ {
		x[i] = cmplx.Conj(x[n-i])
	}
}

// MelWeights fills the matrix [length/2+1, bins] whose columns are triangles,
// evenly spaced on the mel scale from low to high.
func MelWeights(dst []float64, bins, length int, rate, low, high float64) bool {
	rows := length/2 + 1
	clear(dst)
	mel := func(hertz float64) float64 { return 2595 * math.Log10(1+hertz/700) }
	from, step := mel(low), (mel(high)-mel(low))/float64(bins+2)
	place := func(i int) float64 {
		hertz := 700 * (math.Pow(10, (from+float64(i)*step)/2595) - 1)
		return math.Floor(float64(length+1) * hertz / rate)
	}
	for b := range bins {
		left, middle, right := place(b), place(b+1), place(b+2)
		if !(left >= 0 && middle < float64(rows) && right <= float64(rows)) {
			return false
		}
		lo, mid, hi := int(left), int(middle), int(right)
		if lo == mid {
			dst[mid*bins+b] = 1
		}
		for i := lo; i <= mid && lo < mid; i++ {
			dst[i*bins+b] = float64(i-lo) / float64(mid-lo)
		}
		for i := mid; i < hi; i++ {
			dst[i*bins+b] = float64(hi-i) / float64(hi-mid)
		}
	}
	return true
}
