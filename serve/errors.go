package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tenure-go/tenure"
	"github.com/tenure-go/tenure/serve/internal/oip"
)

// The kinds of errors, for errors.Is.
var (
	ErrNotFound = errors.New("not found")                  // a model or version that is not served
	ErrBusy     = errors.New("the server is at its limit") // requests that wait, or memory
	ErrClosed   = errors.New("the server ends")            // it takes no requests any more
	ErrConfig   = errors.New("invalid configuration")      // of the server or of a model
	ErrTooLarge = errors.New("larger than the server allows")
	ErrTimeout  = errors.New("request timeout expired")
)

// errStopped is why a request ends whose client has gone.
var errStopped = errors.New("the client has gone")

// status returns the code of HTTP for an error.
func status(err error) int {
	var never *neverFits
	var tooLong *http.MaxBytesError
	switch {
	case errors.Is(err, ErrNotFound):
		return http.StatusNotFound
	case errors.As(err, &never), errors.As(err, &tooLong), errors.Is(err, ErrTooLarge):
		return http.StatusRequestEntityTooLarge
	case errors.Is(err, ErrBusy), errors.Is(err, ErrClosed), errors.Is(err, ErrTimeout), errors.Is(err, tenure.ErrLimit),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	case errors.Is(err, oip.ErrMessage), errors.Is(err, tenure.ErrInput), errors.Is(err, tenure.ErrShape), errors.Is(err, tenure.ErrDType), errors.Is(err, ErrConfig):
		return http.StatusBadRequest
	case errors.Is(err, tenure.ErrUnsupported):
		return http.StatusNotImplemented
	}
	return http.StatusInternalServerError
}

// reason is the label of a request that failed, in metrics.
func reason(err error) string {
	switch {
	case errors.Is(err, errStopped), errors.Is(err, context.Canceled):
		return "CANCELED"
	case status(err) == http.StatusServiceUnavailable, status(err) == http.StatusRequestEntityTooLarge:
		return "REJECTED"
	case status(err) < 500:
		return "OTHER"
	}
	return "BACKEND"
}

// unknownModel is the error for a model that is not served.
type unknownModel struct{ name, version string }

// Error returns a text that clients look for.
func (e unknownModel) Error() string {
	if e.version != "" {
		return fmt.Sprintf("Request for unknown model: '%s' version %s is not found", e.name, e.version)
	}
	return fmt.Sprintf("Request for unknown model: '%s' is not found", e.name)
}

func (unknownModel) Is(target error) bool { return target == ErrNotFound }
