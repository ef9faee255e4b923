// Package memorytest fails tests that leave buffers, tensors or uses of them
// behind.
//
//	func TestRelu(t *testing.T) {
//		memorytest.Check(t) // first, so that it looks after all other cleanups
//		...
//	}
//
// # What it checks
//
// [Check] compares the live objects at the end of the test with those at its
// beginning: buffers, handles (tensors), uses (views of data, running
// operations, exports) and holds on earlier buffers. With the tag `invariants`
// the report names the place that made each; without it, size, purpose and
// element type. Buffers that the collector found dropped in the meantime count
// as left behind.
//
// # Concurrency
//
// Live buffers belong to the process, not to a test. So a test with Check
// cannot call t.Parallel (which panics, because Check sets an environment
// variable), and go test runs it alone regardless of GOMAXPROCS. Its subtests
// may be parallel: the parent's Check runs when all have ended. The test's own
// goroutines must have released their tensors when it returns; Check waits a
// moment for those that are just ending.
//
// The package owns no memory.
package memorytest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/memory"
)

// gracePeriod is how long Check waits for goroutines that are just ending: the
// race detector in the invariant build takes a good part of a second to poison
// a buffer of some MiB.
const gracePeriod = 3 * time.Second

// Check makes the test fail if more is live at its end than now.
func Check(t testing.TB) {
	t.Helper()
	t.Setenv("TENURE_MEMORYTEST", t.Name()) // makes t.Parallel panic; the variable is not read
	before := take()
	dropped := watch(before.last)
	t.Cleanup(func() {
		t.Helper()
		faults := before.compare(take())
		for end := time.Now().Add(gracePeriod); len(faults) > 0 && time.Now().Before(end); faults = before.compare(take()) {
			time.Sleep(time.Millisecond)
		}
		faults = append(faults, dropped()...)
		if len(faults) == 0 {
			return
		}
		if !invariant.Enabled {
			faults = append(faults, "to see where: go test -tags invariants")
		}
		t.Errorf("left behind:\n%s", strings.Join(faults, "\n"))
	})
}

// watch collects the safety net's reports of buffers newer than last, until the
// returned function is called.
func watch(last uint64) (stop func() []string) {
	var mu sync.Mutex
	var found []string
	var old func(memory.Leak)
	old = memory.OnLeak(func(l memory.Leak) {
		if l.ID > last {
			mu.Lock()
			found = append(found, l.String())
			mu.Unlock()
		}
		if old != nil {
			old(l)
		}
	})
	return func() []string {
		memory.OnLeak(old)
		mu.Lock()
		defer mu.Unlock()
		return found
	}
}

// snapshot is the set of live objects at one moment.
type snapshot struct {
	buffers map[uint64]memory.BufferInfo
	handles map[uint64]int // number of uses, by handle
	last    uint64         // the newest buffer
	order   []uint64
}

func take() snapshot {
	s := snapshot{buffers: map[uint64]memory.BufferInfo{}, handles: map[uint64]int{}}
	for _, b := range memory.Live() {
		s.buffers[b.ID] = b
		s.order = append(s.order, b.ID)
		s.last = b.ID
		for _, h := range b.Handles {
			s.handles[h.ID] = h.Uses
		}
	}
	return s
}

// compare lists the objects in now that are not in s.
func (s snapshot) compare(now snapshot) []string {
	var faults []string
	for _, id := range now.order {
		b := now.buffers[id]
		old, known := s.buffers[id]
		if !known {
			faults = append(faults, describe(b, s.handles))
			continue
		}
		handles := b.Handles[:0:0]
		for _, h := range b.Handles {
			if uses, ok := s.handles[h.ID]; !ok || h.Uses > uses {
				handles = append(handles, h)
			}
		}
		if len(handles) > 0 || raw(b) > raw(old) {
			b.Handles = handles
			faults = append(faults, "on a buffer from before: "+describe(b, s.handles))
		}
	}
	return faults
}

// raw returns the number of holders that are not handles.
func raw(b memory.BufferInfo) int { return b.Holders - len(b.Handles) }

func describe(b memory.BufferInfo, before map[uint64]int) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%d bytes of %s", b.Bytes, b.Purpose)
	if b.Label != "" {
		fmt.Fprintf(&sb, " (%s)", b.Label)
	}
	fmt.Fprintf(&sb, ", %d holders%s", b.Holders, indented(b.Site))
	for _, h := range b.Handles {
		state := "not released"
		if h.Dead {
			state = "released"
		}
		fmt.Fprintf(&sb, "\n  handle %s, %d uses not ended%s", state, h.Uses-before[h.ID], indented(h.Site))
	}
	return sb.String()
}

func indented(site string) string {
	if site == "" {
		return ""
	}
	return ", made at\n    " + strings.ReplaceAll(site, "\n", "\n    ")
}
