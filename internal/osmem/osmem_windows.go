package osmem

import (
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

func mapAnonymous(size int) ([]byte, error) {
	addr, err := windows.VirtualAlloc(0, uintptr(size), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, err
	}
	return bytesAt(addr, size), nil
}

func mapFile(f *os.File, size int) ([]byte, error) {
	h, err := windows.CreateFileMapping(windows.Handle(f.Fd()), nil, windows.PAGE_READONLY, uint32(uint64(size)>>32), uint32(size), nil)
	if err != nil {
		return nil, err
	}
	addr, err := windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	closeErr := windows.CloseHandle(h) // the view keeps the mapping alive
	if err != nil {
		return nil, err
	}
	if closeErr != nil {
		return nil, closeErr
	}
	return bytesAt(addr, size), nil
}

// isFile reports whether an address is in a view of a file. Views are unmapped
// and trimmed by other calls than anonymous memory.
func isFile(addr uintptr) (bool, error) {
	const memMapped = 0x40000 // MEM_MAPPED, the type of a view
	var info windows.MemoryBasicInformation
	if err := windows.VirtualQuery(addr, &info, unsafe.Sizeof(info)); err != nil {
		return false, err
	}
	return info.Type == memMapped, nil
}

func unmap(m []byte) error {
	if cap(m) == 0 {
		return windows.ERROR_INVALID_ADDRESS
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	file, err := isFile(addr)
	if err != nil {
		return err
	}
	if file {
		return windows.UnmapViewOfFile(addr)
	}
	return windows.VirtualFree(addr, 0, windows.MEM_RELEASE)
}

func adviseHuge(m []byte) error { return unsupported("advice for huge pages") }

const trimsFiles = true

func dontNeed(m []byte) error {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	file, err := isFile(addr)
	if err != nil {
		return err
	}
	if !file {
		_, err := windows.VirtualAlloc(addr, uintptr(len(m)), windows.MEM_RESET, windows.PAGE_READWRITE)
		return err
	}
	// For pages that are not locked this has a documented effect: they leave
	// the working set, and the call returns ERROR_NOT_LOCKED.
	if err := windows.VirtualUnlock(addr, uintptr(len(m))); err != nil && err != windows.ERROR_NOT_LOCKED {
		return err
	}
	return nil
}

func resident(m []byte) (int, error) { return 0, unsupported("the resident size of a mapping") }

// bytesAt makes a slice of memory whose address the system returned as a
// number. The conversion through the variable's own address satisfies the
// compiler's rules for unsafe.Pointer: the Go runtime did not allocate the
// memory and never moves it.
func bytesAt(addr uintptr, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size)
}
