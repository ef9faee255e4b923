//go:build linux && (amd64 || arm64 || loong64 || ppc64le || riscv64)

package driver_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

const kernelText = ".version 6.4\n.visible .entry fill(\n)"

// TestArguments compares what the library receives with what is passed. Values
// use all bits, so that a parameter of the wrong width or place shows.
func TestArguments(t *testing.T) {
	s := newShim(t, "")
	d, ctx := s.start()
	c, none := ctx[1], driver.Stream(0)
	stream, err := d.StreamCreate(c, driver.StreamNonBlocking, -5)
	if err != nil {
		t.Fatal(err)
	}
	got := func(what string, want ...uint64) {
		t.Helper()
		if last := s.last(); !slices.Equal(last[:len(want)], want) {
			t.Errorf("%s: got arguments %#x, want %#x", what, last[:len(want)], want)
		}
	}
	got("StreamCreate", 1, 1<<64-5)
	e, err := d.EventCreate(c, driver.EventDisableTiming)
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.MemAlloc(c, 4096)
	if err != nil {
		t.Fatal(err)
	}
	got("MemAlloc", 4096)
	u, es, ss := uint64(p), uint64(e), uint64(stream)
	check := func(what string, err error, want ...uint64) {
		t.Helper()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		got(what, want...)
	}
	check("EventRecord", d.EventRecord(c, e, stream), es, ss)
	check("StreamWaitEvent", d.StreamWaitEvent(c, stream, e), ss, es, 0)
	check("MemsetD8Async", d.MemsetD8Async(c, p, 0xfe, 100, stream), u, 0xfe, 100, ss)
	check("MemsetD32Async", d.MemsetD32Async(c, p, 0xfedcba98, 10, none), u, 0xfedcba98, 10, 0)
	check("MemcpyDtoDAsync", d.MemcpyDtoDAsync(c, p+100, p, 50, stream), u+100, u, 50, ss)
	check("MemcpyHtoDAsync", d.MemcpyHtoDAsync(c, p, uintptr(p)+64, 50, stream), u, u+64, 50, ss)
	check("MemcpyDtoHAsync", d.MemcpyDtoHAsync(c, uintptr(p)+64, p, 50, stream), u+64, u, 50, ss)
	check("MemcpyPeerAsync", d.MemcpyPeerAsync(p+8, ctx[0], p, ctx[1], 4, stream), u+8, uint64(ctx[0]), u, uint64(ctx[1]), 4, ss)
	pool, err := d.DeviceGetDefaultMemPool(1)
	if err != nil || pool != 0x1001 {
		t.Errorf("DeviceGetDefaultMemPool: got %#x, %v", pool, err)
	}
	check("MemPoolTrimTo", d.MemPoolTrimTo(pool, 1<<40), 0x1001, 1<<40)
	q, err := d.MemAllocAsync(c, 12345, stream)
	check("MemAllocAsync", err, 12345, ss)
	check("MemFreeAsync", d.MemFreeAsync(c, q, stream), uint64(q), ss)
	r, err := d.MemAddressReserve(1<<20, 1<<16)
	check("MemAddressReserve", err, 1<<20, 1<<16, 0, 0)
	if err := d.MemAddressFree(r, 1<<20); err != nil {
		t.Error(err)
	}
	id, err := d.DeviceGetUUID(1)
	if want := [16]byte{16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}; err != nil || id != want {
		t.Errorf("DeviceGetUUID: got %v, %v, want %v", id, err, want)
	}
	if done, err := d.StreamQuery(c, driver.PerThreadStream); done || err != nil {
		t.Errorf("StreamQuery of a stream that is not ready: got %v, %v, want false and no error", done, err)
	}
	if err := errors.Join(d.CtxEnablePeerAccess(ctx[0], ctx[1]), d.CtxEnablePeerAccess(ctx[0], ctx[1])); err != nil {
		t.Errorf("CtxEnablePeerAccess twice: %v", err)
	}
}

// TestLaunchArguments passes the eleven arguments of a launch, of which some
// are on the stack.
func TestLaunchArguments(t *testing.T) {
	s := newShim(t, "")
	d, ctx := s.start()
	m, _, err := d.ModuleLoadData(ctx[0], kernelText)
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.ModuleGetFunction(ctx[0], m, "fill")
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.MemAlloc(ctx[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	args := [][]byte{le.AppendUint64(nil, uint64(p)), le.AppendUint32(nil, 3), le.AppendUint32(nil, 16)}
	if err := d.LaunchKernel(ctx[0], f, driver.Dim3{X: 2, Y: 3, Z: 4}, driver.Dim3{X: 5, Y: 6, Z: 7}, 8, driver.LegacyStream, args); err != nil {
		t.Fatal(err)
	}
	last := s.last()
	if want := []uint64{uint64(f), 2, 3, 4, 5, 6, 7, 8, uint64(driver.LegacyStream)}; !slices.Equal(last[:9], want) || last[10] != 0 {
		t.Errorf("got arguments %#x, want %#x, parameters, 0", last[:11], want)
	}
	// More and larger parameters than before need more memory.
	long := append(slices.Clone(args), make([][]byte, 200)...)
	for i := 3; i < len(long); i++ {
		long[i] = make([]byte, 100)
	}
	if err := d.LaunchKernel(ctx[0], f, driver.Dim3{X: 1, Y: 1, Z: 1}, driver.Dim3{X: 1, Y: 1, Z: 1}, 0, 0, long); err != nil {
		t.Error(err)
	}
	if _, err := d.FuncGetAttribute(driver.FuncRegisters, f); err != nil {
		t.Error(err)
	}
	if err := d.ModuleUnload(ctx[0], m); err != nil {
		t.Error(err)
	}
	if _, err := d.FuncGetAttribute(driver.FuncRegisters, f); !errors.Is(err, driver.InvalidHandle) {
		t.Errorf("FuncGetAttribute of an unloaded function: got %v", err)
	}
}

// TestHandleByValue passes the handles of 64 bytes, which the calling
// conventions pass in different ways.
func TestHandleByValue(t *testing.T) {
	s := newShim(t, "")
	d, ctx := s.start()
	var h driver.IPCHandle
	var want []uint64
	for i := range 8 {
		w := 0x1122334455667700 + uint64(i)
		binary.NativeEndian.PutUint64(h[8*i:], w)
		want = append(want, w)
	}
	p, err := d.IpcOpenMemHandle(ctx[0], h)
	if last := s.last(); err != nil || uint64(p) != want[0] || !slices.Equal(last[:8], want) || last[8] != 1 {
		t.Errorf("IpcOpenMemHandle: got %#x, %v with arguments %#x, want %#x and flags 1", p, err, last[:9], want)
	}
	if err := d.IpcCloseMemHandle(ctx[0], p); err != nil {
		t.Error(err)
	}
	e, err := d.IpcOpenEventHandle(ctx[1], h)
	if last := s.last(); err != nil || uint64(e) != want[0] || !slices.Equal(last[:8], want) {
		t.Errorf("IpcOpenEventHandle: got %#x, %v with arguments %#x, want %#x", e, err, last[:8], want)
	}
}

// TestAbsent hides every optional function.
func TestAbsent(t *testing.T) {
	s := newShim(t, "")
	s.hide("cuCtxRecordEvent,cuLaunchHostFunc,cuMemGetAllocationGranularity,cuMemAddressReserve,cuMemAddressFree,cuMemCreate,cuMemRelease,cuMemMap,cuMemUnmap,cuMemSetAccess,cuMemExportToShareableHandle,cuMemImportFromShareableHandle,cuMemRetainAllocationHandle," +
		"cuMemAllocManaged,cuMemAllocAsync,cuMemFreeAsync,cuDeviceGetDefaultMemPool,cuMemPoolTrimTo,cuStreamBeginCapture,cuStreamEndCapture,cuGraphInstantiateWithFlags,cuGraphLaunch,cuGraphExecDestroy,cuGraphDestroy," +
		"cuIpcGetMemHandle,cuIpcOpenMemHandle,cuIpcCloseMemHandle,cuIpcGetEventHandle,cuIpcOpenEventHandle")
	d, ctx := s.start()
	c := ctx[0]
	second := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"cuCtxRecordEvent": d.CtxRecordEvent(c, 1), "cuLaunchHostFunc": d.LaunchHostFunc(c, 1, 1, 1),
		"cuMemGetAllocationGranularity": second(d.MemGetAllocationGranularity(driver.AllocationProp{}, 0)), "cuMemAddressReserve": second(d.MemAddressReserve(1, 1)), "cuMemAddressFree": d.MemAddressFree(1, 1),
		"cuMemCreate": second(d.MemCreate(1, driver.AllocationProp{})), "cuMemRelease": d.MemRelease(1), "cuMemMap": d.MemMap(1, 1, 0, 1), "cuMemUnmap": d.MemUnmap(1, 1), "cuMemSetAccess": d.MemSetAccess(1, 1, 0, 3),
		"cuMemExportToShareableHandle": second(d.MemExportToShareableHandle(1)), "cuMemImportFromShareableHandle": second(d.MemImportFromShareableHandle(1)), "cuMemRetainAllocationHandle": second(d.MemRetainAllocationHandle(1)),
		"cuMemAllocManaged": second(d.MemAllocManaged(c, 1)), "cuMemAllocAsync": second(d.MemAllocAsync(c, 1, 0)), "cuMemFreeAsync": d.MemFreeAsync(c, 1, 0),
		"cuDeviceGetDefaultMemPool": second(d.DeviceGetDefaultMemPool(0)), "cuMemPoolTrimTo": d.MemPoolTrimTo(1, 0),
		"cuStreamBeginCapture": d.StreamBeginCapture(c, 1), "cuStreamEndCapture": second(d.StreamEndCapture(c, 1)), "cuGraphInstantiateWithFlags": second(d.GraphInstantiate(c, 1)),
		"cuGraphLaunch": d.GraphLaunch(c, 1, 0), "cuGraphExecDestroy": d.GraphExecDestroy(c, 1), "cuGraphDestroy": d.GraphDestroy(c, 1),
		"cuIpcGetMemHandle": second(d.IpcGetMemHandle(c, 1)), "cuIpcOpenMemHandle": second(d.IpcOpenMemHandle(c, driver.IPCHandle{})), "cuIpcCloseMemHandle": d.IpcCloseMemHandle(c, 1),
		"cuIpcGetEventHandle": second(d.IpcGetEventHandle(c, 1)), "cuIpcOpenEventHandle": second(d.IpcOpenEventHandle(c, driver.IPCHandle{})),
	} {
		if want := name + ": the driver does not have this function"; !errors.Is(err, driver.ErrNotFound) || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}

// TestAllocations wants no heap allocation by the calls of a steady loop.
func TestAllocations(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector makes pools forget what they hold")
	}
	s := newShim(t, "")
	d, ctx := s.start()
	m, _, err := d.ModuleLoadData(ctx[0], kernelText)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := d.ModuleGetFunction(ctx[0], m, "fill")
	p, _ := d.MemAlloc(ctx[0], 4096)
	le := binary.LittleEndian
	args := [][]byte{le.AppendUint64(nil, uint64(p)), le.AppendUint32(nil, 3), le.AppendUint32(nil, 16)}
	one := driver.Dim3{X: 1, Y: 1, Z: 1}
	for i, c := range ctx { // device 0, whose context stays current, and one that is pushed
		e, _ := d.EventCreate(c, driver.EventDisableTiming)
		stream, err := d.StreamCreate(c, driver.StreamNonBlocking, 0)
		if err != nil {
			t.Fatal(err)
		}
		for name, call := range map[string]func() error{
			"EventRecord":     func() error { return d.EventRecord(c, e, stream) },
			"StreamWaitEvent": func() error { return d.StreamWaitEvent(c, stream, e) },
			"EventQuery":      func() error { _, err := d.EventQuery(c, e); return err },
			"StreamQuery":     func() error { _, err := d.StreamQuery(c, stream); return err },
			"StreamQuery, not ready": func() error {
				_, err := d.StreamQuery(c, driver.PerThreadStream)
				return err
			},
			"LaunchKernel":    func() error { return d.LaunchKernel(c, f, one, one, 0, stream, args) },
			"MemcpyHtoDAsync": func() error { return d.MemcpyHtoDAsync(c, p, uintptr(p)+64, 64, stream) },
			"MemcpyDtoHAsync": func() error { return d.MemcpyDtoHAsync(c, uintptr(p)+64, p, 64, stream) },
			"MemcpyDtoDAsync": func() error { return d.MemcpyDtoDAsync(c, p, p+64, 64, stream) },
			"MemcpyPeerAsync": func() error { return d.MemcpyPeerAsync(p, ctx[0], p+64, c, 64, stream) },
			"Memcpy2DAsync": func() error {
				return d.Memcpy2DAsync(c, driver.Copy2D{Dst: p, DstPitch: 8, Src: p + 64, SrcPitch: 8, Width: 8, Height: 8}, stream)
			},
			"MemsetD8Async":  func() error { return d.MemsetD8Async(c, p, 1, 64, stream) },
			"MemsetD32Async": func() error { return d.MemsetD32Async(c, p, 1, 16, stream) },
		} {
			var failed error
			if n := testing.AllocsPerRun(200, func() { failed = errors.Join(failed, call()) }); n != 0 || failed != nil {
				t.Errorf("%s on device %d: got %g allocations, %v, want none", name, i, n, failed)
			}
		}
	}
}

// BenchmarkCall measures what a call costs besides the driver's work: on
// device 0, whose context is current, and on device 1, whose is pushed.
func BenchmarkCall(b *testing.B) {
	d, ctx := newShim(b, "").start()
	for i, c := range ctx {
		e, err := d.EventCreate(c, driver.EventDisableTiming)
		if err != nil {
			b.Fatal(err)
		}
		b.Run("device/"+string(rune('0'+i)), func(b *testing.B) {
			for b.Loop() {
				if _, err := d.EventQuery(c, e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
