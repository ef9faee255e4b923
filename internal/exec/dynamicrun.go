package exec

import (
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// one returns the bytes of the only element of a condition or a count. placed
// are those of a value of known size; a dynamic value may turn out to have
// another number of elements, which is an error.
func (r *Runner) one(what string, at ref, placed []byte) ([]byte, error) {
	if at.dynamic < 0 {
		return placed, nil
	}
	d := &r.dynamic[at.dynamic]
	if d.typ().Shape.NumElements() != 1 {
		return nil, fmt.Errorf("%s: got %s when it runs, want one element: %w", what, d.typ(), shape.ErrShape)
	}
	return d.bytes(), nil
}

// assign makes dynamic value number to the one that lies at from: bytes of a
// value of known size, placed, are copied, a buffer is shared.
func (r *Runner) assign(to int, from ref, placed []byte, typ op.Type) error {
	if from.dynamic >= 0 {
		return r.dynamic[to].share(&r.dynamic[from.dynamic])
	}
	return r.dynamic[to].copy(typ, placed)
}

// yield makes the results of a region the results of the call around it.
func (r *Runner) yield(k, region int) error {
	for i, y := range r.exe.steps[k].yields[region] {
		placed := r.steps[k].yields[region][i]
		to := &r.dynamic[y.to]
		switch {
		case y.in && y.dynamic >= 0:
			from := &r.dynamic[y.dynamic]
			to.place(from.typ(), from.bytes())
		case y.in:
			to.place(y.typ, placed)
		default:
			if err := r.assign(y.to, y.ref, placed, y.typ); err != nil {
				return err
			}
		}
	}
	return nil
}

// drop drops the values of the given numbers.
func (r *Runner) drop(list []int) {
	for _, n := range list {
		r.dynamic[n].drop()
	}
}

// dynamicCall makes the call of a step that is bound when it runs, with the
// types of the values of known size.
func (e *Executable) dynamicCall(ts *tasks, k int) *op.Call {
	c := e.newCall(ts, k)
	for i := range e.steps[k].at {
		switch at := e.ref(k, i); {
		case at.dynamic < 0:
		case i < len(c.In):
			c.In[i] = op.Arg{}
		default:
			c.Out[i-len(c.In)] = op.Arg{}
		}
	}
	return c
}

// runDynamic binds call k to the types that its operands have now and runs it.
func (r *Runner) runDynamic(pool *compute.Pool, done <-chan struct{}, k int) error {
	call, types, err := r.dynamicTypes(k)
	if err != nil {
		return err
	}
	if r.appends(k, call, types) {
		return r.append(k, call, types[0])
	}
	shared, err := r.dynamicResults(k, call, types)
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
	for i := range call.Out {
		at := r.exe.ref(k, len(call.In)+i)
		if at.dynamic < 0 {
			continue
		}
		if err := r.dynamic[at.dynamic].cut(call.Out[i].Type); err != nil {
			return err
		}
	}
	return nil
}

// appends reports whether call k appends values to the state of a loop. Such a
// state grows in its buffer, which has room: otherwise a loop that collects
// values would copy all of them in every iteration.
func (r *Runner) appends(k int, call *op.Call, types []op.Type) bool {
	step := &r.exe.steps[k]
	if call.Def.Name != "concat" || step.call.Args[0].Value.Kind != ir.Param || r.exe.ref(k, 0).dynamic < 0 {
		return false
	}
	to := r.exe.ref(k, len(call.In))
	if to.dynamic < 0 || to.space == arenaSpace {
		return false
	}
	axis := int(call.Int("axis"))
	if axis < 0 {
		axis += types[0].Shape.Rank()
	}
	for _, n := range types[0].Shape.Sizes()[:axis] {
		if n != 1 {
			return false // the parts do not lie one after the other
		}
	}
	for _, in := range call.In {
		if in.Layout == nil || !in.Layout.IsContiguous() || in.Type.DType.Size() == 0 {
			return false
		}
	}
	return true
}

// append appends the operands after the first one to it.
func (r *Runner) append(k int, call *op.Call, t op.Type) error {
	d, from := &r.dynamic[r.exe.ref(k, len(call.In)).dynamic], &r.dynamic[r.exe.ref(k, 0).dynamic]
	at := len(from.bytes())
	if err := d.extend(from, t); err != nil {
		return err
	}
	for _, in := range call.In[1:] {
		at += copy(d.bytes()[at:], in.Data)
	}
	return nil
}

// dynamicTypes runs the shape rule again, now that every operand is known.
func (r *Runner) dynamicTypes(k int) (*op.Call, []op.Type, error) {
	kept, step := r.steps[k].call, &r.exe.steps[k]
	sig := *kept.Sig
	call := &op.Call{Sig: &sig, Node: kept.Node, In: make([]op.Arg, len(kept.In)), Out: make([]op.Arg, len(kept.Out))}
	sig.Args, sig.Results = make([]op.Type, len(kept.In)), make([]op.Type, len(kept.Out))
	copy(call.In, kept.In)
	copy(call.Out, kept.Out)
	for i := range call.In {
		if at := r.exe.ref(k, i); at.dynamic >= 0 {
			d := &r.dynamic[at.dynamic]
			call.In[i] = op.Arg{Type: d.typ(), Layout: shape.RowMajor(d.typ().Shape), Data: d.bytes()}
		}
		sig.Args[i] = call.In[i].Type
	}
	sig.Known = func(arg int) ([]byte, bool) { return call.In[arg].Data, sig.Has(arg) }
	if err := sig.Infer(); err != nil {
		return nil, nil, err
	}
	for i, v := range step.call.Results {
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

// dynamicResults finds the bytes of the results. It reports whether all of them
// are views, so that nothing is left to compute.
func (r *Runner) dynamicResults(k int, call *op.Call, types []op.Type) (viewed bool, err error) {
	wanted, views := 0, 0
	for i := range call.Out {
		at, out := r.exe.ref(k, len(call.In)+i), &call.Out[i]
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
		kind, err := r.dynamicResult(k, call, i, types[i])
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

// dynamicResult finds the bytes of a result without a known size: those that
// the plan has for it, those of an operand, in the way that it returns, or
// those of a new buffer.
func (r *Runner) dynamicResult(k int, call *op.Call, i int, t op.Type) (op.AliasKind, error) {
	at := r.exe.ref(k, len(call.In)+i)
	d := &r.dynamic[at.dynamic]
	if at.space == arenaSpace {
		n, err := t.Bytes()
		if err != nil || int64(n) > at.size {
			panic(fmt.Sprintf("BUG: exec: %s: result %d: got %s, want at most %d bytes", call.Def.Name, i, t, at.size))
		}
		d.place(t, r.steps[k].call.Out[i].Data[:n:n])
		return 0, nil
	}
	arg, kind, offset := r.operandFor(k, call, i)
	if kind == 0 {
		return 0, d.set(t)
	}
	return kind, d.view(&r.dynamic[r.exe.ref(k, arg).dynamic], t, offset)
}

// operandFor finds an operand with a buffer in which result i may lie, as a
// view of it or in its place: kind is 0 when there is none. Other values may
// share the buffer: only its last holder's last use may overwrite it, and an
// output takes only a buffer that it need not share.
func (r *Runner) operandFor(k int, call *op.Call, i int) (arg int, kind op.AliasKind, offset int) {
	if !call.IsStatic() {
		return -1, 0, 0
	}
	isOutput := r.exe.ref(k, len(call.In)+i).space == outputSpace
	for arg := range call.In {
		at := r.exe.ref(k, arg)
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

// isLastUse reports whether operand arg of call k is dropped after the call and
// is no other operand of it.
func (r *Runner) isLastUse(k, arg int) bool {
	step := &r.exe.steps[k]
	n := r.exe.ref(k, arg).dynamic
	for i := range step.call.Args {
		if i != arg && r.exe.ref(k, i).dynamic == n {
			return false
		}
	}
	return slices.Contains(step.freed, n)
}
