package cuda

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
)

// block is a range of device memory that is one buffer, or is kept for the
// next. Its stamps outlive its buffers: work that writes the bytes for the next
// buffer waits for work that used them in the one before.
type block struct {
	memory.Remote
	d       *Device
	bytes   int
	home    home        // where it goes at the end of its buffer
	managed bool        // the driver moves the bytes between the device and the host
	living  func() bool // whether the process exists that has the bytes; nil if they do not end with another process

	mu    sync.Mutex
	wrote stamp
	reads []stamp // of streams that read since, one for each
	asked uint64  // of wholeEvent.isComplete: whether foreign work is complete
	lent  atomic.Uint32
}

// Bits of lent: what code outside this package may do with the bytes in work
// that it has submitted, or will submit while its export is out.
const (
	lentRead = 1 << iota
	lentWrite
)

// home takes back the bytes of a block whose buffer has ended. It must not wait
// for the device.
type home interface{ giveBack(*block) }

// GiveBack ends the buffer.
func (b *block) GiveBack() {
	b.mu.Lock()
	b.asked = 0 // foreign work that was submitted meanwhile counts, too
	b.mu.Unlock()
	b.home.giveBack(b)
}

// blockOf returns the block of a buffer, nil if the bytes are not of a CUDA
// device.
func blockOf(r *memory.Remote) *block {
	if r == nil {
		return nil
	}
	b, _ := r.Keeper.(*block)
	return b
}

func (b *block) pointer() driver.Pointer { return driver.Pointer(b.Address) }

// before makes later work of s wait for the work that must precede a use of
// the bytes. The caller has s.mu.
func (b *block) before(s *Stream, write bool) error {
	if err := b.exists(); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := s.await(b.wrote); err != nil {
		return err
	}
	if b.mustWait(write) {
		if err := s.awaitAll(b.d); err != nil {
			return err
		}
		// The wait counts as the last write: other streams wait for it, and so
		// for the foreign work.
		b.wrote = stamp{s, s.submitted.Add(1)}
		b.waited(write)
	}
	if !write {
		return nil
	}
	for _, r := range b.reads {
		if err := s.await(r); err != nil {
			return err
		}
	}
	return nil
}

// exists fails for bytes that have ended with their process.
func (b *block) exists() error {
	if b.living == nil || b.living() {
		return nil
	}
	return fmt.Errorf("cuda: use memory of another process on %s: the process has ended, and its memory with it: %w", b.d, share.ErrClosed)
}

// mustWait reports whether foreign work must precede a use of the bytes.
func (b *block) mustWait(write bool) bool {
	lent := b.lent.Load()
	return lent&lentWrite != 0 || write && lent != 0
}

// waited records that the work that uses the bytes next is behind foreign work.
// Whoever reads may do so beside exports for reading that are still out, so
// their mark stays; whoever writes knows that none is.
func (b *block) waited(write bool) {
	if write {
		b.lent.Store(0)
	} else {
		b.lent.And(^uint32(lentWrite))
	}
}

// after stamps the bytes with work that was submitted.
func (b *block) after(w stamp, write bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if write {
		b.wrote = w
		clear(b.reads)
		b.reads = b.reads[:0]
		return
	}
	for i := range b.reads {
		if b.reads[i].s == w.s {
			b.reads[i].at = max(b.reads[i].at, w.at)
			return
		}
	}
	b.reads = append(b.reads, w)
}

// isIdle reports whether all work that uses the bytes is complete.
func (b *block) isIdle() (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lent.Load() != 0 {
		done, err := b.d.whole.isComplete(b.d, &b.asked)
		if !done || err != nil {
			return false, err
		}
		b.lent.Store(0)
		b.asked = 0
	}
	if done, err := b.wrote.isComplete(); !done {
		return false, err
	}
	for _, r := range b.reads {
		if done, err := r.isComplete(); !done {
			return false, err
		}
	}
	b.wrote, b.reads = stamp{}, b.reads[:0]
	return true, nil
}

// isReadyFor reports, without asking the driver, whether s can write the bytes
// without waiting.
func (b *block) isReadyFor(s *Stream) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ready := func(w stamp) bool { return w.s == nil || w.s == source(s) || w.s.done() >= w.at }
	if b.lent.Load() != 0 || !ready(b.wrote) {
		return false
	}
	for _, r := range b.reads {
		if !ready(r) {
			return false
		}
	}
	return true
}

// lend marks that foreign code may submit work that uses the bytes, on streams
// that this package does not know. The caller has an export, so no other
// goroutine takes the mark away.
func (b *block) lend(write bool) {
	mark := uint32(lentRead)
	if write {
		mark |= lentWrite
	}
	if b.lent.Load()&mark != mark { // an exchange of a tensor that is lent already writes nothing
		b.lent.Or(mark)
	}
}

// limbo is the blocks of a device whose buffers have ended and whose bytes must
// not go back to their owner before the work that uses them is complete: memory
// of other libraries and processes.
type limbo struct {
	streams atomic.Int32 // open streams of the device
	polling sync.Mutex   // held while blocks are out of the list to be looked at

	mu       sync.Mutex
	waiting  []leaving
	watching bool
}

type leaving struct {
	b    *block
	then func()
}

const (
	firstPoll = 50 * time.Microsecond
	lastPoll  = 100 * time.Millisecond
)

// leave calls then when the work that uses b is complete, now or later, on any
// goroutine. It does not wait.
func (l *limbo) leave(b *block, then func()) {
	if done, err := b.isIdle(); done || err != nil { // after an error nothing runs any more
		then()
		return
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, leaving{b, then})
	start := !l.watching
	l.watching = true
	l.mu.Unlock()
	if start {
		time.AfterFunc(firstPoll, func() { l.watch(firstPoll) })
	}
}

// watch polls until nothing waits, at intervals that grow while nothing
// happens.
func (l *limbo) watch(wait time.Duration) {
	if wait = min(2*wait, lastPoll); l.poll() > 0 {
		wait = firstPoll
	}
	l.mu.Lock()
	l.watching = len(l.waiting) > 0
	again := l.watching
	l.mu.Unlock()
	if again {
		time.AfterFunc(wait, func() { l.watch(wait) })
	}
}

// poll lets blocks go whose work is complete, and returns their number. It does
// nothing while another call does, which may be the one that this call is in:
// the end of a block can run code of other libraries.
func (l *limbo) poll() int {
	if !l.polling.TryLock() {
		return 0
	}
	defer l.polling.Unlock()
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	var stay []leaving
	for _, w := range waiting {
		if done, err := w.b.isIdle(); done || err != nil {
			w.then()
		} else {
			stay = append(stay, w)
		}
	}
	l.mu.Lock()
	l.waiting = append(l.waiting, stay...)
	l.mu.Unlock()
	return len(waiting) - len(stay)
}

// drain lets all blocks go: the device has no work.
func (l *limbo) drain() {
	l.polling.Lock()
	defer l.polling.Unlock()
	l.mu.Lock()
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, w := range waiting {
		w.then()
	}
}

// len returns the number of blocks that wait.
func (l *limbo) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}
