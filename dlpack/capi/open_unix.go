//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64))

package capi

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// Open loads a shared library. Its symbols are available to libraries that are
// loaded later.
func Open(path string) (Library, error) {
	h, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return Library{}, fmt.Errorf("capi: open library: %w", err)
	}
	return Library{path, h}, nil
}

// Symbol returns the address of a function or variable.
func (l Library) Symbol(name string) (uintptr, error) {
	p, err := purego.Dlsym(l.handle, name)
	if err != nil {
		return 0, fmt.Errorf("capi: %s: %w", l.path, err)
	}
	return p, nil
}
