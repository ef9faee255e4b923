package drivertest

import "github.com/tenure-go/tenure/cuda/internal/driver"

// testIPCMemory exports memory. A process cannot import what it exported, so
// that the import is refused; the tests of package share have two processes.
func testIPCMemory(r *rig) {
	r.has(driver.IPCEventSupported, "handles for other processes")
	p := r.alloc(2 << 20)
	h, err := r.IpcGetMemHandle(r.ctx, p)
	r.found(err)
	if h == (driver.IPCHandle{}) {
		r.Error("got a handle of zeros")
	}
	if within, err := r.IpcGetMemHandle(r.ctx, p+4096); err == nil && within != h {
		r.Error("got another handle for a part of the allocation")
	}
	q, err := r.IpcOpenMemHandle(r.ctx, h)
	r.fails("IpcOpenMemHandle in the process that exports", err)
	if err == nil {
		r.check(r.IpcCloseMemHandle(r.ctx, q))
	}
	r.fails("IpcCloseMemHandle of memory that was not opened", r.IpcCloseMemHandle(r.ctx, p))
}

func testIPCEvents(r *rig) {
	r.has(driver.IPCEventSupported, "events for other processes")
	e := r.event(driver.EventInterprocess | driver.EventDisableTiming)
	h, err := r.IpcGetEventHandle(r.ctx, e)
	r.found(err)
	if h == (driver.IPCHandle{}) {
		r.Error("got a handle of zeros")
	}
	r.check(r.EventRecord(r.ctx, e, r.s))
	r.check(r.EventSynchronize(r.ctx, e))
	_, err = r.IpcGetEventHandle(r.ctx, r.event(driver.EventDisableTiming))
	r.fails("IpcGetEventHandle of an event that is not interprocess", err)
	// Whether a process may open its own event is not documented.
	if opened, err := r.IpcOpenEventHandle(r.ctx, h); err == nil {
		r.check(r.EventDestroy(r.ctx, opened))
	} else {
		r.fails("IpcOpenEventHandle in the process that exports", err)
	}
}
