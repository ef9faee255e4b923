//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

// Package capi calls C from Go without cgo: the deleters of tensors that other libraries made, and an interpreter of Python in
// this process.
//
//	py, err := capi.OpenPython(capi.Interpreter{})
//	err = py.Set("x", x)                     // a tensor, as an object that speaks DLPack
//	err = py.Run("import numpy; y = numpy.from_dlpack(x) + 1")
//	y, err := py.Get("y")                    // a tensor over numpy's bytes
//	defer y.Release()
//
// [Call] is the [dlpack.Caller] that package dlpack asks for; [Import] and [ImportLegacy] bring it along. [Open] loads a
// shared library. [OpenPython] loads libpython and starts the interpreter: [Python.Set] shows a tensor to Python code as an
// object that speaks DLPack, [Python.Get] takes any object that does as a tensor, in place.
//
// # Linking
//
// A program that imports this package loads the system's C library when it starts, also when it was built without cgo. A
// program that does not is not changed by it.
//
// # Ownership
//
// What Python reads of a tensor is a DLPack export: the bytes stay as long as Python has it. What Go has of a Python object is
// an import: the object stays until the tensor is released.
//
// # Concurrency
//
// Everything may be called from any goroutine. Calls into Python wait for its global lock, so code that Python waits for must
// not wait for Python.
package capi
