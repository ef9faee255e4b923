//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

func (l *library) Init() error { return l.simple(cuInit, 0) }

func (l *library) DriverGetVersion() (int, error) { return l.number(cuDriverGetVersion) }

func (l *library) DeviceGetCount() (int, error) { return l.number(cuDeviceGetCount) }

// number calls a function whose first parameter is an int *.
func (l *library) number(f function, args ...uintptr) (int, error) {
	c := newCall()
	defer c.release()
	err := l.do(c, f, append([]uintptr{c.out(0)}, args...)...)
	return int(int32(c.outs[0])), err
}

func (l *library) DeviceGet(ordinal int) (Device, error) {
	n, err := l.number(cuDeviceGet, uintptr(ordinal))
	return Device(n), err
}

func (l *library) DeviceGetName(d Device) (string, error) {
	c := newCall()
	defer c.release()
	const n = 256
	if err := l.do(c, cuDeviceGetName, c.buffer(n), n-1, uintptr(d)); err != nil {
		return "", err
	}
	return cstring(c.text), nil
}

func (l *library) DeviceGetUUID(d Device) (id [16]byte, err error) {
	c := newCall()
	defer c.release()
	err = l.do(c, cuDeviceGetUuid, c.out(0), uintptr(d))
	binary.NativeEndian.PutUint64(id[:8], c.outs[0])
	binary.NativeEndian.PutUint64(id[8:], c.outs[1])
	return id, err
}

func (l *library) DeviceTotalMem(d Device) (uint64, error) {
	c := newCall()
	defer c.release()
	err := l.do(c, cuDeviceTotalMem, c.out(0), uintptr(d))
	return c.outs[0], err
}

func (l *library) DeviceGetAttribute(a Attribute, d Device) (int, error) {
	return l.number(cuDeviceGetAttribute, uintptr(a), uintptr(d))
}

func (l *library) DeviceCanAccessPeer(dev, peer Device) (bool, error) {
	n, err := l.number(cuDeviceCanAccessPeer, uintptr(dev), uintptr(peer))
	return n != 0, err
}

func (l *library) DevicePrimaryCtxRetain(d Device) (Context, error) {
	c := newCall()
	defer c.release()
	if err := l.do(c, cuDevicePrimaryCtxRetain, c.out(0), uintptr(d)); err != nil {
		return 0, err
	}
	if d == 0 {
		l.first.Store(uintptr(c.outs[0]))
	}
	return Context(c.outs[0]), nil
}

func (l *library) DevicePrimaryCtxRelease(d Device) error {
	return l.simple(cuDevicePrimaryCtxRelease, uintptr(d))
}

func (l *library) CtxSynchronize(ctx Context) error { return l.in(ctx, cuCtxSynchronize) }

func (l *library) CtxEnablePeerAccess(ctx, peer Context) error {
	err := l.in(ctx, cuCtxEnablePeerAccess, uintptr(peer), 0)
	if errors.Is(err, PeerAlreadyEnabled) {
		return nil
	}
	return err
}

func (l *library) CtxRecordEvent(ctx Context, e Event) error {
	return l.in(ctx, cuCtxRecordEvent, uintptr(ctx), uintptr(e))
}

func (l *library) MemGetInfo(ctx Context) (free, total uint64, err error) {
	c := newCall()
	defer c.release()
	err = l.err(l.inContext(c, ctx, cuMemGetInfo, c.out(0), c.out(1)))
	return c.outs[0], c.outs[1], err
}

func (l *library) PointerGetAttributes(p Pointer) (PointerInfo, error) {
	const n = 5
	c := newCall()
	defer c.release()
	// outs[5:8] is CUpointer_attribute[5], params is void *[5].
	attributes := (*[n]uint32)(unsafe.Pointer(&c.outs[n]))
	*attributes = [n]uint32{pointerContext, pointerMemoryType, pointerIsManaged, pointerDeviceOrdinal, pointerIPC}
	c.params = append(c.params[:0], c.out(0), c.out(1), c.out(2), c.out(3), c.out(4))
	if err := l.do(c, cuPointerGetAttributes, n, c.out(n), uintptr(unsafe.Pointer(&c.params[0])), uintptr(p)); err != nil {
		return PointerInfo{}, err
	}
	info := PointerInfo{Context: Context(c.outs[0]), Type: MemoryType(uint32(c.outs[1])), Managed: uint8(c.outs[2]) != 0, Ordinal: int(int32(c.outs[3])), IPC: uint8(c.outs[4]) != 0}
	if info.Type == TypeUnknown {
		return PointerInfo{}, nil // the driver's ordinal is then none, in its own way
	}
	return info, nil
}

func (l *library) MemGetAddressRange(ctx Context, p Pointer) (base Pointer, size uint64, err error) {
	c := newCall()
	defer c.release()
	err = l.err(l.inContext(c, ctx, cuMemGetAddressRange, c.out(0), c.out(1), uintptr(p)))
	return Pointer(c.outs[0]), c.outs[1], err
}
