package cuda_test

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/tensor"
)

// library is another library of the process with an allocator as PyTorch has
// one: it cuts tensors out of segments, gives the bytes of a tensor that comes
// back to the next one at once, and frees a segment that has no tensor left.
type library struct {
	d      driver.Driver
	dev    driver.Device
	ctx    driver.Context
	stream driver.Stream
	each   int // tensors in a segment

	mu       sync.Mutex
	segments []*segment
	deleted  int
	errs     []error
}

type segment struct {
	base driver.Pointer
	out  []bool // the places that somebody has
}

// placeBytes is a tensor's place in a segment. It is no multiple of 64.
const placeBytes = 4104

func newLibrary(d driver.Driver, each int) (*library, error) {
	l := &library{d: d, each: each}
	var err error
	if l.dev, err = d.DeviceGet(0); err != nil {
		return nil, err
	}
	if l.ctx, err = d.DevicePrimaryCtxRetain(l.dev); err != nil {
		return nil, err
	}
	l.stream, err = d.StreamCreate(l.ctx, driver.StreamNonBlocking, 0)
	return l, err
}

// place returns bytes for a tensor.
func (l *library) place() (driver.Pointer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.segments {
		for i, out := range s.out {
			if !out {
				s.out[i] = true
				return s.base + driver.Pointer(i*placeBytes), nil
			}
		}
	}
	base, err := l.d.MemAlloc(l.ctx, uint64(l.each*placeBytes))
	if err != nil {
		return 0, err
	}
	s := &segment{base: base, out: make([]bool, l.each)}
	s.out[0] = true
	l.segments = append(l.segments, s)
	return base, nil
}

// tensor imports a tensor of n times v, which the library's stream writes.
func (l *library) tensor(v uint32, n int) (*tensor.Tensor, error) {
	at, err := l.place()
	if err == nil {
		err = l.d.MemsetD32Async(l.ctx, at, v, uint64(n), l.stream)
	}
	if err != nil {
		return nil, err
	}
	return l.lend(at, n, dlpack.UInt)
}

// numbers imports a tensor of n numbers from first on.
func (l *library) numbers(first float32, n int) (*tensor.Tensor, error) {
	at, err := l.place()
	for i := range n {
		if err == nil {
			err = l.d.MemsetD32Async(l.ctx, at+driver.Pointer(4*i), math.Float32bits(first+float32(i)), 1, l.stream)
		}
	}
	if err != nil {
		return nil, err
	}
	return l.lend(at, n, dlpack.Float)
}

func (l *library) lend(at driver.Pointer, n int, code dlpack.TypeCode) (*tensor.Tensor, error) {
	l.mu.Lock()
	m := describeAt(dlpack.Device{Type: dlpack.CUDA}, uintptr(at), n)
	l.mu.Unlock()
	m.Tensor.DType.Code = code
	return dlpack.Import(m, l.call, dlpack.ReadyOn(dlpack.Stream(l.stream)))
}

// call is the library's deleter.
func (l *library) call(_, self uintptr) {
	m := (*dlpack.DLManagedTensorVersioned)(*(*unsafe.Pointer)(unsafe.Pointer(&self)))
	at := driver.Pointer(m.Tensor.Data)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.deleted++
	l.note(l.d.MemsetD32Async(l.ctx, at, garbage, placeBytes/4, l.stream))
	for i, s := range l.segments {
		if at < s.base || at >= s.base+driver.Pointer(l.each*placeBytes) {
			continue
		}
		place := int(at-s.base) / placeBytes
		if !s.out[place] {
			l.note(fmt.Errorf("the deleter of %#x is called twice", uint64(at)))
		}
		s.out[place] = false
		for _, out := range s.out {
			if out {
				return
			}
		}
		l.note(l.d.MemFree(l.ctx, s.base))
		l.segments = append(l.segments[:i], l.segments[i+1:]...)
		return
	}
	l.note(fmt.Errorf("the deleter of %#x is called, which is not out", uint64(at)))
}

func (l *library) note(err error) {
	if err != nil {
		l.errs = append(l.errs, err)
	}
}

// deletions returns the number of calls of the deleter.
func (l *library) deletions() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.deleted
}

// close waits until all tensors have come back.
func (l *library) close() error {
	left := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.segments)
	}
	for until := time.Now().Add(5 * time.Second); left() > 0 && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.segments); n > 0 {
		l.note(fmt.Errorf("%d segments of the library have not come back", n))
	}
	l.note(l.d.StreamSynchronize(l.ctx, l.stream))
	l.note(l.d.StreamDestroy(l.ctx, l.stream))
	l.note(l.d.DevicePrimaryCtxRelease(l.dev))
	return errors.Join(l.errs...)
}
