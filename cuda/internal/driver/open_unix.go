//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64))

package driver

import (
	"errors"
	"runtime"

	"github.com/ebitengine/purego"
)

// load loads a shared library, whose names stay its own: a program may have
// another CUDA library that is linked with the same names.
func load(path string) (uintptr, error) {
	runtime.LockOSThread() // the loader keeps its error for the thread
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil && err.Error() == "" {
		return 0, errors.New(path + ": cannot be loaded")
	}
	return handle, err
}

// symbol returns the address of a function, 0 if the library lacks it.
func symbol(handle uintptr, name string) uintptr {
	p, err := purego.Dlsym(handle, name)
	if err != nil {
		return 0
	}
	return p
}
