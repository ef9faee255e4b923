package memory

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// An export is a use of a handle that foreign code ends, at any time, from any thread, without calling Go. It is counted apart
// from the uses of Go code, so that a refusal can say what is out, and so that a handle that was given up while exports are
// out is no leak.
//
// Foreign code ends an export by one atomic subtraction on the record's word. Whoever takes a dead record to no uses frees
// it: Go code at once, foreign code by pushing the record on a list that Reclaim drains. A record gets there once per handle,
// because a dead handle takes no new use.

// Export takes an export: like Use, until EndExport or until foreign code ends it.
func (h Handle) Export() error { return h.begin(exportUnit, exportMask) }

// TryExport takes an export if that is possible at once; false says nothing about why not. It is what Export begins with, small
// enough to be compiled into its caller. The handle is one that NewHandle, IntoHandle or Move gave.
func (h Handle) TryExport() bool {
	w := h.rec.word.Load()
	return w&^busyMask == h.tag && w&exportMask != exportMask && h.rec.word.CompareAndSwap(w, w+exportUnit)
}

// EndExport ends an export that Export took.
func (h Handle) EndExport() { h.end(exportUnit) }

// LockExport takes the one export that may write: like Lock, until UnlockExport or until foreign code ends it.
func (h Handle) LockExport() error { return h.lock(exportUnit) }

// UnlockExport ends what LockExport took.
func (h Handle) UnlockExport() { h.end(writing | exportUnit) }

// What foreign code must know of records and their words.
const (
	ForeignUnit    = exportUnit           // what ends an export that Export took
	ForeignWrite   = writing | exportUnit // what ends an export that LockExport took
	ForeignExports = exportMask           // bits of the word that count exports; all are 0 when none is out
	ForeignBusy    = busyMask             // bits of the word that are 0 when the handle has no use
	ForeignDead    = dead                 // bit of the word that is set once the handle was given up
	ForeignIndex   = 8                    // where in a record its number is, 32 bits
	ForeignNext    = 12                   // where in a record the number of the next dead one goes, 32 bits
)

// Foreign is where foreign code ends an export of a handle. Both addresses stay valid for the life of the process.
//
// With the word at *Record (64 bits) and the head of the list of dead records at *Dead (32 bits), it does
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
// The list is pushed one by one and taken as a whole, so a compare-and-swap cannot mistake one head for another.
type Foreign struct {
	Record uintptr
	Dead   uintptr
}

// End ends an export from Go as foreign code would, with unit ForeignUnit or ForeignWrite, and if it was the last of a dead
// handle gives the bytes back at once. It returns false, and has done nothing, if no export was out.
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

// end is what foreign code does, word for word. It reports whether it put the record on the list, and whether there was an
// export to end.
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

// Foreign returns where foreign code ends an export. The handle is one that NewHandle, IntoHandle or Move gave.
func (h Handle) Foreign() Foreign {
	return Foreign{Record: uintptr(unsafe.Pointer(h.rec)), Dead: uintptr(unsafe.Pointer(&recordAt(0).free))}
}

// Attachment is an object that lives as long as a handle's hold.
type Attachment interface {
	// End is called once, after the hold has ended or moved to another handle, from whatever goroutine ended it. No export
	// is out then.
	End()
}

// Attach attaches a to the handle and reports whether it did. If the handle has an attachment already, Attach returns
// that one. The caller has a use or an export.
func (h Handle) Attach(a Attachment) (there Attachment, attached bool) {
	slab, i := slabOf(h.rec.index)
	if slab.attached[i].CompareAndSwap(nil, &a) {
		return a, true
	}
	return *slab.attached[i].Load(), false // nobody detaches it while the caller has a use
}

// orphans counts the handles that were given up while exports were out and still have uses.
var orphans atomic.Int64

// Reclaim frees the bytes of handles whose last export foreign code has ended, and returns how many handles it found. Every
// allocation does the same, and a timer does while such handles may come.
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
		r.word.Load()      // for the race detector: it did not see foreign code push, so it must see who gave the handle up
		r.retire()
	}
	return n
}

const (
	firstReclaim = time.Millisecond
	lastReclaim  = 100 * time.Millisecond
)

var watching atomic.Bool

// watchOrphans makes a timer reclaim until no orphan is left. It starts fast and slows down while nothing happens.
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
	if orphans.Load() > 0 { // one came before the flag went down, and saw it up
		watchOrphans()
	}
}
