package osmem

import (
	"fmt"
	"math"
	"os"
)

// PageSize returns the size of the pages that the system maps.
func PageSize() int { return os.Getpagesize() }

// RoundUp returns size rounded up to whole pages, or an error if that
// overflows.
func RoundUp(size int) (int, error) {
	page := PageSize()
	if size < 0 || size > math.MaxInt-page {
		return 0, fmt.Errorf("osmem: got size %d, want 0 to %d bytes", size, math.MaxInt-page)
	}
	return (size + page - 1) / page * page, nil
}

// Map returns at least size zeroed, readable and writable bytes outside the Go
// heap, rounded up to whole pages and aligned to a page. Pages take physical
// memory when they are first touched.
func Map(size int) ([]byte, error) {
	n, err := RoundUp(size)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, fmt.Errorf("osmem: got size %d, want at least 1 byte", size)
	}
	m, err := mapAnonymous(n)
	if err != nil {
		return nil, fmt.Errorf("osmem: map %d bytes: %w", n, err)
	}
	return m, nil
}

// MapFile maps the first size bytes of f for reading. The mapping outlives f's
// descriptor. A store into it, and a load after the file was truncated, end the
// process.
func MapFile(f *os.File, size int) ([]byte, error) {
	if size <= 0 {
		return nil, fmt.Errorf("osmem: map %s: got size %d, want at least 1 byte", f.Name(), size)
	}
	// A mapping may be longer than its file, and a load behind the file's end
	// kills the process, so this is refused.
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("osmem: map %s: %w", f.Name(), err)
	}
	if int64(size) > info.Size() {
		return nil, fmt.Errorf("osmem: map %s: got size %d, want at most the file's %d bytes", f.Name(), size, info.Size())
	}
	m, err := mapFile(f, size)
	if err != nil {
		return nil, fmt.Errorf("osmem: map %d bytes of %s: %w", size, f.Name(), err)
	}
	return m, nil
}

// Unmap frees a mapping: exactly the slice that Map or MapFile returned.
func Unmap(m []byte) error {
	if err := unmap(m); err != nil {
		return fmt.Errorf("osmem: unmap %d bytes: %w", len(m), err)
	}
	return nil
}

// AdviseHuge requests huge pages for a mapping of Map. It changes only speed.
func AdviseHuge(m []byte) error { return advise("huge pages", m, adviseHuge) }

// DontNeed permits the system to take back the pages of m, which must start and
// end on page boundaries of a mapping. Afterwards bytes of an anonymous mapping
// are unchanged or zero; those of a file mapping are read from the file again.
func DontNeed(m []byte) error { return advise("giving pages back", m, dontNeed) }

// TrimsFiles reports whether DontNeed takes back pages of mapped files.
func TrimsFiles() bool { return trimsFiles }

func advise(what string, m []byte, call func([]byte) error) error {
	if len(m) == 0 {
		return nil
	}
	if err := call(m); err != nil {
		return fmt.Errorf("osmem: %s for %d bytes: %w", what, len(m), err)
	}
	return nil
}

// Resident returns the number of bytes of m in physical memory, in whole pages.
// m must start on a page boundary of a mapping.
func Resident(m []byte) (int, error) {
	if len(m) == 0 {
		return 0, nil
	}
	n, err := resident(m)
	if err != nil {
		return 0, fmt.Errorf("osmem: resident size of %d bytes: %w", len(m), err)
	}
	return n, nil
}
