package onnx

import (
	"errors"
	"fmt"
	"sync"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Weights holds the bytes of a program's weights: where they lie in the mapped
// file, in copies where the file has them unaligned or as lists of numbers,
// and in buffers for those that passes add. Large copies are made when somebody
// asks for the bytes. It implements [ir.Weights] and is safe for concurrent
// use; Close ends the bytes, so nobody may read them then.
type Weights struct {
	mu      sync.RWMutex
	bytes   map[string][]byte
	away    map[string]*source      // weights whose bytes are made when somebody asks
	sources map[string]*source      // where the bytes of weights came from that were away
	held    map[*memory.Buffer]bool // buffers that somebody reads for good
	counted map[string]*int64       // the figure that counts a weight; none for one that shares bytes
	buffers []*memory.Buffer
	figures WeightFigures
	closed  bool
}

// WeightFigures says where the bytes of weights are.
type WeightFigures struct {
	Mapped int64 // in the model's files alone
	Copied int64 // copied out of the files
	Made   int64 // made by lifting older forms and by passes
	Shared int64 // moved into memory that others have too
}

func newWeights() *Weights {
	return &Weights{bytes: map[string][]byte{}, away: map[string]*source{}, sources: map[string]*source{}, held: map[*memory.Buffer]bool{}, counted: map[string]*int64{}}
}

// Has reports whether there are bytes of the weight.
func (w *Weights) Has(v *ir.Value) bool {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.bytes[v.Name] != nil || w.away[v.Name] != nil
}

// Bytes returns the bytes of the weight, false when there are none or, for
// those that must be made first, no memory. They must not be written.
func (w *Weights) Bytes(v *ir.Value) ([]byte, bool) {
	w.mu.RLock()
	b, ok := w.bytes[v.Name]
	away := w.away[v.Name] != nil
	w.mu.RUnlock()
	if !away {
		return b, ok
	}
	return w.fetch(v.Name)
}

// Raw returns the bytes of the weight at whatever address.
func (w *Weights) Raw(v *ir.Value) ([]byte, bool) {
	w.mu.RLock()
	if s := w.away[v.Name]; s != nil && s.inFile != nil {
		defer w.mu.RUnlock()
		return s.inFile, true
	}
	w.mu.RUnlock()
	return w.Bytes(v)
}

// Figures returns where the bytes are now.
func (w *Weights) Figures() WeightFigures {
	w.mu.RLock()
	defer w.mu.RUnlock()
	return w.figures
}

// InMemory returns how many bytes of memory the table holds beside mapped
// files: of this process alone, and of copies that others have too.
func (w *Weights) InMemory() (private, shared int64) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, b := range w.buffers {
		switch {
		case isPrivate(b):
			private += int64(b.Len())
		case b.Purpose() == memory.Shared:
			shared += int64(b.Len())
		}
	}
	return private, shared
}

// Add stores a copy of data as the bytes of a weight of that name and type.
func (w *Weights) Add(name string, typ op.Type, data []byte) error {
	if err := checkLen(name, typ, data); err != nil {
		return err
	}
	b, err := w.New(name, typ)
	if err == nil {
		copy(b, data)
	}
	return err
}

// New makes room for a weight of that name and type, zeroed, which the caller
// fills before anybody else reads it.
func (w *Weights) New(name string, typ op.Type) ([]byte, error) {
	n, err := typ.Bytes()
	if err != nil {
		return nil, fmt.Errorf("weight %q: %w", name, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b, err := w.alloc(name, n)
	if err == nil {
		w.count(name, &w.figures.Made)
	}
	return b, err
}

func (w *Weights) count(name string, figure *int64) {
	w.counted[name] = figure
	*figure += int64(len(w.bytes[name]))
}

// uncount takes a weight out of the figures.
func (w *Weights) uncount(name string) {
	if figure := w.counted[name]; figure != nil {
		*figure -= int64(len(w.bytes[name]))
	}
	delete(w.counted, name)
}

// Share gives a name to bytes that the table holds already: those of another
// weight, or a part of them.
func (w *Weights) Share(name string, typ op.Type, data []byte) error {
	if err := checkLen(name, typ, data); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put(name, data)
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

// put enters bytes under a name, unless it is taken.
func (w *Weights) put(name string, data []byte) error {
	if w.closed {
		return fmt.Errorf("weight %q: the weights are closed: %w", name, tensor.ErrReleased)
	}
	if w.bytes[name] != nil || w.away[name] != nil {
		return fmt.Errorf("weight %q: got a second one of that name", name)
	}
	w.bytes[name] = data
	return nil
}

func (w *Weights) alloc(name string, n int) ([]byte, error) {
	buf, err := memory.Alloc(n, memory.Weights)
	if err != nil {
		return nil, fmt.Errorf("weight %q: %w", name, err)
	}
	buf.SetLabel(name)
	if err := w.put(name, buf.Bytes()); err != nil {
		return nil, errors.Join(err, buf.Release())
	}
	w.buffers = append(w.buffers, buf)
	return buf.Bytes(), nil
}

// load stores the bytes of a checked tensor under a name: in place if they lie
// aligned in the file.
func (w *Weights) load(name string, t *tensorProto, d tensorData, files *files) error {
	if first, ok := files.loaded[t]; ok { // a function's body, imported once more
		data, ok := w.Bytes(&ir.Value{Name: first})
		if !ok {
			return fmt.Errorf("weight %q: no memory for its bytes: %w", first, tensor.ErrLimit)
		}
		return w.Share(name, d.typ, data)
	}
	if t.external != nil {
		data, err := files.read(t.external, d.bytes)
		if err == nil {
			err = checkBools(d.typ, data)
		}
		if err != nil {
			return fmt.Errorf("tensor %q: external_data: %w", t.name, err)
		}
		d.inFile = data
	}
	files.loaded[t] = name
	return w.place(name, t, d)
}

// place enters bytes that are in a file, or in lists of numbers.
func (w *Weights) place(name string, t *tensorProto, d tensorData) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case d.inFile != nil && aligned(d.inFile, d.typ.DType):
		err := w.put(name, d.inFile)
		if err == nil {
			w.count(name, &w.figures.Mapped)
		}
		return err
	case len(d.inFile) >= copiedLate:
		return w.postpone(name, &source{size: d.bytes, inFile: d.inFile})
	}
	dst, err := w.alloc(name, d.bytes)
	if err != nil {
		return err
	}
	w.count(name, &w.figures.Copied)
	if d.inFile == nil {
		return t.convert(d, dst)
	}
	copy(dst, d.inFile)
	return nil
}

// hold makes the weights another keeper of a buffer that their bytes lie in.
func (w *Weights) hold(buf *memory.Buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buffers = append(w.buffers, buf)
}

// Close gives back the bytes of all weights and unmaps the model's files.
// Further calls do nothing.
func (w *Weights) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, b := range w.buffers {
		errs = append(errs, b.Release())
	}
	w.bytes, w.away, w.buffers, w.figures, w.closed = nil, nil, nil, WeightFigures{}, true
	return errors.Join(errs...)
}
