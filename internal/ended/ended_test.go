package ended

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestError(t *testing.T) {
	why := errors.New("the server stops")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	if err := Error(ctx); err.Error() != why.Error() || !errors.Is(err, why) || !errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("canceled with a cause: got %v, want the cause, which is context.Canceled and no other", err)
	}
	late, stop := context.WithDeadline(t.Context(), time.Now())
	defer stop()
	if err := Error(late); err.Error() != context.DeadlineExceeded.Error() || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Errorf("out of time: got %v, want context.DeadlineExceeded alone", err)
	}
}

func TestClosed(t *testing.T) {
	c := make(chan struct{})
	if Closed(c) || Closed(nil) {
		t.Error("got that an open channel, or none, is closed")
	}
	close(c)
	for range 2 { // to ask changes nothing
		if !Closed(c) {
			t.Error("got that a closed channel is open")
		}
	}
}
