package dlpack

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Caller calls the C function void fn(void *self). Package dlpack/capi has one.
// It is called on the goroutine that ends the last hold on an import, and
// returns after the function has.
type Caller func(fn, self uintptr)

// ImportOption changes how a struct is imported.
type ImportOption func(*importing)

type importing struct {
	call      Caller
	exclusive bool
	device    *memory.Device // for a struct of a device; nil means the open one
	ready     Stream
	current   bool // ready is the device's current stream
}

// AssumeExclusive declares that no other code, including the producer, reads or
// writes the bytes from now on. The tensor is then exclusive like any other,
// unless the struct is marked read-only or elements share bytes.
func AssumeExclusive() ImportOption { return func(i *importing) { i.exclusive = true } }

// OnDevice declares on which device of this process the bytes must be.
func OnDevice(d *memory.Device) ImportOption { return func(i *importing) { i.device = d } }

// ReadyOn declares on which stream of the device the bytes are ready: the one
// that the consumer named to the producer. Work of other streams of this
// process waits for it. [NoSync] declares that all work of the producer on them
// is complete.
//
// Without it the first work on the import waits for all work of the device
// that was submitted before the import.
func ReadyOn(s Stream) ImportOption { return func(i *importing) { i.ready, i.current = s, false } }

// ReadyOnCurrent is [ReadyOn] for the stream on which the device's own
// work runs that names no other.
func ReadyOnCurrent() ImportOption { return func(i *importing) { i.current = true } }

// Import takes ownership of the struct. It returns a tensor over the same
// bytes, and calls the struct's deleter once, when the last holder of them has
// released them. If it returns an error, it has called the deleter already.
// There are two exceptions, in which the deleter cannot be called: it is NULL,
// or call is nil and the deleter is not one of this package's.
//
// The tensor is not exclusive, because its producer may have other users of the
// bytes. See [AssumeExclusive].
//
// Bytes of a device become a tensor of the open device of that name, whose
// driver must agree. Their deleter is called when the work of this process that
// uses them is complete, which may be after the release.
func Import(m *DLManagedTensorVersioned, call Caller, opts ...ImportOption) (*tensor.Tensor, error) {
	const op = "dlpack import"
	if m == nil {
		return nil, fmt.Errorf("%s: got a NULL struct, want a tensor: %w", op, tensor.ErrCorrupt)
	}
	in, err := newImporting(op, m.Deleter, call, opts)
	if err != nil {
		return nil, err
	}
	del := in.deleting(m.Deleter, unsafe.Pointer(m))
	t, err := in.versioned(m, del)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return t, nil
}

// ImportLegacy is [Import] for the struct of DLPack before 1.0.
func ImportLegacy(m *DLManagedTensor, call Caller, opts ...ImportOption) (*tensor.Tensor, error) {
	const op = "dlpack import"
	if m == nil {
		return nil, fmt.Errorf("%s: got a NULL struct, want a tensor: %w", op, tensor.ErrCorrupt)
	}
	in, err := newImporting(op, m.Deleter, call, opts)
	if err != nil {
		return nil, err
	}
	del := in.deleting(m.Deleter, unsafe.Pointer(m))
	t, err := in.tensor(&m.Tensor, 0, true, del)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	return t, nil
}

func newImporting(op string, deleter uintptr, call Caller, opts []ImportOption) (importing, error) {
	in := importing{call: call}
	in.apply(opts)
	if deleter < firstPage {
		return in, fmt.Errorf("%s: got a NULL deleter, want one, because nobody could say when the bytes end: %w", op, tensor.ErrCorrupt)
	}
	if isOurs(deleter) {
		in.call = func(fn, self uintptr) { ours(fn, self) }
		return in, nil
	}
	if call == nil {
		return in, fmt.Errorf("%s: got a deleter in C and no way to call it, want a Caller: %w", op, tensor.ErrUnsupported)
	}
	return in, nil
}

func (in *importing) apply(opts []ImportOption) {
	for _, o := range opts {
		if o != nil {
			o(in)
		}
	}
}

// deleting returns a function that calls the deleter of the struct. It keeps
// the struct reachable, in case it is on the Go heap.
func (in importing) deleting(fn uintptr, self unsafe.Pointer) func() {
	return func() {
		in.call(fn, uintptr(self))
		runtime.KeepAlive(self)
	}
}

// versioned imports a struct. It calls del at once if it fails, otherwise del
// is called at the end of the tensor's bytes.
func (in importing) versioned(m *DLManagedTensorVersioned, del func()) (*tensor.Tensor, error) {
	v := m.Version
	if v.Major != MajorVersion {
		// In another major version only the fields up to the flags have known
		// offsets.
		del()
		return nil, fmt.Errorf("got DLPack %d.%d, want %d.x: %w", v.Major, v.Minor, MajorVersion, tensor.ErrUnsupported)
	}
	if unknown := m.Flags &^ knownFlags; unknown != 0 {
		del()
		return nil, fmt.Errorf("got flags %#x, want none but %#x: %w", uint64(m.Flags), uint64(knownFlags), tensor.ErrUnsupported)
	}
	return in.tensor(&m.Tensor, m.Flags, v.Minor < 2, del)
}

func (in importing) tensor(d *DLTensor, flags Flags, nullStrides bool, del func()) (*tensor.Tensor, error) {
	x, err := describe(d, flags, nullStrides)
	if err != nil {
		del()
		return nil, err
	}
	why := memory.Imported
	if in.exclusive {
		why = 0
	}
	if flags&FlagReadOnly != 0 {
		why |= memory.ReadOnly
	}
	var buf *memory.Buffer
	if d.Device.Type.onHost() {
		buf = memory.Adopt(x.data(), why, del)
	} else if buf, err = in.receive(Loan{Device: d.Device, Address: x.address, Bytes: x.size, Flags: why, End: del}); err != nil {
		del()
		return nil, err
	}
	defer buf.Release() // the tensor has a hold of its own; after an error this calls the deleter
	return tensor.FromBuffer(buf, x.first, x.dt, x.layout)
}
