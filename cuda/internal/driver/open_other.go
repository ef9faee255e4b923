//go:build !((darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64)))

package driver

import (
	"fmt"
	"runtime"
)

// Open fails: this platform cannot call a library of C.
func Open(string) (Driver, error) {
	return nil, fmt.Errorf("driver: no CUDA driver can be called on %s/%s", runtime.GOOS, runtime.GOARCH)
}

// NewHostFunc returns 0: this platform has no C functions.
func NewHostFunc(func(arg uintptr)) uintptr { return 0 }

// CallHostFunc panics: this platform has no C functions.
func CallHostFunc(fn, arg uintptr) { panic("BUG: CallHostFunc on a platform without C functions") }
