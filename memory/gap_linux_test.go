//go:build !race && !invariants

package memory

import (
	"math"
	"testing"
	"unsafe"
)

// These bytes are never touched, so they take no pages. Builds that would touch
// them are left out.
func TestLargeBuffersOfOneSizeLieApart(t *testing.T) {
	still(t)
	const size = 1 << 28
	before := Stats().System
	var all []*Buffer
	for range 4 {
		all = append(all, mustAlloc(t, size, Activations))
	}
	places := map[uintptr]int{}
	for i, b := range all {
		at := uintptr(unsafe.Pointer(unsafe.SliceData(b.Bytes()))) % size
		if j, ok := places[at]; ok {
			t.Errorf("buffers %d and %d: got a distance of a multiple of %d", j, i, size)
		}
		places[at] = i
	}
	for _, b := range all {
		mustRelease(t, b)
	}
	if now := Stats().System; now != before {
		t.Errorf("after the end: got %d bytes of the system, want %d", now, before)
	}
	if got := gap(gapFrom - 1); got != 0 {
		t.Errorf("gap of a small buffer: got %d, want 0", got)
	}
	if got := gap(math.MaxInt); got != 0 {
		t.Errorf("gap behind the largest number: got %d, want 0", got)
	}
}
