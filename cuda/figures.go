package cuda

import (
	"fmt"
)

// Info describes the device with that number without opening it: opening takes
// time, and memory of the device.
func (c *Driver) Info(i int) (Info, error) {
	if n := c.Len(); i < 0 || i >= n {
		return Info{}, fmt.Errorf("cuda: info: got number %d, want it below %d, the number of devices: %w", i, n, ErrNone)
	}
	d := Device{c: c, drv: c.d, number: i}
	var err error
	if d.handle, err = c.d.DeviceGet(i); err == nil {
		err = d.read()
	}
	if err != nil {
		return Info{}, fmt.Errorf("cuda: device %d: %w", i, err)
	}
	return d.info, nil
}

// Free returns the bytes of the device's memory that no process has, as the
// driver counts them. Those that an [Arena] keeps are not free.
func (d *Device) Free() (int64, error) {
	if err := d.usable("free memory"); err != nil {
		return 0, err
	}
	free, _, err := d.drv.MemGetInfo(d.ctx)
	if err != nil {
		return 0, d.fail("free memory", err)
	}
	return int64(free), nil
}
