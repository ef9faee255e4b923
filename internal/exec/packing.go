package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/cpu"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// packing says which operands of an executable are read in panels: which
// weights are packed, for which kernel, and when. Package weights has the
// bytes. The executables of a structure share one: the form of a weight follows
// from its shape and from the attributes of its calls, and from the sizes of an
// activation only where those are fixed.
type packing struct {
	operands []*weights.Panel   // by number of the ref; nil for operands that are read as they are
	panels   [][]*weights.Panel // of each weight, by ID, in the order of the calls
	raw      []bool             // by ID: some call reads the weight as it is
	asked    []bool             // by number of the ref: its call was bound so that it may read it in a form
	uses     []weights.Use      // of the weights that calls read, in the program's order
	report   []plan.Packed      // of those that are read in panels
	packed   atomic.Bool        // everything that uses lists

	mu    sync.Mutex
	bytes [][]byte // by number of the ref, once they were read: those of weights of the store, which stay where they are from then on
}

// findPanels binds every call and settles which operands are read in panels. A
// weight that some call reads as it is is not packed for another: it would be
// there twice. Calls without a kernel are reported together.
func (e *Executable) findPanels(ts *tasks) error {
	ids := e.structure.program.NumIDs()
	e.packing = &packing{operands: make([]*weights.Panel, len(e.structure.lowering.at)), bytes: make([][]byte, len(e.structure.lowering.at)), panels: make([][]*weights.Panel, ids), raw: make([]bool, ids)}
	e.readRaw()
	asked := make([]bool, len(e.structure.lowering.at))
	e.packing.asked = asked
	bind := func(k int) error {
		step := &e.steps[k]
		err := e.bind(ts, k, func(i int) bool {
			asked[step.first+i] = e.mayPack(k, i)
			return asked[step.first+i]
		})
		if err != nil {
			return err
		}
		for i := range step.call.Args {
			if _, ok := ts.list[k].Forms[i]; !ok {
				e.reads(*e.ref(k, i))
			}
		}
		return nil
	}
	var faults []error
	for _, k := range e.bound() {
		if err := bind(k); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("compile: %w", errors.Join(faults...))
	}
	for settled := false; !settled; {
		settled = true
		for _, k := range e.bound() {
			step := &e.steps[k]
			for i := range step.call.Args {
				if _, ok := ts.list[k].Forms[i]; ok && e.packing.raw[e.ref(k, i).weight] {
					settled = false
					if err := bind(k); err != nil {
						return fmt.Errorf("compile: %w", err)
					}
				}
			}
		}
	}
	for _, k := range e.bound() {
		step := &e.steps[k]
		for i := range step.call.Args {
			if f, ok := ts.list[k].Forms[i]; ok {
				e.packing.operands[step.first+i] = e.packing.add(e.weight(e.ref(k, i)), *e.ref(k, i), f)
			}
		}
	}
	return e.collectUses()
}

// bound lists the calls that have tasks.
func (e *Executable) bound() []int {
	list := make([]int, 0, len(e.code))
	for _, in := range e.code {
		if in.kind == run && !e.steps[in.call].dynamic {
			list = append(list, in.call)
		}
	}
	return list
}

// readRaw notes the weights that are read as they are, with any kernels.
func (e *Executable) readRaw() {
	for _, in := range e.code {
		step := &e.steps[in.call]
		switch in.kind {
		case branch:
			e.reads(*e.ref(in.call, 0))
		case enter:
			for i := range step.call.Args {
				e.reads(*e.ref(in.call, i))
			}
			for _, c := range step.loop.carry {
				e.reads(c.next)
			}
		case yieldResults:
			for _, y := range step.yields[in.target] {
				e.reads(y.ref)
			}
		case run:
			if step.dynamic {
				for i := range step.call.Args {
					e.reads(*e.ref(in.call, i))
				}
			}
		}
	}
}

// reads notes that a weight is read as it is.
func (e *Executable) reads(r ref) {
	if r.space == weightSpace {
		e.packing.raw[r.weight] = true
	}
}

// add notes that an operand is read in a form, and returns its panel.
func (p *packing) add(v *ir.Value, r ref, f compute.Form) *weights.Panel {
	list := p.panels[v.ID]
	at := slices.IndexFunc(list, func(x *weights.Panel) bool { return x.Form == f.Name && x.Offset == r.offset && x.Size == r.size })
	if at >= 0 {
		return list[at]
	}
	x := &weights.Panel{Weight: v, Offset: r.offset, Size: r.size, Form: f.Name, Bytes: f.Bytes, Measure: f.Measure, Pack: f.Pack, Unpack: f.Unpack}
	p.panels[v.ID] = append(list, x)
	return x
}

// agrees reports whether a task reads the operands of call k in the forms that
// were settled on.
func (p *packing) agrees(e *Executable, k int, t *compute.Task) bool {
	step := &e.steps[k]
	wanted := 0
	for i := range step.call.Args {
		x := p.operands[step.first+i]
		if x == nil {
			continue
		}
		r := e.ref(k, i)
		if f, ok := t.Forms[i]; !ok || f.Name != x.Form || int(r.weight) != x.Weight.ID || r.offset != x.Offset || r.size != x.Size {
			return false
		}
		wanted++
	}
	return wanted == len(t.Forms)
}

// collectUses lists how the program reads its weights, and sets the sizes of
// the panels.
func (e *Executable) collectUses() error {
	p, store := e.packing, e.structure.options.Store
	for _, v := range e.structure.program.Weights {
		if p.raw[v.ID] {
			p.panels[v.ID] = nil
		}
		list := p.panels[v.ID]
		if len(list) > 0 || p.raw[v.ID] {
			p.uses = append(p.uses, weights.Use{Weight: v, Panels: list})
		}
		if len(list) == 0 {
			continue
		}
		entry := plan.Packed{Weight: v.Name, ID: v.ID}
		var forms []string
		for _, x := range list {
			if err := store.Measure(x); err != nil {
				return err
			}
			entry.Bytes += int64(x.Bytes)
			forms = append(forms, x.Form)
		}
		entry.Form = strings.Join(forms, "; ")
		if u := p.uses[len(p.uses)-1]; store.Unloads(u) {
			size, _ := e.types.Of(v).Bytes()
			entry.Unloaded = int64(size)
		}
		p.report = append(p.report, entry)
	}
	return nil
}

// mayPack reports whether operand i of call k may be read in a form.
func (e *Executable) mayPack(k, i int) bool {
	r, store := e.ref(k, i), e.structure.options.Store
	if store == nil || r.space != weightSpace || e.packing.raw[r.weight] {
		return false
	}
	return store.Has(e.weight(r)) // and not a constant of this program alone
}

// Pack makes the panels of the constant operands that tasks read packed, unless
// an executable of the same model has made them, and unloads the weights.
// Runners call it; to do the work before the first run, call it earlier. ctx
// ends the wait for another process that packs the same weights. No program
// with the same weights may be compiled at the same time.
func (e *Executable) Pack(ctx context.Context) error {
	store := e.structure.options.Store
	if store == nil || e.packing.packed.Load() {
		return nil
	}
	forms := fmt.Sprintf("forms %d, %s", compute.FormsVersion, cpu.Level())
	if err := store.Pack(ctx, e.packing.uses, e.weights, forms); err != nil {
		return err
	}
	e.packing.packed.Store(true)
	return nil
}
