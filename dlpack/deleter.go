package dlpack

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
)

// The deleters are functions with the calling convention of C, written in Go assembly: foreign threads call them directly, and
// neither the Go runtime nor its scheduler takes notice. They do what memory.Foreign says, and touch nothing but the struct,
// the handle's record, which is never unmapped, and the two variables below.
var deleters struct {
	readOnly uintptr // of a DLManagedTensorVersioned, ends a read-only export
	writable uintptr // of a DLManagedTensorVersioned, ends a writable export
	legacy   uintptr // of a DLManagedTensor, ends a writable export
}

func init() { deleters.readOnly, deleters.writable, deleters.legacy = deleterAddresses() }

const arch = runtime.GOARCH

var (
	deadList     uintptr // where the list of dead records begins: memory.Foreign.Dead, the same for all
	deletedTwice atomic.Int64
)

// DeletedTwice returns how often a deleter was called when none of its tensor's exports was out. Such a call changes nothing.
// One that takes an export away from somebody else cannot be told from a good one.
func DeletedTwice() int64 { return deletedTwice.Load() }

// ours ends an export from Go, if fn is one of our deleters.
func ours(fn, self uintptr) bool {
	switch fn {
	case 0:
		return false
	case deleters.legacy:
		end((*DLManagedTensor)(pointer(self)).ManagerCtx, memory.ForeignWrite)
	case deleters.writable:
		end((*DLManagedTensorVersioned)(pointer(self)).ManagerCtx, memory.ForeignWrite)
	case deleters.readOnly:
		end((*DLManagedTensorVersioned)(pointer(self)).ManagerCtx, memory.ForeignUnit)
	default:
		return false
	}
	return true
}

func end(record uintptr, unit uint64) {
	if !(memory.Foreign{Record: record, Dead: atomic.LoadUintptr(&deadList)}).End(unit) {
		deletedTwice.Add(1)
	}
}

// isOurs reports whether fn is one of our deleters.
func isOurs(fn uintptr) bool {
	return fn != 0 && (fn == deleters.readOnly || fn == deleters.writable || fn == deleters.legacy)
}

// Delete ends the use of a struct as a consumer does: it calls the deleter, if there is one. Deleters of this package need no
// Caller. It does nothing for a nil struct, nor without a Caller for one whose deleter is foreign.
func (m *DLManagedTensorVersioned) Delete(call Caller) {
	if m == nil {
		return
	}
	remove(m.Deleter, uintptr(unsafe.Pointer(m)), call)
	runtime.KeepAlive(m)
}

// Delete ends the use of a struct as a consumer does: it calls the deleter, if there is one. Deleters of this package need no
// Caller. It does nothing for a nil struct, nor without a Caller for one whose deleter is foreign.
func (m *DLManagedTensor) Delete(call Caller) {
	if m == nil {
		return
	}
	remove(m.Deleter, uintptr(unsafe.Pointer(m)), call)
	runtime.KeepAlive(m)
}

func remove(fn, self uintptr, call Caller) {
	if fn != 0 && !ours(fn, self) && call != nil {
		call(fn, self)
	}
}
