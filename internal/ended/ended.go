// Package ended checks whether work is to end, and formats the error of a
// context that has ended in the same way for all packages.
package ended

import (
	"context"
	"errors"
	"runtime"
)

// Error returns the error of a context that has ended: its cause, in an error
// that also matches the context's own error.
func Error(ctx context.Context) error { return bothErrors{context.Cause(ctx), ctx.Err()} }

// Closed reports whether a channel on which nothing is ever sent has been
// closed.
func Closed(done <-chan struct{}) bool {
	return done != nil && closed(done) // the comparison is inlined, because small eager calls have no channel
}

func closed(done <-chan struct{}) bool {
	if runtime.GOARCH == "wasm" {
		runtime.Gosched() // without preemption the goroutine that closes it would never run
	}
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// Missing returns the error of a nil context, nil for any other.
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
