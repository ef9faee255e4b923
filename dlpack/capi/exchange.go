//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/tensor"
)

// Set makes t the variable name of module __main__: an object that any library
// can import with from_dlpack, for reading. The object borrows t: imports stay
// valid after t's release, but no new ones can be made.
func (p *Python) Set(name string, t *tensor.Tensor) error { return p.set(name, known{t: t}) }

// SetWritable is [Python.Set] for consumers that may write. Each exchange
// requires an exclusive t and locks it until the consumer has released its
// tensor.
func (p *Python) SetWritable(name string, t *tensor.Tensor) error {
	return p.set(name, known{t: t, writable: true})
}

func (p *Python) set(name string, k known) error {
	return p.within(func() error {
		o, err := p.object(k)
		if err != nil {
			return err
		}
		defer p.c.DecRef(o)
		if p.c.DictSet(p.main, name, o) != 0 {
			p.c.ErrClear()
			return fmt.Errorf("capi: set %s: got a name that Python does not take", quote(name))
		}
		return nil
	})
}

// object makes a Python object of k.
func (p *Python) object(k known) (uintptr, error) {
	place, err := dlpack.DeviceOf(k.t)
	if err != nil {
		return 0, fmt.Errorf("capi: %w", err)
	}
	key := exchange.remember(k)
	o, err := p.call("Tensor", p.c.NewInt(key), p.c.NewInt(int64(place.Type)), p.c.NewInt(int64(place.ID)))
	if err != nil {
		exchange.forget(key)
	}
	return o, err
}

// Get evaluates a Python expression in module __main__, whose value must
// support DLPack, and returns a tensor over the same bytes. The object lives
// until the tensor is released.
//
// A value on a device must be on one that is open. Its library makes the
// device's current stream wait for the work that writes the bytes, so that all
// work on the tensor sees them. With [dlpack.ReadyOn] in the options it gets
// that stream.
func (p *Python) Get(expression string, opts ...dlpack.ImportOption) (*tensor.Tensor, error) {
	var got uintptr
	var legacy bool
	err := p.within(func() error {
		capsule, err := p.call("_get", p.string(expression), p.borrow(p.main), p.c.NewInt(dlpack.MajorVersion), p.c.NewInt(dlpack.MinorVersion))
		if err != nil {
			return err
		}
		defer func() { p.c.DecRef(capsule) }()
		on, away, err := p.streamFor(capsule, opts)
		if err != nil {
			return err
		}
		if away {
			opts = append(opts[:len(opts):len(opts)], dlpack.ReadyOn(on))
			value := capsule // the call takes it
			if capsule, err = p.call("_ask_on", value, p.c.NewInt(int64(on)), p.c.NewInt(dlpack.MajorVersion), p.c.NewInt(dlpack.MinorVersion)); err != nil {
				capsule = 0
				return err
			}
		}
		if got, legacy, err = p.take(capsule); err != nil {
			return fmt.Errorf("capi: get %s: %w", expression, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// Outside of within: the deleter of a rejected struct is called here, and
	// takes Python's lock if it needs it.
	if legacy {
		return ImportLegacy((*dlpack.DLManagedTensor)(pointer(got)), opts...)
	}
	return Import((*dlpack.DLManagedTensorVersioned)(pointer(got)), opts...)
}

// streamFor returns the stream that the producer of a value on a device is to
// make wait; away is false for a value in host memory.
func (p *Python) streamFor(got uintptr, opts []dlpack.ImportOption) (on dlpack.Stream, away bool, err error) {
	for i := range capsules {
		if p.c.CapsuleValid(got, &capsules[i].fresh[0]) != 0 {
			return 0, false, nil
		}
	}
	place, err := p.call("_place", p.borrow(got))
	if err != nil {
		return 0, false, err
	}
	defer p.c.DecRef(place)
	packed, ok := exchange.int64(place)
	if !ok || packed == 0 {
		p.c.ErrClear()
		return 0, false, nil
	}
	on, err = dlpack.StreamFor(dlpack.Device{Type: dlpack.DeviceType(packed >> 32), ID: int32(packed)}, opts...)
	return on, true, err
}

// take takes the struct out of a capsule: from then on the caller owns it,
// because a capsule of the other name does not free it.
func (p *Python) take(capsule uintptr) (got uintptr, legacy bool, err error) {
	for i := range capsules {
		c := &capsules[i]
		if p.c.CapsuleValid(capsule, &c.fresh[0]) != 0 {
			got = p.c.CapsuleGet(capsule, &c.fresh[0])
			p.c.CapsuleRename(capsule, &c.used[0])
			return got, c.legacy, nil
		}
	}
	return 0, false, fmt.Errorf("got something else than a capsule with a DLPack tensor: %w", tensor.ErrCorrupt)
}

// capsules are the names of capsules before and after a consumer has taken the
// struct.
var capsules = [...]struct {
	fresh, used []byte
	legacy      bool
}{
	{[]byte("dltensor_versioned\x00"), []byte("used_dltensor_versioned\x00"), false},
	{[]byte("dltensor\x00"), []byte("used_dltensor\x00"), true},
}

// methodDef is PyMethodDef.
type methodDef struct {
	name  *byte
	call  uintptr
	flags int32
	_     *byte // the docstring
}

const methodFastCall = 0x80 // PyObject *f(PyObject *self, PyObject *const *args, Py_ssize_t n)

// exchange is the set of callbacks for Python. Callbacks are never freed and
// their number is limited, so a process has one set.
var exchange exchanger

type exchanger struct {
	python   *Python
	names    [2]string
	methods  [2]methodDef
	destroy  uintptr // of capsules
	direct   struct{ newCapsule, capsuleValid, capsuleGet, toInt, raised, getAttr, decRef, none uintptr }
	keyName  uintptr // the string "_key"
	refusals uintptr // the address of the exception BufferError

	api exchangeAPI

	mu      sync.Mutex
	last    int64
	tensors map[int64]known
}

// known is a tensor behind a Python object.
type known struct {
	t        *tensor.Tensor
	writable bool // export it for writing
	owns     bool // the object is its only owner
}

func (x *exchanger) bind(lib Library, p *Python) error {
	for name, at := range map[string]*uintptr{
		"PyCapsule_New": &x.direct.newCapsule, "PyCapsule_IsValid": &x.direct.capsuleValid, "PyCapsule_GetPointer": &x.direct.capsuleGet,
		"PyLong_AsLongLong": &x.direct.toInt, "PyErr_Occurred": &x.direct.raised, "PyObject_GetAttr": &x.direct.getAttr, "Py_DecRef": &x.direct.decRef,
		"PyExc_BufferError": &x.refusals, "_Py_NoneStruct": &x.direct.none,
	} {
		var err error
		if *at, err = lib.Symbol(name); err != nil {
			return err
		}
	}
	x.python, x.tensors = p, map[int64]known{}
	x.names = [2]string{"_export", "_forget"}
	for i, f := range []func(self, args uintptr, n int) uintptr{x.export, x.forgotten} {
		x.methods[i] = methodDef{name: unsafe.StringData(x.names[i] + "\x00"), call: purego.NewCallback(f), flags: methodFastCall}
	}
	x.destroy = purego.NewCallback(x.destroyed)
	return nil
}

func (x *exchanger) remember(k known) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.last++
	x.tensors[x.last] = k
	return x.last
}

// errUnknown is the error for objects that Python code has changed.
var errUnknown = errors.New("dlpack export: got an object of no tensor")

func (x *exchanger) find(key int64) (known, bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	k, ok := x.tensors[key]
	return k, ok
}

func (x *exchanger) forget(key int64) {
	x.mu.Lock()
	k := x.tensors[key]
	delete(x.tensors, key)
	x.mu.Unlock()
	if k.owns {
		_ = k.t.Release() // the object was its only owner
	}
}

// int64 reads an integer. If the object is not an integer or does not fit,
// Python has an exception set and the result is false.
func (x *exchanger) int64(o uintptr) (int64, bool) {
	r, _, _ := purego.SyscallN(x.direct.toInt, o)
	if int64(r) == -1 {
		if raised, _, _ := purego.SyscallN(x.direct.raised); raised != 0 {
			return 0, false
		}
	}
	return int64(r), true
}

// int64s reads up to len arguments of n.
func (x *exchanger) int64s(args uintptr, n int) (is [5]int64, ok bool) {
	for i, o := range unsafe.Slice((*uintptr)(pointer(args)), min(n, len(is))) {
		if is[i], ok = x.int64(o); !ok {
			return is, false
		}
	}
	return is, true
}

// export is _export(key, version[, options, device, stream]) of bootstrap.py.
// It returns a capsule, or 0 with an exception set.
func (x *exchanger) export(_, args uintptr, n int) uintptr {
	is, ok := x.int64s(args, n)
	if !ok {
		return 0
	}
	k, ok := x.find(is[0])
	if !ok {
		x.raise(errUnknown)
		return 0
	}
	r := dlpack.Request{Writable: k.writable, Copy: dlpack.CopyRule(is[2] & 3)}
	if is[2]&4 != 0 {
		on := dlpack.Stream(is[4])
		r.Stream = &on
	}
	if is[1] >= 0 {
		r.MaxVersion = &dlpack.Version{Major: uint32(is[1] >> 32), Minor: uint32(is[1])}
	}
	if is[2]&8 != 0 {
		r.Device = &dlpack.Device{Type: dlpack.DeviceType(is[3] >> 32), ID: int32(is[3])}
	}
	a, err := r.Export(k.t)
	if err != nil {
		x.raise(err)
		return 0
	}
	kind, at := &capsules[0], unsafe.Pointer(a.Versioned)
	if a.Legacy != nil {
		kind, at = &capsules[1], unsafe.Pointer(a.Legacy)
	}
	capsule, _, _ := purego.SyscallN(x.direct.newCapsule, uintptr(at), uintptr(unsafe.Pointer(&kind.fresh[0])), x.destroy)
	if capsule == 0 { // out of memory: Python has set the exception
		a.Delete()
	}
	return capsule
}

// forgotten is _forget(key) of bootstrap.py.
func (x *exchanger) forgotten(_, args uintptr, n int) uintptr {
	is, ok := x.int64s(args, n)
	if !ok {
		return 0
	}
	x.forget(is[0])
	x.python.c.IncRef(x.direct.none)
	return x.direct.none
}

// destroyed is the destructor of capsules: it deletes a struct that was not
// taken.
func (x *exchanger) destroyed(capsule uintptr) {
	for i := range capsules {
		c := &capsules[i]
		name := uintptr(unsafe.Pointer(&c.fresh[0]))
		if valid, _, _ := purego.SyscallN(x.direct.capsuleValid, capsule, name); int32(valid) == 0 {
			continue
		}
		at, _, _ := purego.SyscallN(x.direct.capsuleGet, capsule, name)
		if c.legacy {
			(*dlpack.DLManagedTensor)(pointer(at)).Delete(Call)
		} else {
			(*dlpack.DLManagedTensorVersioned)(pointer(at)).Delete(Call)
		}
		return
	}
}
