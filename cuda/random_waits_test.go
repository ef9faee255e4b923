package cuda_test

import (
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/cuda/internal/driver"
)

// waitKind is what somebody waits for.
type waitKind int

const (
	ofStream  waitKind = iota // a stream, for work of a stream
	ofDevice                  // a stream, for all work of a device
	ofProcess                 // a stream, for an event of another process
	ofHost                    // the host: a question that was answered with no
	anyStream                 // a stream, for whatever
	kinds
)

func (k waitKind) String() string {
	return [kinds]string{"stream", "device", "process", "host", "any"}[k]
}

// counted counts the waits that drivers see, and forgets one.
type counted struct {
	kind waitKind
	skip int64 // the number of the wait of that kind, from 1; 0 forgets none
	made [kinds]atomic.Int64
}

func (w *counted) skips(k waitKind) bool {
	return w.made[k].Add(1) == w.skip && k == w.kind
}

// skipping is a driver that forgets a wait.
type skipping struct {
	driver.Driver
	*counted
	events sync.Map // the kinds of waits for an event, other than ofStream
}

func (s *skipping) CtxRecordEvent(ctx driver.Context, e driver.Event) error {
	s.events.Store(e, ofDevice)
	return s.Driver.CtxRecordEvent(ctx, e)
}

func (s *skipping) IpcOpenEventHandle(ctx driver.Context, h driver.IPCHandle) (driver.Event, error) {
	e, err := s.Driver.IpcOpenEventHandle(ctx, h)
	if err == nil {
		s.events.Store(e, ofProcess)
	}
	return e, err
}

func (s *skipping) StreamWaitEvent(ctx driver.Context, st driver.Stream, e driver.Event) error {
	k := ofStream
	if known, is := s.events.Load(e); is {
		k = known.(waitKind)
	}
	if one, any := s.skips(k), s.skips(anyStream); one || any {
		return nil
	}
	return s.Driver.StreamWaitEvent(ctx, st, e)
}

func (s *skipping) EventQuery(ctx driver.Context, e driver.Event) (bool, error) {
	done, err := s.Driver.EventQuery(ctx, e)
	return done || err == nil && s.skips(ofHost), err
}
