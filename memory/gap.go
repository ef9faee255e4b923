package memory

import "math"

// Mappings of one size are adjacent, and large sizes tend to be powers of two,
// so the bytes that an operation accesses at one moment would differ only in
// the high bits of their addresses. A first-level cache finds its lines by a
// hash of fewer bits and keeps one line of each hash in a set, so operands
// evict each other: the sum of two arrays of 256 MiB takes 1.5 times as long on
// Zen 1 to 4, whose hash combines bits 12 to 27. An unused gap, far smaller
// than such a buffer, separates neighbours.
const (
	gapFrom  = 32 << 20
	gapBytes = 32 << 10
)

// gap returns the number of bytes that are added to the mapping of a buffer.
func gap(bytes int) int {
	if bytes < gapFrom || bytes > math.MaxInt-gapBytes {
		return 0
	}
	return gapBytes
}
