//go:build (darwin && (amd64 || arm64)) || (linux && !android && (amd64 || arm64 || loong64 || ppc64le || riscv64)) || (windows && (amd64 || arm64))

package driver

import (
	"bytes"
	"sync"
	"unsafe"
)

// call is the memory that one call shares with the driver: results,
// structs, texts and parameters of kernels. A goroutine's stack can move while
// C runs; a call is on the heap, where nothing moves, and in a pool, so that
// calls do not allocate. It has no pointers that C could overwrite.
type call struct {
	args    [16]uintptr
	current Context // of cuCtxGetCurrent and cuCtxPopCurrent
	outs    [8]uint64
	prop    memAllocationProp
	access  memAccessDesc
	copy    memcpy2D
	handle  IPCHandle
	text    []byte
	bytes   []byte    // of kernel parameters
	params  []uintptr // void *kernelParams[]
}

var calls = sync.Pool{New: func() any { return new(call) }}

// newCall returns a call whose results are 0.
func newCall() *call {
	c := calls.Get().(*call)
	c.outs = [8]uint64{}
	return c
}

// release makes c available again. Up to here it is alive.
func (c *call) release() {
	// A large text, of a module, need not stay.
	if cap(c.text) > 4096 {
		c.text = nil
	}
	calls.Put(c)
}

// out returns the address of a result.
func (c *call) out(i int) uintptr { return uintptr(unsafe.Pointer(&c.outs[i])) }

// string returns the address of s as a string of C.
func (c *call) string(s string) uintptr {
	c.text = append(append(c.text[:0], s...), 0)
	return uintptr(unsafe.Pointer(&c.text[0]))
}

// buffer returns the address of n zero bytes.
func (c *call) buffer(n int) uintptr {
	c.text = append(c.text[:0], make([]byte, n)...)
	return uintptr(unsafe.Pointer(&c.text[0]))
}

// cstring returns the string of C in b.
func cstring(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// slack is the memory behind the last parameter: the driver reads the bytes
// that the kernel declares, whatever it is passed, and shall not read beyond
// the heap because of a wrong call.
const slack = 4096

// parameters copies the parameters of a kernel, and returns the address of
// their addresses. The driver has copied them when the launch returns.
func (c *call) parameters(args [][]byte) uintptr {
	if len(args) == 0 {
		return 0
	}
	total := slack
	for _, a := range args {
		total += align16(len(a))
	}
	if len(c.bytes) < total {
		c.bytes = make([]byte, total)
	}
	if cap(c.params) < len(args) {
		c.params = make([]uintptr, 0, max(len(args), 16))
	}
	c.params = c.params[:0]
	at := 0
	for _, a := range args {
		copy(c.bytes[at:], a)
		c.params = append(c.params, uintptr(unsafe.Pointer(&c.bytes[at])))
		at += align16(len(a))
	}
	return uintptr(unsafe.Pointer(&c.params[0]))
}

func align16(n int) int { return (n + 15) &^ 15 }
