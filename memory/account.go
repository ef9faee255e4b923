package memory

import (
	"fmt"
	"sync/atomic"
)

// counter is a current figure and the highest it has been. Each has a cache line of its own: all allocations of all cores
// meet here.
type counter struct {
	current atomic.Int64
	peak    atomic.Int64
	count   atomic.Int64
	_       [64 - 3*8]byte
}

func (c *counter) raisePeak(now int64) {
	for {
		peak := c.peak.Load()
		if now <= peak || c.peak.CompareAndSwap(peak, now) {
			return
		}
	}
}

var account struct {
	purposes [numPurposes]counter
	total    counter
	handles  counter      // current only
	system   counter      // current only: anonymous bytes held from the system, chunks of small buffers, page ends and records included
	limit    atomic.Int64 // 0: none
	cached   atomic.Int64 // the part of system that waits for further allocations
	files    atomic.Int64 // the part of Weights that is mapped from files
	leaks    atomic.Int64
	leaked   atomic.Int64 // bytes of reported leaks that could not be freed
}

// reservation is bytes that were counted for an allocation that may still fail.
type reservation struct {
	bytes            int64
	p                Purpose
	total, byPurpose int64 // the figures with it
}

// reserve counts bytes as taken, or refuses them at the limit. The total moves by compare-and-swap, never over the limit, so
// that an allocation that is refused cannot make another one fail.
func reserve(bytes int, p Purpose) (reservation, error) {
	n := int64(bytes)
	for {
		old := account.total.current.Load()
		if limit := account.limit.Load(); limit > 0 && n > limit-old {
			return reservation{}, fmt.Errorf("memory: allocate %d bytes for %s: got %d in use, want at most the limit of %d: %w", bytes, p, old, limit, ErrLimit)
		}
		if account.total.current.CompareAndSwap(old, old+n) {
			return reservation{n, p, old + n, account.purposes[p].current.Add(n)}, nil
		}
	}
}

// done makes the reservation a buffer. Peaks rise only now, by the figures of then: what the system refuses is no peak.
func (r reservation) done() {
	account.total.count.Add(1)
	account.total.raisePeak(r.total)
	account.purposes[r.p].count.Add(1)
	account.purposes[r.p].raisePeak(r.byPurpose)
}

func (r reservation) cancel() {
	account.total.current.Add(-r.bytes)
	account.purposes[r.p].current.Add(-r.bytes)
}

// unreserve is the end of a buffer.
func unreserve(bytes int, p Purpose) {
	account.total.current.Add(-int64(bytes))
	account.total.count.Add(-1)
	account.purposes[p].current.Add(-int64(bytes))
	account.purposes[p].count.Add(-1)
}

// Usage is the memory of buffers of one purpose, in the bytes that were asked for.
type Usage struct {
	Current int64 // bytes now
	Peak    int64 // the highest Current since the start or ResetPeak
	Buffers int64 // live buffers
}

// Figures is one reading of all counters. They are read one after the other: while others allocate, the sum of the parts may
// differ from the total.
type Figures struct {
	Total       Usage
	ByPurpose   [numPurposes]Usage
	Limit       int64 // 0: no limit
	Files       int64 // bytes of Weights that are mapped from files, not held from the system
	System      int64 // bytes held from the system for everything else, with the chunks of small buffers, page ends and handles' records
	Cached      int64 // the part of System that is mappings which wait a moment for the next allocation of their size
	Handles     int64 // live handles
	Leaks       int64 // buffers that were dropped without Release since the start
	LeakedBytes int64 // bytes of those that had to be kept, because a use was still out
}

// Of returns the figures of one purpose.
func (f Figures) Of(p Purpose) Usage { return f.ByPurpose[p] }

// Stats reads the counters. It takes no lock and allocates nothing.
func Stats() Figures {
	f := Figures{
		Total:       account.total.read(),
		Limit:       account.limit.Load(),
		Files:       account.files.Load(),
		System:      account.system.current.Load(),
		Cached:      account.cached.Load(),
		Handles:     account.handles.current.Load(),
		Leaks:       account.leaks.Load(),
		LeakedBytes: account.leaked.Load(),
	}
	for p := range account.purposes {
		f.ByPurpose[p] = account.purposes[p].read()
	}
	return f
}

func (c *counter) read() Usage {
	return Usage{Current: c.current.Load(), Peak: c.peak.Load(), Buffers: c.count.Load()}
}

// ResetPeak makes every peak start again from the current figure. A peak that another goroutine reaches at this very moment
// may be lost.
func ResetPeak() {
	account.total.peak.Store(account.total.current.Load())
	for p := range account.purposes {
		account.purposes[p].peak.Store(account.purposes[p].current.Load())
	}
}

// SetLimit bounds the bytes of all live buffers, mapped files included, and returns the previous bound. 0 means none. A
// limit below what is in use stops new allocations and frees nothing.
func SetLimit(bytes int64) (old int64) { return account.limit.Swap(max(bytes, 0)) }
