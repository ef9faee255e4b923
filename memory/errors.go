package memory

import "errors"

// The kinds of error of this package. Test for them with errors.Is; package tensor exports the same values.
var (
	// ErrLimit: the bytes would go over the limit of the process, or the system has no more.
	ErrLimit = errors.New("memory limit reached")
	// ErrReleased: the buffer or handle was given up by Release.
	ErrReleased = errors.New("already released")
	// ErrDonated: the handle was given up to an operation.
	ErrDonated = errors.New("already donated")
	// ErrShared: the bytes may not be written, because they have another holder or use, or because they are not ours.
	ErrShared = errors.New("bytes are shared")
	// ErrWriting: the handle is locked by a writer.
	ErrWriting = errors.New("being written")
)

// errUnsupported marks what this platform or this kind of buffer cannot tell.
var errUnsupported = errors.ErrUnsupported
