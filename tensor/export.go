package tensor

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
)

// ExportKind is the access that an export grants to foreign code.
type ExportKind uint8

// The kinds of export.
const (
	ReadOnlyExport ExportKind = iota
	WritableExport
)

// Export takes an export of t: a use that code outside Go ends at any time (see
// [memory.Foreign]), or EndExport does. It returns the description that Show
// has stored, nil if there is none yet.
//
// While a read-only export is out, the bytes are not written, and a donation
// fails with that reason. A writable export is the tensor's writer: it requires
// an exclusive tensor, and while it is out all other access fails with
// [ErrWriting].
//
// Export is for packages that describe tensors to other languages. Programs use
// package dlpack.
func (t *Tensor) Export(kind ExportKind) (shown unsafe.Pointer, err error) {
	if t == nil || t.buf == nil {
		return nil, errNil("export", t)
	}
	switch {
	case kind == ReadOnlyExport:
		if err = t.h.Export(); err == nil && t.buf.Holders() == 0 {
			t.h.EndExport()
			err = errLost
		}
	case t.layout.Overlaps():
		return nil, t.overlapError("export")
	default:
		err = t.h.LockExport()
	}
	if err != nil {
		return nil, t.refusal("export", err)
	}
	return atomic.LoadPointer(&t.shown), nil
}

// TryExport is the fast path of Export for reading: it returns nil if Show has
// stored nothing yet, or if the export is not possible at once.
func (t *Tensor) TryExport() (shown unsafe.Pointer) {
	if t == nil || atomic.LoadPointer(&t.shown) == nil || !t.h.TryExport() {
		return nil
	}
	return atomic.LoadPointer(&t.shown) // loaded again: the tensor of a stale pointer may have been renewed in between
}

// EndExport ends an export from Go code.
func (t *Tensor) EndExport(kind ExportKind) {
	if t == nil || t.buf == nil {
		return
	}
	if kind == ReadOnlyExport {
		t.h.EndExport()
	} else {
		t.h.UnlockExport()
	}
	runtime.KeepAlive(t)
}

// Remote returns the bytes of the buffer of a tensor on a device, nil for one
// in host memory. The caller has an export or another hold.
func (t *Tensor) Remote() *memory.Remote {
	if t == nil {
		return nil
	}
	return t.buf.Remote()
}

// Exported is a tensor as described to foreign code.
type Exported struct {
	Data  []byte         // the bytes that the layout spans; nil if they are on a device
	First int            // index in Data at which element [0,...,0] begins
	Away  *memory.Remote // the bytes of the buffer if they are on a device
	At    int            // index in these at which element [0,...,0] begins
	End   memory.Foreign // how foreign code ends an export
}

// Show calls build to describe t to foreign code, in a buffer that lives until
// the hold of t on its bytes has ended, and returns the address of that buffer.
// Concurrent callers get the same one. The caller has an export. build must not
// keep its argument.
func (t *Tensor) Show(build func(Exported) (*memory.Buffer, error)) (unsafe.Pointer, error) {
	if t == nil || t.buf == nil {
		return nil, errNil("show", t)
	}
	e := Exported{First: t.first, End: t.h.Foreign()}
	if e.Away = t.buf.Remote(); e.Away != nil {
		e.At = t.start + t.first
	} else {
		e.Data = t.bytes()
	}
	made, err := build(e)
	if err != nil {
		return nil, err
	}
	there, attached := t.h.Attach(shown{made})
	if !attached {
		_ = made.Release() // another goroutine was first; the hold is this one's
	}
	p := unsafe.Pointer(unsafe.SliceData(there.(shown).Bytes()))
	atomic.StorePointer(&t.shown, p)
	runtime.KeepAlive(t)
	return p, nil
}

// shown is the description that Show has stored for a tensor.
type shown struct{ *memory.Buffer }

// End releases it. The hold is its own, so this cannot fail.
func (s shown) End() { _ = s.Release() }
