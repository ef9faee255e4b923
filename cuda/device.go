package cuda

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/cuda/internal/driver"
	"github.com/tenure-go/tenure/memory"
)

// Device is a CUDA device with its primary context, which other libraries of
// the process use too.
type Device struct {
	c      *Driver
	drv    driver.Driver
	ctx    driver.Context
	handle driver.Device
	number int
	info   Info

	mem   *memory.Device
	arena *Arena
	main  *Stream
	limbo limbo
	stage stage
	code  modules
	pins  pins

	whole      wholeEvent
	handles    sync.Map     // of driver.Stream: the *Stream that is open on it
	borrowed   atomic.Int32 // imports that have not been given back, and tensors in page-locked memory
	events     sharedEvents
	shared     allocations
	guests     atomic.Int32 // arenas and events of other processes that are open; noGuests when the device is closed
	noReadOnly atomic.Bool  // the driver maps no memory that is only read
	closed     atomic.Bool
}

// Info describes a device.
type Info struct {
	Name       string
	UUID       [16]byte // the same in every process, whatever numbers they use
	Bytes      uint64   // of its memory
	Major      int      // of its compute capability
	Minor      int
	Processors int  // multiprocessors
	VMM        bool // it has virtual memory management, so arenas can be shared with other processes by descriptor
	Pools      bool // it has stream-ordered pools
	Integrated bool // its memory is the host's
}

// open retains the primary context of a device. The caller has the lock.
func (c *Driver) open(i int) (d *Device, err error) {
	d = &Device{c: c, drv: c.d, number: i}
	if d.handle, err = c.d.DeviceGet(i); err == nil {
		err = d.read()
	}
	if err != nil {
		return nil, fmt.Errorf("cuda: device %d: %w", i, err)
	}
	if d.ctx, err = c.d.DevicePrimaryCtxRetain(d.handle); err != nil {
		return nil, fmt.Errorf("cuda: device %d: %w%s", i, err, advice(err))
	}
	release := func() { _ = c.d.DevicePrimaryCtxRelease(d.handle) } // the first error counts
	if d.mem, err = memory.NewDevice(c.label(i), engine{d}); err != nil {
		release()
		return nil, fmt.Errorf("cuda: device %d: %w", i, err)
	}
	if d.main, err = d.NewStream(); err != nil {
		_ = d.mem.Close()
		release()
		return nil, err
	}
	d.arena = newArena(d)
	return d, nil
}

// label names a device in errors and statistics. Drivers of tests may have
// devices of the same number.
func (c *Driver) label(i int) string {
	name := fmt.Sprintf("cuda:%d", i)
	for _, d := range memory.Devices() {
		if d.String() == name {
			return fmt.Sprintf("cuda:%d (%s, %p)", i, c.d.Name(), c)
		}
	}
	return name
}

func (d *Device) read() (err error) {
	if d.info.Name, err = d.drv.DeviceGetName(d.handle); err != nil {
		return err
	}
	if d.info.UUID, err = d.drv.DeviceGetUUID(d.handle); err != nil {
		return err
	}
	if d.info.Bytes, err = d.drv.DeviceTotalMem(d.handle); err != nil {
		return err
	}
	attribute := func(a driver.Attribute) int {
		v, e := d.drv.DeviceGetAttribute(a, d.handle)
		if e != nil && !errors.Is(e, driver.InvalidValue) { // a driver that is older than the attribute
			err = e
		}
		return v
	}
	d.info.Major, d.info.Minor = attribute(driver.ComputeCapabilityMajor), attribute(driver.ComputeCapabilityMinor)
	d.info.Processors = attribute(driver.MultiprocessorCount)
	d.info.VMM = attribute(driver.VirtualMemoryManagementSupported) > 0 && attribute(driver.HandleTypePOSIXDescriptorSupported) > 0
	d.info.Pools = attribute(driver.MemoryPoolsSupported) > 0
	d.info.Integrated = attribute(driver.Integrated) > 0
	return err
}

// Info describes the device.
func (d *Device) Info() Info {
	if d == nil {
		return Info{}
	}
	return d.info
}

// Number returns the number of the device in this process.
func (d *Device) Number() int {
	if d == nil {
		return 0
	}
	return d.number
}

// String returns a name such as "cuda:0".
func (d *Device) String() string {
	if d.none() {
		return "cuda:none"
	}
	return d.mem.String()
}

// none reports whether the device is nil or zero.
func (d *Device) none() bool { return d == nil || d.drv == nil }

// usable returns an error for a device that is none or closed.
func (d *Device) usable(op string) error {
	switch {
	case d.none():
		return fmt.Errorf("cuda: %s: got no device, want one of Driver.Device: %w", op, ErrNone)
	case d.closed.Load():
		return fmt.Errorf("cuda: %s: %s is closed: %w", op, d, memory.ErrReleased)
	}
	return nil
}

// Memory returns the memory of the device, for [tensor.To] and its figures.
func (d *Device) Memory() *memory.Device {
	if d == nil {
		return nil
	}
	return d.mem
}

// Arena returns the arena from which tensors of the device are allocated.
func (d *Device) Arena() *Arena {
	if d == nil {
		return nil
	}
	return d.arena
}

// Main returns the stream on which [tensor.To] and other calls that name no
// stream submit their copies. It ends with the device.
func (d *Device) Main() *Stream {
	if d == nil {
		return nil
	}
	return d.main
}

// Close ends the device: it waits for its work, gives its memory back and
// releases its context. While it has tensors or streams, it does nothing and
// returns [memory.ErrShared].
func (d *Device) Close() error {
	if d.none() || d.closed.Load() {
		return nil
	}
	memory.Reclaim()
	if err := d.drv.CtxSynchronize(d.ctx); err != nil && !isLost(err) {
		return d.fail("close", err)
	}
	d.limbo.drain()
	if n := d.borrowed.Load(); n > 0 {
		return fmt.Errorf("cuda: close %s: got %d tensors that are imported or in page-locked memory, want none: %w", d, n, memory.ErrShared)
	}
	if n := d.streams(); n > 1 {
		return fmt.Errorf("cuda: close %s: got %d streams that are open, want none: %w", d, n-1, memory.ErrShared)
	}
	if !d.guests.CompareAndSwap(0, noGuests) {
		return fmt.Errorf("cuda: close %s: got %d arenas and events of other processes that are open, want none (close the peers): %w", d, d.guests.Load(), memory.ErrShared)
	}
	if err := d.mem.Close(); err != nil {
		d.guests.Store(0)
		return fmt.Errorf("cuda: close: %w", err)
	}
	d.closed.Store(true)
	errs := []error{d.code.unload(d), d.stage.free(d), d.pins.free(d), d.arena.end(), d.whole.destroy(d), d.main.end(false), d.events.destroy(d)}
	errs = append(errs, d.drv.DevicePrimaryCtxRelease(d.handle))
	d.c.forget(d)
	for _, err := range errs {
		if err != nil && !isLost(err) {
			return d.fail("close", err)
		}
	}
	return nil
}

// fail is the error of an operation whose call of the driver failed.
func (d *Device) fail(op string, err error) error {
	if isLost(err) {
		return fmt.Errorf("cuda: %s: %s: %w: %w", op, d, ErrLost, err)
	}
	if errors.Is(err, driver.OutOfMemory) {
		return fmt.Errorf("cuda: %s: %s: %w (%w)", op, d, err, memory.ErrLimit)
	}
	return fmt.Errorf("cuda: %s: %s: %w", op, d, err)
}

// ErrLost: work of the device failed in a way that ends its context: a kernel
// that accessed memory outside its allocations, or hardware that has gone. The
// contents of its tensors are lost, they can only be released.
var ErrLost = errors.New("device is lost")

// lost are the results after which no call on the context can succeed.
var lost = []driver.Result{
	driver.Deinitialized, driver.DeviceUnavailable, driver.IllegalAddress, driver.LaunchTimeout, driver.MisalignedAddress,
	driver.LaunchFailed, driver.Unknown,
	214, // CUDA_ERROR_ECC_UNCORRECTABLE
	710, // CUDA_ERROR_ASSERT
	714, // CUDA_ERROR_HARDWARE_STACK_ERROR
	715, // CUDA_ERROR_ILLEGAL_INSTRUCTION
	717, // CUDA_ERROR_INVALID_ADDRESS_SPACE
	718, // CUDA_ERROR_INVALID_PC
}

// isLost reports whether no call on the context can succeed any more.
func isLost(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && slices.Contains(lost, e.Result)
}
