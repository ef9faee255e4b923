//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import "unsafe"

// The functions of virtual memory management need no context.

func (l *library) MemGetAllocationGranularity(p AllocationProp, o GranularityOption) (uint64, error) {
	c := newCall()
	defer c.release()
	c.prop = p.layout()
	if err := l.do(c, cuMemGetAllocationGranularity, c.out(0), uintptr(unsafe.Pointer(&c.prop)), uintptr(o)); err != nil {
		return 0, err
	}
	return c.outs[0], nil
}

func (l *library) MemAddressReserve(size, alignment uint64) (Pointer, error) {
	c := newCall()
	defer c.release()
	if err := l.do(c, cuMemAddressReserve, c.out(0), uintptr(size), uintptr(alignment), 0, 0); err != nil {
		return 0, err
	}
	return Pointer(c.outs[0]), nil
}

func (l *library) MemAddressFree(p Pointer, size uint64) error {
	return l.simple(cuMemAddressFree, uintptr(p), uintptr(size))
}

func (l *library) MemCreate(size uint64, prop AllocationProp) (Memory, error) {
	c := newCall()
	defer c.release()
	c.prop = prop.layout()
	if err := l.do(c, cuMemCreate, c.out(0), uintptr(size), uintptr(unsafe.Pointer(&c.prop)), 0); err != nil {
		return 0, err
	}
	return Memory(c.outs[0]), nil
}

func (l *library) MemRelease(m Memory) error { return l.simple(cuMemRelease, uintptr(m)) }

func (l *library) MemMap(p Pointer, size, offset uint64, m Memory) error {
	return l.simple(cuMemMap, uintptr(p), uintptr(size), uintptr(offset), uintptr(m), 0)
}

func (l *library) MemUnmap(p Pointer, size uint64) error {
	return l.simple(cuMemUnmap, uintptr(p), uintptr(size))
}

func (l *library) MemSetAccess(p Pointer, size uint64, dev Device, access Access) error {
	c := newCall()
	defer c.release()
	c.access = memAccessDesc{memLocation{locationTypeDevice, int32(dev)}, access}
	return l.do(c, cuMemSetAccess, uintptr(p), uintptr(size), uintptr(unsafe.Pointer(&c.access)), 1)
}

func (l *library) MemExportToShareableHandle(m Memory) (fd int, err error) {
	c := newCall()
	defer c.release()
	if err := l.do(c, cuMemExportToShareableHandle, c.out(0), uintptr(m), handleTypePOSIX, 0); err != nil {
		return -1, err
	}
	return int(int32(c.outs[0])), nil
}

func (l *library) MemImportFromShareableHandle(fd int) (Memory, error) {
	c := newCall()
	defer c.release()
	// The parameter is a void * whose value is the descriptor.
	if err := l.do(c, cuMemImportFromShareableHandle, c.out(0), uintptr(fd), handleTypePOSIX); err != nil {
		return 0, err
	}
	return Memory(c.outs[0]), nil
}

func (l *library) MemRetainAllocationHandle(p Pointer) (Memory, error) {
	c := newCall()
	defer c.release()
	if err := l.do(c, cuMemRetainAllocationHandle, c.out(0), uintptr(p)); err != nil {
		return 0, err
	}
	return Memory(c.outs[0]), nil
}
