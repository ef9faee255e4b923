package exec

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/plan"
)

// Constants is a table of weights that can give the bytes of one back.
type Constants interface {
	ir.Weights

	// Sparable reports whether Spare gives bytes back.
	Sparable(v *ir.Value) bool

	// Spare gives back the bytes of a weight that nobody is about to read.
	// Bytes still returns them to whoever does.
	Spare(v *ir.Value) error
}

// Panels holds constant operands in the forms that tasks read, for all
// executables of a model: what one has packed the others find. It may be used
// from many goroutines.
type Panels struct {
	constants Constants

	mu     sync.Mutex
	packed map[panel]*memory.Buffer
}

// panel names a part of a weight in a form.
type panel struct {
	weight, form string
	offset, size int64
}

// NewPanels makes an empty set of panels of the weights in a table.
func NewPanels(c Constants) *Panels { return &Panels{constants: c, packed: map[panel]*memory.Buffer{}} }

// Release gives the panels back. No runner may use them any more.
func (p *Panels) Release() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, b := range p.packed {
		errs = append(errs, b.Release())
	}
	clear(p.packed)
	return errors.Join(errs...)
}

// has reports whether v is a weight of the table that panels are made of, and
// not a constant of one program.
func (p *Panels) has(v *ir.Value, data []byte) bool {
	own, ok := p.constants.Bytes(v)
	return ok && len(own) > 0 && len(own) == len(data) && &own[0] == &data[0]
}

// bytes returns a panel, nil before it is packed.
func (p *Panels) bytes(key panel) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.packed[key]; b != nil {
		return b.Bytes()
	}
	return nil
}

// pack makes a panel, unless it is there, from the bytes of the weight.
func (p *Panels) pack(key panel, f *compute.Form, v *ir.Value) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.packed[key] != nil {
		return nil
	}
	data, ok := p.constants.Bytes(v)
	if !ok || int64(len(data)) < key.offset+key.size {
		return fmt.Errorf("BUG: exec: weight %q has no bytes to pack", v.Name)
	}
	b, err := memory.Alloc(f.Bytes, memory.Weights)
	if err != nil {
		return fmt.Errorf("packing weight %q: %w", v.Name, err)
	}
	b.SetLabel(v.Name + ", " + f.Name)
	f.Pack(b.Bytes(), data[key.offset:key.offset+key.size:key.offset+key.size])
	p.packed[key] = b
	return nil
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
	return scratch, nil
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

// mayPack reports whether operand i of call k may be read in a form.
func (e *Executable) mayPack(k, i int) bool {
	r := e.refs[k][i]
	if e.panels == nil || r.space != plan.SpaceWeight || e.packing.raw[r.weight] {
		return false
	}
	data, ok := e.weights.Bytes(r.weight)
	return ok && e.panels.has(r.weight, data)
}

// Pack packs the constant operands that tasks read packed, unless an
// executable of the same model has done it, and gives the weights' own bytes
// back. Runners need it; whoever wants the work done before the first run
// calls it before.
func (e *Executable) Pack() error {
	for _, v := range e.packing.weights {
		for _, key := range e.packing.of[v] {
			f := e.packing.forms[key]
			if err := e.panels.pack(key, &f, v); err != nil {
				return err
			}
		}
		if err := e.panels.constants.Spare(v); err != nil {
			return err
		}
	}
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
		if panels.constants.Sparable(v) {
			entry.Spared = int64(size)
		}
		d.WeightBytes += entry.Bytes - entry.Spared
		d.Packed = append(d.Packed, entry)
	}
}
