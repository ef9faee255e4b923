package weights

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
)

// Prune drops every weight that the program does not have, frees the buffers
// and unmaps the files in which none of the others lies. Call it after the
// passes that replace weights by others.
func (s *Store) Prune(p *ir.Program) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := map[string]bool{}
	for _, v := range p.Weights {
		wanted[v.Name] = true
	}
	var starts []uintptr // of the bytes that are kept
	for name, e := range s.entries {
		if !wanted[name] {
			delete(s.entries, name)
			continue
		}
		starts = append(starts, e.starts()...)
	}
	slices.Sort(starts)
	clear(s.opened) // files go
	var errs []error
	s.buffers = slices.DeleteFunc(s.buffers, func(b *memory.Buffer) bool {
		if !containsAny(b.Bytes(), starts) {
			errs = append(errs, b.Release())
			return true
		}
		if isFile(b) {
			errs = append(errs, discard(b)) // what passes read once; what runs read comes back
		}
		return false
	})
	return errors.Join(errs...)
}

// starts returns where the bytes of a weight begin, and those that it is
// loaded from.
func (e *entry) starts() (list []uintptr) {
	for _, data := range e.parts() {
		if len(*data) > 0 {
			list = append(list, addressOf(*data))
		}
	}
	return list
}

// parts returns everything of a weight that may lie in a buffer.
func (e *entry) parts() []*[]byte {
	if e.origin == nil {
		return []*[]byte{&e.data}
	}
	return []*[]byte{&e.data, &e.origin.inFile, &e.origin.src}
}

// containsAny reports whether one of the sorted addresses lies in data.
func containsAny(data []byte, starts []uintptr) bool {
	if len(data) == 0 {
		return false
	}
	from := addressOf(data)
	i, _ := slices.BinarySearchFunc(starts, from, cmp.Compare[uintptr])
	return i < len(starts) && starts[i] < from+uintptr(len(data))
}
