package share

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/tenure-go/tenure/memory"
)

// Key names bytes that never change: a SHA-256 of all that decides them, so that equal keys mean equal bytes.
type Key [sha256.Size]byte

// String returns the key in hexadecimal digits.
func (k Key) String() string { return hex.EncodeToString(k[:]) }

// Common returns bytes that this process has in common with the others of its user: in all of them the same key is the same
// memory. Whoever comes first makes it, by fill, which gets size zeroed bytes; made says that it was this call. Others wait for
// that, and map it. It is sealed before anybody else sees it: nobody can write it, cut it short, or map it for writing.
//
// The memory stays for as long as anybody has it, and whoever has it gives it to those that come later: it does not matter who
// made it, and whether that process still lives. A process that dies while it fills leaves nothing; the next one begins anew.
// Nothing can go stale, because the key says what the bytes are. See docs/share.md.
//
// The buffer is read-only and counted as [memory.Shared] under the given label. Its last release gives this process's mapping
// back.
//
// Sockets and locks lie in a folder of the user's own, see [InDir]; one that others may enter is refused. Linux only: elsewhere
// the error matches errors.ErrUnsupported.
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

// CheckCommon reports why [Common] cannot work here, for those who want to know before they need it: no such system, or no
// folder of the user's own.
func CheckCommon(opts ...Option) error {
	if _, err := commonFolder(opts); err != nil {
		return fmt.Errorf("share: common bytes: %w", err)
	}
	return nil
}

// CommonBytes are bytes that processes have in common, by [Common].
type CommonBytes struct {
	Key     string         `json:"key"`     // in hexadecimal digits; of silent holders the first 16
	Bytes   int            `json:"bytes"`   // 0 of silent holders
	Holders []CommonHolder `json:"holders"` // by number
}

// CommonHolder is a process that has common bytes mapped and gives them to others. A silent one does not answer: it is stopped, or
// about to end.
type CommonHolder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Silent  bool   `json:"silent"`
}

// ListCommon lists what the user's processes have in common, by key. It asks each holder, which takes a second for those that are
// stopped and up to ten for those that do not answer although they are at work, and clears away what killed ones left. Which copy
// a silent holder has is not known, so those of a key are listed by themselves. Bytes that are there twice, because nobody answered
// when they were asked for, are listed twice.
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
