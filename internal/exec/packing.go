package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// packing says which operands of an executable are read in panels: what is
// packed, for which kernel, and when. Package weights has the bytes.
type packing struct {
	operands map[operand]*weights.Panel
	panels   map[*ir.Value][]*weights.Panel // of each weight, in the order of the calls
	raw      map[*ir.Value]bool             // weights that some call reads as they are
	uses     []weights.Use                  // of the weights that calls read, in the program's order
}

type operand struct{ call, arg int }

// findPanels binds every call once and settles which operands are read in
// panels. A weight that some call reads as it is is not packed for another:
// it would be there twice. It returns the scratch of each call, in bytes per
// worker; calls without a kernel are reported together.
func (e *Executable) findPanels() (scratch []int64, err error) {
	e.packing = packing{panels: map[*ir.Value][]*weights.Panel{}, raw: map[*ir.Value]bool{}}
	scratch = make([]int64, len(e.steps))
	var operands map[operand]*weights.Panel
	for settled := false; !settled; {
		settled = true
		operands = map[operand]*weights.Panel{}
		var faults []error
		for _, in := range e.code {
			switch in.kind {
			case branch:
				settled = !e.readRaw(e.steps[in.call].refs[0]) && settled
			case enter:
				for i := range e.steps[in.call].call.Args {
					settled = !e.readRaw(e.steps[in.call].refs[i]) && settled
				}
				for _, c := range e.steps[in.call].loop.carry {
					settled = !e.readRaw(c.next) && settled
				}
			case yieldResults:
				for _, y := range e.steps[in.call].yields[in.target] {
					settled = !e.readRaw(y.ref) && settled
				}
			case run:
				if e.steps[in.call].dynamic {
					for i := range e.steps[in.call].call.Args {
						settled = !e.readRaw(e.steps[in.call].refs[i]) && settled
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
						operands[operand{in.call, i}] = e.packing.add(e.steps[in.call].refs[i], f)
					} else {
						settled = !e.readRaw(e.steps[in.call].refs[i]) && settled
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
	return scratch, e.packing.measure(e.store)
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

// add notes that an operand is read in a form, and returns its panel.
func (p *packing) add(r ref, f compute.Form) *weights.Panel {
	list := p.panels[r.weight]
	at := slices.IndexFunc(list, func(x *weights.Panel) bool { return x.Form == f.Name && x.Offset == r.offset && x.Size == r.size })
	if at >= 0 {
		return list[at]
	}
	x := &weights.Panel{Weight: r.weight, Offset: r.offset, Size: r.size, Form: f.Name, Bytes: f.Bytes, Measure: f.Measure, Pack: f.Pack, Unpack: f.Unpack}
	p.panels[r.weight] = append(list, x)
	return x
}

// collect lists how the program reads its weights. Panels that the last round
// did not settle on are dropped.
func (p *packing) collect(program *ir.Program) {
	for v := range p.raw {
		delete(p.panels, v)
	}
	for _, v := range program.Weights {
		if list := p.panels[v]; len(list) > 0 || p.raw[v] {
			p.uses = append(p.uses, weights.Use{Weight: v, Panels: list})
		}
	}
}

// measure sets the sizes of the panels.
func (p *packing) measure(store *weights.Store) error {
	for _, u := range p.uses {
		for _, x := range u.Panels {
			if err := store.Measure(x); err != nil {
				return err
			}
		}
	}
	return nil
}

// constants are the operands of call k that may be read in a form.
func (e *Executable) constants(k int) compute.Constants {
	return compute.Constants{Compressed: e.compress, Is: func(i int) bool {
		r := e.steps[k].refs[i]
		if e.store == nil || r.space != plan.SpaceWeight || e.packing.raw[r.weight] {
			return false
		}
		return e.store.Has(r.weight) // and not a constant of this program alone
	}}
}

// Pack makes the panels of the constant operands that tasks read packed, unless
// an executable of the same model has made them, and gives the weights' own
// bytes back. Runners need it; whoever wants the work done before the first
// run calls it before, with a context that ends the wait for another process
// that packs the same. Nobody may compile a program with the same weights
// meanwhile.
func (e *Executable) Pack(ctx context.Context) error {
	if e.store == nil || e.packed.Load() {
		return nil
	}
	forms := fmt.Sprintf("forms %d, %s", compute.FormsVersion, cpu.Level())
	if err := e.store.Pack(ctx, e.packing.uses, e.weights, forms); err != nil {
		return err
	}
	e.packed.Store(true)
	return nil
}

// document lists the packed weights in the plan.
func (p *packing) document(d *plan.Plan, store *weights.Store) {
	for _, u := range p.uses {
		if len(u.Panels) == 0 {
			continue
		}
		size, _ := u.Weight.Type.Bytes()
		entry := plan.Packed{Weight: u.Weight.Name, ID: u.Weight.ID}
		for _, x := range u.Panels {
			entry.Bytes += int64(x.Bytes)
		}
		if store.Unloads(u) {
			entry.Unloaded = int64(size)
		}
		d.WeightBytes += entry.Bytes - entry.Unloaded
		d.Packed = append(d.Packed, entry)
	}
}
