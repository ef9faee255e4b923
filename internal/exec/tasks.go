package exec

import (
	"errors"
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// tasks are the calls of a structure bound to their kernels, for the sizes of
// one of its executables at a time. One runner uses them.
type tasks struct {
	sigs *ir.Signatures
	list []*compute.Task // by number of the call; nil for calls that are not bound

	// Of the runner, which leaves them to the next one.
	steps                  []boundStep
	arena, inputs, outputs []pointed
}

func (s *structure) newTasks() *tasks {
	return &tasks{sigs: ir.NewSignatures(s.lowering.index), list: make([]*compute.Task, len(s.lowering.calls)), steps: make([]boundStep, len(s.lowering.calls))}
}

// setTypes sets a call's types and layouts to those of the executable's values.
// It reports whether any is another one.
func (e *Executable) setTypes(c *op.Call, k int) (changed bool) {
	from := e.steps[k].call
	for i, a := range from.Args {
		changed = e.setType(&c.In[i], a.Value) || changed
	}
	for i, v := range from.Results {
		changed = e.setType(&c.Out[i], v) || changed
	}
	return changed
}

func (e *Executable) setType(a *op.Arg, v *ir.Value) (changed bool) {
	if v == nil {
		return false
	}
	to := argOf(e.types.Of(v))
	if len(e.layouts) > 0 && e.layouts[v.ID] != nil {
		to.Layout = e.layouts[v.ID]
	}
	if a.Type == to.Type && a.Layout == to.Layout {
		return false
	}
	*a = to
	return true
}

func argOf(t op.Type) op.Arg { return op.Arg{Type: t, Layout: shape.RowMajor(t.Shape)} }

// newCall makes call k as kernels see it; operands and results have no bytes
// yet.
func (e *Executable) newCall(ts *tasks, k int) *op.Call {
	from := e.steps[k].call
	c := &op.Call{Sig: ts.sigs.Of(k), Node: from.Node, In: make([]op.Arg, len(from.Args)), Out: make([]op.Arg, len(from.Results))}
	e.setTypes(c, k)
	return c
}

// constants says which operands a task may read in a form of its own.
func (o *Options) constants(is func(arg int) bool) compute.Constants {
	return compute.Constants{Is: is, Compressed: o.Compressed, Direct: o.Direct, Fixed: o.Fixed}
}

// bind binds call k. Is says which operands may be read in a form of their own.
func (e *Executable) bind(ts *tasks, k int, is func(i int) bool) error {
	t, err := compute.BindConstants(e.newCall(ts, k), e.structure.options.constants(is))
	ts.list[k] = t
	if err != nil {
		return fmt.Errorf("%s: %w", e.steps[k].call.Where(), err)
	}
	return nil
}

// bindAll makes the tasks those of the executable: bound tasks are refilled;
// the others, and those that need another kernel for the sizes, are bound.
func (e *Executable) bindAll(ts *tasks) error {
	ts.sigs.Set(e.types, ir.Known(e.weights))
	for _, in := range e.code {
		if in.kind != run || e.steps[in.call].dynamic {
			continue
		}
		if err := e.refill(ts, in.call); err != nil {
			return err
		}
	}
	return nil
}

// refill makes the task of call k one of the executable's sizes, and of the
// forms that it has settled on. A task that has these types stays as it is, if
// it reads no constant that depends on sizes.
func (e *Executable) refill(ts *tasks, k int) error {
	if t := ts.list[k]; t != nil {
		t.Begun = nil
		var err error
		if e.setTypes(t.Call, k) || !e.structure.lowering.fixed[k] {
			err = t.Refill()
		}
		if err == nil && e.packing.agrees(e, k, t) {
			return nil
		}
		ts.list[k] = nil // it has types for which it was not refilled
		if err != nil && !errors.Is(err, compute.ErrRebind) {
			return fmt.Errorf("%s: %w", e.steps[k].call.Where(), err)
		}
		e.structure.rebound.Add(1)
	}
	first := e.steps[k].first
	if err := e.bind(ts, k, func(i int) bool { return e.packing.asked[first+i] }); err != nil {
		return err
	}
	if t := ts.list[k]; !e.packing.agrees(e, k, t) {
		return fmt.Errorf("%s: %w", e.steps[k].call.Where(), errForms)
	}
	return nil
}

// errForms is the error of a task that reads other parts of constants, or in
// other forms, than those of the first executable.
var errForms = errors.New("the sizes want other parts of constants, or other forms")
