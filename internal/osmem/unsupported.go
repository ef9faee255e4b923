//go:build !linux

package osmem

import (
	"errors"
	"fmt"
	"runtime"
)

// unsupported is what the files of other platforms return for a call that their system has not.
func unsupported(what string) error {
	return fmt.Errorf("%s is not available on %s: %w", what, runtime.GOOS, errors.ErrUnsupported)
}
