package cuda

import "github.com/tenure-go/tenure/cuda/internal/driver"

// ViewsAreWritable reports whether the driver refused to map memory of another
// process for reading only.
func ViewsAreWritable(d *Device) bool { return d.noReadOnly.Load() }

// SharedEvents makes up to most events that other processes can open, and
// returns how many there were when the driver refused another one, and why.
func SharedEvents(d *Device, most int) (n int, err error) {
	var all []driver.Event
	for n < most && err == nil {
		var e driver.Event
		if e, err = d.drv.EventCreate(d.ctx, driver.EventDisableTiming|driver.EventInterprocess); err == nil {
			all = append(all, e)
			if _, err = d.drv.IpcGetEventHandle(d.ctx, e); err == nil {
				n++
			}
		}
	}
	for _, e := range all {
		_ = d.drv.EventDestroy(d.ctx, e)
	}
	return n, err
}
