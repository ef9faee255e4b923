package onnx

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
)

// copiedLate is from how many bytes on a weight that lies unaligned in the file
// is copied only when somebody asks for aligned bytes.
const copiedLate = 64 << 10

// source is how the bytes of a weight are made when somebody asks for them.
type source struct {
	size    int
	inFile  []byte           // where they lie in the file, at any address
	restore func(dst []byte) // makes them, for those that are in no file
	from    []byte           // what restore reads in a file; nil for nothing
}

// postpone enters a weight whose bytes are made when somebody asks for them.
func (w *Weights) postpone(name string, s *source) error {
	if err := w.put(name, nil); err != nil {
		return err
	}
	delete(w.bytes, name)
	w.away[name] = s
	if s.inFile != nil {
		w.figures.Mapped += int64(s.size)
	}
	return nil
}

// Postpone enters a weight whose bytes fill makes of those of another weight,
// from, when somebody asks for them, if from lies in a file or in the caller's
// bytes and the weight is large.
func (w *Weights) Postpone(name string, typ op.Type, from []byte, fill func(dst []byte)) (bool, error) {
	n, err := typ.Bytes()
	if err != nil {
		return false, fmt.Errorf("weight %q: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, _ := w.bufferOf(from); n < copiedLate || b != nil && isPrivate(b) {
		return false, nil
	}
	return true, w.postpone(name, &source{size: n, restore: fill, from: from})
}

// fetch makes the bytes of a weight that is away.
func (w *Weights) fetch(name string) ([]byte, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.away[name]
	if s == nil { // somebody else has fetched it
		b, ok := w.bytes[name]
		return b, ok
	}
	delete(w.away, name)
	data, err := w.alloc(name, s.size)
	if err != nil {
		w.away[name] = s
		return nil, false
	}
	if w.sources[name] = s; s.inFile == nil {
		s.restore(data)
		w.count(name, &w.figures.Made)
		return data, true
	}
	copy(data, s.inFile)
	w.figures.Mapped -= int64(s.size)
	w.count(name, &w.figures.Copied)
	return data, true
}

// Sparable reports whether Spare gives the bytes of a weight back: those of a
// mapped file, where the system takes its pages back, and those that can be
// made again.
func (w *Weights) Sparable(v *ir.Value, restorable bool) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	if s := w.away[v.Name]; s != nil {
		file, _ := w.bufferOf(s.inFile)
		return s.inFile == nil || file != nil && file.IsTrimmable()
	}
	b, whole := w.bufferOf(w.bytes[v.Name])
	if b == nil || b.Flags()&memory.Mapped != 0 {
		return b != nil && b.IsTrimmable()
	}
	s := w.sources[v.Name]
	return whole && !w.held[b] && (restorable || s != nil && (s.from != nil || w.isMapped(s.inFile))) && !w.sharesWith(v.Name, b)
}

// isMapped reports whether bytes lie in a mapped file. Those of a file that was
// read, or that the caller has, stay where they are.
func (w *Weights) isMapped(data []byte) bool {
	b, _ := w.bufferOf(data)
	return b != nil && b.Flags()&memory.Mapped != 0
}

// Spare gives the bytes of a weight back, if it is sparable, for one that
// nobody is about to read, such as a weight of which kernels have a copy in a
// form of their own. Who asks for them gets them nevertheless: from the file
// again, or from restore.
func (w *Weights) Spare(v *ir.Value, restore func(dst []byte)) error {
	if !w.Sparable(v, restore != nil) {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	data, away := w.bytes[v.Name], w.away[v.Name]
	if away != nil {
		data = away.inFile // only its pages
	}
	b, _ := w.bufferOf(data)
	switch {
	case b == nil:
		return nil
	case away != nil && b.Flags()&memory.Mapped == 0:
		return nil // in a file that was read whole, with others
	case b.Flags()&memory.Mapped != 0:
		// Reading a weight brings pages around it, of which the system does not say how many. What others read in runs comes back.
		if err := ignoreUnsupported(b.Discard(0, b.Len())); err != nil {
			return fmt.Errorf("weight %q: %w", v.Name, err)
		}
		return nil
	}
	s := w.sources[v.Name]
	if s == nil {
		s = &source{size: len(data), restore: restore}
	}
	w.uncount(v.Name)
	delete(w.bytes, v.Name)
	w.buffers = without(w.buffers, b)
	if w.away[v.Name] = s; s.inFile != nil {
		w.figures.Mapped += int64(s.size)
	}
	if file, _ := w.bufferOf(s.from); file != nil && file.Flags()&memory.Mapped != 0 {
		err := ignoreUnsupported(file.Discard(0, file.Len())) // its pages were read only for this
		return errors.Join(err, b.Release())
	}
	return b.Release()
}

// Hold keeps the bytes of a weight where they are: somebody reads them for as
// long as the table is in use.
func (w *Weights) Hold(data []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if b, _ := w.bufferOf(data); b != nil {
		w.held[b] = true
	}
}

// bufferOf returns the buffer in which bytes lie, nil for none, and whether
// they are all of it.
func (w *Weights) bufferOf(data []byte) (b *memory.Buffer, whole bool) {
	if len(data) == 0 {
		return nil, false
	}
	at := addressOf(data)
	i := slices.IndexFunc(w.buffers, func(b *memory.Buffer) bool {
		from := addressOf(b.Bytes())
		return from <= at && at-from < uintptr(b.Len())
	})
	if i < 0 {
		return nil, false
	}
	return w.buffers[i], w.buffers[i].Len() == len(data)
}

// sharesWith reports whether another weight than the named one has bytes in a
// buffer.
func (w *Weights) sharesWith(name string, b *memory.Buffer) bool {
	from := addressOf(b.Bytes())
	for other, data := range w.bytes {
		if at := addressOf(data); other != name && from <= at && at-from < uintptr(b.Len()) {
			return true
		}
	}
	return false
}

func without(buffers []*memory.Buffer, b *memory.Buffer) []*memory.Buffer {
	return slices.DeleteFunc(buffers, func(x *memory.Buffer) bool { return x == b })
}
