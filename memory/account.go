package memory

import (
	"fmt"
	"sync/atomic"
)

// counter is a current value and its peak. Each is on a cache line of its own,
// because all allocations of all cores write them.
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

// ledger counts the buffers of one memory: the processor's or a device's.
type ledger struct {
	purposes [numPurposes]counter
	total    counter
	limit    atomic.Int64 // 0 means none
	name     string       // of the device in errors, "" for the processor's memory
}

// host is the ledger of the processor's memory.
var host ledger

// account is what is counted for the process, beside the buffers.
var account struct {
	handles counter      // current only
	system  counter      // current only: anonymous bytes obtained from the system, including chunks of small buffers, page ends and records
	cached  atomic.Int64 // the part of system that is kept for further allocations
	files   atomic.Int64 // the part of Weights that is mapped from files
	leaks   atomic.Int64
	leaked  atomic.Int64 // bytes of reported leaks that could not be freed
}

// reservation is bytes that were counted for an allocation that may still fail.
type reservation struct {
	ledger           *ledger
	bytes            int64
	p                Purpose
	total, byPurpose int64 // the counters including it
}

// reserve counts bytes as allocated, or fails at the limit. It changes the
// total by compare-and-swap, and never beyond the limit, so a failing
// allocation cannot make another one fail.
func (l *ledger) reserve(bytes int, p Purpose) (reservation, error) {
	n := int64(bytes)
	for {
		old := l.total.current.Load()
		if limit := l.limit.Load(); limit > 0 && n > limit-old {
			return reservation{}, fmt.Errorf("memory: allocate %d bytes for %s%s: got %d in use, want at most the limit of %d: %w", bytes, p, l.where(), old, limit, ErrLimit)
		}
		if l.total.current.CompareAndSwap(old, old+n) {
			return reservation{l, n, p, old + n, l.purposes[p].current.Add(n)}, nil
		}
	}
}

// done completes a reservation. Peaks rise only now, so allocations that the
// system refuses do not count.
func (r reservation) done() {
	l := r.ledger
	l.total.count.Add(1)
	l.total.raisePeak(r.total)
	l.purposes[r.p].count.Add(1)
	l.purposes[r.p].raisePeak(r.byPurpose)
}

func (r reservation) cancel() {
	l := r.ledger
	l.total.current.Add(-r.bytes)
	l.purposes[r.p].current.Add(-r.bytes)
}

// unreserve undoes the counting of a buffer at its end.
func (l *ledger) unreserve(bytes int, p Purpose) {
	l.total.current.Add(-int64(bytes))
	l.total.count.Add(-1)
	l.purposes[p].current.Add(-int64(bytes))
	l.purposes[p].count.Add(-1)
}

// Usage describes the buffers of one purpose. Bytes are counted as requested.
type Usage struct {
	Current int64 // bytes now
	Peak    int64 // the highest Current since the start or ResetPeak
	Buffers int64 // live buffers
}

// Figures is one reading of all counters of the process. Buffers of devices are
// not among them, except for leaks and handles: see [Device.Stats]. The
// counters are read one after the other, so while other goroutines allocate,
// the sum of the parts may differ from the total.
type Figures struct {
	Total       Usage
	ByPurpose   [numPurposes]Usage
	Limit       int64 // 0 means no limit
	Files       int64 // bytes of Weights that are mapped from files, not held from the system
	System      int64 // all other bytes obtained from the system, including chunks of small buffers, page ends and handles' records
	Cached      int64 // the part of System in mappings that are kept for a moment for the next allocation of their size
	Handles     int64 // live handles
	Leaks       int64 // buffers that were dropped without Release since the start
	LeakedBytes int64 // bytes of these that could not be freed, because a use was still out
}

// Of returns the figures of one purpose.
func (f Figures) Of(p Purpose) Usage { return f.ByPurpose[p] }

// Stats reads the counters. It takes no lock and allocates nothing.
func Stats() Figures {
	f := Figures{
		Total:       host.total.read(),
		Limit:       host.limit.Load(),
		Files:       account.files.Load(),
		System:      account.system.current.Load(),
		Cached:      account.cached.Load(),
		Handles:     account.handles.current.Load(),
		Leaks:       account.leaks.Load(),
		LeakedBytes: account.leaked.Load(),
	}
	for p := range host.purposes {
		f.ByPurpose[p] = host.purposes[p].read()
	}
	return f
}

func (c *counter) read() Usage {
	return Usage{Current: c.current.Load(), Peak: c.peak.Load(), Buffers: c.count.Load()}
}

// ResetPeak sets every peak to the current value. A peak that another goroutine
// reaches at the same moment may be lost.
func ResetPeak() { host.resetPeak() }

func (l *ledger) resetPeak() {
	l.total.peak.Store(l.total.current.Load())
	for p := range l.purposes {
		l.purposes[p].peak.Store(l.purposes[p].current.Load())
	}
}

// where names the device in an error.
func (l *ledger) where() string {
	if l.name == "" {
		return ""
	}
	return " on " + l.name
}

// SetLimit bounds the bytes of all live buffers in the processor's memory,
// mapped files included, and
// returns the previous bound. 0 means no bound. A bound below the present total
// prevents new allocations and frees nothing.
func SetLimit(bytes int64) (old int64) { return host.limit.Swap(max(bytes, 0)) }
