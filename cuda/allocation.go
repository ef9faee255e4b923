package cuda

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/share"
	"github.com/tenure-go/tenure/tensor"
)

// Memory that other libraries allocated, for other processes: the older
// interface of the driver shares whole allocations by handles of 64 bytes.

// lending is one user that lends the bytes of a loan to other processes.
type lending struct {
	base  driver.Pointer
	ended func(giveBack func())
}

// allocations are the handles of the allocations that are lent, which all
// announcements of one have in common: other processes know it by its handle.
type allocations struct {
	mu     sync.Mutex
	byBase map[driver.Pointer]*allocation
}

type allocation struct {
	handle driver.IPCHandle
	users  int // lendings
}

// take returns the handle of the allocation at a base.
func (l *allocations) take(d *Device, base driver.Pointer) (driver.IPCHandle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	a := l.byBase[base]
	if a == nil {
		h, err := d.drv.IpcGetMemHandle(d.ctx, base)
		if err != nil {
			return h, err
		}
		if l.byBase == nil {
			l.byBase = map[driver.Pointer]*allocation{}
		}
		a = &allocation{handle: h}
		l.byBase[base] = a
	}
	a.users++
	return a.handle, nil
}

// drop ends what take began. After the last one the allocation may be freed,
// and its addresses be those of another.
func (l *allocations) drop(base driver.Pointer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a := l.byBase[base]; a.users > 1 {
		a.users--
	} else {
		delete(l.byBase, base)
	}
}

func (e engine) ShareAllocation(buf *memory.Buffer, ended func(giveBack func())) (share.Allocation, error) {
	defer runtime.KeepAlive(buf)
	d := e.d
	b := blockOf(buf.Remote())
	if b == nil || b.d != d {
		return share.Allocation{}, fmt.Errorf("cuda: share memory in place: got bytes that are not on %s: %w", d, tensor.ErrDevice)
	}
	l, isLoan := b.home.(*loan)
	if !isLoan {
		return share.Allocation{}, fmt.Errorf("cuda: share memory in place: got bytes that no other library of this process allocated: %w", tensor.ErrUnsupported)
	}
	info, err := d.drv.PointerGetAttributes(b.pointer())
	if err != nil {
		return share.Allocation{}, d.fail("share memory in place", err)
	}
	if !info.IPC {
		return share.Allocation{}, fmt.Errorf("cuda: share memory in place: the driver has no handle for memory of this kind, such as managed memory, or that of pools or of virtual memory management: %w", tensor.ErrUnsupported)
	}
	base, size, err := d.drv.MemGetAddressRange(d.ctx, b.pointer())
	if err != nil {
		return share.Allocation{}, d.fail("share memory in place", err)
	}
	if within := uint64(b.pointer() - base); b.pointer() < base || within > size || uint64(b.bytes) > size-within {
		return share.Allocation{}, fmt.Errorf("cuda: share memory in place: got %d bytes at %#x, want them in one allocation, which has %d at %#x: %w",
			b.bytes, uint64(b.pointer()), size, uint64(base), tensor.ErrUnsupported)
	}
	h, err := d.shared.take(d, base)
	if err != nil {
		return share.Allocation{}, d.fail("share memory in place", err)
	}
	l.mu.Lock()
	l.shared = append(l.shared, &lending{base, ended})
	l.mu.Unlock()
	return share.Allocation{Address: uintptr(base), Bytes: int(size), Handle: h}, nil
}

func (e engine) OpenAllocation(handle [64]byte, bytes int) (share.View, error) {
	d := e.d
	if err := d.enter("open memory of another process"); err != nil {
		return nil, err
	}
	at, err := d.drv.IpcOpenMemHandle(d.ctx, handle)
	if err != nil {
		d.leave()
		return nil, d.fail("open memory of another process", err)
	}
	end := func() error { return d.drv.IpcCloseMemHandle(d.ctx, at) }
	// Its owner says how long it is. Where the driver knows, it has to agree.
	base, size, err := d.drv.MemGetAddressRange(d.ctx, at)
	if err == nil && (base != at || size < uint64(bytes)) {
		err = fmt.Errorf("cuda: open memory of another process: got %d bytes on %s, want the %d that it announces: %w", size, d, bytes, tensor.ErrCorrupt)
	} else if err != nil && isLost(err) {
		err = d.fail("open memory of another process", err)
	} else {
		return &view{d, at, end}, nil
	}
	d.leave()
	return nil, errors.Join(err, end())
}

func (e engine) OwnAllocation(address uintptr) (share.View, error) {
	if err := e.d.enter("share memory in place"); err != nil {
		return nil, err
	}
	return &view{d: e.d, at: driver.Pointer(address)}, nil
}
