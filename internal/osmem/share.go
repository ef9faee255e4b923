package osmem

import (
	"errors"
	"fmt"
	"math"
)

const hugeBytes = 2 << 20

// ErrNoMemory is the error of NewShared for lack of memory: of the machine, of
// a control group, or of another limit of the process.
var ErrNoMemory = errors.New("not enough memory")

// Shared is memory that other processes can map for reading: a sealed memfd and
// its one writable mapping. All of its pages exist from the start, so no access
// by its owner or by a reader can fail for lack of memory, and no process,
// including its owner, can shrink it, punch holes into it or map it for writing
// again. It stays as long as any process has it mapped or has its descriptor,
// even after the end of its owner.
//
// The owner closes it. Its methods may be called from any goroutine; Close and
// Finish only when Bytes is not in use any more.
type Shared struct {
	fd    int
	bytes []byte
}

// NewShared makes shared memory of at least size zeroed bytes: whole pages
// below 2 MiB, multiples of 2 MiB from there on, so that huge pages fit. The
// name appears in /proc; it need not be unique.
func NewShared(name string, size int) (*Shared, error) {
	n, err := sharedSize(size)
	if err != nil {
		return nil, err
	}
	return newShared(name, n)
}

// NewSharedPages is NewShared rounded up to whole pages only, for memory that
// is used to its end: the rest has small pages.
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

// Bytes returns the memory: writable until Finish, only readable afterwards,
// nil after Close.
func (s *Shared) Bytes() []byte { return s.bytes }

// Fd returns the descriptor, for MapShared in another process. s keeps
// ownership of it.
func (s *Shared) Fd() int { return s.fd }

// Finish ends the right to write, for memory that is constant once it is
// filled: it replaces the one writable mapping by a read-only one at the same
// address. After that no process can write these bytes. If it fails, s can only
// be closed.
func (s *Shared) Finish() error { return s.finish() }

// Close unmaps the memory and closes the descriptor. Readers keep their
// mappings and the bytes in them. A second call returns an error that matches
// os.ErrClosed.
func (s *Shared) Close() error { return s.close() }

// MapShared maps size bytes of shared memory of another process for reading.
// The caller keeps fd and may close it at once; Unmap frees the mapping.
//
// It checks the descriptor: memory that does not have exactly that size, or has
// missing pages, or is not sealed against shrinking and writing, is refused,
// because reading it could end this process or charge it for the pages.
//
// The page tables are empty: the first read of each page takes a page fault,
// unless Populate comes before.
func MapShared(fd, size int) ([]byte, error) { return mapShared(fd, size) }

// Populate fills the page tables of a part of a mapping of MapShared, so that
// the first reads take no page faults. It is advice.
func Populate(m []byte) { populateView(m) }

// FileID identifies shared memory as long as any process has it mapped or open,
// regardless of the descriptor.
type FileID struct{ Device, Inode uint64 }

// SharedID returns the identity of a descriptor's shared memory.
func SharedID(fd int) (FileID, error) { return sharedID(fd) }
