package move

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
)

// NonZeroCount is how many elements of a tensor are not zero.
func NonZeroCount(v *kernel.Variant, dt dtype.DType, src []byte) int {
	count := 0
	eachNonZero(v, dt, src, func(int) { count++ })
	return count
}

// NonZero writes the coordinates of the elements that are not zero: dst is
// [len(shape), count], in row-major order of the elements.
func NonZero(v *kernel.Variant, dt dtype.DType, dst []int64, src []byte, shape []int) {
	if len(shape) == 0 {
		return
	}
	count, at := len(dst)/len(shape), 0
	eachNonZero(v, dt, src, func(i int) {
		for k := len(shape) - 1; k >= 0; k-- {
			dst[k*count+at] = int64(i % shape[k])
			i /= shape[k]
		}
		at++
	})
}

func eachNonZero(v *kernel.Variant, dt dtype.DType, src []byte, f func(i int)) {
	var found [elementwise.CastChunk]uint8
	n := len(src) / dt.Size()
	for lo := 0; lo < n; lo += elementwise.CastChunk {
		hi := min(lo+elementwise.CastChunk, n)
		elementwise.CastElements(v, found[:], dtype.Bool, elementwise.Part(src, dt, lo, hi), dt, 0, hi-lo, elementwise.CastMode{})
		for i, x := range found[:hi-lo] {
			if x != 0 {
				f(lo + i)
			}
		}
	}
}
