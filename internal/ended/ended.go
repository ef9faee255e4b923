// Package ended asks whether work is to end, and has the error of a context that has ended, in one form for all packages.
package ended

import (
	"context"
	"errors"
	"runtime"
)

// Error is the error of a context that has ended: the cause that somebody gave, which matches the context's own error as well.
func Error(ctx context.Context) error { return bothErrors{context.Cause(ctx), ctx.Err()} }

// Closed reports whether a channel to which nothing is ever sent has been closed.
func Closed(done <-chan struct{}) bool {
	return done != nil && closed(done) // the comparison is inlined: small eager calls have no channel
}

func closed(done <-chan struct{}) bool {
	if runtime.GOARCH == "wasm" {
		runtime.Gosched() // nothing preempts there: the goroutine that closes it would never run
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Missing is the error of a nil context, nil for any other.
func Missing(ctx context.Context) error {
	if ctx == nil {
		return errMissing
	}
	return nil
}

var errMissing = errors.New("got a nil context, want one (context.Background(), if nothing ends the call)")

type bothErrors struct{ cause, own error }

func (e bothErrors) Error() string   { return e.cause.Error() }
func (e bothErrors) Unwrap() []error { return []error{e.cause, e.own} }
