package memory

import (
	"sync"
	"sync/atomic"
	"time"
)

// idleTime is how long memory waits for the next allocation at least, and about half of how long at most.
const idleTime = 250 * time.Millisecond

// looking says that a look is due.
var looking atomic.Bool

// giving is held from when memory is taken out of the lists until the system has it, so that all of it is gone when Trim returns.
var giving sync.Mutex

// lookLater sees to it that what has just begun to wait is looked at. It is called after that can be seen.
func lookLater() {
	if !looking.Load() && looking.CompareAndSwap(false, true) {
		time.AfterFunc(idleTime, look)
	}
}

// look gives back what was not used since the last look, and looks again later if anything still waits.
func look() {
	giving.Lock()
	defer giving.Unlock()
	looking.Store(false) // first: what begins to wait behind the place that this look has reached asks for another one
	gone, again := cache.sweep()
	for i := range bins {
		m, left := bins[i].sweep(false)
		if m != nil {
			gone = append(gone, m)
		}
		again = again || left
	}
	if again {
		lookLater()
	}
	mustGiveBack(surrenderAll(gone))
}

// Trim returns to the system the memory that is kept for further allocations: the mappings that [Figures] count as
// Cached, and the empty chunks of small buffers. It reports their bytes. They are returned by themselves a moment after
// the last allocation; Trim is for programs that want them gone now. A chunk with a buffer in it stays, and so do the
// records of handles.
func Trim() int64 {
	giving.Lock()
	defer giving.Unlock()
	return trim()
}

// trim is Trim for a caller that holds giving.
func trim() int64 {
	cache.mu.Lock()
	gone := cache.drop(len(cache.waiting))
	cache.mu.Unlock()
	for i := range bins {
		if m, _ := bins[i].sweep(true); m != nil {
			gone = append(gone, m)
		}
	}
	n := int64(0)
	for _, m := range gone {
		n += int64(len(m))
	}
	mustGiveBack(surrenderAll(gone))
	return n
}
