//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import "unsafe"

func (l *library) MemAlloc(ctx Context, size uint64) (Pointer, error) {
	p, err := l.handle(ctx, cuMemAlloc, uintptr(size))
	return Pointer(p), err
}

func (l *library) MemFree(ctx Context, p Pointer) error { return l.in(ctx, cuMemFree, uintptr(p)) }

func (l *library) MemAllocManaged(ctx Context, size uint64) (Pointer, error) {
	p, err := l.handle(ctx, cuMemAllocManaged, uintptr(size), attachGlobal)
	return Pointer(p), err
}

func (l *library) MemAllocAsync(ctx Context, size uint64, s Stream) (Pointer, error) {
	p, err := l.handle(ctx, cuMemAllocAsync, uintptr(size), uintptr(s))
	return Pointer(p), err
}

func (l *library) MemFreeAsync(ctx Context, p Pointer, s Stream) error {
	return l.in(ctx, cuMemFreeAsync, uintptr(p), uintptr(s))
}

func (l *library) DeviceGetDefaultMemPool(d Device) (Pool, error) {
	c := newCall()
	defer c.release()
	if err := l.do(c, cuDeviceGetDefaultMemPool, c.out(0), uintptr(d)); err != nil {
		return 0, err
	}
	return Pool(c.outs[0]), nil
}

func (l *library) MemPoolTrimTo(p Pool, keep uint64) error {
	return l.simple(cuMemPoolTrimTo, uintptr(p), uintptr(keep))
}

func (l *library) MemHostAlloc(ctx Context, size uint64) (uintptr, error) {
	p, err := l.handle(ctx, cuMemHostAlloc, uintptr(size), hostAllocPortable)
	return uintptr(p), err
}

func (l *library) MemFreeHost(ctx Context, p uintptr) error { return l.in(ctx, cuMemFreeHost, p) }

func (l *library) MemcpyHtoDAsync(ctx Context, dst Pointer, src uintptr, size uint64, s Stream) error {
	return l.in(ctx, cuMemcpyHtoDAsync, uintptr(dst), src, uintptr(size), uintptr(s))
}

func (l *library) MemcpyDtoHAsync(ctx Context, dst uintptr, src Pointer, size uint64, s Stream) error {
	return l.in(ctx, cuMemcpyDtoHAsync, dst, uintptr(src), uintptr(size), uintptr(s))
}

func (l *library) MemcpyDtoDAsync(ctx Context, dst, src Pointer, size uint64, s Stream) error {
	return l.in(ctx, cuMemcpyDtoDAsync, uintptr(dst), uintptr(src), uintptr(size), uintptr(s))
}

// MemcpyPeerAsync runs with the context of the source current: a copy may be
// submitted to a stream of another context.
func (l *library) MemcpyPeerAsync(dst Pointer, dstCtx Context, src Pointer, srcCtx Context, size uint64, s Stream) error {
	return l.in(srcCtx, cuMemcpyPeerAsync, uintptr(dst), uintptr(dstCtx), uintptr(src), uintptr(srcCtx), uintptr(size), uintptr(s))
}

func (l *library) Memcpy2DAsync(ctx Context, p Copy2D, s Stream) error {
	c := newCall()
	defer c.release()
	var ok bool
	if c.copy, ok = p.memcpy2D(); !ok {
		return l.err(outcome{cuMemcpy2DAsync, InvalidValue})
	}
	return l.err(l.inContext(c, ctx, cuMemcpy2DAsync, uintptr(unsafe.Pointer(&c.copy)), uintptr(s)))
}

func (l *library) MemsetD8Async(ctx Context, dst Pointer, value byte, n uint64, s Stream) error {
	return l.in(ctx, cuMemsetD8Async, uintptr(dst), uintptr(value), uintptr(n), uintptr(s))
}

func (l *library) MemsetD32Async(ctx Context, dst Pointer, value uint32, n uint64, s Stream) error {
	return l.in(ctx, cuMemsetD32Async, uintptr(dst), uintptr(value), uintptr(n), uintptr(s))
}
