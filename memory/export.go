package memory

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// An export is a use of a handle that foreign code ends, at any time, on any
// thread, without calling Go. Exports are counted separately from the uses of
// Go code, so that errors can name them, and so that a handle that was given up
// while exports are out is not reported as a leak.
//
// Foreign code ends an export by one atomic subtraction on the record's word.
// The side that ends the last use of a dead record frees it: Go code at once,
// foreign code by pushing the record on a list that Reclaim drains. A record
// gets there once per handle, because a dead handle accepts no new use.

// Export takes an export: like Use, until EndExport or until foreign code ends
// it.
func (h Handle) Export() error { return h.begin(exportUnit, exportMask) }

// TryExport takes an export if that is possible at once; false does not tell
// the reason. It is the fast path of Export, small enough to be inlined. The
// handle is a result of NewHandle, IntoHandle or Move.
func (h Handle) TryExport() bool {
	w := h.rec.word.Load()
	return w&^busyMask == h.tag && w&exportMask != exportMask && h.rec.word.CompareAndSwap(w, w+exportUnit)
}

// EndExport ends an export of Export.
func (h Handle) EndExport() { h.end(exportUnit) }

// LockExport takes the exclusive export that may write: like Lock, until
// UnlockExport or until foreign code ends it.
func (h Handle) LockExport() error { return h.lock(exportUnit) }

// UnlockExport ends an export of LockExport.
func (h Handle) UnlockExport() { h.end(writing | exportUnit) }

// The layout of records and their words for foreign code.
const (
	ForeignUnit    = exportUnit           // ends an export of Export
	ForeignWrite   = writing | exportUnit // ends an export of LockExport
	ForeignExports = exportMask           // bits of the word that count exports; all are 0 when no export is out
	ForeignBusy    = busyMask             // bits of the word that are 0 when the handle has no use
	ForeignDead    = dead                 // bit of the word that is set once the handle has ended
	ForeignIndex   = 8                    // offset of the record's number, 32 bits
	ForeignNext    = 12                   // offset of the number of the next dead record, 32 bits
)

// Foreign has the addresses at which foreign code ends an export of a handle.
// Both stay valid for the life of the process.
//
// With the word at *Record (64 bits) and the head of the list of dead records
// at *Dead (32 bits), it does
//
//	w := atomic add(Record, -ForeignUnit) // or -ForeignWrite; the value after it
//	if (w+ForeignUnit)&ForeignExports == 0 {
//		atomic add(Record, ForeignUnit) // no export was out: one was ended twice
//		return
//	}
//	if w&ForeignBusy == 0 && w&ForeignDead != 0 {
//		index := load32(Record + ForeignIndex)
//		do {
//			head := load32(Dead)
//			store32(Record + ForeignNext, head)
//		} while !compare-and-swap32(Dead, head, index)
//	}
//
// The list is pushed one by one and taken as a whole, so a compare-and-swap
// cannot mistake one head for another.
type Foreign struct {
	Record uintptr
	Dead   uintptr
}

// End ends an export from Go in the way of foreign code, with unit ForeignUnit
// or ForeignWrite. If it was the last use of a dead handle, End frees the bytes
// at once. If no export was out it does nothing and returns false.
func (f Foreign) End(unit uint64) bool {
	if f.Record == 0 || f.Dead == 0 {
		return false
	}
	last, was := f.end(unit)
	if last {
		Reclaim()
	}
	return was
}

// end is the algorithm of foreign code. It reports whether it put the record on
// the list, and whether there was an export to end.
func (f Foreign) end(unit uint64) (last, was bool) {
	at := func(address uintptr, offset uintptr) unsafe.Pointer {
		return unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&address)), offset)
	}
	w := (*atomic.Uint64)(at(f.Record, 0)).Add(-unit)
	if (w+unit)&ForeignExports == 0 {
		(*atomic.Uint64)(at(f.Record, 0)).Add(unit)
		return false, false
	}
	if w&ForeignBusy != 0 || w&ForeignDead == 0 {
		return false, true
	}
	index := (*atomic.Uint32)(at(f.Record, ForeignIndex)).Load()
	list := (*atomic.Uint32)(at(f.Dead, 0))
	for {
		head := list.Load()
		(*atomic.Uint32)(at(f.Record, ForeignNext)).Store(head)
		if list.CompareAndSwap(head, index) {
			return true, true
		}
	}
}

// Foreign returns the addresses for foreign code. The handle is a result of
// NewHandle, IntoHandle or Move.
func (h Handle) Foreign() Foreign {
	return Foreign{Record: uintptr(unsafe.Pointer(h.rec)), Dead: uintptr(unsafe.Pointer(&recordAt(0).free))}
}

// Attachment is an object that lives as long as a handle's hold.
type Attachment interface {
	// End is called once, after the hold has ended or moved to another handle,
	// on the goroutine that ended it. No export is out then.
	End()
}

// Attach attaches a to the handle and reports whether it did. If the handle has
// an attachment already, Attach returns that one. The caller has a use or an
// export.
func (h Handle) Attach(a Attachment) (there Attachment, attached bool) {
	slab, i := slabOf(h.rec.index)
	if slab.attached[i].CompareAndSwap(nil, &a) {
		return a, true
	}
	return *slab.attached[i].Load(), false // an attachment is not removed while the caller has a use
}

// orphans counts the handles that were given up while exports were out and
// still have uses.
var orphans atomic.Int64

// Reclaim frees the bytes of handles whose last export foreign code has ended,
// and returns the number of such handles. Every allocation calls it, and so
// does a timer while there may be such handles.
func Reclaim() int {
	if records.slabs.Load() == nil {
		return 0
	}
	head := &recordAt(0).free
	if head.Load() == 0 {
		return 0
	}
	n := 0
	for at := head.Swap(0); at != 0; n++ {
		r := recordAt(at)
		at = r.free.Load() // retire puts the record on another list
		r.word.Load()      // for the race detector, which did not see the push of foreign code: it must see the end of the handle
		r.retire()
	}
	return n
}

const (
	firstReclaim = time.Millisecond
	lastReclaim  = 100 * time.Millisecond
)

var watching atomic.Bool

// watchOrphans makes a timer reclaim until no orphan is left. Its interval is
// short at first and grows while nothing happens.
func watchOrphans() {
	if watching.CompareAndSwap(false, true) {
		time.AfterFunc(firstReclaim, func() { reclaimLater(firstReclaim) })
	}
}

func reclaimLater(wait time.Duration) {
	if wait = min(2*wait, lastReclaim); Reclaim() > 0 {
		wait = firstReclaim
	}
	if orphans.Load() > 0 {
		time.AfterFunc(wait, func() { reclaimLater(wait) })
		return
	}
	watching.Store(false)
	if orphans.Load() > 0 { // an orphan was added before the flag was cleared, and saw it set
		watchOrphans()
	}
}
