package cuda_test

import (
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/cuda/internal/fake"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/tensor"
)

// foreign is another library of the process: it calls the driver itself, on a
// stream of its own, and gives the memory that it gets back to others at once.
type foreign struct {
	t      testing.TB
	m      *fake.Machine
	d      driver.Driver // through which its waits go
	device int
	dev    driver.Device
	ctx    driver.Context
	stream driver.Stream
	event  driver.Event

	mu      sync.Mutex
	idle    []driver.Pointer // memory of foreignBytes that nobody has
	all     []driver.Pointer
	host    []uintptr
	deleted int
}

const (
	foreignBytes = 1024
	garbage      = 0xbadbad
	deleterInC   = 0xdead0000
)

func newForeign(t testing.TB, m *fake.Machine, d driver.Driver, device int) *foreign {
	t.Helper()
	f := &foreign{t: t, m: m, d: d, device: device}
	f.dev = must(m.DeviceGet(device))(t)
	f.ctx = must(m.DevicePrimaryCtxRetain(f.dev))(t)
	f.stream = must(m.StreamCreate(f.ctx, driver.StreamNonBlocking, 0))(t)
	f.event = must(m.EventCreate(f.ctx, driver.EventDisableTiming))(t)
	return f
}

// end frees what the library has. Nobody has its memory.
func (f *foreign) end() {
	f.t.Helper()
	must(0, f.m.CtxSynchronize(f.ctx))(f.t)
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.idle) != len(f.all) {
		f.t.Errorf("got %d of %d allocations back", len(f.idle), len(f.all))
	}
	for _, p := range f.all {
		must(0, f.m.MemFree(f.ctx, p))(f.t)
	}
	for _, h := range f.host {
		must(0, f.m.MemFreeHost(f.ctx, h))(f.t)
	}
	must(0, f.m.EventDestroy(f.ctx, f.event))(f.t)
	must(0, f.m.StreamDestroy(f.ctx, f.stream))(f.t)
	must(0, f.m.DevicePrimaryCtxRelease(f.dev))(f.t)
}

// write fills n numbers on a stream.
func (f *foreign) write(at driver.Pointer, v uint32, n int, s driver.Stream) {
	f.t.Helper()
	must(0, f.m.MemsetD32Async(f.ctx, at, v, uint64(n), s))(f.t)
}

// read submits a copy of n numbers to the host; the result is there when the
// stream has done it.
func (f *foreign) read(at driver.Pointer, n int, s driver.Stream) []uint32 {
	f.t.Helper()
	h := must(f.m.MemHostAlloc(f.ctx, uint64(4*n)))(f.t)
	f.host = append(f.host, h)
	must(0, f.m.MemcpyDtoHAsync(f.ctx, h, at, uint64(4*n), s))(f.t)
	return unsafe.Slice((*uint32)(*(*unsafe.Pointer)(unsafe.Pointer(&h))), n)
}

// lend returns a struct of n times v, written on the library's stream, and
// makes the stream to wait for it, as __dlpack__(stream=to) does.
func (f *foreign) lend(v uint32, n int, to dlpack.Stream) *dlpack.DLManagedTensorVersioned {
	f.t.Helper()
	f.mu.Lock()
	var p driver.Pointer
	if k := len(f.idle); k > 0 {
		p, f.idle = f.idle[k-1], f.idle[:k-1]
	} else {
		p = must(f.m.MemAlloc(f.ctx, foreignBytes))(f.t)
		f.all = append(f.all, p)
	}
	f.mu.Unlock()
	f.write(p, v, n, f.stream)
	if to != dlpack.NoSync && to != dlpack.Stream(f.stream) {
		must(0, f.m.EventRecord(f.ctx, f.event, f.stream))(f.t)
		must(0, f.d.StreamWaitEvent(f.ctx, driver.Stream(to), f.event))(f.t)
	}
	return describeAt(dlpack.Device{Type: dlpack.CUDA, ID: int32(f.device)}, uintptr(p), n)
}

// call is the library's deleter: it hands the memory to somebody who writes it
// at once.
func (f *foreign) call(_, self uintptr) {
	m := (*dlpack.DLManagedTensorVersioned)(*(*unsafe.Pointer)(unsafe.Pointer(&self)))
	p := driver.Pointer(m.Tensor.Data)
	if err := f.m.MemsetD32Async(f.ctx, p, garbage, foreignBytes/4, f.stream); err != nil {
		f.t.Error(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted++
	f.idle = append(f.idle, p)
}

func (f *foreign) wantDeleted(n int) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deleted != n {
		f.t.Errorf("got %d calls of the deleter, want %d", f.deleted, n)
	}
}

func (f *foreign) sync() {
	f.t.Helper()
	must(0, f.m.StreamSynchronize(f.ctx, f.stream))(f.t)
	must(0, f.m.StreamSynchronize(f.ctx, driver.LegacyStream))(f.t)
}

// describeAt makes the struct of n numbers of 32 bits.
func describeAt(place dlpack.Device, at uintptr, n int) *dlpack.DLManagedTensorVersioned {
	words := []int64{int64(n), 1}
	held = append(held, words)
	return &dlpack.DLManagedTensorVersioned{
		Version: dlpack.Version{Major: 1, Minor: 3}, Deleter: deleterInC,
		Tensor: dlpack.DLTensor{
			Data: at, Device: place, NDim: 1, DType: dlpack.DataType{Code: dlpack.UInt, Bits: 32, Lanes: 1},
			Shape: uintptr(unsafe.Pointer(&words[0])), Strides: uintptr(unsafe.Pointer(&words[1])),
		},
	}
}

// held keeps the words of structs reachable, which have only their addresses.
var held [][]int64

// wantNumbers compares n numbers with v.
func wantNumbers(got []uint32, v uint32) string {
	for i, g := range got {
		if g != v {
			return fmt.Sprintf("number %d: got %#x, want %#x", i, g, v)
		}
	}
	return ""
}

// numbers downloads a tensor.
func numbers(t testing.TB, x *tensor.Tensor) []uint32 {
	t.Helper()
	back := must(tensor.To(t.Context(), x, nil))(t)
	defer back.Release()
	return must(tensor.Values[uint32](back))(t)
}
