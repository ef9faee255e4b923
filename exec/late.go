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

// held is a value whose size depends on data, while a run has it: its type
// now, and its bytes, in the arena or in a buffer that the run holds.
type held struct {
	typ  op.Type
	data []byte
	buf  *memory.Buffer // nil in the arena, and for no bytes
}

// drop gives up the hold.
func (h *held) drop() {
	if h.buf != nil {
		_ = h.buf.Release() // held since it was set
	}
	*h = held{}
}

// fill makes h hold a new buffer, and nothing else any more.
func (h *held) fill(t op.Type, p memory.Purpose) error {
	h.drop()
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	h.typ = t
	if n == 0 {
		return nil
	}
	if h.buf, err = memory.Alloc(n, p); err != nil {
		return err
	}
	h.data = h.buf.Bytes()
	return nil
}

// cut leaves the bytes of a smaller type. A buffer of which less than half is
// left is exchanged for one of the right size: it would pin the rest.
func (h *held) cut(t op.Type) error {
	n, err := t.Bytes()
	if err != nil || n > len(h.data) {
		return fmt.Errorf("BUG: exec: got %s of a kernel, want at most %d bytes", t, len(h.data))
	}
	whole := *h
	h.typ, h.data = t, h.data[:n:n]
	if h.buf == nil || n >= whole.buf.Len()/2 {
		return nil
	}
	*h = held{}
	defer whole.drop()
	if err := h.fill(t, whole.buf.Purpose()); err != nil {
		return err
	}
	copy(h.data, whole.data)
	return nil
}

// TakeDynamic hands over result i of the run that has just ended, whose size
// depends on data: the caller holds the buffer, which is nil for no bytes.
func (r *Runner) TakeDynamic(i int) (*memory.Buffer, op.Type) {
	h := &r.dynamic[r.exe.outDynamic[i]]
	buf, typ := h.buf, h.typ
	*h = held{}
	return buf, typ
}

// condition returns the byte that decides an `if`.
func (r *Runner) condition(k int) []byte {
	if n := r.exe.refs[k][0].dynamic; n >= 0 {
		return r.dynamic[n].data
	}
	return r.conds[k]
}

// give makes what a region returns the result of the call around it.
func (r *Runner) give(g gift, data []byte) error {
	to, typ := &r.dynamic[g.to], g.typ
	if g.dynamic >= 0 {
		from := &r.dynamic[g.dynamic]
		if from.buf != nil {
			to.drop()
			*to, *from = *from, held{}
			return nil
		}
		typ, data = from.typ, from.data
	}
	if err := to.fill(typ, memory.Activations); err != nil {
		return err
	}
	copy(to.data, data)
	return nil
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
			call.In[i] = op.Arg{Type: h.typ, Layout: shape.RowMajor(h.typ.Shape), Data: h.data}
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

// lateResults gives the results their bytes. It reports whether the call has
// one result and that is a view, so that nothing is left to compute.
func (r *Runner) lateResults(k int, call *op.Call, types []op.Type) (viewed bool, err error) {
	wanted := 0
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
		h := &r.dynamic[at.dynamic]
		if at.space == plan.SpaceArena {
			n, err := types[i].Bytes()
			if err != nil || int64(n) > at.size {
				return false, fmt.Errorf("BUG: exec: %s: result %d: got %s, want at most %d bytes", call.Def.Name, i, types[i], at.size)
			}
			*h = held{typ: types[i], data: out.Data[:n:n]}
		} else if kind := r.inOperand(k, call, i, h); kind == op.View {
			viewed = true
		} else if kind == 0 {
			if err := h.fill(types[i], purposeOf(at)); err != nil {
				return false, err
			}
		}
		*out = op.Arg{Type: types[i], Layout: shape.RowMajor(types[i].Shape), Data: h.data}
	}
	return viewed && wanted == 1, nil
}

func purposeOf(at ref) memory.Purpose {
	if at.space == plan.SpaceOutput {
		return memory.IO
	}
	return memory.Activations
}

// inOperand puts result i into the bytes of an operand in a buffer of its own,
// as a view of it or in its place, and returns how; 0 when it may not. Other
// calls may hold the same buffer: only its last holder's last use may
// overwrite it, and an output shares with nobody.
func (r *Runner) inOperand(k int, call *op.Call, result int, h *held) op.AliasKind {
	if !call.IsStatic() {
		return 0
	}
	refs := r.exe.refs[k]
	for i, at := range refs[:len(call.In)] {
		kind, offset := call.AliasOf(i, result)
		if kind == 0 || at.dynamic < 0 || r.dynamic[at.dynamic].buf == nil {
			continue
		}
		from := r.dynamic[at.dynamic]
		once := !slices.ContainsFunc(refs[:i], func(o ref) bool { return o.dynamic == at.dynamic }) &&
			!slices.ContainsFunc(refs[i+1:len(call.In)], func(o ref) bool { return o.dynamic == at.dynamic })
		last := once && slices.Contains(r.exe.freed[k], at.dynamic) && from.buf.Holders() == 1 && len(from.data) == from.buf.Len()
		n, err := call.Results[result].Bytes()
		if err != nil || offset+n > len(from.data) {
			continue
		}
		if kind == op.View && refs[len(call.In)+result].space == plan.SpaceOutput {
			last = last && n == len(from.data)
		} else if kind == op.View {
			last = true
		}
		if !last || from.buf.Retain() != nil {
			continue
		}
		*h = held{typ: call.Results[result], data: from.data[offset : offset+n : offset+n], buf: from.buf}
		return kind
	}
	return 0
}
