package limits

import "golang.org/x/sys/cpu"

func highest() Level {
	switch {
	case cpu.X86.HasAVX512F:
		return AVX512
	case cpu.X86.HasAVX2 && cpu.X86.HasFMA:
		return AVX2
	}
	return Portable
}

//go:noescape
func fmaAVX2(loops int)

//go:noescape
func fmaAVX512(loops int)

//go:noescape
func readAVX2(x *float32, n int) float32

//go:noescape
func copyAVX2(dst, src *float32, n int)

//go:noescape
func copyStreaming(dst, src *float32, n int)

//go:noescape
func scaleAVX2(x *float32, s float32, n int)

//go:noescape
func triadAVX2(dst, a, b *float32, s float32, n int)

//go:noescape
func triadStreaming(dst, a, b *float32, s float32, n int)

// fma runs the loop and returns the operations of one round of it.
func fma(l Level, loops int) int {
	switch l {
	case AVX512:
		fmaAVX512(loops)
		return 12 * 16 * 2
	case AVX2:
		fmaAVX2(loops)
		return 12 * 8 * 2
	}
	operations, _ := fmaPlain(loops)
	return operations
}

// whole returns how many elements the assembly does: whole blocks.
func whole(n int) int {
	if highest() < AVX2 {
		return 0
	}
	return n / block * block
}

func readFloats(x []float32) (sum float32) {
	n := whole(len(x))
	if n > 0 {
		sum = readAVX2(&x[0], n)
	}
	return sum + readPlain(x[n:])
}

func copyFloats(dst, src []float32, streaming bool) {
	n := whole(len(dst))
	switch {
	case n > 0 && streaming:
		copyStreaming(&dst[0], &src[0], n)
	case n > 0:
		copyAVX2(&dst[0], &src[0], n)
	}
	copyPlain(dst[n:], src[n:])
}

func scaleFloats(x []float32, s float32) {
	n := whole(len(x))
	if n > 0 {
		scaleAVX2(&x[0], s, n)
	}
	scalePlain(x[n:], s)
}

func triadFloats(dst, a, b []float32, s float32, streaming bool) {
	n := whole(len(dst))
	switch {
	case n > 0 && streaming:
		triadStreaming(&dst[0], &a[0], &b[0], s, n)
	case n > 0:
		triadAVX2(&dst[0], &a[0], &b[0], s, n)
	}
	triadPlain(dst[n:], a[n:], b[n:], s)
}
