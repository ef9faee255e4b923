//go:build unix && !linux && !darwin

package osmem

import "golang.org/x/sys/unix"

func unmap(m []byte) error { return unix.Munmap(m) }

func adviseHuge(m []byte) error { return unsupported("advice for huge pages") }

const trimsFiles = true

func dontNeed(m []byte) error { return unix.Madvise(m, unix.MADV_DONTNEED) }

func resident(m []byte) (int, error) { return 0, unsupported("the resident size of a mapping") }
