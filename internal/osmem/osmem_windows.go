package osmem

import (
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"
)

// files remembers which mappings are views of a file: Windows frees those by another call.
var files struct {
	sync.Mutex
	at map[uintptr]bool
}

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
	files.Lock()
	if files.at == nil {
		files.at = make(map[uintptr]bool)
	}
	files.at[addr] = true
	files.Unlock()
	return bytesAt(addr, size), nil
}

func unmap(m []byte) error {
	if cap(m) == 0 {
		return windows.ERROR_INVALID_ADDRESS
	}
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	files.Lock()
	isFile := files.at[addr]
	delete(files.at, addr)
	files.Unlock()
	if isFile {
		return windows.UnmapViewOfFile(addr)
	}
	return windows.VirtualFree(addr, 0, windows.MEM_RELEASE)
}

func adviseHuge(m []byte) error { return unsupported("advice for huge pages") }

func dontNeed(m []byte) error {
	addr := uintptr(unsafe.Pointer(unsafe.SliceData(m)))
	files.Lock()
	isFile := files.at[addr]
	files.Unlock()
	if isFile {
		return unsupported("giving back the pages of a mapped file")
	}
	_, err := windows.VirtualAlloc(addr, uintptr(len(m)), windows.MEM_RESET, windows.PAGE_READWRITE)
	return err
}

func resident(m []byte) (int, error) { return 0, unsupported("the resident size of a mapping") }

// bytesAt makes a slice of memory that the system returned as a number. The detour over the variable's own address is what
// the compiler's rules for unsafe.Pointer ask of memory that the Go runtime did not allocate and will never move.
func bytesAt(addr uintptr, size int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), size)
}
