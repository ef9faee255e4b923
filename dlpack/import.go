package dlpack

import (
	"fmt"
	"runtime"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Caller calls the C function void fn(void *self). Package dlpack/capi has one. It is called from whatever goroutine ends the
// last hold on an import, and must not return before the function has.
type Caller func(fn, self uintptr)

// ImportOption changes how a struct is imported.
type ImportOption func(*importing)

type importing struct {
	call      Caller
	exclusive bool
}

// AssumeExclusive is the caller's word that nobody else, its producer included, reads or writes the bytes from now on. The
// tensor is then exclusive as one of ours is, unless the struct says that it is read-only or elements share bytes.
func AssumeExclusive() ImportOption { return func(i *importing) { i.exclusive = true } }

// Import takes the struct over: it returns a tensor over the same bytes, and calls the struct's deleter once when the last
// holder of them has let go. If it returns an error it has called the deleter, once: the struct is gone in any case. The two
// exceptions are a struct whose deleter is NULL and a nil call for a deleter that is not one of ours: nobody could call those.
//
// The tensor is not exclusive: its producer may still show the bytes to others. See [AssumeExclusive].
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

// ImportLegacy is [Import] for the struct of before DLPack 1.0.
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
	for _, o := range opts {
		if o != nil {
			o(&in)
		}
	}
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

// deleting returns the function that calls the deleter of the struct. It keeps the struct reachable, should it be one of Go's.
func (in importing) deleting(fn uintptr, self unsafe.Pointer) func() {
	return func() {
		in.call(fn, uintptr(self))
		runtime.KeepAlive(self)
	}
}

// versioned calls del, now if it fails, else when the tensor's bytes end.
func (in importing) versioned(m *DLManagedTensorVersioned, del func()) (*tensor.Tensor, error) {
	v := m.Version
	if v.Major != MajorVersion {
		// Nothing behind the deleter has a known place.
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
	buf := memory.Adopt(x.data, why, del)
	defer buf.Release() // the tensor has a hold of its own; without a tensor this is what calls the deleter
	return tensor.FromBuffer(buf, x.first, x.dt, x.layout)
}
