package memory

import "errors"

// The errors of this package. Test for them with errors.Is; package tensor
// exports the same values.
var (
	// ErrLimit: the bytes would exceed the limit of the process, or the system
	// has no more.
	ErrLimit = errors.New("memory limit reached")
	// ErrReleased: the buffer or handle was released.
	ErrReleased = errors.New("already released")
	// ErrDonated: the handle was donated to an operation.
	ErrDonated = errors.New("already donated")
	// ErrShared: the bytes may not be written, because they have another holder
	// or use, or belong to another allocator.
	ErrShared = errors.New("bytes are shared")
	// ErrWriting: the handle is locked by a writer.
	ErrWriting = errors.New("being written")
	// ErrDevice: the bytes are in the memory of another device than the call
	// needs.
	ErrDevice = errors.New("bytes are on another device")
)

// errUnsupported marks information that is not available on this platform or
// for this kind of buffer.
var errUnsupported = errors.ErrUnsupported
