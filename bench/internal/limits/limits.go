package limits

import (
	"sync"
	"time"
)

// Level is a set of instructions.
type Level int

const (
	Portable Level = iota
	AVX2
	AVX512
)

// LevelOf returns the level with a name of TENURE_CPU, or the machine's for
// "", or the machine's where it has less.
func LevelOf(name string) Level {
	switch name {
	case "portable":
		return Portable
	case "avx2":
		return min(AVX2, highest())
	}
	return highest()
}

func (l Level) String() string { return [...]string{"portable", "avx2", "avx512"}[l] }

// FMA returns how many floating-point operations a second the threads make
// together, a multiplication and an addition counted as two: the best of five
// rounds, since the clock rises in the first ones.
func FMA(l Level, threads int) float64 {
	const loops = 1 << 20 // about 8 ms: threads take a while to begin
	per, best := fma(l, 1), 0.0
	for range 5 {
		took := parallel(threads, func(int) { fma(l, loops) })
		best = max(best, float64(per)*loops*float64(threads)/took.Seconds())
	}
	return best
}

// Copy copies src to dst and returns how long it took.
func Copy(dst, src []float32, threads int, streaming bool) time.Duration {
	return split(len(dst), threads, func(from, to int) { copyFloats(dst[from:to], src[from:to], streaming) })
}

// Read adds x up and returns how long it took.
func Read(x []float32, threads int) time.Duration {
	return split(len(x), threads, func(from, to int) { readFloats(x[from:to]) })
}

// Scale multiplies x by s in place.
func Scale(x []float32, s float32, threads int) time.Duration {
	return split(len(x), threads, func(from, to int) { scaleFloats(x[from:to], s) })
}

// Triad computes dst = a + s*b.
func Triad(dst, a, b []float32, s float32, threads int, streaming bool) time.Duration {
	return split(len(dst), threads, func(from, to int) { triadFloats(dst[from:to], a[from:to], b[from:to], s, streaming) })
}

// block is the number of elements in one iteration of the assembly.
const block = 32

// split runs f on equal parts, which begin at multiples of block.
func split(n, threads int, f func(from, to int)) time.Duration {
	at := func(i int) int { return n / block * i / threads * block }
	return parallel(threads, func(i int) {
		to := at(i + 1)
		if i == threads-1 {
			to = n
		}
		f(at(i), to)
	})
}

// parallel runs f on every thread and returns the time until the last ended.
func parallel(threads int, f func(thread int)) time.Duration {
	var ready, done sync.WaitGroup
	begin := make(chan struct{})
	for i := 1; i < threads; i++ {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-begin
			f(i)
		})
	}
	ready.Wait()
	start := time.Now()
	close(begin)
	f(0)
	done.Wait()
	return time.Since(start)
}

func readPlain(x []float32) (sum float32) {
	for _, v := range x {
		sum += v
	}
	return sum
}

func copyPlain(dst, src []float32) { copy(dst, src) }

func scalePlain(x []float32, s float32) {
	for i := range x {
		x[i] *= s
	}
}

func triadPlain(dst, a, b []float32, s float32) {
	for i := range dst {
		dst[i] = a[i] + s*b[i]
	}
}

// fmaPlain makes eight sums that do not wait for each other.
func fmaPlain(loops int) (operations int, sum float32) {
	var a, b, c, d, e, f, g, h float32
	for i := range loops {
		x := float32(i)
		a, b, c, d = a*x+1, b*x+1, c*x+1, d*x+1
		e, f, g, h = e*x+1, f*x+1, g*x+1, h*x+1
	}
	return 16, a + b + c + d + e + f + g + h
}
