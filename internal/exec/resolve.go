package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// resolve converts places to the form that a runner uses.
func (e *Executable) resolve(l *lowering) {
	e.collectDynamic(l)
	e.collectLayouts(l)
	e.places = make([]ref, len(l.numbered))
	for n, v := range l.numbered {
		e.places[n] = l.ref(v)
	}
	if s := e.structure; s.steps != nil && l.hasSteps(s.steps) {
		e.steps = s.steps
	} else {
		e.steps = l.makeSteps()
		s.steps = e.steps
	}
	e.findTaken(l)
}

// makeSteps makes the steps of an executable.
func (l *lowering) makeSteps() []step {
	steps, at := make([]step, len(l.calls)), l.at
	for k := range l.calls {
		c := &l.calls[k]
		n := len(c.Args) + len(c.Results)
		s := &steps[k]
		*s = step{call: c.Call, at: at[:n:n], first: len(l.at) - len(at), writes: l.writesInput(k), dynamic: c.isDynamic(), rare: &none}
		at = at[n:]
		if len(c.Regions) == 0 && len(c.freed) == 0 {
			continue
		}
		s.rare = &rare{freed: c.freed, left: c.left}
		if c.Op.Loop {
			s.loop = l.loop(c.Call)
		} else {
			for _, region := range c.Regions {
				s.yields = append(s.yields, l.yieldsOf(c.Call, region))
			}
		}
	}
	return steps
}

// hasSteps reports whether the steps are those of the executable, too: most
// programs have the same steps at all sizes.
func (l *lowering) hasSteps(steps []step) bool {
	for k := range steps {
		c, s := &l.calls[k], &steps[k]
		if len(c.Regions) > 0 || len(c.freed) > 0 || s.rare != &none || s.dynamic != c.isDynamic() || s.writes != l.writesInput(k) {
			return false
		}
	}
	return true
}

// collectLayouts keeps the layouts of values that have strides.
func (e *Executable) collectLayouts(l *lowering) {
	for _, v := range l.defs {
		if layout := l.of(v).layout; layout != nil {
			if e.layouts == nil {
				e.layouts = make([]*shape.Layout, len(l.values))
			}
			e.layouts[v.ID] = layout
		}
	}
}

// ref returns where a value lies, which may be nil.
func (l *lowering) ref(v *ir.Value) ref {
	if v == nil {
		return ref{dynamic: -1}
	}
	x := l.of(v)
	if x.storage == nil {
		panic(fmt.Sprintf("BUG: exec: value %q has no place", v.Name))
	}
	r := ref{space: x.storage.kind, arg: int32(x.storage.arg), offset: x.storage.start + x.offset, size: x.extent(), weight: x.storage.weight, dynamic: x.dynamic}
	if x.dynamic >= 0 && r.space == outputSpace {
		r.size = 0 // the buffer is made when the size is known
	}
	return r
}

// yieldsOf lists the dynamic results of a region of a branch.
func (l *lowering) yieldsOf(c *ir.Call, region *ir.Block) (list []yield) {
	for i, v := range c.Results {
		if v == nil || l.of(v).dynamic < 0 {
			continue
		}
		y := region.Results[i]
		list = append(list, yield{l.ref(y), l.types.Of(y), l.of(v).dynamic, l.of(v).storage.space == plan.SpaceArena})
	}
	return list
}

// writesInput reports whether call k writes into a parameter. A call that joins
// parts, all of which lie where they belong, writes nothing.
func (l *lowering) writesInput(k int) bool {
	if c := &l.calls[k]; c.Op.Moves() && c.static && len(c.Regions) == 0 && l.moved(k) == 0 {
		return false
	}
	for r := range l.calls[k].Results {
		if l.inputWritten(k, r) >= 0 {
			return true
		}
	}
	return false
}

// inputWritten returns the parameter into which call k writes result r, -1 for
// none.
func (l *lowering) inputWritten(k, r int) int {
	v := l.calls[k].Results[r]
	if v == nil || l.of(v).storage.space != plan.SpaceInput {
		return -1
	}
	if _, kind, _ := l.bytesFor(k, r); kind == op.View {
		return -1
	}
	return l.of(v).storage.arg
}

// findTaken fills in which parameters are overwritten or returned.
func (e *Executable) findTaken(l *lowering) {
	e.taken = make([]bool, len(l.program.Body.Params))
	for i, v := range l.program.Body.Params {
		e.taken[i] = v.Donated && l.of(v).size == 0 // no byte is left that could serve
	}
	for k := range l.calls {
		for r := range l.calls[k].Results {
			if i := l.inputWritten(k, r); i >= 0 {
				e.taken[i] = true
			}
		}
	}
	for i, v := range l.program.Body.Results {
		e.results[i].input = -1
		if to := l.of(v).storage; to.space == plan.SpaceInput {
			e.results[i].input = to.arg
			e.taken[to.arg] = true
		}
	}
}

// weight returns the weight that a ref lies in.
func (e *Executable) weight(r *ref) *ir.Value { return e.structure.weights[r.weight] }

// constant returns the bytes of operand i of call k, if it is a constant: its
// panel, or the weight as it is. packing.mu is locked.
func (e *Executable) constant(k, i int) ([]byte, error) {
	step, store := &e.steps[k], e.structure.options.Store
	r, n := e.ref(k, i), step.first+i
	if r.space != weightSpace {
		return nil, nil
	}
	if kept := e.packing.bytes[n]; kept != nil {
		return kept, nil
	}
	if x := e.packing.operands[n]; x != nil {
		e.packing.bytes[n] = store.Panel(x)
		return e.packing.bytes[n], nil
	}
	v := e.weight(r)
	data, ok := e.weights.Bytes(v)
	if !ok && e.weights.Has(v) {
		return nil, fmt.Errorf("weight %q: no memory for its bytes: %w", v.Name, tensor.ErrLimit)
	}
	if !ok || int64(len(data)) < r.offset+r.size {
		return nil, fmt.Errorf("weight %q: got %d bytes in the table, want at least %d", v.Name, len(data), r.offset+r.size)
	}
	data = data[r.offset : r.offset+r.size : r.offset+r.size]
	if store != nil && store.Has(v) && e.isWhole(r) {
		e.packing.bytes[n] = data
	}
	return data, nil
}

// isWhole reports whether a ref is all bytes of a weight: the part that a view
// is of another one may depend on sizes.
func (e *Executable) isWhole(r *ref) bool {
	n, err := e.types.Of(e.weight(r)).Bytes()
	return err == nil && r.offset == 0 && r.size == int64(n)
}
