//go:build !unix && !windows

package osmem

import (
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/metrics"
	"unsafe"
)

// left returns how much the Go heap can still grow. The runtime ends the
// process when it cannot.
func left() uint64 {
	most := uint64(math.MaxInt64)
	if runtime.GOARCH == "wasm" {
		most = 1 << 32 // the address space of WebAssembly
	}
	sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}}
	metrics.Read(sample)
	return most - min(most, sample[0].Value.Uint64())
}

// Systems without mappings (js, wasip1, plan9) use page-aligned memory of the
// Go heap, which the caller's reference keeps.
func mapAnonymous(size int) ([]byte, error) {
	page := PageSize()
	if free := left(); uint64(size)+uint64(page) > free {
		return nil, fmt.Errorf("got %d bytes, want at most the %d that the Go heap can still grow by: %w", size, free, ErrNoMemory)
	}
	b := make([]byte, size+page)
	skip := -int(uintptr(unsafe.Pointer(&b[0]))) & (page - 1)
	return b[skip : skip+size : skip+size], nil
}

func mapFile(f *os.File, size int) ([]byte, error) {
	b, err := mapAnonymous(size)
	if err != nil {
		return nil, err
	}
	_, err = io.ReadFull(io.NewSectionReader(f, 0, int64(size)), b)
	return b, err
}

func unmap(m []byte) error { return nil }

func adviseHuge(m []byte) error { return unsupported("advice for huge pages") }

const trimsFiles = false // files are read into the Go heap

func dontNeed(m []byte) error { return unsupported("giving pages back") }

func resident(m []byte) (int, error) { return 0, unsupported("the resident size of a mapping") }
