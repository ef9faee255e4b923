package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// resolve turns places into what a runner can follow.
func (e *Executable) resolve(l *lowering) {
	e.collectDynamic(l)
	e.steps = make([]step, len(l.calls))
	for k, c := range l.calls {
		s := step{call: c.Call, sig: c.sig, refs: make([]ref, 0, len(c.Args)+len(c.Results)), writes: len(l.inputsWritten(k)) > 0,
			dynamic: c.isDynamic(), freed: c.freed, left: c.left}
		for _, a := range c.Args {
			s.refs = append(s.refs, l.ref(a.Value))
		}
		for _, v := range c.Results {
			s.refs = append(s.refs, l.ref(v))
		}
		if c.Op.Loop {
			s.loop = l.loop(c.Call)
		} else {
			for _, region := range c.Regions {
				s.yields = append(s.yields, l.yieldsOf(c.Call, region))
			}
		}
		e.steps[k] = s
	}
	e.findTaken(l)
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
	r := ref{space: x.storage.space, arg: x.storage.arg, offset: x.storage.start + x.offset, size: x.size, weight: x.storage.weight, dynamic: x.dynamic}
	if x.dynamic >= 0 && r.space == plan.SpaceOutput {
		r.size = 0 // the buffer is made when the size is known
	}
	return r
}

// yieldsOf lists what a region of a branch returns as dynamic results.
func (l *lowering) yieldsOf(c *ir.Call, region *ir.Block) (list []yield) {
	for i, v := range c.Results {
		if v == nil || l.of(v).dynamic < 0 {
			continue
		}
		y := region.Results[i]
		list = append(list, yield{l.ref(y), y.Type, l.of(v).dynamic, l.of(v).storage.space == plan.SpaceArena})
	}
	return list
}

// inputsWritten lists the parameters that call k writes into.
func (l *lowering) inputsWritten(k int) (list []int) {
	for r, v := range l.calls[k].Results {
		if v == nil || l.of(v).storage.space != plan.SpaceInput {
			continue
		}
		if _, kind, _ := l.bytesFor(k, r); kind != op.View {
			list = append(list, l.of(v).storage.arg)
		}
	}
	return list
}

// findTaken fills in which parameters are overwritten or returned.
func (e *Executable) findTaken(l *lowering) {
	e.taken = make([]bool, len(e.Program.Body.Params))
	for i, v := range e.Program.Body.Params {
		e.taken[i] = v.Donated && l.of(v).size == 0 // no byte is left that could serve
	}
	for k := range l.calls {
		for _, i := range l.inputsWritten(k) {
			e.taken[i] = true
		}
	}
	for i, v := range e.Program.Body.Results {
		e.results[i].input = -1
		if to := l.of(v).storage; to.space == plan.SpaceInput {
			e.results[i].input = to.arg
			e.taken[to.arg] = true
		}
	}
}

// bind makes the task of call k; operands and results have no bytes yet.
func (e *Executable) bind(k int) (*compute.Task, error) {
	c := e.steps[k].call
	call := &op.Call{Sig: e.steps[k].sig, Node: c.Node, In: make([]op.Arg, len(c.Args)), Out: make([]op.Arg, len(c.Results))}
	for i, a := range c.Args {
		if a.Value == nil {
			continue
		}
		call.In[i] = op.Arg{Type: a.Value.Type, Layout: shape.RowMajor(a.Value.Type.Shape)}
	}
	for i, v := range c.Results {
		if v != nil {
			call.Out[i] = op.Arg{Type: v.Type, Layout: shape.RowMajor(v.Type.Shape)}
		}
	}
	return compute.BindConstants(call, e.constants(k))
}

// constant returns the bytes of operand i of call k, if it is a constant: its
// panel, or the weight as it is.
func (e *Executable) constant(k, i int) ([]byte, error) {
	if x, ok := e.packing.operands[operand{k, i}]; ok {
		return e.store.Panel(x), nil
	}
	r := e.steps[k].refs[i]
	if r.space != plan.SpaceWeight {
		return nil, nil
	}
	data, ok := e.weights.Bytes(r.weight)
	if !ok && e.weights.Has(r.weight) {
		return nil, fmt.Errorf("weight %q: no memory for its bytes: %w", r.weight.Name, tensor.ErrLimit)
	}
	if !ok || int64(len(data)) < r.offset+r.size {
		return nil, fmt.Errorf("weight %q: got %d bytes in the table, want at least %d", r.weight.Name, len(data), r.offset+r.size)
	}
	return data[r.offset : r.offset+r.size : r.offset+r.size], nil
}
