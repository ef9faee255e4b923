//go:build !linux

package osmem

func newShared(name string, size int) (*Shared, error) { return nil, unsupported("shared memory") }

func (s *Shared) finish() error { return unsupported("shared memory") }

func (s *Shared) close() error { return unsupported("shared memory") }

func mapShared(fd, size int) ([]byte, error) { return nil, unsupported("shared memory") }

func populateView([]byte) {}

func sharedID(int) (FileID, error) { return FileID{}, unsupported("shared memory") }
