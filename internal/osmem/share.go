package osmem

import (
	"errors"
	"fmt"
	"math"
)

const hugeBytes = 2 << 20

// ErrNoMemory is the kind of every error of NewShared that more memory would cure: the machine's, that of a control group, or
// that of another limit of the process.
var ErrNoMemory = errors.New("not enough memory")

// Shared is memory that other processes can map for reading: a sealed memfd and its one writable mapping. All of it is there
// from the start, so no access of its owner or of a reader can fail for want of memory, and nobody, its owner included, can
// shrink it, punch holes into it or map it for writing again. It stays for as long as anybody has it mapped or holds its
// descriptor, whatever becomes of its maker.
//
// The owner closes it. Its methods may be called from any goroutine, Close and Finish once nobody uses Bytes any more.
type Shared struct {
	fd    int
	bytes []byte
}

// NewShared makes shared memory of at least size zeroed bytes: whole pages below 2 MiB, multiples of 2 MiB from there on, so
// that huge pages fit. The name is for people who look into /proc; it need not be unique.
func NewShared(name string, size int) (*Shared, error) {
	n, err := sharedSize(size)
	if err != nil {
		return nil, err
	}
	return newShared(name, n)
}

// NewSharedPages is NewShared of no more than whole pages, for memory of which all is needed: its end has small ones.
func NewSharedPages(name string, size int) (*Shared, error) {
	if _, err := sharedSize(size); err != nil {
		return nil, err
	}
	n, err := RoundUp(size)
	if err != nil {
		return nil, err
	}
	return newShared(name, n)
}

// sharedSize rounds a size up for NewShared.
func sharedSize(size int) (int, error) {
	if size <= 0 || size > math.MaxInt-hugeBytes {
		return 0, fmt.Errorf("osmem: shared memory: got size %d, want 1 to %d bytes", size, math.MaxInt-hugeBytes)
	}
	if size >= hugeBytes {
		return (size + hugeBytes - 1) / hugeBytes * hugeBytes, nil
	}
	return RoundUp(size)
}

// Bytes returns the memory: writable until Finish, only readable afterwards, nil after Close.
func (s *Shared) Bytes() []byte { return s.bytes }

// Fd returns the descriptor, for MapShared in another process. It stays the property of s.
func (s *Shared) Fd() int { return s.fd }

// Finish gives up the right to write, for memory that is built once and then constant for ever: the one writable mapping is
// replaced by a read-only one at the same address. Afterwards no process can write these bytes. If it fails, s is good for
// Close only.
func (s *Shared) Finish() error { return s.finish() }

// Close unmaps the memory and closes the descriptor. Readers keep their mappings and the bytes in them. After the first time
// it is an error that matches os.ErrClosed.
func (s *Shared) Close() error { return s.close() }

// MapShared maps size bytes of shared memory that another process made, for reading. fd stays the caller's and may be closed
// at once; Unmap gives the mapping back.
//
// It trusts nothing that came with the descriptor: what is not memory of exactly that size, all of it there and sealed
// against shrinking and writing, is refused, because reading it could end this process or make it pay for the pages.
//
// The page tables are empty: each page costs its first reader a fault, unless Populate comes before.
func MapShared(fd, size int) ([]byte, error) { return mapShared(fd, size) }

// Populate fills the page tables of part of a mapping from MapShared, so that the first reads take no faults. It is advice.
func Populate(m []byte) { populateView(m) }

// FileID tells one shared memory from another for as long as somebody has it mapped or open, whichever descriptors it comes by.
type FileID struct{ Device, Inode uint64 }

// SharedID returns which shared memory a descriptor is of.
func SharedID(fd int) (FileID, error) { return sharedID(fd) }
