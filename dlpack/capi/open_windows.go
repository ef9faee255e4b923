//go:build amd64 || arm64

package capi

import (
	"fmt"

	"golang.org/x/sys/windows"
)

// Open loads a shared library.
func Open(path string) (Library, error) {
	h, err := windows.LoadLibrary(path)
	if err != nil {
		return Library{}, fmt.Errorf("capi: open library %s: %w", path, err)
	}
	return Library{path, uintptr(h)}, nil
}

// Symbol returns the address of a function or variable.
func (l Library) Symbol(name string) (uintptr, error) {
	p, err := windows.GetProcAddress(windows.Handle(l.handle), name)
	if err != nil {
		return 0, fmt.Errorf("capi: %s: %s: %w", l.path, name, err)
	}
	return p, nil
}
