package shape

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrLimit marks every error about more shapes than [SetLimit] allows.
var ErrLimit = errors.New("more shapes than allowed")

// account counts what the tries of one interner hold. Only insertions and
// sweeps write it.
type account struct {
	_                    [64]byte // what an insertion writes shares no cache line with what a lookup reads
	entries, peakEntries atomic.Int64
	bytes, peakBytes     atomic.Int64
	limit                atomic.Int64 // of entries; 0 is none
	collect              func() int   // takes out what nothing reaches
	_                    [64]byte
}

// reserve counts one more entry, unless that would break the limit.
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

// evictDropped takes out what nothing reaches and reports whether the limit allows another shape.
func (a *account) evictDropped() bool {
	return a.entries.Load() < a.limit.Load() || int64(a.collect()) < a.limit.Load()
}

func (a *account) full() error {
	return fmt.Errorf("shape: got one more than %d shapes and layouts in use, want at most the limit: %w", a.limit.Load(), ErrLimit)
}

// interner is the tries of shapes and layouts, with one account for both.
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

// clear takes out everything that nothing reaches and returns what is left.
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

// Statistics says what the interner holds: entries are shapes and layouts
// (other than row-major ones, which belong to their shapes), those included
// that were dropped since the last collection.
type Statistics struct {
	Entries     int
	PeakEntries int
	Bytes       int // of the entries and of the tables that find them
	PeakBytes   int
	Limit       int // most entries allowed; 0 is no limit
}

// Stats returns the figures of this process.
func Stats() Statistics {
	return Statistics{
		Entries:     int(global.entries.Load()),
		PeakEntries: int(global.peakEntries.Load()),
		Bytes:       int(global.bytes.Load()),
		PeakBytes:   int(global.peakBytes.Load()),
		Limit:       int(global.limit.Load()),
	}
}

// SetLimit bounds the shapes and layouts that are in use at the same time; 0,
// the default, is no bound. At the bound a new shape costs a collection: what
// nothing reaches makes room, and if everything is in use the error is
// [ErrLimit]. What exists stays, also under a bound that is lower than it.
func SetLimit(entries int) { global.limit.Store(int64(max(entries, 0))) }

// Clear takes out, now, what nothing reaches, and returns the number of
// entries left. Shapes in use stay what they are, and stay the one pointer for
// their dimensions. It runs a collection.
func Clear() int { return global.clear() }
