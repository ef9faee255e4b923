package cuda

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/dlpack"
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// pins is page-locked host memory whose tensors have ended. It is kept until
// the device is closed: the driver's call that frees it may wait for the
// device, which the end of a tensor must not.
type pins struct {
	mu   sync.Mutex
	kept map[int][]uintptr
}

// Pinned returns a tensor of zeros in host memory that the driver has
// page-locked. It is like any other tensor of the host; libraries are told that
// a device can address it.
func (d *Device) Pinned(dt dtype.DType, sh *shape.Shape) (*tensor.Tensor, error) {
	const op = "pinned"
	if err := d.usable(op); err != nil {
		return nil, err
	}
	bytes, err := shape.Bytes(dt, sh)
	if err != nil {
		return nil, fmt.Errorf("cuda: %s: %w", op, err)
	}
	class := d.arena.classOf(bytes)
	at, err := d.pins.take(d, class)
	if err != nil {
		return nil, d.fail(op, err)
	}
	data := unsafe.Slice((*byte)(pointer(at)), bytes)
	clear(data)
	unlist := dlpack.PageLocked(data, dlpack.Device{Type: dlpack.CUDAHost})
	d.borrowed.Add(1)
	end := func() {
		unlist()
		d.pins.put(class, at)
		d.borrowed.Add(-1)
	}
	buf, err := memory.Own(data, memory.IO, end)
	if err != nil {
		end()
		return nil, fmt.Errorf("cuda: %s: %w", op, err)
	}
	defer buf.Release()
	return tensor.FromBuffer(buf, 0, dt, shape.RowMajor(sh))
}

func (p *pins) take(d *Device, class int) (uintptr, error) {
	p.mu.Lock()
	if list := p.kept[class]; len(list) > 0 {
		at := list[len(list)-1]
		p.kept[class] = list[:len(list)-1]
		p.mu.Unlock()
		return at, nil
	}
	p.mu.Unlock()
	return d.drv.MemHostAlloc(d.ctx, uint64(class))
}

func (p *pins) put(class int, at uintptr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = map[int][]uintptr{}
	}
	p.kept[class] = append(p.kept[class], at)
}

func (p *pins) free(d *Device) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, list := range p.kept {
		for _, at := range list {
			errs = append(errs, d.drv.MemFreeHost(d.ctx, at))
		}
	}
	p.kept = nil
	return errors.Join(errs...)
}

// Managed returns a tensor on the device whose values are undefined, in memory
// that the driver moves between the device and the host. It is like any other
// tensor of the device; libraries are told that the host can address it.
func (d *Device) Managed(dt dtype.DType, sh *shape.Shape) (*tensor.Tensor, error) {
	return tensor.Make(managedSource{d}, dt, sh)
}

type managedSource struct{ d *Device }

func (m managedSource) Alloc(bytes int) (*memory.Buffer, error) {
	d := m.d
	if err := d.usable("managed"); err != nil {
		return nil, err
	}
	at, err := d.drv.MemAllocManaged(d.ctx, uint64(max(bytes, 1)))
	if err != nil {
		return nil, d.fail("managed", err)
	}
	b := &block{d: d, bytes: bytes, home: managedHome{}, managed: true}
	b.Remote = memory.Remote{Device: d.mem, Address: uintptr(at), Keeper: b}
	buf, err := d.mem.Own(&b.Remote, bytes, memory.IO)
	if err != nil {
		return nil, errors.Join(err, d.drv.MemFree(d.ctx, at))
	}
	return buf, nil
}

// managedHome frees managed memory when the work that uses it is complete: the
// driver's call waits for that.
type managedHome struct{}

func (managedHome) giveBack(b *block) {
	b.d.limbo.leave(b, func() { _ = b.d.drv.MemFree(b.d.ctx, driver.Pointer(b.Address)) }) // refused only after the device is lost
}
