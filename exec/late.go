package exec

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/compute"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// one returns the byte of a condition, or the bytes of a count, that lies at
// the given place: one element, which a value whose size depends on data may
// turn out not to be.
func (r *Runner) one(what string, at ref, placed []byte) ([]byte, error) {
	if at.dynamic < 0 {
		return placed, nil
	}
	h := &r.dynamic[at.dynamic]
	if h.typ().Shape.NumElements() != 1 {
		return nil, fmt.Errorf("%s: got %s when it runs, want one element: %w", what, h.typ(), shape.ErrShape)
	}
	return h.bytes(), nil
}

// pass makes a dynamic value the one that lies somewhere: what has a place is
// copied, a buffer is held by both.
func (r *Runner) pass(to int, from ref, placed []byte, typ op.Type) error {
	if from.dynamic >= 0 {
		return r.dynamic[to].share(&r.dynamic[from.dynamic])
	}
	return r.dynamic[to].copy(typ, placed)
}

// give makes what a region returns the results of the call around it.
func (r *Runner) give(k, region int) error {
	for i, g := range r.exe.gives[k][region] {
		if to := &r.dynamic[g.to]; g.in && g.dynamic >= 0 {
			from := &r.dynamic[g.dynamic]
			to.place(from.typ(), from.bytes())
			continue
		} else if g.in {
			to.place(g.typ, r.gives[k][region][i])
			continue
		}
		if err := r.pass(g.to, g.ref, r.gives[k][region][i], g.typ); err != nil {
			return err
		}
	}
	return nil
}

// drop gives up values.
func (r *Runner) drop(list []int) {
	for _, n := range list {
		r.dynamic[n].drop()
	}
}

// lateCall makes the call of a step that is bound when it runs, with the
// types of what has a size.
func (e *Executable) lateCall(k int) *op.Call {
	c := e.calls[k]
	call := &op.Call{Sig: e.sigs[k], Node: c.Node, In: make([]op.Arg, len(c.Args)), Out: make([]op.Arg, len(c.Results))}
	for i, a := range c.Args {
		if a.Value == nil || e.refs[k][i].dynamic >= 0 {
			continue
		}
		call.In[i] = op.Arg{Type: a.Value.Type, Layout: shape.RowMajor(a.Value.Type.Shape)}
	}
	for i, v := range c.Results {
		if v != nil && e.refs[k][len(c.Args)+i].dynamic < 0 {
			call.Out[i] = op.Arg{Type: v.Type, Layout: shape.RowMajor(v.Type.Shape)}
		}
	}
	return call
}

// runLate binds call k to the types that its operands have now and runs it.
func (r *Runner) runLate(pool *compute.Pool, done <-chan struct{}, k int) error {
	call, types, err := r.lateTypes(k)
	if err != nil {
		return err
	}
	shared, err := r.lateResults(k, call, types)
	if err != nil || shared {
		return err
	}
	task, err := compute.Bind(call)
	if err != nil {
		return err
	}
	scratch := r.scratch
	if n := task.Scratch * pool.Threads(); n > len(scratch) {
		own, err := memory.Alloc(n, memory.Scratch)
		if err != nil {
			return err
		}
		defer own.Release()
		scratch = own.Bytes()
	}
	if err := pool.Run(done, task, scratch); err != nil {
		return err
	}
	if call.Def.Bound == nil {
		return nil
	}
	for i, at := range r.exe.refs[k][len(call.In):] {
		if at.dynamic < 0 {
			continue
		}
		if err := r.dynamic[at.dynamic].cut(call.Out[i].Type); err != nil {
			return err
		}
	}
	return nil
}

// lateTypes asks the shape rule again, now that every operand is known.
func (r *Runner) lateTypes(k int) (*op.Call, []op.Type, error) {
	kept, c := r.late[k], r.exe.calls[k]
	sig := *kept.Sig
	call := &op.Call{Sig: &sig, Node: kept.Node, In: make([]op.Arg, len(kept.In)), Out: make([]op.Arg, len(kept.Out))}
	sig.Args, sig.Results = make([]op.Type, len(kept.In)), make([]op.Type, len(kept.Out))
	copy(call.In, kept.In)
	copy(call.Out, kept.Out)
	for i := range call.In {
		if at := r.exe.refs[k][i]; at.dynamic >= 0 {
			h := &r.dynamic[at.dynamic]
			call.In[i] = op.Arg{Type: h.typ(), Layout: shape.RowMajor(h.typ().Shape), Data: h.bytes()}
		}
		sig.Args[i] = call.In[i].Type
	}
	sig.Known = func(arg int) ([]byte, bool) { return call.In[arg].Data, sig.Has(arg) }
	if err := op.InferTypes(&sig); err != nil {
		return nil, nil, err
	}
	for i, v := range c.Results {
		if v == nil {
			sig.Results[i] = op.Type{}
		}
	}
	types, ok, err := sig.Largest()
	if err == nil && !ok {
		err = fmt.Errorf("%s: got no size for a result although every operand is known: %w", sig.Def.Name, op.ErrUnsupported)
	}
	return call, types, err
}

// lateResults gives the results their bytes. It reports whether all of them
// are views, so that nothing is left to compute.
func (r *Runner) lateResults(k int, call *op.Call, types []op.Type) (viewed bool, err error) {
	wanted, views := 0, 0
	for i, at := range r.exe.refs[k][len(call.In):] {
		out := &call.Out[i]
		if types[i].IsZero() {
			continue
		}
		wanted++
		if at.dynamic < 0 {
			if out.Type != types[i] {
				return false, fmt.Errorf("%s: result %d: got %s when it runs, want %s: %w", call.Def.Name, i, types[i], out.Type, shape.ErrShape)
			}
			continue
		}
		kind, err := r.lateResult(k, call, i, types[i])
		if err != nil {
			return false, err
		}
		if kind == op.View {
			views++
		}
		*out = op.Arg{Type: types[i], Layout: shape.RowMajor(types[i].Shape), Data: r.dynamic[at.dynamic].bytes()}
	}
	return views == wanted, nil
}

// lateResult gives a result without a size its bytes: those that the plan has
// for it, those of an operand, in the way that it returns, or a buffer.
func (r *Runner) lateResult(k int, call *op.Call, i int, t op.Type) (op.AliasKind, error) {
	at := r.exe.refs[k][len(call.In)+i]
	h := &r.dynamic[at.dynamic]
	if at.space == plan.SpaceArena {
		n, err := t.Bytes()
		if err != nil || int64(n) > at.size {
			panic(fmt.Sprintf("BUG: exec: %s: result %d: got %s, want at most %d bytes", call.Def.Name, i, t, at.size))
		}
		h.place(t, r.late[k].Out[i].Data[:n:n])
		return 0, nil
	}
	arg, kind, offset := r.operandFor(k, call, i)
	if kind == 0 {
		return 0, h.set(t)
	}
	return kind, h.view(&r.dynamic[r.exe.refs[k][arg].dynamic], t, offset)
}

// operandFor finds an operand with a buffer in which result i may lie, as a
// view of it or in its place: kind is 0 when there is none. Other values may
// hold the same buffer: only its last holder's last use may overwrite it, and
// an output takes only what it need not share.
func (r *Runner) operandFor(k int, call *op.Call, i int) (arg int, kind op.AliasKind, offset int) {
	if !call.IsStatic() {
		return -1, 0, 0
	}
	refs := r.exe.refs[k]
	isOutput := refs[len(call.In)+i].space == plan.SpaceOutput
	for arg, at := range refs[:len(call.In)] {
		kind, offset := call.AliasOf(arg, i)
		if kind == 0 || at.dynamic < 0 || !r.dynamic[at.dynamic].hasBuffer() {
			continue
		}
		from := &r.dynamic[at.dynamic]
		n, err := call.Results[i].Bytes()
		if err != nil || offset+n > len(from.bytes()) {
			continue
		}
		if kind == op.View && !isOutput || r.isLastUse(k, arg) && from.mayOverwrite() && n == len(from.bytes()) {
			return arg, kind, offset
		}
	}
	return -1, 0, 0
}

// isLastUse reports whether operand arg of call k is given up after the call
// and is no other operand of it.
func (r *Runner) isLastUse(k, arg int) bool {
	c, n := r.exe.calls[k], r.exe.refs[k][arg].dynamic
	for i, at := range r.exe.refs[k][:len(c.Args)] {
		if i != arg && at.dynamic == n {
			return false
		}
	}
	return slices.Contains(r.exe.freed[k], n)
}
