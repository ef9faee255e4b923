// Package drivertest tests that a [driver.Driver] does what NVIDIA documents
// of the functions that package cuda uses. The real driver, the fake, and the
// driver that tests package driver's calls run the same tests; what a driver
// or a device lacks is skipped by name.
//
// The tests pass no handle that is neither live nor 0: a driver may follow it.
package drivertest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// Run tests d on its first device, and on pairs of devices where there are
// more. It calls Init.
func Run(t *testing.T, d driver.Driver) {
	check(t, d.Init())
	n := must(d.DeviceGetCount())(t)
	if n == 0 {
		t.Fatal("got no device, want Init to fail with NoDevice")
	}
	dev := must(d.DeviceGet(0))(t)
	t.Logf("%s: version %d, %d devices, the first is %s", d.Name(), must(d.DriverGetVersion())(t), n, must(d.DeviceGetName(dev))(t))
	ctx := must(d.DevicePrimaryCtxRetain(dev))(t)
	defer func() { check(t, d.DevicePrimaryCtxRelease(dev)) }()
	for _, c := range []struct {
		name string
		run  func(*rig)
	}{
		{"device", testDevice}, {"context", testContext}, {"peers", testPeers},
		{"memory", testMemory}, {"memory fails", testMemoryFails}, {"copies", testCopies}, {"copies of rows", testCopy2D}, {"memset", testMemset},
		{"pinned", testPinned}, {"managed", testManaged}, {"pools", testPools}, {"pointers", testPointers},
		{"virtual memory", testVirtualMemory}, {"virtual memory twice", testAliases}, {"virtual memory fails", testVirtualMemoryFails}, {"descriptors", testDescriptors},
		{"events", testEvents}, {"times", testTimes}, {"event of a context", testContextEvent}, {"events across streams", testAcrossStreams},
		{"host functions", testHostFunc}, {"waits", testWaits}, {"legacy stream", testLegacyStream}, {"goroutines", testGoroutines},
		{"kernels", testKernel}, {"modules fail", testModuleFails}, {"launches fail", testLaunchFails}, {"graphs", testGraph},
		{"handles of memory", testIPCMemory}, {"handles of events", testIPCEvents},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &rig{T: t, Driver: d, dev: dev, ctx: ctx}
			r.s = r.stream()
			c.run(r)
			// A failure of one test's work must not be reported by the next.
			check(t, d.CtxSynchronize(ctx))
		})
	}
}

// rig is what a test works with. Everything that its methods make is destroyed
// with the test.
type rig struct {
	*testing.T
	driver.Driver
	dev driver.Device
	ctx driver.Context
	s   driver.Stream
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// must returns v if err is nil: must(f())(t).
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		check(t, err)
		return v
	}
}

// check fails the test now if err is an error.
func (r *rig) check(err error) { r.Helper(); check(r.T, err) }

// fails wants an error of the driver, with one of the results if any are named.
func (r *rig) fails(what string, err error, results ...driver.Result) {
	r.Helper()
	var e *driver.Error
	if !errors.As(err, &e) || e.Call == "" || e.Symbol == "" || e.Text == "" {
		r.Errorf("%s: got %v, want an error of the driver with call, name and text", what, err)
		return
	}
	for _, want := range results {
		if errors.Is(err, want) {
			return
		}
	}
	if len(results) > 0 {
		r.Errorf("%s: got %v, want %v", what, err, results)
	}
}

// has skips a test whose device lacks a feature.
func (r *rig) has(a driver.Attribute, feature string) {
	r.Helper()
	if must(r.DeviceGetAttribute(a, r.dev))(r.T) == 0 {
		r.Skipf("the device does not support %s", feature)
	}
}

// found skips a test whose driver lacks a function, or whose environment does
// not permit it.
func (r *rig) found(err error) {
	r.Helper()
	if errors.Is(err, driver.ErrNotFound) || errors.Is(err, driver.NotSupported) {
		r.Skip(err)
	}
	r.check(err)
}

func (r *rig) stream() driver.Stream {
	r.Helper()
	s := must(r.StreamCreate(r.ctx, driver.StreamNonBlocking, 0))(r.T)
	r.Cleanup(func() { r.check(r.StreamDestroy(r.ctx, s)) })
	return s
}

func (r *rig) event(flags driver.EventFlags) driver.Event {
	r.Helper()
	e := must(r.EventCreate(r.ctx, flags))(r.T)
	r.Cleanup(func() { r.check(r.EventDestroy(r.ctx, e)) })
	return e
}

func (r *rig) alloc(size int) driver.Pointer {
	r.Helper()
	p := must(r.MemAlloc(r.ctx, uint64(size)))(r.T)
	r.Cleanup(func() { r.check(r.MemFree(r.ctx, p)) })
	return p
}

// pinned returns page-locked host memory, filled with a byte.
func (r *rig) pinned(size int, fill byte) []byte {
	r.Helper()
	p := must(r.MemHostAlloc(r.ctx, uint64(size)))(r.T)
	r.Cleanup(func() { r.check(r.MemFreeHost(r.ctx, p)) })
	b := unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), size)
	for i := range b {
		b[i] = fill
	}
	return b
}

// at returns the address of bytes, which the caller keeps alive.
func at(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func (r *rig) sync() { r.Helper(); r.check(r.StreamSynchronize(r.ctx, r.s)) }

// read returns bytes of the device, after the work of r.s.
func (r *rig) read(p driver.Pointer, n int) []byte {
	r.Helper()
	b := make([]byte, n)
	pinned := r.pinned(n, 0xee)
	r.check(r.MemcpyDtoHAsync(r.ctx, at(pinned), p, uint64(n), r.s))
	r.sync()
	copy(b, pinned)
	return b
}

// write copies bytes to the device.
func (r *rig) write(p driver.Pointer, b []byte) {
	r.Helper()
	r.check(r.MemcpyHtoDAsync(r.ctx, p, at(b), uint64(len(b)), r.s))
	r.sync()
	runtime.KeepAlive(b)
}

// holds wants n bytes of value v at p.
func (r *rig) holds(what string, p driver.Pointer, v byte, n int) {
	r.Helper()
	r.equal(what, r.read(p, n), bytes.Repeat([]byte{v}, n))
}

func (r *rig) equal(what string, got, want []byte) {
	r.Helper()
	if i := differ(got, want); i >= 0 {
		r.Errorf("%s: at byte %d: got %s, want %s", what, i, few(got, i), few(want, i))
	}
}

func differ(a, b []byte) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

func few(b []byte, i int) string { return fmt.Sprintf("% x", b[min(i, len(b)):min(i+8, len(b))]) }

// pattern returns n bytes that differ from their neighbours and from those of
// other seeds.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7) ^ byte(i>>8) ^ seed
	}
	return b
}
