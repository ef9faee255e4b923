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
		w.uncount(name)
		delete(w.bytes, name)
	}
	for name, s := range w.away {
		switch {
		case !kept[name]:
			if s.inFile != nil {
				w.figures.Mapped -= int64(s.size)
			}
			delete(w.away, name)
		default:
			starts = append(starts, s.reads()...)
		}
	}
	for name, s := range w.sources {
		if !kept[name] {
			delete(w.sources, name)
		} else {
			starts = append(starts, s.reads()...) // spared, it is made from there again
		}
	}
	slices.Sort(starts)
	var errs []error
	w.buffers = slices.DeleteFunc(w.buffers, func(b *memory.Buffer) bool {
		if holdsAny(b.Bytes(), starts) {
			if b.Flags()&memory.Mapped != 0 {
				// What passes read once is not kept: the pages of what is read by runs come back.
				errs = append(errs, ignoreUnsupported(b.Discard(0, b.Len())))
			}
			return false
		}
		errs = append(errs, b.Release())
		return true
	})
	return errors.Join(errs...)
}

// reads returns where the bytes begin that the weight is made from.
func (s *source) reads() (starts []uintptr) {
	for _, data := range [][]byte{s.inFile, s.from} {
		if len(data) > 0 {
			starts = append(starts, addressOf(data))
		}
	}
	return starts
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
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
