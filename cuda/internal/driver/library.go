//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is the driver of a shared library, which is never unloaded.
type library struct {
	name  string
	at    [functionCount]uintptr // 0: the driver lacks the function
	first atomic.Uintptr         // the primary context of device 0, once retained

	kernels sync.Map // Function to kernel: what FuncGetAttribute needs
}

// marker is a symbol of the test driver of this package, which [library.Name]
// must tell from NVIDIA's.
const marker = "tenure_test_driver"

// Open binds the driver's library at path. If path is empty, it is that of
// $TENURE_LIBCUDA or, if this is empty too, libcuda.so.1 (nvcuda.dll on
// Windows) where the loader or the usual folders have it. It takes functions
// from cuGetProcAddress only, each with the version whose parameters this
// package passes. Call Init before anything else.
func Open(path string) (Driver, error) {
	path, handle, err := findLibrary(path, load)
	if err != nil {
		return nil, err
	}
	l := &library{name: path}
	if symbol(handle, marker) != 0 {
		l.name = "test driver " + path
	}
	if err := l.bind(handle); err != nil {
		return nil, err
	}
	if v, err := l.DriverGetVersion(); err != nil {
		return nil, fmt.Errorf("driver: %s: %w", path, err)
	} else if v < OldestVersion {
		return nil, tooOld(path, v)
	}
	return l, nil
}

func tooOld(path string, version int) error {
	return fmt.Errorf("driver: %s is too old: its version is CUDA %d.%d, want %s", path, version/1000, version%1000/10, oldest)
}

// bind looks up every function.
func (l *library) bind(handle uintptr) error {
	lookup, args := symbol(handle, "cuGetProcAddress_v2"), 5
	if lookup == 0 {
		lookup, args = symbol(handle, "cuGetProcAddress"), 4
	}
	c := newCall()
	defer c.release()
	if lookup == 0 {
		version := symbol(handle, "cuDriverGetVersion")
		if version == 0 {
			return fmt.Errorf("driver: %s is not a CUDA driver: it has no cuGetProcAddress", l.name)
		}
		if r, _, _ := purego.SyscallN(version, c.out(0)); Result(r) != Success {
			return fmt.Errorf("driver: %s is too old: it has no cuGetProcAddress, want %s", l.name, oldest)
		}
		return tooOld(l.name, int(int32(c.outs[0])))
	}
	var missing []string
	for f, d := range functions {
		c.outs[0], c.outs[1] = 0, 0
		// Flags 0: stream 0 is the legacy default stream. The fifth
		// parameter, of
		// version 2, receives why there is no function.
		r, _, _ := purego.SyscallN(lookup, []uintptr{c.string(d.name), c.out(0), uintptr(d.version), 0, c.out(1)}[:args]...)
		if Result(r) == stubLibrary {
			return fmt.Errorf("driver: %s is the toolkit's stub, for linking only; want the library of NVIDIA's driver", l.name)
		}
		// Drivers differ in whether a missing function is an error; its
		// address is 0 in all.
		if Result(r) == Success {
			l.at[f] = uintptr(c.outs[0])
		}
		if l.at[f] == 0 && !d.optional {
			missing = append(missing, d.name)
		}
	}
	if missing != nil {
		return fmt.Errorf("driver: %s lacks %s: want %s", l.name, strings.Join(missing, ", "), oldest)
	}
	return nil
}

func (l *library) Name() string { return l.name }

// outcome is the result of a C function.
type outcome struct {
	f function
	r Result
}

// absent is the Result of a function that the driver lacks.
const absent Result = 1<<32 - 1

// call calls a function that needs no context.
//
// The arguments that are addresses of Go memory are of c, which is on the
// heap, does not move, and is kept alive by the caller's release. So are the
// arguments themselves: SyscallN lets them escape, and a slice of args would be
// allocated by every caller.
func (l *library) call(c *call, f function, args ...uintptr) outcome {
	at := l.at[f]
	if at == 0 {
		return outcome{f, absent}
	}
	n := copy(c.args[:], args)
	r, _, _ := purego.SyscallN(at, c.args[:n]...)
	return outcome{f, Result(r)} // CUresult has 32 bits; the rest of the register is undefined
}

// do calls a function that needs no context and has no results.
func (l *library) do(c *call, f function, args ...uintptr) error {
	return l.err(l.call(c, f, args...))
}

// simple is do for functions to which no memory is passed.
func (l *library) simple(f function, args ...uintptr) error {
	c := newCall()
	defer c.release()
	return l.do(c, f, args...)
}

// err returns the error of an outcome, with the driver's own words.
func (l *library) err(o outcome) error {
	switch o.r {
	case Success:
		return nil
	case absent:
		return fmt.Errorf("%s: %w", functions[o.f].name, ErrNotFound)
	}
	err := Fail(functions[o.f].name, o.r).(*Error)
	if s := l.text(cuGetErrorName, o.r); s != "" {
		err.Symbol = s
	}
	if s := l.text(cuGetErrorString, o.r); s != "" {
		err.Text = s
	}
	return err
}

// text calls cuGetErrorName or cuGetErrorString.
func (l *library) text(f function, r Result) string {
	c := newCall()
	defer c.release()
	if o := l.call(c, f, uintptr(r), c.out(0)); o.r != Success || c.outs[0] == 0 {
		return ""
	}
	start := *(*unsafe.Pointer)(unsafe.Pointer(&c.outs[0]))
	n := 0
	for *(*byte)(unsafe.Add(start, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(start), n))
}

// NewHostFunc returns a C function for LaunchHostFunc that calls f. It is
// never freed, and a process can have about 2000.
func NewHostFunc(f func(arg uintptr)) uintptr {
	return purego.NewCallback(func(arg uintptr) uintptr { f(arg); return 0 })
}

// CallHostFunc calls a C function of LaunchHostFunc, for drivers in Go.
func CallHostFunc(fn, arg uintptr) { purego.SyscallN(fn, arg) }

// in calls a function in a context: see [library.inContext].
func (l *library) in(ctx Context, f function, args ...uintptr) error {
	return l.err(l.query(ctx, f, args...))
}

// query is in for functions whose result is not only an error.
func (l *library) query(ctx Context, f function, args ...uintptr) outcome {
	c := newCall()
	o := l.inContext(c, ctx, f, args...)
	c.release()
	return o
}

// inContext calls a function while ctx is the current context of its thread.
//
// The thread is the goroutine's for the duration of the call, and foreign code
// (a Python program with torch) may have made a context current on it, or rely
// on there being none, which makes device 0 its default. So the context is
// pushed, and popped afterwards, with two exceptions that leave nothing behind
// that foreign code could notice and that save two of four calls: when ctx is
// current already, and when no context is current and ctx is the primary
// context of device 0, which stays current, because every library that is
// built on the runtime API would make it current in its place. With one device
// a call thus costs one more call, cuCtxGetCurrent, which reads a variable of
// the thread.
func (l *library) inContext(c *call, ctx Context, f function, args ...uintptr) outcome {
	if ctx == 0 {
		return outcome{f, InvalidContext} // the driver would use whatever is current
	}
	if l.at[f] == 0 {
		return outcome{f, absent}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c.current = 0
	if o := l.call(c, cuCtxGetCurrent, uintptr(unsafe.Pointer(&c.current))); o.r != Success {
		return o
	}
	if c.current == ctx {
		return l.call(c, f, args...)
	}
	if c.current == 0 && ctx == Context(l.first.Load()) {
		if o := l.call(c, cuCtxSetCurrent, uintptr(ctx)); o.r != Success {
			return o
		}
		return l.call(c, f, args...)
	}
	if o := l.call(c, cuCtxPushCurrent, uintptr(ctx)); o.r != Success {
		return o
	}
	o := l.call(c, f, args...)
	if popped := l.call(c, cuCtxPopCurrent, uintptr(unsafe.Pointer(&c.current))); o.r == Success {
		o.r = popped.r
		if popped.r != Success {
			o.f = cuCtxPopCurrent
		}
	}
	return o
}
