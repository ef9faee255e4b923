package kernel

import "github.com/tenure-go/tenure/dtype"

// widenVectors converts as many elements from the first on as whole vectors hold, and returns their number. It is called by its name and
// not through a variable, so that buffers of its callers stay on their stacks.
func widenVectors(dt dtype.DType, dst []float32, src []uint16) int {
	n := len(dst) / 8
	if n == 0 || !vectorHalves {
		return 0
	}
	_ = src[8*n-1]
	if dt == dtype.F16 {
		widenF16256(n, &dst[0], &src[0])
	} else {
		widenBF16256(n, &dst[0], &src[0])
	}
	return 8 * n
}

func narrowVectors(dt dtype.DType, dst []uint16, src []float32) int {
	n := len(src) / 8
	if n == 0 || !vectorHalves {
		return 0
	}
	_ = dst[8*n-1]
	if dt == dtype.F16 {
		narrowF16256(n, &dst[0], &src[0])
	} else {
		narrowBF16256(n, &dst[0], &src[0])
	}
	return 8 * n
}
