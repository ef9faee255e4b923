//go:build unix

package kerneltest

import (
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fencedPages returns memory of at least n bytes that ends where a page begins
// that cannot be read.
func fencedPages(t testing.TB, n int) []byte {
	t.Helper()
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	m, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Mprotect(m[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m[:size:size]
}

func freePages(t testing.TB, pages []byte) {
	t.Helper()
	if err := unix.MunmapPtr(unsafe.Pointer(&pages[0]), uintptr(len(pages)+os.Getpagesize())); err != nil {
		t.Error(err)
	}
}
