//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

// Package capi calls C from Go without cgo: the deleters of other libraries'
// tensors, and a Python interpreter in this process.
//
//	py, err := capi.OpenPython(capi.Interpreter{})
//	err = py.Set("x", x)                     // a tensor, as an object that supports DLPack
//	err = py.Run("import numpy; y = numpy.from_dlpack(x) + 1")
//	y, err := py.Get("y")                    // a tensor over numpy's bytes
//	defer y.Release()
//
// [Call] is a [dlpack.Caller]; [Import] and [ImportLegacy] use it. [Open] loads
// a shared library. [OpenPython] loads libpython and starts the interpreter:
// [Python.Set] makes a tensor available to Python code as an object that
// supports DLPack, and [Python.Get] imports any such object as a tensor, in
// place.
//
// # Linking
//
// A program that imports this package loads the system's C library when it
// starts, also if it was built without cgo. Other programs are not affected.
//
// # Ownership
//
// A tensor that Python reads is a DLPack export: the bytes stay until Python
// has freed its object. A Python object that Go reads is an import: the object
// stays until the tensor is released.
//
// # Devices
//
// Tensors on a device that package cuda has opened are exchanged like those in
// host memory. The object of a tensor follows the rules of the array API
// standard for the argument stream of __dlpack__; [Python.Get] names the main
// stream of the device to the producer.
//
// # Concurrency
//
// Everything may be called from any goroutine. Calls into Python wait for its
// global lock, so Go code that Python waits for must not call Python.
package capi
