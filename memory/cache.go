package memory

import (
	"errors"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/invariant"
)

// Creating a mapping of a few hundred kilobytes takes longer, page by page,
// than filling it. So the most recently freed ones are kept for the next
// allocation of about their size: at most cacheBytes together, and none after
// idleTime without an allocation or a free. Larger mappings have huge pages,
// which take a few page faults each, and are never kept.
const (
	hugeBytes  = 2 << 20 // the size of a huge page on platforms that have them; mappings of at least this size request them
	cacheBytes = 4 << 20
)

// cache is the list of kept mappings.
var cache mappings

type mappings struct {
	mu      sync.Mutex
	waiting [][]byte // the most recently freed one is the last
	bytes   int
	touched bool // a mapping was taken or added since the last look
}

// take returns a kept mapping of at least size bytes with at most a quarter of
// slack, nil if there is none. Its contents are undefined.
func (c *mappings) take(size int) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.waiting) - 1; i >= 0; i-- {
		if m := c.waiting[i]; len(m) >= size && len(m)-size <= len(m)/4 {
			c.waiting = slices.Delete(c.waiting, i, i+1)
			c.count(-len(m))
			c.touched = true
			if invariant.Enabled {
				checkPoison(m)
			}
			return m
		}
	}
	return nil
}

// put keeps a mapping, and frees the oldest ones beyond cacheBytes. A mapping
// that is too large is freed itself.
func (c *mappings) put(m []byte) error {
	if len(m) >= hugeBytes {
		return surrender(m)
	}
	c.mu.Lock()
	n := 0
	for over := c.bytes + len(m) - cacheBytes; over > 0; n++ {
		over -= len(c.waiting[n])
	}
	gone := c.drop(n)
	c.waiting = append(c.waiting, m)
	c.count(len(m))
	c.touched = true // it is kept at least from one look to the next
	c.mu.Unlock()
	lookLater()
	return surrenderAll(gone)
}

// sweep removes all mappings if none was taken or added since the last call,
// and reports whether any is left.
func (c *mappings) sweep() (gone [][]byte, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.touched {
		gone = c.drop(len(c.waiting))
	}
	c.touched = false
	return gone, len(c.waiting) > 0
}

// drop removes the n oldest mappings. The caller has the lock.
func (c *mappings) drop(n int) [][]byte {
	gone := slices.Clone(c.waiting[:n])
	c.waiting = slices.Delete(c.waiting, 0, n)
	for _, m := range gone {
		c.count(-len(m))
	}
	return gone
}

func (c *mappings) count(bytes int) {
	c.bytes += bytes
	account.cached.Add(int64(bytes))
}

func surrenderAll(list [][]byte) error {
	var errs []error
	for _, m := range list {
		errs = append(errs, surrender(m))
	}
	return errors.Join(errs...)
}

// checkPoison finds writes to bytes that were freed.
func checkPoison(m []byte) {
	for i, b := range m {
		if b != invariant.PoisonByte {
			invariant.Failf("memory: byte %d of a buffer of up to %d bytes was overwritten after the buffer's end", i, len(m))
		}
	}
}
