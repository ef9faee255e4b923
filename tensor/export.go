package tensor

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
)

// ExportKind is what foreign code may do with the bytes of an export.
type ExportKind uint8

// The kinds of exports.
const (
	ReadOnlyExport ExportKind = iota
	WritableExport
)

// Export takes an export of t: a use that code outside Go ends at any time (see [memory.Foreign]), or EndExport. It
// returns what Show keeps, nil if it keeps nothing yet.
//
// While a read-only export is out the bytes are not written, and a donation is refused with that reason. A writable
// export is the tensor's writer: it needs an exclusive tensor, and while it is out all other access fails with
// [ErrWriting].
//
// Export is for packages that describe tensors to other languages. Programs use package dlpack.
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

// TryExport is Export for reading at its least cost: it returns nil if Show keeps nothing yet, or if the export is not possible
// at once.
func (t *Tensor) TryExport() (shown unsafe.Pointer) {
	if t == nil || atomic.LoadPointer(&t.shown) == nil || !t.h.TryExport() {
		return nil
	}
	return atomic.LoadPointer(&t.shown) // again: a stale pointer to a tensor may see it renewed in between
}

// EndExport ends an export from Go.
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

// Exported is a tensor as foreign code will see it.
type Exported struct {
	Data  []byte         // what the layout spans
	First int            // where in Data element [0,...,0] begins
	End   memory.Foreign // where foreign code ends an export
}

// Show makes build describe t to foreign code, in a buffer that lives until the hold of t on its bytes has ended, and returns
// where that buffer begins. Callers that meet get the same one. The caller has an export, and build does not keep what it is
// given.
func (t *Tensor) Show(build func(Exported) (*memory.Buffer, error)) (unsafe.Pointer, error) {
	if t == nil || t.buf == nil {
		return nil, errNil("show", t)
	}
	made, err := build(Exported{Data: t.bytes(), First: t.first, End: t.h.Foreign()})
	if err != nil {
		return nil, err
	}
	there, attached := t.h.Attach(shown{made})
	if !attached {
		_ = made.Release() // another goroutine was first; the hold is ours
	}
	p := unsafe.Pointer(unsafe.SliceData(there.(shown).Bytes()))
	atomic.StorePointer(&t.shown, p)
	runtime.KeepAlive(t)
	return p, nil
}

// shown is what Show made for one tensor.
type shown struct{ *memory.Buffer }

// End gives it back: the hold is ours, so it cannot fail.
func (s shown) End() { _ = s.Release() }
