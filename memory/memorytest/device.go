package memorytest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/tenure-go/tenure/memory"
)

// Away is a device without hardware: its bytes are in the Go heap, behind
// addresses that the processor does not have. Work is done before a call
// returns.
type Away struct {
	*memory.Device

	mu     sync.Mutex
	blocks map[uintptr]*away
	next   uintptr
	copies int
	fail   error
}

// NewDevice returns a device for a test, which must have released all its
// buffers at its end.
func NewDevice(t testing.TB, name string) *Away {
	t.Helper()
	d := &Away{blocks: map[uintptr]*away{}, next: 1 << 46}
	var err error
	if d.Device, err = memory.NewDevice(name, d); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		memory.Reclaim()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Fail makes every later call of the engine fail with err, none if it is nil.
func (d *Away) Fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = err
}

// Copies returns how many copies the engine has done.
func (d *Away) Copies() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copies
}

type away struct {
	memory.Remote
	d    *Away
	data []byte
}

// GiveBack frees the bytes.
func (b *away) GiveBack() {
	b.d.mu.Lock()
	defer b.d.mu.Unlock()
	if b.d.blocks[b.Address] != b {
		panic(fmt.Sprintf("BUG: memorytest: bytes of %s at %#x are given back twice", b.d.Device, b.Address))
	}
	delete(b.d.blocks, b.Address)
}

// Alloc returns a buffer filled with 0xA5.
func (d *Away) Alloc(bytes int, p memory.Purpose) (*memory.Buffer, error) {
	d.mu.Lock()
	err := d.fail
	b := &away{d: d, data: make([]byte, bytes)}
	b.Remote = memory.Remote{Device: d.Device, Address: d.next, Keeper: b}
	d.next += uintptr(bytes+255) / 256 * 256
	d.next += 256
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for i := range b.data {
		b.data[i] = 0xA5
	}
	buf, err := d.Own(&b.Remote, bytes, p)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.blocks[b.Address] = b
	d.mu.Unlock()
	return buf, nil
}

// bytes returns the bytes of a buffer of this device.
func (d *Away) bytes(buf *memory.Buffer, at, n int) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.fail != nil {
		return nil, d.fail
	}
	d.copies++
	r := buf.Remote()
	if r == nil || d.blocks[r.Address] == nil {
		return nil, fmt.Errorf("%s: got a buffer of %s: %w", d.Device, buf.Device(), memory.ErrDevice)
	}
	return d.blocks[r.Address].data[at : at+n], nil
}

// Upload copies from the host.
func (d *Away) Upload(ctx context.Context, to *memory.Buffer, at int, from []byte) error {
	data, err := d.bytes(to, at, len(from))
	copy(data, from)
	return err
}

// Download copies to the host.
func (d *Away) Download(ctx context.Context, to []byte, from *memory.Buffer, at int) error {
	data, err := d.bytes(from, at, len(to))
	copy(to, data)
	return err
}

// Copy copies between two buffers of devices of this package.
func (d *Away) Copy(ctx context.Context, to *memory.Buffer, at int, from *memory.Buffer, fromAt, bytes int) error {
	source := d
	if e, ok := from.Device().Engine().(*Away); ok {
		source = e
	}
	src, err := source.bytes(from, fromAt, bytes)
	if err != nil {
		return err
	}
	dst, err := d.bytes(to, at, bytes)
	copy(dst, src)
	return err
}

// Gather copies the elements of a strided array.
func (d *Away) Gather(ctx context.Context, to *memory.Buffer, at int, from memory.Spread) error {
	n := from.Element
	for _, size := range from.Sizes {
		n *= size
	}
	dst, err := d.bytes(to, at, n)
	if err != nil {
		return err
	}
	src, err := d.bytes(from.Buffer, 0, from.Buffer.Len())
	if err != nil {
		return err
	}
	var walk func(axis, at int)
	walk = func(axis, at int) {
		if axis == len(from.Sizes) {
			dst = dst[copy(dst, src[at:at+from.Element]):]
			return
		}
		for i := range from.Sizes[axis] {
			walk(axis+1, at+i*from.Strides[axis]*from.Element)
		}
	}
	walk(0, from.At)
	return nil
}
