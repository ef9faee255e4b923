//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi

import (
	"github.com/ebitengine/purego"

	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/tensor"
)

// Call calls the C function void fn(void *self): it is a [dlpack.Caller]. A
// pointer into the Go heap that is converted in the call itself, as in Call(fn,
// uintptr(unsafe.Pointer(p))), is valid until Call returns.
//
//go:uintptrescapes
func Call(fn, self uintptr) { purego.SyscallN(fn, self) }

// CallN calls a C function whose arguments are not floating-point numbers, and
// returns its result. Pointers into the Go heap are valid as in [Call].
//
//go:uintptrescapes
func CallN(fn uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(fn, args...)
	return r
}

// Import is [dlpack.Import] of a struct whose deleter is in C.
func Import(m *dlpack.DLManagedTensorVersioned, opts ...dlpack.ImportOption) (*tensor.Tensor, error) {
	return dlpack.Import(m, Call, opts...)
}

// ImportLegacy is [dlpack.ImportLegacy] of a struct whose deleter is in C.
func ImportLegacy(m *dlpack.DLManagedTensor, opts ...dlpack.ImportOption) (*tensor.Tensor, error) {
	return dlpack.ImportLegacy(m, Call, opts...)
}
