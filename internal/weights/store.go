package weights

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Options say where a store finds files and where it puts bytes.
type Options struct {
	Dir   string // the folder of external data; "" for none
	FS    fs.FS  // where external data are read from, instead of Dir; nil for none
	Read  bool   // files are read into memory instead of being mapped
	Share Share  // of what would have to be made in memory; nil for memory of the process alone

	// Progress is called while files are read and weights are packed: done of
	// total bytes of a stage, which ends when they are equal. It may be nil.
	Progress func(stage string, done, total int64)
}

// Store holds the bytes of weights, by name. It implements [ir.Weights].
type Store struct {
	opts Options

	mu      sync.RWMutex
	entries map[string]*entry
	opened  map[string][]byte       // files of external data, by path
	buffers []*memory.Buffer        // that bytes of weights lie in: files, copies, derived weights
	pinned  map[*memory.Buffer]bool // those that runs read in place
	panels  map[panelKey][]byte
	sizes   map[panelKey]int // of panels, where they depend on the weight
	packed  []*memory.Buffer // that panels and shared weights lie in
	packing tally            // of the call of Pack that is under way
	closed  bool
}

// entry is one weight.
type entry struct {
	data   []byte  // its bytes, aligned for its elements; nil where it is not loaded
	loaded bool    // a weight of no bytes is too
	stage  stage   // of the loaded bytes
	origin *origin // what loads it again; nil for nothing
}

type stage uint8

const (
	viewed stage = iota // bytes that another weight counts
	mapped
	copied
	derived
	moved // to memory that other processes have too
)

// Figures are the bytes of weights by stage, without panels. A weight whose
// bytes are a part of another's counts once.
type Figures struct {
	Mapped  int64 // in the model's files alone
	Copied  int64 // copied out of the files
	Derived int64 // made from other weights, or by lifting older forms
	Shared  int64 // in memory that other processes have too
}

// New returns an empty store.
func New(o Options) *Store {
	return &Store{opts: o, entries: map[string]*entry{}, opened: map[string][]byte{}, pinned: map[*memory.Buffer]bool{},
		panels: map[panelKey][]byte{}, sizes: map[panelKey]int{}}
}

// Has reports whether the store has the weight, loaded or not.
func (s *Store) Has(v *ir.Value) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.entries[v.Name] != nil
}

// Bytes returns the bytes of the weight, aligned for its elements, and loads
// it if necessary. It returns false where there is no such weight, or no
// memory to load it.
func (s *Store) Bytes(v *ir.Value) ([]byte, bool) {
	s.mu.RLock()
	e := s.entries[v.Name]
	if e == nil {
		s.mu.RUnlock()
		return nil, false
	}
	data, loaded := e.data, e.loaded
	s.mu.RUnlock()
	if loaded {
		return data, true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.load(v.Name, e)
	return e.data, err == nil
}

// Figures returns where the bytes of weights are now.
func (s *Store) Figures() (f Figures) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, e := range s.entries {
		n := int64(len(e.data))
		switch {
		case !e.loaded && e.origin.inFile != nil:
			f.Mapped += int64(e.origin.size)
		case e.stage == mapped:
			f.Mapped += n
		case e.stage == copied:
			f.Copied += n
		case e.stage == derived:
			f.Derived += n
		case e.stage == moved:
			f.Shared += n
		}
	}
	return f
}

// InMemory returns how many bytes of memory the store takes beside mapped
// files, panels included: of this process alone, and of memory that others
// have too.
func (s *Store) InMemory() (private, shared int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, list := range [][]*memory.Buffer{s.buffers, s.packed} {
		for _, b := range list {
			switch {
			case isPrivate(b):
				private += int64(b.Len())
			case b.Purpose() == memory.Shared:
				shared += int64(b.Len())
			}
		}
	}
	return private, shared
}

// Add enters a weight with a copy of data.
func (s *Store) Add(name string, typ op.Type, data []byte) error {
	if err := checkLen(name, typ, data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.alloc(name, derived, len(data))
	if err == nil {
		copy(e.data, data)
	}
	return err
}

// AddConverted enters a weight whose bytes, zeroed before, fill writes. It is
// for weights that their file has in another encoding.
func (s *Store) AddConverted(name string, typ op.Type, fill func(dst []byte) error) error {
	n, err := typ.Bytes()
	if err != nil {
		return fmt.Errorf("weight %q: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e, err := s.alloc(name, copied, n)
	if err != nil {
		return err
	}
	return fill(e.data)
}

// AddInFile enters a weight whose bytes lie in a file of the store, or belong
// to the caller, at any address. Unaligned ones are copied, large ones when
// they are first read, and so are small ones in a file.
func (s *Store) AddInFile(name string, typ op.Type, data []byte) error {
	if err := checkLen(name, typ, data); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case isAligned(data, typ.DType) && (len(data) >= inPlaceBytes || !s.isInFile(data)):
		return s.put(name, &entry{data: data, loaded: true, stage: mapped})
	case len(data) >= lazyBytes:
		return s.put(name, &entry{origin: &origin{size: len(data), inFile: data}})
	}
	e, err := s.alloc(name, copied, len(data))
	if err != nil {
		return err
	}
	copy(e.data, data)
	if s.isInFile(data) {
		e.origin = &origin{size: len(data), inFile: data}
	}
	return nil
}

// Derive enters the weight v, whose bytes fill makes from those of the weight
// of from offset on, now or each time that it is loaded. dst is zeroed and
// aligned, src may lie at any address; fill must not use the store. If of is
// nil, fill runs now, and src is nil. If fill is nil, v shares the bytes of the
// weight of.
func (s *Store) Derive(v, of *ir.Value, offset int, fill func(dst, src []byte)) error {
	n, err := v.Type.Bytes()
	if err != nil {
		return fmt.Errorf("weight %q: %w", v.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refuse(v.Name); err != nil {
		return err
	}
	var src []byte
	if of != nil {
		if src, err = s.source(v, of, offset, n, fill == nil); err != nil {
			return err
		}
	}
	if fill == nil {
		return s.put(v.Name, &entry{data: src, loaded: true, stage: viewed})
	}
	if n >= lazyBytes && of != nil && !s.isInPrivate(src) {
		return s.put(v.Name, &entry{origin: &origin{size: n, fill: fill, src: src}})
	}
	e, err := s.alloc(v.Name, derived, n)
	if err == nil {
		fill(e.data, src)
	}
	return err
}

// source returns the bytes of the weight of from offset on, for v: n of them,
// aligned, to be used in place, else all that there are, at any address.
func (s *Store) source(v, of *ir.Value, offset, n int, inPlace bool) (data []byte, err error) {
	e := s.entries[of.Name]
	switch {
	case e == nil:
		return nil, fmt.Errorf("weight %q: got no weight %q to derive it from", v.Name, of.Name)
	case inPlace:
		err = s.load(of.Name, e)
		data = e.data
	default:
		data, err = s.raw(of.Name, e)
	}
	if err != nil {
		return nil, err
	}
	if offset < 0 || offset > len(data) || inPlace && len(data)-offset < n {
		return nil, fmt.Errorf("weight %q: got %d bytes of %q, want %d from offset %d on: %w", v.Name, len(data), of.Name, n, offset, tensor.ErrShape)
	}
	if inPlace {
		return data[offset : offset+n : offset+n], nil
	}
	return data[offset:], nil
}

func checkLen(name string, typ op.Type, data []byte) error {
	n, err := typ.Bytes()
	if err == nil && n != len(data) {
		err = fmt.Errorf("got %d bytes, want %d for %s: %w", len(data), n, typ, tensor.ErrShape)
	}
	if err != nil {
		return fmt.Errorf("weight %q: %w", name, err)
	}
	return nil
}

// refuse reports why no weight of that name can be entered.
func (s *Store) refuse(name string) error {
	if s.closed {
		return fmt.Errorf("weight %q: the weights are closed: %w", name, tensor.ErrReleased)
	}
	if s.entries[name] != nil {
		return fmt.Errorf("weight %q: got a second one of that name", name)
	}
	return nil
}

// put enters a weight.
func (s *Store) put(name string, e *entry) error {
	if err := s.refuse(name); err != nil {
		return err
	}
	s.entries[name] = e
	return nil
}

// alloc enters a weight with a buffer of its own, zeroed.
func (s *Store) alloc(name string, in stage, n int) (*entry, error) {
	e := &entry{}
	if err := s.put(name, e); err != nil {
		return nil, err
	}
	if err := s.allocFor(name, e, in, n); err != nil {
		delete(s.entries, name)
		return nil, err
	}
	return e, nil
}

// allocFor allocates a zeroed buffer for a weight that is not loaded.
func (s *Store) allocFor(name string, e *entry, in stage, n int) error {
	b, err := memory.Alloc(n, memory.Weights)
	if err != nil {
		return fmt.Errorf("weight %q: %w", name, err)
	}
	b.SetLabel(name)
	s.buffers = append(s.buffers, b)
	e.data, e.loaded, e.stage = b.Bytes(), true, in
	return nil
}

// Close frees all bytes and unmaps the files. Further calls do nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, b := range s.packed {
		errs = append(errs, b.Release())
	}
	for _, b := range s.buffers {
		errs = append(errs, b.Release())
	}
	s.entries, s.opened, s.panels, s.buffers, s.packed, s.closed = nil, nil, nil, nil, nil, true
	return errors.Join(errs...)
}

// isAligned reports whether data may be read as elements of the type where it
// lies. Kernels move a complex number as words of 8 bytes.
func isAligned(data []byte, dt dtype.DType) bool {
	return addressOf(data)%uintptr(min(max(dt.Size(), 1), 8)) == 0
}

func addressOf(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }
