package memory

import "math"

// Mappings of one size lie one behind the other, and large sizes tend to be powers of two: the bytes that an operation needs at one moment
// would differ in the high bits of their addresses alone. A first cache finds its lines by a hash of fewer bits than that and keeps one
// line of each hash in a set, so that operands push each other out: the sum of two arrays of 256 MiB takes half as long again on Zen 1 to
// 4, whose hash joins bits 12 to 27. A gap that nobody touches, far smaller than such a buffer, moves neighbours apart.
const (
	gapFrom  = 32 << 20
	gapBytes = 32 << 10
)

// gap returns how much longer than its bytes the mapping of a buffer is.
func gap(bytes int) int {
	if bytes < gapFrom || bytes > math.MaxInt-gapBytes {
		return 0
	}
	return gapBytes
}
