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
	wait    driver.Event // recorded for each wait of a stream
	ask     driver.Event // recorded for isComplete; waits that record again and again must not delay its answer
	asked   uint64       // records of ask so far
	done    uint64       // of them, those known to be complete
	missing bool         // the driver lacks the call
}

// record records an event behind the device's work. The caller has the lock.
func (w *wholeEvent) record(d *Device, e *driver.Event) (err error) {
	if err = w.need(d, e); err != nil {
		return err
	}
	if !w.missing {
		if err = d.drv.CtxRecordEvent(d.ctx, *e); err == nil || !errors.Is(err, driver.ErrNotFound) {
			return err
		}
		w.missing = true
	}
	if err := d.drv.CtxSynchronize(d.ctx); err != nil {
		return err
	}
	return d.drv.EventRecord(d.ctx, *e, driver.LegacyStream)
}

// need creates an event. The caller has the lock.
func (w *wholeEvent) need(d *Device, e *driver.Event) (err error) {
	if *e == 0 {
		*e, err = d.drv.EventCreate(d.ctx, driver.EventDisableTiming)
	}
	return err
}

// awaitAll makes later work of s wait for all work of d that was submitted
// before. The caller has s.mu.
func (s *Stream) awaitAll(d *Device) error {
	if err := d.whole.before(d, s.d.ctx, s.handle); err != nil {
		return s.d.fail("wait", err)
	}
	return nil
}

// before makes later work of a stream, of whatever library, wait for all work
// of d that was submitted before.
func (w *wholeEvent) before(d *Device, ctx driver.Context, stream driver.Stream) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.record(d, &w.wait); err != nil {
		return err
	}
	return d.drv.StreamWaitEvent(ctx, stream, w.wait)
}

// after makes later work of s wait for the work of a stream that another
// library made. The caller has s.mu.
func (w *wholeEvent) after(s *Stream, stream driver.Stream) error {
	d := s.d
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.need(d, &w.wait); err != nil {
		return err
	}
	if err := d.drv.EventRecord(d.ctx, w.wait, stream); err != nil {
		return err
	}
	return d.drv.StreamWaitEvent(d.ctx, s.handle, w.wait)
}

// isComplete reports whether all work of d is complete that was submitted
// before the first of a row of calls with the same number, which is 0 then.
func (w *wholeEvent) isComplete(d *Device, number *uint64) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if *number == 0 {
		*number = w.asked + 1 // a record that is under way was made before
	}
	if w.done < *number && w.done == w.asked {
		if err := w.record(d, &w.ask); err != nil {
			return false, err
		}
		w.asked++
	}
	if w.done < w.asked {
		done, err := d.drv.EventQuery(d.ctx, w.ask)
		if err != nil {
			return false, err
		}
		if done {
			w.done = w.asked
		}
	}
	return w.done >= *number, nil
}

func (w *wholeEvent) destroy(d *Device) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, e := range []*driver.Event{&w.wait, &w.ask} {
		if *e != 0 {
			errs = append(errs, d.drv.EventDestroy(d.ctx, *e))
			*e = 0
		}
	}
	return errors.Join(errs...)
}
