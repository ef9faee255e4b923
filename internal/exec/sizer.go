package exec

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// Sizer finds the scratch of the calls of an executable for values of other
// types, one call at a time: it binds a call as an instance would, and places
// and proves nothing. It is for one goroutine at a time.
type Sizer struct {
	exe   *Executable
	tasks map[int]*compute.Task

	types func(*ir.Value) op.Type
	known func(*ir.Value) ([]byte, bool)
}

// NewSizer returns a sizer for the calls of the executable.
func (e *Executable) NewSizer() *Sizer { return &Sizer{exe: e, tasks: map[int]*compute.Task{}} }

// Calls lists the numbers of the calls that a run executes with kernels.
func (s *Sizer) Calls() []int { return s.exe.bound() }

// Call returns call k of the program.
func (s *Sizer) Call(k int) *ir.Call { return s.exe.Call(k) }

// Set sets the types of the values that the next calls of Scratch are for, and
// the bytes of constants.
func (s *Sizer) Set(types func(*ir.Value) op.Type, known func(*ir.Value) ([]byte, bool)) {
	s.types, s.known = types, known
}

// Scratch returns the scratch of call k, in bytes per worker. The error is
// [ErrStructure] where the call would read its constants in other forms.
func (s *Sizer) Scratch(k int) (int64, error) {
	t := s.tasks[k]
	step := &s.exe.steps[k]
	var err error
	if t == nil {
		t, err = s.bind(k)
	} else {
		s.setTypes(t.Call, step.call)
		if err = t.Refill(); err != nil {
			t, err = s.bind(k)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", step.call.Where(), err)
	}
	s.tasks[k] = t
	for i := range step.call.Args {
		x := s.exe.packing.operands[step.first+i]
		if f, ok := t.Forms[i]; ok != (x != nil) || ok && f.Name != x.Form {
			return 0, fmt.Errorf("%w: %s: %w", ErrStructure, step.call.Where(), errForms)
		}
	}
	return int64(t.Scratch), nil
}

// Most bounds the scratch of call k for all sizes from 1 up to those for which
// Scratch was called last: see [compute.Task.MostScratch].
func (s *Sizer) Most(k int, fixed func(v *ir.Value, axis int) bool) (int64, bool) {
	args := s.exe.steps[k].call.Args
	n, ok := s.tasks[k].MostScratch(func(arg, axis int) bool { return args[arg].Value == nil || fixed(args[arg].Value, axis) })
	return int64(n), ok
}

func (s *Sizer) bind(k int) (*compute.Task, error) {
	step := &s.exe.steps[k]
	from := step.call
	sig := &op.Sig{Def: from.Op, Attrs: from.Attrs, Args: make([]op.Type, len(from.Args)), Results: make([]op.Type, len(from.Results))}
	sig.Known = func(arg int) ([]byte, bool) {
		if arg >= len(from.Args) || from.Args[arg].Value == nil {
			return nil, false
		}
		return s.known(from.Args[arg].Value)
	}
	c := &op.Call{Sig: sig, Node: from.Node, In: make([]op.Arg, len(from.Args)), Out: make([]op.Arg, len(from.Results))}
	s.setTypes(c, from)
	return compute.BindConstants(c, s.exe.structure.options.constants(func(i int) bool { return s.exe.packing.asked[step.first+i] }))
}

func (s *Sizer) setTypes(c *op.Call, from *ir.Call) {
	for i, a := range from.Args {
		if a.Value != nil {
			c.Sig.Args[i] = s.types(a.Value)
			c.In[i] = argOf(c.Sig.Args[i])
		}
	}
	for i, v := range from.Results {
		if v != nil {
			c.Sig.Results[i] = s.types(v)
			c.Out[i] = argOf(c.Sig.Results[i])
		}
	}
}
