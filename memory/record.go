package memory

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/internal/invariant"
)

// record is the state of a Handle. Records are outside the Go heap in slabs
// that are never unmapped, for two reasons: a stale handle may read its
// record's word at any time, and foreign code may end a use by one atomic
// subtraction at a fixed address.
//
// A record has a cache line of its own, so that uses of different tensors do
// not contend. Foreign code knows the offsets of its first three fields: see
// Foreign.
type record struct {
	word  atomic.Uint64
	index uint32        // its number; 0 means no record
	free  atomic.Uint32 // the next record of its list: of free records, or of those that foreign code has released
	next  uint32        // neighbours in the list of its buffer's handles, guarded by storage.mu
	prev  uint32
	turns atomic.Uint64 // see Handle.Turns
	_     [64 - 32]byte
}

// The word of a record, from the lowest bit: 18 bits of uses, 16 bits of
// exports (uses that foreign code ends), 1 bit "locked by a writer", 1 bit
// "ended while exports were out", 2 bits of state, of which the upper means
// "dead", 26 bits of generation. The generation grows each time a handle of the
// record ends, so an earlier handle matches no word of a later one.
const (
	useUnit    = 1
	usesMask   = 1<<18 - 1
	exportUnit = 1 << 18
	exportMask = (1<<16 - 1) * exportUnit
	busyMask   = usesMask | exportMask
	writing    = 1 << 34
	orphan     = 1 << 35
	stateUnit  = 1 << 36
	stateMask  = 3 * stateUnit
	dead       = 2 * stateUnit
	genUnit    = 1 << 38
	genMask    = ^uint64(genUnit - 1)

	stateFree     = 0 * stateUnit
	stateAlive    = 1 * stateUnit
	stateReleased = 2 * stateUnit
	stateDonated  = 3 * stateUnit
)

const recordsPerSlab = 1024

// recordSlab is a slab of records with the pointers that belong to each, which
// must be on the Go heap for the collector to see them.
type recordSlab struct {
	records  []record
	owners   [recordsPerSlab]*storage
	sites    [recordsPerSlab]invariant.Site
	attached [recordsPerSlab]atomic.Pointer[Attachment]
}

var records struct {
	grow  sync.Mutex
	slabs atomic.Pointer[[]*recordSlab]
	// free is the stack of free records: in the upper half a count of pops (so
	// that a compare-and-swap cannot mistake a record that was removed and
	// added again for one that stayed), in the lower half the top's index.
	free atomic.Uint64
}

func slabOf(index uint32) (*recordSlab, uint32) {
	return (*records.slabs.Load())[index/recordsPerSlab], index % recordsPerSlab
}

func recordAt(index uint32) *record {
	slab, i := slabOf(index)
	return &slab.records[i]
}

// takeRecord returns a free record, in state free with its present generation.
func takeRecord() (*record, error) {
	for {
		head := records.free.Load()
		top := uint32(head)
		if top == 0 {
			if err := growRecords(); err != nil {
				return nil, err
			}
			continue
		}
		r := recordAt(top)
		next := r.free.Load()
		if records.free.CompareAndSwap(head, (head>>32+1)<<32|uint64(next)) {
			return r, nil
		}
	}
}

func putRecord(r *record) {
	for {
		head := records.free.Load()
		r.free.Store(uint32(head))
		if records.free.CompareAndSwap(head, head&^0xFFFFFFFF|uint64(r.index)) {
			return
		}
	}
}

func growRecords() error {
	records.grow.Lock()
	defer records.grow.Unlock()
	if uint32(records.free.Load()) != 0 {
		return nil // another goroutine added a slab while this one waited
	}
	var slabs []*recordSlab
	if old := records.slabs.Load(); old != nil {
		slabs = *old
	}
	if len(slabs) >= 1<<32/recordsPerSlab {
		return fmt.Errorf("memory: got %d handles, want fewer than 2^32: %w", len(slabs)*recordsPerSlab, ErrLimit)
	}
	recs, err := obtainRecords()
	if err != nil {
		return fmt.Errorf("memory: room for %d handles: %w (%w)", recordsPerSlab, err, ErrLimit)
	}
	slab := &recordSlab{records: recs}
	base := uint32(len(slabs) * recordsPerSlab)
	for i := range recs {
		recs[i].index = base + uint32(i)
	}
	grown := append(slabs[:len(slabs):len(slabs)], slab)
	records.slabs.Store(&grown)
	for i := range recs {
		if recs[i].index != 0 {
			putRecord(&recs[i])
		}
	}
	return nil
}

const recordSlabBytes = recordsPerSlab * int(unsafe.Sizeof(record{}))

// retire frees the record of a dead handle without uses and drops its hold. The
// caller has ended its last use.
func (r *record) retire() {
	slab, i := slabOf(r.index)
	s := slab.owners[i]
	s.unchain(r)
	slab.owners[i] = nil
	attached := slab.attached[i].Swap(nil)
	account.handles.current.Add(-1)
	w := r.word.Load()
	if w&orphan != 0 {
		orphans.Add(-1)
	}
	gen := w & genMask
	r.word.Store(gen + genUnit | stateFree)
	if gen+genUnit != genMask && !s.park(r) { // a record in its last generation is not used again, because the next would be the first
		putRecord(r)
	}
	s.drop()
	if attached != nil {
		(*attached).End()
	}
}
