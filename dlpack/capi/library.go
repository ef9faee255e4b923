//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package capi

import (
	"reflect"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Library is a shared library of the process. It is never unloaded.
type Library struct {
	path   string
	handle uintptr
}

// bind sets every field of *functions, which are func variables, to the
// function of the library that its tag c names.
func (l Library) bind(functions any) error {
	v := reflect.ValueOf(functions).Elem()
	for i := range v.NumField() {
		p, err := l.Symbol(v.Type().Field(i).Tag.Get("c"))
		if err != nil {
			return err
		}
		purego.RegisterFunc(v.Field(i).Addr().Interface(), p)
	}
	return nil
}

// pointer converts an address from C into a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
