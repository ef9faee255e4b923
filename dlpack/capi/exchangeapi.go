//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// exchangeAPI is DLPackExchangeAPI: functions that a consumer finds at the type
// of a Python object and calls without the interpreter. They do the same as
// __dlpack__, for consumers that know the versioned struct. All return 0, or -1
// with an exception set.
type exchangeAPI struct {
	version     dlpack.Version
	older       uintptr
	allocate    uintptr // int (*)(DLTensor *like, DLManagedTensorVersioned **out, void *context, void (*fail)(void *context, const char *kind, const char *text))
	fromObject  uintptr // int (*)(PyObject *, DLManagedTensorVersioned **out)
	toObject    uintptr // int (*)(DLManagedTensorVersioned *, PyObject **out), which takes ownership of the struct
	viewObject  uintptr // optional, and absent: it could not mark a tensor as read-only
	currentWork uintptr // int (*)(DLDeviceType, int32_t id, void **stream)
}

var exchangeName = []byte("dlpack_exchange_api\x00")

var newest = dlpack.Version{Major: dlpack.MajorVersion, Minor: dlpack.MinorVersion}

// offer creates the table and returns a capsule with it.
func (x *exchanger) offer() uintptr {
	x.api = exchangeAPI{
		version:     newest,
		allocate:    purego.NewCallback(allocate),
		fromObject:  purego.NewCallback(x.fromObject),
		toObject:    purego.NewCallback(x.toObject),
		currentWork: purego.NewCallback(x.currentWork),
	}
	capsule, _, _ := purego.SyscallN(x.direct.newCapsule, uintptr(unsafe.Pointer(&x.api)), uintptr(unsafe.Pointer(&exchangeName[0])), 0)
	return capsule
}

// raise sets err as a BufferError on the thread.
func (x *exchanger) raise(err error) {
	x.python.c.ErrSet(*(*uintptr)(pointer(x.refusals)), err.Error())
}

// code returns the C result for an error.
func (x *exchanger) code(err error) uintptr {
	if err != nil {
		x.raise(err)
		return ^uintptr(0)
	}
	return 0
}

func (x *exchanger) fromObject(o, out uintptr) uintptr {
	attr, _, _ := purego.SyscallN(x.direct.getAttr, o, x.keyName)
	if attr == 0 {
		return ^uintptr(0) // with an exception set
	}
	key, ok := x.int64(attr)
	purego.SyscallN(x.direct.decRef, attr)
	if !ok {
		return ^uintptr(0)
	}
	k, ok := x.find(key)
	if !ok {
		return x.code(errUnknown)
	}
	a, err := fromObject(k)
	if err == nil {
		*(**dlpack.DLManagedTensorVersioned)(pointer(out)) = a.Versioned
	}
	return x.code(err)
}

// fromObject exports for a consumer that calls currentWork, and orders its own
// work behind that stream.
func fromObject(k known) (dlpack.Answer, error) {
	r := dlpack.Request{MaxVersion: &newest, Writable: k.writable}
	place, err := dlpack.DeviceOf(k.t)
	if err != nil {
		return dlpack.Answer{}, err
	}
	if k.t.Device() != nil {
		on, err := dlpack.StreamFor(place)
		if err != nil {
			return dlpack.Answer{}, err
		}
		r.Stream = &on
	}
	return r.Export(k.t)
}

// toObject takes bytes that are ready on the stream of currentWork.
func (x *exchanger) toObject(m, out uintptr) uintptr {
	t, err := Import((*dlpack.DLManagedTensorVersioned)(pointer(m)), dlpack.ReadyOnCurrent())
	if err != nil {
		return x.code(err)
	}
	o, err := x.python.object(known{t: t, owns: true})
	if err != nil {
		return x.code(err)
	}
	*(*uintptr)(pointer(out)) = o
	return 0
}

func (x *exchanger) currentWork(device, id int32, stream uintptr) uintptr {
	var on dlpack.Stream
	if place := (dlpack.Device{Type: dlpack.DeviceType(device), ID: id}); place.Type != dlpack.CPU && place.Type != dlpack.CUDAHost {
		var err error
		if on, err = dlpack.StreamFor(place); err != nil {
			return x.code(err)
		}
	}
	*(*uintptr)(pointer(stream)) = uintptr(on)
	return 0
}

// allocate makes a tensor for the caller: of zeros in host memory, of undefined
// values on a device.
func allocate(like, out, context, fail uintptr) uintptr {
	m, err := newLike((*dlpack.DLTensor)(pointer(like)))
	if err != nil {
		kind, text := []byte("BufferError\x00"), []byte(err.Error()+"\x00")
		purego.SyscallN(fail, context, uintptr(unsafe.Pointer(&kind[0])), uintptr(unsafe.Pointer(&text[0])))
		return ^uintptr(0)
	}
	*(**dlpack.DLManagedTensorVersioned)(pointer(out)) = m
	return 0
}

func newOn(d *memory.Device, dt dtype.DType, s *shape.Shape) (*tensor.Tensor, error) {
	if d == nil {
		return tensor.New(dt, s)
	}
	return tensor.Make(d.Source(memory.IO), dt, s)
}

// newLike reads only type, sizes and device of d.
func newLike(d *dlpack.DLTensor) (*dlpack.DLManagedTensorVersioned, error) {
	device := dlpack.Open(d.Device)
	if d.Device.Type != dlpack.CPU && (device == nil || d.Device.Type == dlpack.CUDAManaged) {
		return nil, fmt.Errorf("dlpack allocate: got device %s %d, want cpu or a device that is open: %w", d.Device.Type, d.Device.ID, tensor.ErrUnsupported)
	}
	dt, err := dtype.FromDLPack(uint8(d.DType.Code), d.DType.Bits, d.DType.Lanes)
	if err != nil {
		return nil, fmt.Errorf("dlpack allocate: %w", err)
	}
	if d.NDim < 0 || d.NDim > dlpack.MaxDims || d.NDim > 0 && d.Shape == 0 {
		return nil, fmt.Errorf("dlpack allocate: got %d dimensions at address %#x, want 0 to %d: %w", d.NDim, d.Shape, dlpack.MaxDims, tensor.ErrShape)
	}
	dims := make([]int, d.NDim)
	for i := range dims {
		dims[i] = int(unsafe.Slice((*int64)(pointer(d.Shape)), d.NDim)[i])
	}
	s, err := shape.Of(dims...)
	if err != nil {
		return nil, fmt.Errorf("dlpack allocate: %w", err)
	}
	t, err := newOn(device, dt, s)
	if err != nil {
		return nil, fmt.Errorf("dlpack allocate: %w", err)
	}
	defer t.Release() // only the export keeps it
	a, err := fromObject(known{t: t, writable: true})
	return a.Versioned, err
}
