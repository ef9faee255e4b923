package memory

import (
	"errors"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/internal/invariant"
)

// A mapping of a few hundred kilobytes costs more to make, page by page, than to fill. So the last ones that came back wait for the
// next allocation of about their size: at most cacheBytes of them together, and none once none was taken or came back for idleTime.
// Larger mappings have huge pages, a few faults for the whole, and never wait.
const (
	hugeBytes  = 2 << 20 // the size of a huge page on the platforms that have them: from here on mappings ask for them
	cacheBytes = 4 << 20
)

// cache is the mappings that wait.
var cache mappings

type mappings struct {
	mu      sync.Mutex
	waiting [][]byte // the one that came back last is the last
	bytes   int
	touched bool // one was taken or came back since the last look
}

// take returns a mapping that waits, of at least size bytes and with at most a quarter of slack, nil if there is none. Its contents
// are undefined.
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

// put makes a mapping wait, in place of those that have waited longest. One that is too large is given back itself.
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
	c.touched = true // so that it waits at least once from one look to the next
	c.mu.Unlock()
	lookLater()
	return surrenderAll(gone)
}

// sweep takes out everything if nothing was taken and nothing came back since the last time, and says whether anything is left.
func (c *mappings) sweep() (gone [][]byte, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.touched {
		gone = c.drop(len(c.waiting))
	}
	c.touched = false
	return gone, len(c.waiting) > 0
}

// drop takes out the n mappings that have waited longest. The caller has the lock.
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

// checkPoison finds who wrote into bytes after their end.
func checkPoison(m []byte) {
	for i, b := range m {
		if b != invariant.PoisonByte {
			invariant.Failf("memory: byte %d of a buffer of up to %d bytes was overwritten after the buffer's end", i, len(m))
		}
	}
}
