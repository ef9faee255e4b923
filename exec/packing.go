package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/tensor"
)

// Constants is a table of weights that can give the bytes of one back.
type Constants interface {
	ir.Weights

	// Sparable reports whether Spare gives bytes back, where restore is or is
	// not nil.
	Sparable(v *ir.Value, restorable bool) bool

	// Spare gives back the bytes of a weight that nobody is about to read, if
	// they are sparable. Bytes still returns them to whoever does: restore
	// makes them where the table cannot.
	Spare(v *ir.Value, restore func(dst []byte)) error

	// Hold keeps bytes that a runner reads as long as the table is in use.
	Hold(data []byte)

	// Private returns the bytes that must be in memory of this process alone
	// for a weight to be read as it is; nil for none.
	Private(v *ir.Value) ([]byte, error)

	// InPrivate lists weights of which Private returns bytes that are in
	// memory now, in a fixed order.
	InPrivate() []*ir.Value

	// Move makes what lies in the bytes that Private returned for a weight
	// lie in to, which holds the same, and gives their memory back.
	Move(v *ir.Value, to []byte) error
}

// Panels holds constant operands in the forms that tasks read, for all
// executables of a model: what one has packed the others find. It may be used
// from many goroutines.
type Panels struct {
	constants  Constants
	common     Common // nil: they are in memory of this process alone
	compressed bool

	mu       sync.Mutex
	packed   map[panel][]byte
	measured map[panel]int    // sizes that depend on the weight
	buffers  []*memory.Buffer // that they lie in
}

// panel names a part of a weight in a form.
type panel struct {
	weight, form string
	offset, size int64
}

// NewPanels makes an empty set of panels of the weights in a table.
func NewPanels(c Constants) *Panels {
	return &Panels{constants: c, packed: map[panel][]byte{}, measured: map[panel]int{}}
}

// Compress makes tasks read large constants compressed, without loss, where
// they can. It comes before the first program is compiled.
func (p *Panels) Compress() { p.compressed = true }

// NewCommonPanels makes an empty set of panels that lie in common memory, with
// all other bytes that would have to be made of the table's weights. They go
// only with the panels: the table must not be read after Release.
func NewCommonPanels(c Constants, common Common) *Panels {
	p := NewPanels(c)
	p.common = common
	return p
}

// Release gives the panels back. No runner may use them any more.
func (p *Panels) Release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range p.buffers {
		errs = append(errs, b.Release())
	}
	p.buffers = nil
	clear(p.packed)
	return errors.Join(errs...)
}

// Bytes returns how many bytes of memory the panels hold, and whether others
// may have the same in common.
func (p *Panels) Bytes() (bytes int64, common bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.buffers {
		bytes += int64(b.Len())
	}
	return bytes, p.common != nil
}

// bytes returns a panel, nil before it is packed.
func (p *Panels) bytes(key panel) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.packed[key]
}

func (p *Panels) put(key panel, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.packed[key] = data
}

// keep takes over a buffer in which panels lie.
func (p *Panels) keep(b *memory.Buffer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.buffers = append(p.buffers, b)
}

// pack makes a panel, unless it is there, from the bytes of the weight.
func (p *Panels) pack(key panel, f *compute.Form, v *ir.Value) error {
	if p.bytes(key) != nil {
		return nil
	}
	data, err := p.source(key, v)
	if err != nil {
		return err
	}
	b, err := memory.Alloc(f.Bytes, memory.Weights)
	if err != nil {
		return fmt.Errorf("packing weight %q: %w", v.Name, err)
	}
	b.SetLabel(v.Name + ", " + f.Name)
	if err := p.packInto(b.Bytes(), data, f, v); err != nil {
		return errors.Join(err, b.Release())
	}
	p.keep(b)
	p.put(key, b.Bytes())
	return nil
}

// source returns the part of a weight that a panel is made of, at any address.
func (p *Panels) source(key panel, v *ir.Value) ([]byte, error) {
	data, ok := p.constants.Raw(v)
	if !ok || int64(len(data)) < key.offset+key.size {
		return nil, fmt.Errorf("packing weight %q: no memory for its bytes: %w", v.Name, tensor.ErrLimit)
	}
	return data[key.offset : key.offset+key.size : key.offset+key.size], nil
}

// packInto packs bytes at any address.
func (p *Panels) packInto(dst, src []byte, f *compute.Form, v *ir.Value) error {
	return p.aligned(src, v, func(src []byte) { f.Pack(dst, src) })
}

// aligned gives bytes at any address to a kernel. Kernels read whole elements,
// so where these lie across there is a copy for as long as it takes.
func (p *Panels) aligned(src []byte, v *ir.Value, use func(src []byte)) error {
	if uintptr(unsafe.Pointer(unsafe.SliceData(src)))%uintptr(max(1, v.Type.DType.Size())) == 0 {
		use(src)
		return nil
	}
	b, err := memory.Alloc(len(src), memory.Weights)
	if err != nil {
		return fmt.Errorf("packing weight %q: %w", v.Name, err)
	}
	copy(b.Bytes(), src)
	err = p.constants.Spare(v, nil) // not there three times
	use(b.Bytes())
	return errors.Join(err, b.Release())
}

// measure gives a form its size where that depends on the weight's bytes.
func (p *Panels) measure(key panel, f *compute.Form, v *ir.Value) error {
	if f.Measure == nil {
		return nil
	}
	p.mu.Lock()
	size, known := p.measured[key]
	p.mu.Unlock()
	if !known {
		data, err := p.source(key, v)
		if err == nil {
			err = p.aligned(data, v, func(src []byte) { size = f.Measure(src) })
		}
		if err == nil {
			err = p.constants.Spare(v, nil) // read again when it is packed
		}
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.measured[key] = size
		p.mu.Unlock()
	}
	f.Bytes = size
	return nil
}

// restorer returns the panel from which all bytes of a weight can be made
// again, and what does it; nil where no panel can.
func (p *packing) restorer(v *ir.Value) (panel, func(dst, src []byte)) {
	size, _ := v.Type.Bytes()
	for _, key := range p.of[v] {
		if unpack := p.forms[key].Unpack; unpack != nil && key.size == int64(size) {
			return key, unpack
		}
	}
	return panel{}, nil
}

// packing is which operands of an executable are read in panels.
type packing struct {
	operands map[operand]panel
	forms    map[panel]compute.Form
	weights  []*ir.Value           // those that are read in panels, in the program's order
	of       map[*ir.Value][]panel // their panels, in the order of the calls
	raw      map[*ir.Value]bool    // weights that some call reads as they are
}

type operand struct{ call, arg int }

// findPanels binds every call once and settles which operands are read in
// panels. A weight that some call reads as it is is not packed for another:
// it would be there twice. It returns the scratch of each call, in bytes per
// worker; calls without a kernel are reported together.
func (e *Executable) findPanels() (scratch []int64, err error) {
	e.packing = packing{forms: map[panel]compute.Form{}, of: map[*ir.Value][]panel{}, raw: map[*ir.Value]bool{}}
	scratch = make([]int64, len(e.calls))
	var operands map[operand]panel
	for settled := false; !settled; {
		settled = true
		operands = map[operand]panel{}
		var faults []error
		for _, in := range e.code {
			switch in.kind {
			case branch:
				settled = !e.readRaw(e.refs[in.call][0]) && settled
			case enter:
				for i := range e.calls[in.call].Args {
					settled = !e.readRaw(e.refs[in.call][i]) && settled
				}
				for _, c := range e.loops[in.call].carry {
					settled = !e.readRaw(c.next) && settled
				}
			case give:
				for _, g := range e.gives[in.call][in.target] {
					settled = !e.readRaw(g.ref) && settled
				}
			case run:
				if e.late[in.call] {
					for i := range e.calls[in.call].Args {
						settled = !e.readRaw(e.refs[in.call][i]) && settled
					}
					continue
				}
				t, err := e.bind(in.call)
				if err != nil {
					faults = append(faults, err)
					continue
				}
				scratch[in.call] = int64(t.Scratch)
				for i := range t.Call.In {
					if f, ok := t.Forms[i]; ok {
						operands[operand{in.call, i}] = e.packing.add(e.refs[in.call][i], f)
					} else {
						settled = !e.readRaw(e.refs[in.call][i]) && settled
					}
				}
			}
		}
		if len(faults) > 0 {
			return nil, fmt.Errorf("compile: %w", errors.Join(faults...))
		}
	}
	e.packing.operands = operands
	e.packing.collect(e.Program)
	return scratch, e.packing.measure(e.panels)
}

// readRaw notes that a weight is read as it is, and reports whether that is
// news.
func (e *Executable) readRaw(r ref) bool {
	if r.space != plan.SpaceWeight || e.packing.raw[r.weight] {
		return false
	}
	e.packing.raw[r.weight] = true
	return true
}

func (p *packing) add(r ref, f compute.Form) panel {
	key := panel{weight: r.weight.Name, form: f.Name, offset: r.offset, size: r.size}
	p.forms[key] = f
	if !slices.Contains(p.of[r.weight], key) {
		p.of[r.weight] = append(p.of[r.weight], key)
	}
	return key
}

// collect drops what the last round did not settle on.
func (p *packing) collect(program *ir.Program) {
	for v := range p.raw {
		for _, key := range p.of[v] {
			delete(p.forms, key)
		}
		delete(p.of, v)
	}
	for _, v := range program.Weights {
		if len(p.of[v]) > 0 {
			p.weights = append(p.weights, v)
		}
	}
}

// measure gives the forms their sizes.
func (p *packing) measure(panels *Panels) error {
	for _, v := range p.weights {
		for _, key := range p.of[v] {
			f := p.forms[key]
			if err := panels.measure(key, &f, v); err != nil {
				return err
			}
			p.forms[key] = f
		}
	}
	return nil
}

// constants are the operands of call k that may be read in a form.
func (e *Executable) constants(k int) compute.Constants {
	return compute.Constants{Compressed: e.panels != nil && e.panels.compressed, Is: func(i int) bool {
		r := e.refs[k][i]
		if e.panels == nil || r.space != plan.SpaceWeight || e.packing.raw[r.weight] {
			return false
		}
		return e.panels.constants.Has(r.weight) // and not a constant of this program alone
	}}
}

// Pack packs the constant operands that tasks read packed, unless an
// executable of the same model has done it, and gives the weights' own bytes
// back. Runners need it; whoever wants the work done before the first run
// calls it before, with a context that ends the wait for another process that
// packs the same. Nobody may compile a program with the same weights
// meanwhile.
func (e *Executable) Pack(ctx context.Context) error {
	if e.panels == nil || e.packed.Load() {
		return nil
	}
	if e.panels.common != nil {
		if err := e.packInCommon(ctx); err != nil {
			return err
		}
	}
	for v := range e.packing.raw {
		if data, ok := e.weights.Bytes(v); ok {
			e.panels.constants.Hold(data)
		}
	}
	for _, v := range e.packing.weights {
		for _, key := range e.packing.of[v] {
			f := e.packing.forms[key]
			if err := e.panels.pack(key, &f, v); err != nil {
				return err
			}
		}
		var restore func([]byte)
		if key, unpack := e.packing.restorer(v); unpack != nil {
			packed := e.panels.bytes(key)
			restore = func(dst []byte) { unpack(dst, packed) }
		}
		if err := e.panels.constants.Spare(v, restore); err != nil {
			return err
		}
	}
	e.packed.Store(true)
	return nil
}

// document lists the panels in the plan.
func (p *packing) document(d *plan.Plan, panels *Panels) {
	for _, v := range p.weights {
		size, _ := v.Type.Bytes()
		entry := plan.Packed{Weight: v.Name, ID: v.ID}
		for _, key := range p.of[v] {
			entry.Bytes += int64(p.forms[key].Bytes)
		}
		if _, unpack := p.restorer(v); panels.constants.Sparable(v, unpack != nil) {
			entry.Spared = int64(size)
		}
		d.WeightBytes += entry.Bytes - entry.Spared
		d.Packed = append(d.Packed, entry)
	}
}
