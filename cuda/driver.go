package cuda

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// MinVersion is the oldest version of the driver that this package works with:
// 11.4, the first that finds its functions by version.
const MinVersion = driver.OldestVersion

// Driver is the CUDA driver of the machine.
type Driver struct {
	d       driver.Driver
	version int

	mu      sync.Mutex
	devices []*Device // those that were opened, by ordinal
}

var opened struct {
	once sync.Once
	d    *Driver
	err  error
}

// Open opens the driver's library, once per process: $TENURE_LIBCUDA, or
// libcuda.so.1 where the system has it. Without a library, a device or a driver
// that is new enough the error says so in one line and matches [ErrNone].
func Open() (*Driver, error) {
	opened.once.Do(func() {
		d, err := driver.Open("")
		if err != nil {
			opened.err = fmt.Errorf("cuda: %w: %w", ErrNone, err)
			return
		}
		opened.d, opened.err = New(d)
	})
	return opened.d, opened.err
}

// ErrNone: the machine has no CUDA device that can be used.
var ErrNone = errors.New("no CUDA device")

// New makes a Driver of a table of functions. It is for the tests of this
// module, whose driver has no device.
func New(d driver.Driver) (*Driver, error) {
	if d == nil {
		return nil, fmt.Errorf("cuda: got no table of functions: %w", ErrNone)
	}
	if err := d.Init(); err != nil {
		return nil, fmt.Errorf("cuda: %w: %w%s", ErrNone, err, advice(err))
	}
	version, err := d.DriverGetVersion()
	if err != nil {
		return nil, fmt.Errorf("cuda: %w: %w", ErrNone, err)
	}
	if version < MinVersion {
		return nil, fmt.Errorf("cuda: got driver %s in %s, want %s or newer: %w", versionText(version), d.Name(), versionText(MinVersion), ErrNone)
	}
	n, err := d.DeviceGetCount()
	if err != nil {
		return nil, fmt.Errorf("cuda: %w: %w", ErrNone, err)
	}
	if n == 0 {
		return nil, fmt.Errorf("cuda: got a driver (%s) that sees 0 devices, want one or more (is CUDA_VISIBLE_DEVICES empty?): %w", d.Name(), ErrNone)
	}
	return &Driver{d: d, version: version, devices: make([]*Device, n)}, nil
}

// advice says what usually helps against an error of cuInit.
func advice(err error) string {
	switch {
	case errors.Is(err, driver.NoDevice):
		return " (is CUDA_VISIBLE_DEVICES empty, or /dev/nvidia* missing in this container?)"
	case errors.Is(err, driver.SystemNotReady):
		return " (the machine's fabric manager is not running)"
	case errors.Is(err, driver.SystemDriverMismatch):
		return " (the library is of another version than the kernel's module: restart the machine)"
	case errors.Is(err, driver.DeviceUnavailable):
		return " (another process has the device in exclusive mode)"
	}
	return ""
}

func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

// Version returns the version of CUDA that the driver supports, such as 12.9.
func (c *Driver) Version() string {
	if c == nil {
		return versionText(0)
	}
	return versionText(c.version)
}

// Len returns the number of devices.
func (c *Driver) Len() int {
	if c == nil {
		return 0
	}
	return len(c.devices)
}

// Device returns the device with that number, which counts from 0, and keeps it
// open until [Device.Close].
func (c *Driver) Device(i int) (*Device, error) {
	if n := c.Len(); i < 0 || i >= n {
		return nil, fmt.Errorf("cuda: device: got number %d, want it below %d, the number of devices: %w", i, n, ErrNone)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.devices[i] != nil {
		return c.devices[i], nil
	}
	d, err := c.open(i)
	if err != nil {
		return nil, err
	}
	c.devices[i] = d
	return d, nil
}

// forget removes a device that was closed.
func (c *Driver) forget(d *Device) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.devices[d.number] == d {
		c.devices[d.number] = nil
	}
}
