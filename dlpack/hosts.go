package dlpack

import (
	"cmp"
	"slices"
	"sync"
	"unsafe"
)

// locked lists the host memory that devices can address, by address. It is
// asked at the first export of a tensor only.
var locked struct {
	mu   sync.RWMutex
	list []lockedBytes
}

type lockedBytes struct {
	from, to uintptr
	place    Device
}

// PageLocked declares that a device's driver has page-locked bytes of the host:
// their tensors are exported as of that place, such as CUDAHost, and stay
// tensors in host memory. The caller calls end before it unlocks them.
func PageLocked(data []byte, place Device) (end func()) {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	b := lockedBytes{from, from + uintptr(len(data)), place}
	locked.mu.Lock()
	defer locked.mu.Unlock()
	i, _ := findLocked(from)
	locked.list = slices.Insert(locked.list, i, b)
	return func() {
		locked.mu.Lock()
		defer locked.mu.Unlock()
		if i, found := findLocked(from); found {
			locked.list = slices.Delete(locked.list, i, i+1)
		}
	}
}

// findLocked returns the index of the bytes that begin at an address, or else
// of the next ones. The caller has the lock.
func findLocked(from uintptr) (int, bool) {
	return slices.BinarySearchFunc(locked.list, from, func(b lockedBytes, at uintptr) int { return cmp.Compare(b.from, at) })
}

// hostPlace returns the place of bytes in host memory.
func hostPlace(data []byte) Device {
	locked.mu.RLock()
	defer locked.mu.RUnlock()
	at := uintptr(unsafe.Pointer(unsafe.SliceData(data)))
	i, found := findLocked(at)
	if !found {
		i--
	}
	if i >= 0 && at < locked.list[i].to && uintptr(len(data)) <= locked.list[i].to-at {
		return locked.list[i].place
	}
	return Device{Type: CPU}
}
