//go:build !linux

package osmem

import (
	"errors"
	"fmt"
	"runtime"
)

// unsupported is the error of calls that the platform does not have.
func unsupported(what string) error {
	return fmt.Errorf("%s is not available on %s: %w", what, runtime.GOOS, errors.ErrUnsupported)
}
