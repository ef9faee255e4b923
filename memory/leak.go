package memory

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

// Leak describes a buffer that became unreachable while it had a holder: a
// tensor or buffer was dropped without Release.
type Leak struct {
	ID      uint64 // of the buffer
	Bytes   int
	Device  *Device // nil for the processor's memory
	Purpose Purpose
	Label   string // the element type of a tensor
	Holders int    // holds that were not released
	Uses    int    // uses that were still out: typed views, operations
	Exports int    // uses that were still out and that foreign code ends
	Freed   bool   // whether its bytes could be freed
	Site    string // where it was allocated; only in builds with the tag `invariants`
}

// String describes the leak in one line; the allocation site, where known,
// follows.
func (l Leak) String() string {
	what := fmt.Sprintf("memory: %d bytes of %s", l.Bytes, l.Purpose)
	if l.Device != nil {
		what += " on " + l.Device.String()
	}
	if l.Label != "" {
		what += " (" + l.Label + ")"
	}
	what += fmt.Sprintf(" dropped without Release by %d holders, %d uses", l.Holders, l.Uses)
	if l.Exports > 0 {
		what += fmt.Sprintf(", %d exports", l.Exports)
	}
	if !l.Freed {
		what += ", not freed"
	}
	if l.Site != "" {
		what += ", allocated at\n" + l.Site
	}
	return what
}

var leakHook atomic.Pointer[func(Leak)]

// OnLeak sets the function that is called for every leak that the collector
// finds, and returns the previous one; nil means none. The hook runs on a
// goroutine of the runtime and must not block. Leaks are counted in [Stats] in
// any case.
func OnLeak(hook func(Leak)) (old func(Leak)) {
	var p *func(Leak)
	if hook != nil {
		p = &hook
	}
	if prev := leakHook.Swap(p); prev != nil {
		return *prev
	}
	return nil
}

// dropped is the safety net: the collector found that the Buffer is
// unreachable. Bytes without uses whose only holders are handles are freed,
// because nothing can read them. A use may belong to a slice that is still
// reachable, and for a hold without a handle nothing is known about readers:
// those bytes stay, until the last use ends. Handles that have ended and that
// only foreign code still uses are not leaks.
func (s *storage) dropped() {
	s.unpark()
	info, held := s.info()
	if !held {
		return
	}
	leak := Leak{ID: info.ID, Bytes: info.Bytes, Device: info.Device, Purpose: info.Purpose, Label: info.Label, Holders: info.Holders, Site: info.Site}
	onlyExports := len(info.Handles) == info.Holders
	for _, h := range info.Handles {
		leak.Uses += h.Uses
		leak.Exports += h.Exports
		onlyExports = onlyExports && h.Dead && h.Uses == 0
	}
	if onlyExports {
		return
	}
	leak.Freed = leak.Uses+leak.Exports == 0 && len(info.Handles) == info.Holders
	account.leaks.Add(1)
	if !leak.Freed {
		account.leaked.Add(int64(info.Bytes))
	}
	for _, h := range s.liveHandles() {
		_ = h.Release() // the hold ends now or with the last use
	}
	if hook := leakHook.Load(); hook != nil {
		(*hook)(leak)
	}
}

func (s *storage) liveHandles() []Handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hs []Handle
	for at := s.first; at != 0; {
		r := recordAt(at)
		hs = append(hs, Handle{rec: r, tag: r.word.Load()&genMask | stateAlive})
		at = r.next
	}
	return hs
}

// collectEvery bounds how often an allocation at the limit starts a collection,
// so that a program that works at its limit and handles ErrLimit does not pay
// for a collection each time.
const collectEvery = time.Second

var lastCollect atomic.Int64

// reserveOrCollect is reserve; at the limit it lets the collector find dropped
// buffers and tries once more.
func (l *ledger) reserveOrCollect(bytes int, p Purpose) (reservation, error) {
	Reclaim()
	r, err := l.reserve(bytes, p)
	if err == nil {
		return r, nil
	}
	CollectUntil(func() bool {
		r, err = l.reserve(bytes, p)
		return err == nil
	})
	return r, err
}

// CollectUntil lets the collector find dropped buffers until enough returns
// true or a moment has passed, because cleanups run on goroutines of the
// runtime after the collection. It is for sources of memory that have reached
// their limit. It does nothing if a limit has led to a collection within the
// last second, or if enough is nil.
func CollectUntil(enough func() bool) {
	if enough == nil {
		return
	}
	now, last := time.Now().UnixNano(), lastCollect.Load()
	if now-last < int64(collectEvery) || !lastCollect.CompareAndSwap(last, now) {
		return
	}
	runtime.GC()
	for wait := time.Millisecond; wait <= 16*time.Millisecond; wait *= 2 {
		time.Sleep(wait)
		Reclaim()
		if enough() {
			return
		}
	}
}
