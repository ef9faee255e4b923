//go:build !race

package memory

import (
	"unsafe"

	"github.com/tenure-go/tenure/internal/osmem"
)

// obtain returns at least size zeroed bytes, aligned to a page. surrender
// returns them to the system.
func obtain(size int) ([]byte, error) {
	m, err := osmem.Map(size)
	if err != nil {
		return nil, err
	}
	if len(m) >= hugeBytes {
		_ = osmem.AdviseHuge(m) // advice: without it the memory is slower, not wrong
	}
	account.system.current.Add(int64(len(m)))
	return m, nil
}

func surrender(m []byte) error {
	account.system.current.Add(-int64(len(m)))
	return osmem.Unmap(m)
}

func discard(m []byte) error { return osmem.DontNeed(m) }

func resident(m []byte) (int, error) { return osmem.Resident(m) }

func obtainRecords() ([]record, error) {
	m, err := obtain(recordSlabBytes)
	if err != nil {
		return nil, err
	}
	return unsafe.Slice((*record)(unsafe.Pointer(unsafe.SliceData(m))), recordsPerSlab), nil
}
