package share

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tenure-go/tenure/memory"
)

// Key names bytes that never change. It is a SHA-256 of everything that the
// bytes depend on, so equal keys mean equal bytes.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Common returns memory that all processes of this user share: calls with the
// same key return the same memory. The first process makes it by calling fill
// with size zeroed bytes, and for it made is true. Other processes wait until
// it is filled, and map it. The memory is sealed before any other process sees
// it: none can write it, truncate it, or map it for writing.
//
// The memory stays as long as any process has it mapped, and each of these
// sends it to those that call later, so the process that made it may end. If a
// process dies in fill, nothing is left, and the next one starts again. The
// memory cannot be stale, because the key decides its bytes. See docs/share.md.
//
// The caller owns the buffer, which is read-only and counted as [memory.Shared]
// under label. Its last release unmaps the memory in this process.
//
// Sockets and locks lie in a folder of the user, see [InDir]; a folder that
// others may enter is refused. Linux only: elsewhere the error matches
// errors.ErrUnsupported. Common may be called from any goroutine.
func Common(ctx context.Context, key Key, size int, label string, fill func(dst []byte) error, opts ...Option) (b *memory.Buffer, made bool, err error) {
	if ctx == nil {
		return nil, false, fmt.Errorf("share: common bytes %.8s (%s): %w", key, label, errNilContext)
	}
	if size <= 0 {
		return nil, false, fmt.Errorf("share: common bytes %.8s (%s): got size %d, want at least 1", key, label, size)
	}
	b, made, err = common(ctx, key, size, label, fill, opts)
	if err != nil {
		return nil, false, fmt.Errorf("share: common bytes %.8s (%s): %w", key, label, err)
	}
	return b, made, nil
}

// CheckCommon reports why [Common] cannot work here: another system than Linux,
// or no folder that only the user may enter.
func CheckCommon(opts ...Option) error {
	if _, err := commonFolder(opts); err != nil {
		return fmt.Errorf("share: common bytes: %w", err)
	}
	return nil
}

// CommonBytes describes memory that processes share by [Common].
type CommonBytes struct {
	Key     string         `json:"key"`     // in hexadecimal digits; of silent holders the first 16
	Bytes   int            `json:"bytes"`   // 0 of silent holders
	Holders []CommonHolder `json:"holders"` // by number
}

// CommonHolder is a process that has common bytes mapped and sends them to
// others. A silent one does not answer: it is stopped, or about to end.
type CommonHolder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Silent  bool   `json:"silent"`
}

// ListCommon lists the memory that the user's processes share by [Common], in
// the order of keys. It sends a request to each holder, which takes a second
// for one that is stopped and up to ten for one that runs and does not answer,
// and removes the files of killed processes. Which copy a silent holder has is
// not known, so silent holders of a key are listed apart. Memory that exists
// twice, because no holder answered when it was requested, is listed twice.
func ListCommon(ctx context.Context, opts ...Option) ([]CommonBytes, error) {
	if ctx == nil {
		return nil, fmt.Errorf("share: list common bytes: %w", errNilContext)
	}
	list, err := listCommon(ctx, opts)
	if err != nil {
		return nil, fmt.Errorf("share: list common bytes: %w", err)
	}
	return list, nil
}
