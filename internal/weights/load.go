package weights

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
)

// lazyBytes is from how many bytes on a weight that must be copied or derived
// is loaded only when it is first read.
const lazyBytes = 64 << 10

// inPlaceBytes is from how many bytes on a weight is read in a mapped file.
// Reading one brings the pages around it into memory, which are those of large
// weights that kernels read packed: more than the copy of a small one takes.
const inPlaceBytes = 16 << 10

// origin is how a weight is loaded.
type origin struct {
	size   int
	inFile []byte                // where it lies in its file, at any address
	fill   func(dst, src []byte) // makes it, where it is in no file
	src    []byte                // what fill reads in a file; nil for nothing
}

// load makes the bytes of a weight, unless it is loaded.
func (s *Store) load(name string, e *entry) error {
	if e.loaded {
		return nil
	}
	o := e.origin
	if o.inFile != nil {
		err := s.allocFor(name, e, copied, o.size)
		copy(e.data, o.inFile)
		return err
	}
	err := s.allocFor(name, e, derived, o.size)
	if err == nil {
		o.fill(e.data, o.src)
	}
	return err
}

// raw returns the bytes of a weight at any address: those in the file, where
// it is not loaded.
func (s *Store) raw(name string, e *entry) ([]byte, error) {
	if !e.loaded && e.origin.inFile != nil {
		return e.origin.inFile, nil
	}
	err := s.load(name, e)
	return e.data, err
}

// canUnload reports whether unload frees the bytes of a weight: those of
// a mapped file, where the system can take its pages back, and those that can
// be made again. restorable says whether the call would have a restore.
func (s *Store) canUnload(v *ir.Value, restorable bool) bool {
	e := s.entries[v.Name]
	if e == nil {
		return false
	}
	if !e.loaded {
		file, _ := s.bufferOf(e.origin.inFile)
		return e.origin.inFile == nil || file != nil && file.IsTrimmable()
	}
	b, whole := s.bufferOf(e.data)
	switch {
	case b == nil:
		return false
	case isFile(b):
		return b.IsTrimmable()
	case !whole || s.pinned[b]:
		return false
	}
	again := restorable || e.origin != nil && (e.origin.src != nil || s.isInFile(e.origin.inFile))
	return again && !s.sharesWith(v.Name, b)
}

// unload frees the bytes of a weight if possible: the pages of its file, or its
// buffer. It is for a weight that kernels read from a panel. Reading the weight
// loads it again, from its source or, if that is not known, by restore, which
// is nil if the weight cannot be restored.
func (s *Store) unload(v *ir.Value, restore func(dst []byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.canUnload(v, restore != nil) {
		return nil
	}
	e := s.entries[v.Name]
	data := e.data
	if !e.loaded {
		data = e.origin.inFile // only its pages
	}
	b, _ := s.bufferOf(data)
	switch {
	case b == nil:
		return nil
	case isFile(b):
		if err := discard(b); err != nil {
			return fmt.Errorf("weight %q: %w", v.Name, err)
		}
		return nil
	}
	if e.origin == nil {
		e.origin = &origin{size: len(data), fill: func(dst, _ []byte) { restore(dst) }}
	}
	e.data, e.loaded = nil, false
	s.buffers = without(s.buffers, b)
	if file, _ := s.bufferOf(e.origin.src); file != nil && isFile(file) {
		return errors.Join(discard(file), b.Release()) // its pages were read only for this
	}
	return b.Release()
}

// discard returns all pages of a mapped file to the system, where it takes
// them: reading a weight also loads pages around it, and the system does not
// say how many. Pages that runs read are loaded again.
func discard(file *memory.Buffer) error {
	err := file.Discard(0, file.Len())
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// pin keeps bytes where they are: runs read them there.
func (s *Store) pin(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b, _ := s.bufferOf(data); b != nil {
		s.pinned[b] = true
	}
}

// bufferOf returns the buffer in which bytes lie, nil for none, and whether
// they are all of it.
func (s *Store) bufferOf(data []byte) (b *memory.Buffer, whole bool) {
	if len(data) == 0 {
		return nil, false
	}
	i := slices.IndexFunc(s.buffers, func(b *memory.Buffer) bool { return liesIn(data, b.Bytes()) })
	if i < 0 {
		return nil, false
	}
	return s.buffers[i], s.buffers[i].Len() == len(data)
}

// sharesWith reports whether another weight than the named one has bytes in a
// buffer.
func (s *Store) sharesWith(name string, b *memory.Buffer) bool {
	for other, e := range s.entries {
		if other != name && e.loaded && liesIn(e.data, b.Bytes()) {
			return true
		}
	}
	return false
}

// isInFile reports whether bytes lie in a mapped file. Those of a file that was
// read, or that the caller has, stay where they are.
func (s *Store) isInFile(data []byte) bool {
	b, _ := s.bufferOf(data)
	return b != nil && isFile(b)
}

// isInPrivate reports whether bytes lie in a buffer of this process alone.
func (s *Store) isInPrivate(data []byte) bool {
	b, _ := s.bufferOf(data)
	return b != nil && isPrivate(b)
}

func isFile(b *memory.Buffer) bool { return b.Flags()&memory.Mapped != 0 }

func isPrivate(b *memory.Buffer) bool { return !isFile(b) && b.Purpose() != memory.Shared }

// liesIn reports whether data begins within a buffer's bytes.
func liesIn(data, buffer []byte) bool {
	at, from := addressOf(data), addressOf(buffer)
	return from <= at && at-from < uintptr(len(buffer))
}

func without(buffers []*memory.Buffer, b *memory.Buffer) []*memory.Buffer {
	return slices.DeleteFunc(buffers, func(x *memory.Buffer) bool { return x == b })
}
