package memory

import (
	"errors"
	"fmt"
	"math/bits"
	"runtime"
	"strings"
	"sync"

	"github.com/tenure-go/tenure/internal/invariant"
)

// The size classes of an Arena are the powers of two from 32 bytes to 64 GiB.
const (
	minClass   = 5
	maxClass   = 36
	numClasses = maxClass - minClass + 1
)

// Arena is a bounded source of buffers for a computation that allocates the
// same sizes again and again. A buffer takes the bytes of its size class, the
// next power of two from 32 bytes on. Its last release returns it to the arena,
// for the next request of that class. The arena holds at most its limit of
// class bytes, in buffers that are in use and free buffers together. Its
// methods may be called from any goroutine.
//
// All bytes of an arena count under its purpose. An arena that is dropped
// without Close frees its free buffers, and the others when they are released.
// A nil or zero Arena counts as closed.
type Arena struct {
	p *pool
}

// closedPool is the pool of a nil or zero arena.
var closedPool = &pool{closed: true}

func (a *Arena) pool() *pool {
	if a == nil || a.p == nil {
		return closedPool
	}
	return a.p
}

// pool is the part of an arena that its buffers refer to, so that the collector
// can find that the arena itself is unreachable.
type pool struct {
	purpose Purpose
	limit   int64

	mu      sync.Mutex
	waiting [numClasses][]*storage
	out     map[*storage]struct{}
	stats   ArenaStats
	closed  bool // returned memory goes to the system, and allocations fail
	passing bool // returned memory goes to the system until no buffer is in use
}

// ArenaStats are the statistics of an arena.
type ArenaStats struct {
	Buffers    int   // in use
	Requested  int64 // bytes of the buffers in use, as requested
	Class      int64 // bytes of the buffers in use, in their classes
	FreeListed int64 // class bytes of free buffers
	Limit      int64 // Class + FreeListed is never more
	Reused     int64 // requests served from free buffers, since the start
	Fresh      int64 // requests that allocated memory
}

// NewArena returns an arena that holds at most limit class bytes, counted under
// p. The caller closes it.
func NewArena(limit int64, p Purpose) (*Arena, error) {
	if limit <= 0 {
		return nil, fmt.Errorf("memory: arena: got a limit of %d bytes, want more than 0", limit)
	}
	if p >= noPurpose {
		return nil, fmt.Errorf("memory: arena: got %s, want a purpose", p)
	}
	a := &Arena{p: &pool{purpose: p, limit: limit, out: map[*storage]struct{}{}}}
	runtime.AddCleanup(a, (*pool).end, a.p)
	return a, nil
}

// classOf returns the class of a size, counted from 0, and its number of bytes.
func classOf(bytes int) (class int, size int64, err error) {
	class = max(bits.Len(uint(max(bytes, 1)-1)), minClass) - minClass
	if bytes < 0 || class >= numClasses {
		return 0, 0, fmt.Errorf("got %d bytes, want 0 to 2^%d: %w", bytes, maxClass, ErrLimit)
	}
	return class, 1 << (class + minClass), nil
}

// Alloc returns a buffer of that many bytes whose contents are undefined. The
// caller holds it. At the limit Alloc drains exports, frees the free buffers of
// other classes and lets the collector find dropped buffers before it fails
// with [ErrLimit].
func (a *Arena) Alloc(bytes int) (*Buffer, error) {
	class, size, err := classOf(bytes)
	if err != nil {
		return nil, fmt.Errorf("memory: arena: %w", err)
	}
	Reclaim()
	p := a.pool()
	s, err := p.take(class, size)
	if errors.Is(err, ErrLimit) {
		CollectUntil(func() bool {
			s, err = p.take(class, size)
			return err == nil
		})
	}
	if err != nil {
		return nil, err
	}
	b := p.give(s, bytes)
	runtime.KeepAlive(a)
	return b, nil
}

// take returns memory of the class: a free buffer's, or newly allocated.
func (p *pool) take(class int, size int64) (*storage, error) {
	s, err := p.admit(class, size)
	if s != nil || err != nil {
		return s, err
	}
	// Without the lock: an allocation may free memory that foreign code has
	// released, which may return to this arena.
	if s, _, err = newStorage(int(size), p.purpose); err != nil {
		p.mu.Lock()
		p.stats.Class -= size
		p.stats.Fresh--
		p.mu.Unlock()
		return nil, err
	}
	return s, nil
}

// admit counts a buffer of the class as in use and returns free memory of the
// class, nil if there is none.
func (p *pool) admit(class int, size int64) (*storage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, fmt.Errorf("memory: arena is closed: %w", ErrReleased)
	}
	if list := p.waiting[class]; len(list) > 0 {
		s := list[len(list)-1]
		list[len(list)-1] = nil
		p.waiting[class] = list[:len(list)-1]
		p.stats.FreeListed -= size
		p.stats.Class += size
		p.stats.Reused++
		return s, nil
	}
	if size > p.limit-p.stats.Class {
		return nil, fmt.Errorf("memory: arena: allocate a class of %d bytes: got %d out in %d buffers, want at most the limit of %d: %w",
			size, p.stats.Class, p.stats.Buffers, p.limit, ErrLimit)
	}
	for c := numClasses - 1; c >= 0 && size > p.limit-p.stats.Class-p.stats.FreeListed; c-- {
		p.shrink(c, size)
	}
	p.stats.Class += size
	p.stats.Fresh++
	return nil, nil
}

// shrink frees free memory of a class until size more bytes fit.
func (p *pool) shrink(class int, size int64) {
	for list := p.waiting[class]; len(list) > 0 && size > p.limit-p.stats.Class-p.stats.FreeListed; list = p.waiting[class] {
		p.waiting[class] = list[:len(list)-1]
		p.stats.FreeListed -= 1 << (class + minClass)
		list[len(list)-1].giveBack()
	}
}

// give returns a buffer over the first bytes of s.
func (p *pool) give(s *storage, bytes int) *Buffer {
	out := &storage{purpose: p.purpose, data: s.data[:bytes:bytes], whole: s, pool: p}
	if invariant.Enabled {
		invariant.SetCanary(out.slack(bytes))
	}
	b := out.publish(0)
	p.mu.Lock()
	p.stats.Buffers++
	p.stats.Requested += int64(bytes)
	p.out[out] = struct{}{}
	p.mu.Unlock()
	return b
}

// slack returns the unused bytes at the end of a buffer's class, as far as the
// invariant build checks them.
func (s *storage) slack(bytes int) []byte {
	rest := s.whole.data[bytes:]
	return rest[:min(len(rest), canaryBytes)]
}

// put takes back the memory of a buffer.
func (p *pool) put(s *storage, bytes int) {
	if invariant.Enabled {
		s.checkCanary(s.slack(bytes))
		invariant.Poison(s.whole.data)
	}
	class, size, _ := classOf(len(s.whole.data))
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.out, s)
	p.stats.Buffers--
	p.stats.Requested -= int64(bytes)
	p.stats.Class -= size
	if p.closed || p.passing {
		s.whole.giveBack()
		p.passing = p.passing && p.stats.Buffers > 0
		return
	}
	p.stats.FreeListed += size
	p.waiting[class] = append(p.waiting[class], s.whole)
}

// Clear frees all free buffers. While buffers are in use it does nothing and
// returns [ErrShared], which lists them.
func (a *Arena) Clear() error {
	defer runtime.KeepAlive(a)
	return a.pool().clear("clear")
}

// ClearWhenIdle is Clear for an arena whose buffers are still in use: free
// buffers are freed now, the others when they are released. The arena keeps
// free buffers again once all of them are released.
func (a *Arena) ClearWhenIdle() {
	p := a.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop()
	p.passing = p.stats.Buffers > 0
	runtime.KeepAlive(a)
}

// Close ends the arena; further allocations fail. While buffers are in use it
// does nothing and returns [ErrShared], which lists them.
func (a *Arena) Close() error {
	defer runtime.KeepAlive(a)
	p := a.pool()
	if err := p.clear("close"); err != nil {
		return err
	}
	p.end()
	return nil
}

// CloseWhenIdle ends the arena: free buffers are freed now, the others when
// they are released.
func (a *Arena) CloseWhenIdle() {
	a.pool().end()
	runtime.KeepAlive(a)
}

func (p *pool) clear(what string) error {
	p.mu.Lock()
	var out []*storage
	for s := range p.out {
		out = append(out, s)
	}
	if len(out) == 0 {
		p.drop()
	}
	p.mu.Unlock()
	if len(out) == 0 {
		return nil
	}
	var list strings.Builder
	for _, s := range out { // outside the lock: describing a buffer takes other locks
		if info, held := s.info(); held {
			fmt.Fprintf(&list, "\n%d bytes (%s), %d holders", info.Bytes, info.Label, info.Holders)
			if info.Site != "" {
				fmt.Fprintf(&list, ", allocated at\n%s", info.Site)
			}
		}
	}
	return fmt.Errorf("memory: %s arena: %d buffers are out: %w%s", what, len(out), ErrShared, list.String())
}

// drop frees the free memory. The caller has the lock.
func (p *pool) drop() {
	for c, list := range p.waiting {
		for _, s := range list {
			p.stats.FreeListed -= 1 << (c + minClass)
			s.giveBack()
		}
		p.waiting[c] = nil
	}
}

func (p *pool) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.drop()
}

// Stats returns the statistics of the arena.
func (a *Arena) Stats() ArenaStats {
	p := a.pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stats
	s.Limit = p.limit
	runtime.KeepAlive(a)
	return s
}
