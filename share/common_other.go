//go:build !linux

package share

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/tenure-go/tenure/memory"
)

func common(context.Context, Key, int, string, func([]byte) error, []Option) (*memory.Buffer, bool, error) {
	_, err := commonFolder(nil)
	return nil, false, err
}

func commonFolder([]Option) (string, error) {
	return "", fmt.Errorf("got %s, want Linux: %w", runtime.GOOS, errors.ErrUnsupported)
}

func listCommon(context.Context, []Option) ([]CommonBytes, error) {
	_, err := commonFolder(nil)
	return nil, err
}
