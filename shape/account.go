package shape

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrLimit is the error of a shape or layout that [SetLimit] leaves no room
// for.
var ErrLimit = errors.New("more shapes than allowed")

// account counts the values in the tries of one interner. Only insertions and
// sweeps write it.
type account struct {
	_                    [64]byte // fields that insertions write and fields that lookups read are on different cache lines
	entries, peakEntries atomic.Int64
	bytes, peakBytes     atomic.Int64
	limit                atomic.Int64 // of entries; 0 means no limit
	collect              func() int   // removes unreachable values and returns their number
	_                    [64]byte
}

// reserve counts one more entry, unless that would exceed the limit.
func (a *account) reserve() bool {
	n := a.entries.Add(1)
	if limit := a.limit.Load(); limit > 0 && n > limit {
		a.entries.Add(-1)
		return false
	}
	raise(&a.peakEntries, n)
	return true
}

func (a *account) drop(entries int) { a.entries.Add(int64(-entries)) }

func (a *account) grow(bytes int) { raise(&a.peakBytes, a.bytes.Add(int64(bytes))) }

func raise(peak *atomic.Int64, n int64) {
	for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
	}
}

// evictDropped removes unreachable values and reports whether the limit allows
// another shape.
func (a *account) evictDropped() bool {
	return a.entries.Load() < a.limit.Load() || int64(a.collect()) < a.limit.Load()
}

func (a *account) full() error {
	return fmt.Errorf("shape: got one more than %d shapes and layouts in use, want at most the limit: %w", a.limit.Load(), ErrLimit)
}

// interner consists of the tries of shapes and layouts, with one account for
// both.
type interner struct {
	account
	shapes   trie[Shape]
	layouts  trie[Layout]
	sweeping sync.Mutex
}

func newInterner() *interner {
	in := &interner{}
	in.open()
	return in
}

func (in *interner) open() {
	in.collect = in.clear
	in.shapes.open(&in.account, (*Shape).path, (*Shape).bytes)
	in.layouts.open(&in.account, in.layoutPath, (*Layout).bytes)
}

func (in *interner) sweep() {
	in.sweeping.Lock()
	defer in.sweeping.Unlock()
	in.layouts.sweep(routine)
	in.shapes.sweep(routine)
}

// clear removes all unreachable values and returns the number of entries left.
func (in *interner) clear() int {
	in.sweeping.Lock()
	defer in.sweeping.Unlock()
	in.layouts.sweep(weaken)
	in.shapes.sweep(weaken)
	runtime.GC()
	in.layouts.sweep(promote)
	in.shapes.sweep(promote)
	return int(in.entries.Load())
}

// Statistics describes the interner. Entries are shapes and layouts (row-major
// layouts belong to their shapes and do not count), including those that were
// dropped since the last collection.
type Statistics struct {
	Entries     int
	PeakEntries int
	Bytes       int // of the entries and of the tables that index them
	PeakBytes   int
	Limit       int // most entries allowed; 0 means no limit
}

// Stats returns the statistics of this process.
func Stats() Statistics {
	return Statistics{
		Entries:     int(global.entries.Load()),
		PeakEntries: int(global.peakEntries.Load()),
		Bytes:       int(global.bytes.Load()),
		PeakBytes:   int(global.peakBytes.Load()),
		Limit:       int(global.limit.Load()),
	}
}

// SetLimit bounds the number of shapes and layouts that are in use at the same
// time; 0, the default, means no bound. When the bound is reached, a new shape
// costs a collection, which removes unreachable shapes; if all are in use, the
// error is [ErrLimit]. Existing shapes stay, also under a lower bound.
func SetLimit(entries int) { global.limit.Store(int64(max(entries, 0))) }

// Clear removes all unreachable shapes and layouts now and returns the number
// of entries left. Shapes in use stay valid and stay the one pointer for their
// dimensions. Clear runs a collection.
func Clear() int { return global.clear() }
