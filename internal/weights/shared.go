package weights

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"unsafe"

	"github.com/tenure-go/tenure/memory"
)

// Share returns memory that all processes which pass the same key have in
// common: its bytes follow from the key. fill makes them, from zeros, where no
// process has them yet. The caller releases the buffer.
type Share func(ctx context.Context, key [sha256.Size]byte, size int, fill func(dst []byte) error) (*memory.Buffer, error)

// sharedFormat is the version of what keys say and of how parts follow one
// another.
const sharedFormat = 1

// parts are the panels of a program, and the weights that it reads as they are,
// that it needs in memory of its own and does not find in shared memory yet.
// Their key is a hash of the bytes that they are made from and of their forms.
// The place of each part follows from the list, so the memory has nothing but
// the parts.
type parts struct {
	list []part
	size int
	hash hash.Hash
}

type part struct {
	offset, size int
	fill         func(dst []byte) error
	use          func(b []byte) error // called with the bytes of the part
}

func newParts(forms string) *parts {
	p := &parts{hash: sha256.New()}
	fmt.Fprintf(p.hash, "tenure constants %d, %s\n", sharedFormat, forms)
	return p
}

// add appends a part that is made in the named way from the bytes.
func (p *parts) add(form string, from []byte, of part) {
	digest := sha256.Sum256(from)
	var numbers [24]byte
	binary.LittleEndian.PutUint64(numbers[:], uint64(len(form)))
	binary.LittleEndian.PutUint64(numbers[8:], uint64(len(from)))
	binary.LittleEndian.PutUint64(numbers[16:], uint64(of.size))
	p.hash.Write(numbers[:])
	p.hash.Write([]byte(form))
	p.hash.Write(digest[:])
	of.offset = p.size
	p.list = append(p.list, of)
	p.size += (of.size + memory.Alignment - 1) / memory.Alignment * memory.Alignment
}

func (p *parts) fill(dst []byte) error {
	for _, of := range p.list {
		if err := of.fill(of.in(dst)); err != nil {
			return err
		}
	}
	return nil
}

// in returns the bytes of the part in the memory of all parts.
func (p *part) in(b []byte) []byte { return b[p.offset : p.offset+p.size : p.offset+p.size] }

// share finds in shared memory the parts that the program would need in memory
// of this process, or makes them there.
func (s *Store) share(ctx context.Context, uses []Use, forms string) error {
	p := newParts(forms)
	for _, u := range uses {
		for _, panel := range u.Panels {
			if err := s.addPanel(p, panel); err != nil {
				return err
			}
		}
	}
	if err := s.addUnpacked(p, uses); err != nil {
		return err
	}
	if len(p.list) == 0 {
		return nil
	}
	b, err := s.opts.Share(ctx, [sha256.Size]byte(p.hash.Sum(nil)), p.size, p.fill)
	if err != nil {
		return fmt.Errorf("packing weights: %w", err)
	}
	s.mu.Lock()
	s.packed = append(s.packed, b)
	s.mu.Unlock()
	for _, of := range p.list {
		if err := of.use(of.in(b.Bytes())); err != nil {
			return err
		}
	}
	return nil
}

// addPanel adds a panel, unless it is packed.
func (s *Store) addPanel(p *parts, panel *Panel) error {
	if s.Panel(panel) != nil {
		return nil
	}
	data, err := s.panelSource(panel)
	if err != nil {
		return err
	}
	p.add("panel: "+panel.Form, data, part{
		size: panel.Bytes,
		fill: func(dst []byte) error {
			data, err := s.panelSource(panel)
			if err == nil {
				err = s.packInto(dst, data, panel)
			}
			if err == nil {
				err = s.unload(panel.Weight, nil)
			}
			return err
		},
		use: func(b []byte) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.panels[panel.key()] = b
			return nil
		},
	})
	return s.unload(panel.Weight, nil) // most processes read it only this once
}

// addUnpacked adds the weights that the program reads as they are, and those
// that are read only when a program is compiled or packed, where they lie in
// memory of this process. Constants of the program that the store does not have
// do not belong there: they go with it.
func (s *Store) addUnpacked(p *parts, uses []Use) error {
	var names []string
	packed := map[string]bool{}
	for _, u := range uses {
		switch {
		case s.Unloads(u):
			packed[u.Weight.Name] = true
		case len(u.Panels) == 0 && s.Has(u.Weight):
			names = append(names, u.Weight.Name)
		}
	}
	for _, name := range s.loadedInPrivate() {
		if !packed[name] {
			names = append(names, name)
		}
	}
	seen := map[*byte]bool{}
	for _, name := range names {
		data, err := s.private(name)
		if err != nil {
			return err
		}
		if len(data) == 0 || seen[unsafe.SliceData(data)] {
			continue
		}
		seen[unsafe.SliceData(data)] = true
		p.add("as it is", data, part{
			size: len(data),
			fill: func(dst []byte) error {
				copy(dst, data)
				return nil
			},
			use: func(b []byte) error { return s.move(name, b) },
		})
	}
	return nil
}

// private returns the bytes that must be in memory of this process alone for
// the weight to be read: those of the buffer that it lies in, maybe with
// others, or, of one that lies unaligned in a file, what would be copied. It
// is nil where the weight is read in its file or in shared memory, or is
// pinned.
func (s *Store) private(name string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if !e.loaded && e.origin.inFile != nil {
		return e.origin.inFile, nil
	}
	if err := s.load(name, e); err != nil {
		return nil, err
	}
	b, _ := s.bufferOf(e.data)
	if b == nil || !isPrivate(b) || s.pinned[b] {
		return nil, nil
	}
	return b.Bytes(), nil
}

// loadedInPrivate lists weights that lie in buffers of which private returns
// the bytes, without loading any, by name.
func (s *Store) loadedInPrivate() (names []string) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, name := range slices.Sorted(maps.Keys(s.entries)) {
		e := s.entries[name]
		if b, _ := s.bufferOf(e.data); b != nil && isPrivate(b) && !s.pinned[b] {
			names = append(names, name)
		}
	}
	return names
}

// move lets everything that lies in the bytes that private returned for the
// weight lie in to instead, which has the same bytes and is released by Close,
// and frees the memory. No goroutine may read it at the same time.
func (s *Store) move(name string, to []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[name]
	if !e.loaded {
		*e = entry{data: to, loaded: true, stage: moved}
		return nil
	}
	b, _ := s.bufferOf(e.data)
	if b == nil || b.Len() != len(to) {
		return fmt.Errorf("BUG: weights: weight %q does not lie in a buffer of %d bytes", name, len(to))
	}
	from := b.Bytes()
	for _, e := range s.entries {
		for i, data := range e.parts() {
			if len(*data) == 0 || !liesIn(*data, from) {
				continue
			}
			at := addressOf(*data) - addressOf(from)
			*data = to[at : at+uintptr(len(*data)) : at+uintptr(len(*data))]
			if i == 0 && e.stage != viewed {
				e.stage = moved
			}
		}
	}
	s.buffers = without(s.buffers, b)
	return b.Release()
}
