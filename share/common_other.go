//go:build !linux

package share

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tenure-go/tenure/memory"
)

func common(context.Context, Key, int, string, func([]byte) error) (*memory.Buffer, bool, error) {
	_, err := commonFolder()
	return nil, false, err
}

func commonFolder() (string, error) {
	return "", fmt.Errorf("got %s, want Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}
