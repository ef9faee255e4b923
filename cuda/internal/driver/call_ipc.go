//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import (
	"runtime"
	"unsafe"
)

func (l *library) IpcGetMemHandle(ctx Context, p Pointer) (IPCHandle, error) {
	return l.export(ctx, cuIpcGetMemHandle, uintptr(p))
}

func (l *library) IpcGetEventHandle(ctx Context, e Event) (IPCHandle, error) {
	return l.export(ctx, cuIpcGetEventHandle, uintptr(e))
}

func (l *library) export(ctx Context, f function, of uintptr) (IPCHandle, error) {
	c := newCall()
	defer c.release()
	c.handle = IPCHandle{}
	err := l.err(l.inContext(c, ctx, f, uintptr(unsafe.Pointer(&c.handle)), of))
	return c.handle, err
}

func (l *library) IpcOpenMemHandle(ctx Context, h IPCHandle) (Pointer, error) {
	p, err := l.open(ctx, cuIpcOpenMemHandle, h, ipcLazyEnablePeer)
	return Pointer(p), err
}

func (l *library) IpcOpenEventHandle(ctx Context, h IPCHandle) (Event, error) {
	e, err := l.open(ctx, cuIpcOpenEventHandle, h, 0)
	return Event(e), err
}

func (l *library) IpcCloseMemHandle(ctx Context, p Pointer) error {
	return l.in(ctx, cuIpcCloseMemHandle, uintptr(p))
}

// open calls f(out, handle, flags). The handle is a struct of 64 bytes that is
// passed by value, which the calling conventions do in three ways. For a
// function without flags the last argument is one too many, which is harmless:
// the caller removes its arguments.
func (l *library) open(ctx Context, f function, h IPCHandle, flags uintptr) (uint64, error) {
	c := newCall()
	defer c.release()
	c.handle = h
	words := *(*[8]uintptr)(unsafe.Pointer(&h))
	var args []uintptr
	switch {
	case runtime.GOARCH == "amd64" && runtime.GOOS != "windows":
		// System V: on the stack, after the six registers, of which it
		// takes none.
		args = append([]uintptr{c.out(0), flags, 0, 0, 0, 0}, words[:]...)
	case runtime.GOARCH == "ppc64le":
		// ELF version 2: as if each of its words were a parameter.
		args = append(append([]uintptr{c.out(0)}, words[:]...), flags)
	default:
		// AArch64, RISC-V, LoongArch and Windows: a copy, by its address.
		args = []uintptr{c.out(0), uintptr(unsafe.Pointer(&c.handle)), flags}
	}
	if err := l.err(l.inContext(c, ctx, f, args...)); err != nil {
		return 0, err
	}
	return c.outs[0], nil
}
