package optest

import (
	"bytes"
	"fmt"
	"unsafe"
)

// guard is how many bytes are watched on each side of a buffer.
const guard = 256

// buffer is memory with guards: data lies shift bytes past a multiple of 64.
type buffer struct {
	all  []byte
	data []byte
	at   int // of data in all
	fill byte
}

func newBuffer(n, shift int, fill byte) buffer {
	b := buffer{all: bytes.Repeat([]byte{fill}, n+shift+2*guard+64), fill: fill}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b.all)))
	b.at = guard + shift + int(-(start+guard)&63)
	b.data = b.all[b.at : b.at+n : b.at+n]
	return b
}

// check fails when a byte around data was written.
func (b buffer) check(name string) error {
	for _, side := range [2][2]int{{0, b.at}, {b.at + len(b.data), len(b.all)}} {
		for i := side[0]; i < side[1]; i++ {
			if b.all[i] != b.fill {
				return fmt.Errorf("%s: got byte %#x written at %d, want nothing outside its %d bytes", name, b.all[i], i-b.at, len(b.data))
			}
		}
	}
	return nil
}
