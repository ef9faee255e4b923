package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/tensor"
)

// Private returns the bytes that must be in memory of this process alone for
// the weight to be read: those of the buffer that it lies in, maybe with
// others, or, of one that lies unaligned in a file, what would be copied. It
// is nil where the weight is read in its file or in memory that others have
// too, or somebody reads it for good where it lies.
func (w *Weights) Private(v *ir.Value) ([]byte, error) {
	w.mu.RLock()
	away := w.away[v.Name]
	w.mu.RUnlock()
	if away != nil && away.inFile != nil {
		return away.inFile, nil
	}
	data, ok := w.Bytes(v)
	if !ok {
		return nil, fmt.Errorf("weight %q: no memory for its bytes: %w", v.Name, tensor.ErrLimit)
	}
	w.mu.RLock()
	defer w.mu.RUnlock()
	b, _ := w.bufferOf(data)
	if b == nil || !isPrivate(b) || w.held[b] {
		return nil, nil
	}
	return b.Bytes(), nil
}

// InPrivate lists weights that lie in buffers of which Private returns the
// bytes, without making any, by name.
func (w *Weights) InPrivate() (list []*ir.Value) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(w.bytes)) {
		if b, _ := w.bufferOf(w.bytes[name]); b != nil && isPrivate(b) && !w.held[b] {
			list = append(list, &ir.Value{Kind: ir.Weight, Name: name})
		}
	}
	return list
}

func isPrivate(b *memory.Buffer) bool {
	return b.Flags()&memory.Mapped == 0 && b.Purpose() != memory.Shared
}

// Move makes everything that lies in what Private returned for the weight lie
// in to, which holds the same bytes and outlives the table, and gives the
// memory back. Nobody may be reading there.
func (w *Weights) Move(v *ir.Value, to []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.away[v.Name]; s != nil {
		w.figures.Mapped -= int64(s.size)
		delete(w.away, v.Name)
		w.bytes[v.Name] = to
		w.count(v.Name, &w.figures.Shared)
		return nil
	}
	b, _ := w.bufferOf(w.bytes[v.Name])
	if b == nil || b.Len() != len(to) {
		return fmt.Errorf("BUG: onnx: weight %q does not lie in a buffer of %d bytes", v.Name, len(to))
	}
	from := b.Bytes()
	moved := func(data []byte) ([]byte, bool) {
		if len(data) == 0 || addressOf(data) < addressOf(from) || addressOf(data)-addressOf(from) >= uintptr(len(from)) {
			return data, false
		}
		at := addressOf(data) - addressOf(from)
		return to[at : at+uintptr(len(data)) : at+uintptr(len(data))], true
	}
	for name, data := range w.bytes {
		there, ok := moved(data)
		if !ok {
			continue
		}
		counted := w.counted[name] != nil
		w.uncount(name)
		w.bytes[name] = there
		if counted {
			w.count(name, &w.figures.Shared)
		}
	}
	for _, s := range w.away {
		s.inFile, _ = moved(s.inFile)
	}
	for _, s := range w.sources {
		s.inFile, _ = moved(s.inFile)
	}
	w.buffers = without(w.buffers, b)
	return b.Release()
}
