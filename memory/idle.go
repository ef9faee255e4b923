package memory

import (
	"sync"
	"sync/atomic"
	"time"
)

// idleTime is the shortest time that unused memory is kept; the longest is
// about twice that.
const idleTime = 250 * time.Millisecond

// looking reports that a look is scheduled.
var looking atomic.Bool

// giving is held while memory that was taken from the lists is returned to the
// system, so that all of it is returned when Trim returns.
var giving sync.Mutex

// lookLater schedules a look at memory that is kept from now on. It is called
// after the memory is visible to the look.
func lookLater() {
	if !looking.Load() && looking.CompareAndSwap(false, true) {
		time.AfterFunc(idleTime, look)
	}
}

// look frees memory that was not used since the last look, and schedules
// another look if anything is left.
func look() {
	giving.Lock()
	defer giving.Unlock()
	looking.Store(false) // first: memory that is added behind the point that this look has reached schedules another one
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

// Trim returns the memory that is kept for further allocations to the system:
// the mappings that [Figures] counts as Cached, and the empty chunks of small
// buffers. It reports the number of their bytes. Without Trim they are returned
// a moment after the last allocation. A chunk with a buffer in it stays, and so
// do the records of handles.
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
