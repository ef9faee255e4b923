package onnx

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
)

// Sparable reports whether Spare gives the bytes of a weight back: those that
// lie in a mapped file.
func (w *Weights) Sparable(v *ir.Value) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	data := w.bytes[v.Name]
	return len(data) > 0 && w.mapped(data) != nil
}

// Spare gives the pages of a weight back, for one that nobody is about to
// read, such as a weight of which kernels have a copy in a form of their own.
// Its bytes may still be read: then they come from the file again.
func (w *Weights) Spare(v *ir.Value) error {
	w.mu.RLock()
	defer w.mu.RUnlock()
	data := w.bytes[v.Name]
	if len(data) == 0 {
		return nil
	}
	b := w.mapped(data)
	if b == nil {
		return nil
	}
	from := int(addressOf(data) - addressOf(b.Bytes()))
	if err := b.Discard(from, from+len(data)); err != nil {
		return fmt.Errorf("weight %q: %w", v.Name, err)
	}
	return nil
}

// mapped returns the mapped file in which the bytes lie, nil for none.
func (w *Weights) mapped(data []byte) *memory.Buffer {
	at := addressOf(data)
	i := slices.IndexFunc(w.buffers, func(b *memory.Buffer) bool {
		from := addressOf(b.Bytes())
		return from <= at && at-from < uintptr(b.Len())
	})
	if i < 0 || w.buffers[i].Flags()&memory.Mapped == 0 {
		return nil
	}
	return w.buffers[i]
}
