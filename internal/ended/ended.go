// Package ended has the error of a context that has ended, in the one form that it has in all packages.
package ended

import (
	"context"
	"errors"
)

// Error is the error of a context that has ended: the cause that somebody gave, which matches the context's own error as well.
func Error(ctx context.Context) error { return bothErrors{context.Cause(ctx), ctx.Err()} }

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
