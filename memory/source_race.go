//go:build race

package memory

import (
	"errors"
	"fmt"
	"unsafe"
)

// The race detector sees only accesses to the Go heap, so race builds allocate
// all memory there. The slice keeps it alive, and the runtime does not move
// heap objects.

const maxRaceBytes = 16 << 30

func obtain(size int) ([]byte, error) {
	const align = 4096
	if size > maxRaceBytes { // the runtime ends the process when the system has no more memory
		return nil, fmt.Errorf("got size %d, want at most %d bytes in a race build", size, int64(maxRaceBytes))
	}
	b := make([]byte, size+align)
	skip := int(-uintptr(unsafe.Pointer(&b[0])) & (align - 1))
	m := b[skip : skip+size : skip+size]
	account.system.current.Add(int64(len(m)))
	return m, nil
}

func surrender(m []byte) error {
	account.system.current.Add(-int64(len(m)))
	return nil
}

func discard([]byte) error {
	return fmt.Errorf("memory: discard Go heap memory in a race build: %w", errors.ErrUnsupported)
}

func resident([]byte) (int, error) {
	return 0, fmt.Errorf("memory: resident size of Go heap memory in a race build: %w", errors.ErrUnsupported)
}

func obtainRecords() ([]record, error) {
	// The detector derives orderings only from atomics in the Go heap, so the
	// records must be there too.
	account.system.current.Add(int64(recordSlabBytes))
	return make([]record, recordsPerSlab), nil
}
