package drivertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"runtime"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

func testMemory(r *rig) {
	const n = 1 << 20
	p, q := r.alloc(n), r.alloc(n)
	if p%256 != 0 || q%256 != 0 { // "suitably aligned for any kind of variable"; texture alignment is 512 at most
		r.Errorf("got addresses %#x and %#x, want multiples of 256", p, q)
	}
	if p < q+n && q < p+n {
		r.Errorf("allocations overlap: %#x and %#x", p, q)
	}
	base, size, err := r.MemGetAddressRange(r.ctx, p+n/2)
	r.check(err)
	if base != p || size < n {
		r.Errorf("MemGetAddressRange: got %#x, %d, want %#x, %d", base, size, p, n)
	}
	var local byte
	_, _, err = r.MemGetAddressRange(r.ctx, driver.Pointer(at([]byte{local})))
	r.fails("MemGetAddressRange of host memory", err, driver.NotFound, driver.InvalidValue)
}

func testMemoryFails(r *rig) {
	_, err := r.MemAlloc(r.ctx, 0)
	r.fails("MemAlloc of nothing", err, driver.InvalidValue)
	_, err = r.MemAlloc(r.ctx, 1<<50)
	r.fails("MemAlloc of a pebibyte", err, driver.OutOfMemory)
	p := must(r.MemAlloc(r.ctx, 64))(r.T)
	r.check(r.MemFree(r.ctx, p))
	r.fails("MemFree twice", r.MemFree(r.ctx, p), driver.InvalidValue)
	h := must(r.MemHostAlloc(r.ctx, 4096))(r.T)
	r.check(r.MemFreeHost(r.ctx, h))
	r.fails("MemFreeHost twice", r.MemFreeHost(r.ctx, h))
	// Errors of calls do not stay.
	r.check(r.CtxSynchronize(r.ctx))
}

func testCopies(r *rig) {
	const n = 100_003
	p, q := r.alloc(n), r.alloc(n)
	want := pattern(n, 3)
	r.write(p, want) // memory of Go's heap
	r.check(r.MemcpyDtoDAsync(r.ctx, q, p, n, r.s))
	got := make([]byte, n)
	r.check(r.MemcpyDtoHAsync(r.ctx, at(got), q, n, r.s))
	r.sync()
	runtime.KeepAlive(got)
	r.equal("host, device, device, host", got, want)
	// Parts, at odd addresses.
	r.check(r.MemcpyDtoDAsync(r.ctx, q+1, p+501, 333, r.s))
	copy(want[1:], pattern(n, 3)[501:501+333])
	r.equal("a part", r.read(q, n), want)
	// Order in a stream: the second copy overwrites the first.
	a, b := r.pinned(n, 1), r.pinned(n, 2)
	r.check(r.MemcpyHtoDAsync(r.ctx, p, at(a), n, r.s))
	r.check(r.MemcpyHtoDAsync(r.ctx, p, at(b), n/2, r.s))
	got = r.read(p, n)
	r.equal("two copies", got, append(bytes.Repeat([]byte{2}, n/2), bytes.Repeat([]byte{1}, n-n/2)...))
}

func testCopy2D(r *rig) {
	const width, height, hostPitch, pitch = 37, 19, 41, 512
	src, dst, back := r.pinned(hostPitch*height, 0), r.pinned(hostPitch*height, 0xcc), bytes.Repeat([]byte{0xcc}, hostPitch*height)
	copy(src, pattern(hostPitch*height, 9))
	p, q := r.alloc(pitch*height), r.alloc(pitch*height)
	r.check(r.MemsetD8Async(r.ctx, p, 0xaa, pitch*height, r.s))
	r.check(r.MemsetD8Async(r.ctx, q, 0xbb, pitch*height, r.s))
	r.check(r.Memcpy2DAsync(r.ctx, driver.Copy2D{Dst: p, DstPitch: pitch, SrcHost: at(src), SrcPitch: hostPitch, Width: width, Height: height}, r.s))
	r.check(r.Memcpy2DAsync(r.ctx, driver.Copy2D{Dst: q, DstPitch: pitch, Src: p, SrcPitch: pitch, Width: width, Height: height}, r.s))
	r.check(r.Memcpy2DAsync(r.ctx, driver.Copy2D{DstHost: at(dst), DstPitch: hostPitch, Src: q, SrcPitch: pitch, Width: width, Height: height}, r.s))
	device := r.read(q, pitch*height)
	rows := bytes.Repeat([]byte{0xbb}, pitch*height)
	for i := range height {
		copy(back[i*hostPitch:], src[i*hostPitch:i*hostPitch+width])
		copy(rows[i*pitch:], src[i*hostPitch:i*hostPitch+width])
	}
	r.equal("rows on the device", device, rows)
	r.equal("rows back", dst, back)
	r.fails("a row that is longer than its pitch", r.Memcpy2DAsync(r.ctx, driver.Copy2D{Dst: p, DstPitch: 16, Src: q, SrcPitch: pitch, Width: 32, Height: 2}, r.s), driver.InvalidValue)
	r.fails("a copy without a source", r.Memcpy2DAsync(r.ctx, driver.Copy2D{Dst: p, DstPitch: 16, SrcPitch: 16, Width: 16, Height: 2}, r.s), driver.InvalidValue)
}

func testMemset(r *rig) {
	const n = 1000
	p := r.alloc(4 * n)
	r.check(r.MemsetD8Async(r.ctx, p, 0x5a, 4*n, r.s))
	r.check(r.MemsetD32Async(r.ctx, p+4, 0x01020304, n-2, r.s))
	r.check(r.MemsetD8Async(r.ctx, p+17, 0xff, 1, r.s))
	want := bytes.Repeat([]byte{0x5a}, 4*n)
	for i := range n - 2 {
		binary.LittleEndian.PutUint32(want[4*(i+1):], 0x01020304)
	}
	want[17] = 0xff
	r.equal("memset", r.read(p, 4*n), want)
}

func testPinned(r *rig) {
	const n = 1 << 16
	b := r.pinned(n, 7)
	info := must(r.PointerGetAttributes(driver.Pointer(at(b) + 100)))(r.T)
	if info.Type != driver.TypeHost || info.Managed {
		r.Errorf("PointerGetAttributes: got %+v, want page-locked host memory", info)
	}
	p := r.alloc(n)
	r.check(r.MemcpyHtoDAsync(r.ctx, p, at(b), n, r.s))
	r.holds("a copy", p, 7, n)
}

func testManaged(r *rig) {
	r.has(driver.ManagedMemory, "managed memory")
	const n = 1 << 16
	p, err := r.MemAllocManaged(r.ctx, n)
	r.found(err)
	info := must(r.PointerGetAttributes(p))(r.T)
	if !info.Managed || info.Type == driver.TypeUnknown || info.IPC {
		r.Errorf("PointerGetAttributes: got %+v, want managed memory", info)
	}
	r.check(r.MemsetD8Async(r.ctx, p, 0x33, n, r.s))
	r.holds("managed memory", p, 0x33, n)
	r.check(r.MemFree(r.ctx, p))
}

func testPools(r *rig) {
	r.has(driver.MemoryPoolsSupported, "pools")
	const n = 1 << 16
	pool, err := r.DeviceGetDefaultMemPool(r.dev)
	r.found(err)
	if pool == 0 {
		r.Error("got pool 0")
	}
	p := must(r.MemAllocAsync(r.ctx, n, r.s))(r.T)
	r.check(r.MemsetD8Async(r.ctx, p, 0x44, n, r.s))
	r.holds("memory of a pool", p, 0x44, n)
	if info := must(r.PointerGetAttributes(p))(r.T); info.Type != driver.TypeDevice || info.Managed || info.IPC {
		r.Errorf("PointerGetAttributes: got %+v, want device memory", info)
	}
	r.check(r.MemFreeAsync(r.ctx, p, r.s))
	r.sync()
	r.check(r.MemPoolTrimTo(pool, 0))
	_, err = r.MemAllocAsync(r.ctx, 1<<50, r.s)
	r.fails("MemAllocAsync of a pebibyte", err, driver.OutOfMemory)
}

func testPointers(r *rig) {
	p := r.alloc(4096)
	shares := must(r.DeviceGetAttribute(driver.IPCEventSupported, r.dev))(r.T) != 0
	want := driver.PointerInfo{Type: driver.TypeDevice, Context: r.ctx, Ordinal: int(r.dev), IPC: shares}
	for _, a := range []driver.Pointer{p, p + 4095} {
		if got := must(r.PointerGetAttributes(a))(r.T); got != want {
			r.Errorf("PointerGetAttributes of device memory: got %+v, want %+v", got, want)
		}
	}
	b := make([]byte, 1<<16)
	if got := must(r.PointerGetAttributes(driver.Pointer(at(b))))(r.T); got.Type != driver.TypeUnknown || got.Managed {
		r.Errorf("PointerGetAttributes of memory of Go: got %+v, want unknown", got)
	}
	runtime.KeepAlive(b)
	_, err := r.PointerGetAttributes(0)
	if err != nil && !errors.Is(err, driver.InvalidValue) {
		r.Errorf("PointerGetAttributes of no pointer: got %v", err)
	}
}
