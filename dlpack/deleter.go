package dlpack

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
)

// The deleters are functions with the calling convention of C, written in Go
// assembly. Foreign threads call them directly, without the Go runtime or its
// scheduler. They follow the algorithm of memory.Foreign, and access only the
// struct, the handle's record, which is never unmapped, and the two variables
// below.
var deleters struct {
	readOnly uintptr // of a DLManagedTensorVersioned, ends a read-only export
	writable uintptr // of a DLManagedTensorVersioned, ends a writable export
	legacy   uintptr // of a DLManagedTensor, ends a writable export
}

func init() { deleters.readOnly, deleters.writable, deleters.legacy = deleterAddresses() }

const arch = runtime.GOARCH

var (
	deadList     uintptr // the head of the list of dead records: memory.Foreign.Dead, the same for all
	deletedTwice atomic.Int64
)

// DeletedTwice returns the number of calls of a deleter while no export of its
// tensor was out. Such a call has no effect. A call that ends the export of
// another consumer cannot be detected.
func DeletedTwice() int64 { return deletedTwice.Load() }

// ours ends an export from Go if fn is one of this package's deleters.
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

// isOurs reports whether fn is one of this package's deleters.
func isOurs(fn uintptr) bool {
	return fn != 0 && (fn == deleters.readOnly || fn == deleters.writable || fn == deleters.legacy)
}

// Delete ends a consumer's use of a struct: it calls the deleter, if there is
// one. Deleters of this package need no Caller. Delete does nothing for a nil
// struct, and nothing for a foreign deleter without a Caller.
func (m *DLManagedTensorVersioned) Delete(call Caller) {
	if m == nil {
		return
	}
	remove(m.Deleter, uintptr(unsafe.Pointer(m)), call)
	runtime.KeepAlive(m)
}

// Delete ends a consumer's use of a struct: it calls the deleter, if there is
// one. Deleters of this package need no Caller. Delete does nothing for a nil
// struct, and nothing for a foreign deleter without a Caller.
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
