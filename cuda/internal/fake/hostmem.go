package fake

import (
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/osmem"
)

// hostArea returns page-locked memory at an address of the host; nil if there
// is none. It is a mapping of its own, so that a use after its release is a
// crash; the race detector sees Go's memory only.
func (m *Machine) hostArea(size uint64) *area {
	if size > 1<<40 {
		return nil
	}
	p := &physical{size: size, refs: 1, site: here()}
	if !invariant.Race {
		if b, err := osmem.Map(int(size)); err == nil {
			p.data, p.mapping = b[:size], b
		}
	}
	if p.data == nil {
		p.data = heapPages(size)
	}
	return &area{base: driver.Pointer(uintptr(unsafe.Pointer(&p.data[0]))), size: size, mem: p}
}

// heapPages returns bytes of Go's memory that begin a page.
func heapPages(size uint64) []byte {
	b := make([]byte, size+pageSize)
	skip := -uintptr(unsafe.Pointer(&b[0])) % pageSize
	return b[skip : uint64(skip)+size]
}
