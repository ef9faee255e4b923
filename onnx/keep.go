package onnx

import (
	"cmp"
	"errors"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
)

// Keep drops every weight that the program does not have, and gives back the
// buffers and unmaps the files in which none of the others lies. It is for
// after the passes that replace weights by others.
func (w *Weights) Keep(p *ir.Program) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	kept := map[string]bool{}
	for _, v := range p.Weights {
		kept[v.Name] = true
	}
	var starts []uintptr // where the kept bytes begin, in order
	for name, data := range w.bytes {
		if kept[name] {
			if len(data) > 0 {
				starts = append(starts, addressOf(data))
			}
			continue
		}
		if figure := w.counted[name]; figure != nil {
			*figure -= int64(len(data))
		}
		delete(w.bytes, name)
		delete(w.counted, name)
	}
	slices.Sort(starts)
	var errs []error
	w.buffers = slices.DeleteFunc(w.buffers, func(b *memory.Buffer) bool {
		if holdsAny(b.Bytes(), starts) {
			return false
		}
		errs = append(errs, b.Release())
		return true
	})
	return errors.Join(errs...)
}

func addressOf(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }

// holdsAny reports whether one of the sorted addresses lies in data.
func holdsAny(data []byte, starts []uintptr) bool {
	if len(data) == 0 {
		return false
	}
	from := addressOf(data)
	i, _ := slices.BinarySearchFunc(starts, from, cmp.Compare[uintptr])
	return i < len(starts) && starts[i] < from+uintptr(len(data))
}
