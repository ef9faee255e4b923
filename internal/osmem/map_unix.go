//go:build unix

package osmem

import (
	"os"

	"golang.org/x/sys/unix"
)

func mapAnonymous(size int) ([]byte, error) {
	return unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
}

func mapFile(f *os.File, size int) ([]byte, error) {
	// Private and shared mappings differ only for writers. This one cannot be
	// written, and a private mapping stays so even after mprotect.
	return unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_PRIVATE)
}
