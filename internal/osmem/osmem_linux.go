package osmem

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

func unmap(m []byte) error {
	if done, err := unmapAligned(m); done {
		return err
	}
	return unix.Munmap(m)
}

func adviseHuge(m []byte) error { return unix.Madvise(m, unix.MADV_HUGEPAGE) }

const trimsFiles = true

func dontNeed(m []byte) error { return unix.Madvise(m, unix.MADV_DONTNEED) }

func resident(m []byte) (int, error) {
	page := PageSize()
	vec := make([]byte, (len(m)+page-1)/page)
	_, _, errno := unix.Syscall(unix.SYS_MINCORE,
		uintptr(unsafe.Pointer(&m[0])), uintptr(len(m)), uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return 0, errno
	}
	n := 0
	for _, v := range vec {
		n += int(v & 1)
	}
	return n * page, nil
}
