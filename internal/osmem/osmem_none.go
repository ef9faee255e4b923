//go:build !unix && !windows

package osmem

import (
	"io"
	"os"
	"unsafe"
)

// Systems without mappings (js, wasip1, plan9) get page-aligned memory of the Go heap; the caller's reference keeps it.
func mapAnonymous(size int) ([]byte, error) {
	page := PageSize()
	b := make([]byte, size+page)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (page - 1)
	return b[skip : skip+size : skip+size], nil
}

func mapFile(f *os.File, size int) ([]byte, error) {
	b, err := mapAnonymous(size)
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(io.NewSectionReader(f, 0, int64(size)), b)
	return b, err
}

func unmap(m []byte) error { return nil }

func adviseHuge(m []byte) error { return unsupported("advice for huge pages") }

func dontNeed(m []byte) error { return unsupported("giving pages back") }

func resident(m []byte) (int, error) { return 0, unsupported("the resident size of a mapping") }
