package limits

import (
	"slices"
	"testing"
	"unsafe"
)

// aligned returns n floats at a multiple of 32 bytes, as streaming stores want
// it, with a guard after them.
func aligned(n int, first float32) (x []float32, guard []float32) {
	all := make([]float32, n+8+4)
	skip := int(-uintptr(unsafe.Pointer(&all[0]))&31) / 4
	for i := range all {
		all[i] = first + float32(i-skip)
	}
	return all[skip : skip+n : skip+n], all[skip+n : skip+n+4]
}

func TestLoopsAgainstGo(t *testing.T) {
	for _, n := range []int{0, 1, 31, 32, 33, 64, 100, 1000} {
		for threads := 1; threads <= 3; threads++ {
			for _, streaming := range []bool{false, true} {
				a, _ := aligned(n, 1)
				b, _ := aligned(n, 0.5)
				x, guard := aligned(n, -7)
				before, want := slices.Clone(guard), make([]float32, n)

				Copy(x, a, threads, streaming)
				if !slices.Equal(x, a) {
					t.Fatalf("copy of %d, %d threads, streaming %v: got %v, want %v", n, threads, streaming, x, a)
				}
				if got, want := readFloats(a), readPlain(a); got != want { // small whole numbers: exact in any order
					t.Fatalf("read of %d: got a sum of %v, want %v", n, got, want)
				}
				Read(a, threads)
				Scale(x, 3, threads)
				copy(want, a)
				scalePlain(want, 3)
				if !slices.Equal(x, want) {
					t.Fatalf("scale of %d, %d threads: got %v, want %v", n, threads, x, want)
				}
				Triad(x, a, b, 2, threads, streaming)
				triadPlain(want, a, b, 2)
				if !slices.Equal(x, want) { // small numbers: exact however it is rounded
					t.Fatalf("triad of %d, %d threads, streaming %v: got %v, want %v", n, threads, streaming, x, want)
				}
				if !slices.Equal(guard, before) {
					t.Fatalf("%d, %d threads: wrote behind the slice", n, threads)
				}
			}
		}
	}
}

func TestLevels(t *testing.T) {
	top := LevelOf("")
	for name, want := range map[string]Level{"portable": Portable, "avx2": min(AVX2, top), "avx512": top} {
		if got := LevelOf(name); got != want {
			t.Errorf("LevelOf(%q): got %v, want %v", name, got, want)
		}
	}
	for l := Portable; l <= top; l++ {
		for threads := 1; threads <= 2; threads++ {
			if got := FMA(l, threads); got < 1e6 || got > 1e15 {
				t.Errorf("FMA(%v, %d): got %g operations a second, want a number of this century", l, threads, got)
			}
		}
	}
}
