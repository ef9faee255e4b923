package cuda

import (
	"errors"
	"sync"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// wholeEvent is an event behind all work of a device, on whatever stream and by
// whatever library of the process: what a stamp is for work that this package
// submitted.
//
// Drivers before 12.5 cannot record it. There the legacy default stream stands
// in, which waits for all streams but those that were made as non-blocking; for
// these the host waits.
type wholeEvent struct {
	mu      sync.Mutex
	event   driver.Event
	asked   bool // the event was recorded for isComplete, and is not complete yet
	missing bool // the driver lacks the call
}

// record records the event anew. The caller has the lock.
func (w *wholeEvent) record(d *Device) (err error) {
	if w.event == 0 {
		if w.event, err = d.drv.EventCreate(d.ctx, driver.EventDisableTiming); err != nil {
			return err
		}
	}
	if !w.missing {
		if err = d.drv.CtxRecordEvent(d.ctx, w.event); err == nil || !errors.Is(err, driver.ErrNotFound) {
			return err
		}
		w.missing = true
	}
	if err := d.drv.CtxSynchronize(d.ctx); err != nil {
		return err
	}
	return d.drv.EventRecord(d.ctx, w.event, driver.LegacyStream)
}

// awaitAll makes later work of s wait for all work of d that was submitted
// before. The caller has s.mu.
func (s *Stream) awaitAll(d *Device) error {
	w := &d.whole
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.record(d); err != nil {
		return d.fail("wait", err)
	}
	w.asked = false // what asked before was recorded earlier, and is covered by the next record
	if err := d.drv.StreamWaitEvent(s.d.ctx, s.handle, w.event); err != nil {
		return s.d.fail("wait", err)
	}
	return nil
}

// isComplete reports whether all work of d that was submitted before the first
// call since it last returned true is complete.
func (w *wholeEvent) isComplete(d *Device) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked {
		if err := w.record(d); err != nil {
			return false, err
		}
		w.asked = true
	}
	done, err := d.drv.EventQuery(d.ctx, w.event)
	if done {
		w.asked = false
	}
	return done, err
}

func (w *wholeEvent) destroy(d *Device) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.event == 0 {
		return nil
	}
	event := w.event
	w.event = 0
	return d.drv.EventDestroy(d.ctx, event)
}
