package kernel

// How much work a tile should have: enough to hide the cost of claiming it, and
// little enough that a goroutine does not run long without a chance to stop.
const (
	RangeElements = 32 << 10 // elements of a kernel that computes little with each
	PlainFlops    = 1 << 17  // operations of a product without assembly
	WantedTiles   = 8        // smaller problems are cut finer until they have as many tiles
)

// EvenTile cuts n into parts of nearly equal size, at most limit, which is a
// multiple of unit.
func EvenTile(n, limit, unit int) int {
	if n == 0 {
		return unit
	}
	size := CeilDiv(n, CeilDiv(n, limit))
	return CeilDiv(size, unit) * unit
}

// BatchOffsets are the places of A and B of a product, whose batch axes have
// these sizes and strides.
func BatchOffsets(batch int, sizes, stridesA, stridesB []int) (a, b int) {
	for i := len(sizes) - 1; i >= 0; i-- {
		at := batch % sizes[i]
		batch /= sizes[i]
		a += at * stridesA[i]
		b += at * stridesB[i]
	}
	return a, b
}
