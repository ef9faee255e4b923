package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/plan"
)

// ErrStructure is the error of types for which a final program does not hold:
// the program of inputs of these sizes is another one.
var ErrStructure = errors.New("the final program does not hold for these sizes")

// Instance makes an executable of the same final program for values of other
// types: those that the shape rules of its operators return for inputs of other
// sizes, by ID. It must not be changed after that. table has the program's
// weights; it may be another one than the program was compiled with, because
// the bytes of constants may depend on the sizes too.
//
// An instance is what [Compile] makes of a program with these types, but for
// the parts that were found to be copied for the first types, and for the
// offsets in the arena: values are placed as before where that takes at most a
// fiftieth more than the lower bound. It shares with the executables of
// its program the parts that do not depend on sizes. Its figures are proved
// like any other's.
//
// The error is [ErrStructure] where the program has no safe plan for these
// types, or would read its constants in another way: the program is then to be
// made anew from the inputs' sizes.
func (e *Executable) Instance(ctx context.Context, types ir.Types, table ir.Weights) (*Executable, error) {
	if table == nil {
		table = ir.WeightMap{}
	}
	if len(types) != len(e.types) {
		return nil, fmt.Errorf("instance: got %d types, want one per ID, %d", len(types), len(e.types))
	}
	x, err := e.structure.instance(ctx, types, table)
	if err != nil {
		return nil, fmt.Errorf("instance: %w", err)
	}
	if invariant.Enabled {
		x.compareFresh(ctx)
	}
	return x, x.proved()
}

// compareFresh panics unless the plan is that of the program when it is
// compiled from the start, but for offsets in the arena, and the arena, unless
// the arena has a capacity for many sizes, at most a twentieth larger.
func (e *Executable) compareFresh(ctx context.Context) {
	o := e.structure.options
	o.limits = &e.structure.lowering.limits // they were found for the first sizes
	fresh, err := Compile(ctx, e.Program.With(e.types), e.weights, o)
	if err != nil {
		if ctx.Err() == nil {
			invariant.Failf("exec: an instance of a program that does not compile: %v", err)
		}
		return
	}
	got, want := e.withoutOffsets(), fresh.withoutOffsets()
	if e.structure.options.Capacity == nil && 20*got.ArenaBytes > 21*want.ArenaBytes {
		invariant.Failf("exec: got %d bytes of arena for an instance, want at most 1.05 of %d", got.ArenaBytes, want.ArenaBytes)
	}
	got.ArenaBytes = max(got.ArenaBytes, want.ArenaBytes)
	want.ArenaBytes = got.ArenaBytes
	// The weights that packing unloads depend on the programs packed before.
	got.Packed, got.WeightBytes = want.Packed, want.WeightBytes
	if k := e.differentForms(fresh); k >= 0 {
		invariant.Failf("exec: an instance reads constants of %s in other forms than a program that was compiled from the start", e.steps[k].call.Where())
	}
	a, err := got.MarshalJSON()
	b, wrong := want.MarshalJSON()
	if err != nil || wrong != nil || !bytes.Equal(a, b) {
		invariant.Failf("exec: got the plan of an instance %v %v\n%s\nwant\n%s", err, wrong, a, b)
	}
	if !slices.Equal(e.code, fresh.code) {
		invariant.Failf("exec: got the steps %v of an instance, want %v", e.code, fresh.code)
	}
}

// differentForms returns a call that reads a constant in another form than that
// of the other executable, -1 for none.
func (e *Executable) differentForms(o *Executable) int {
	form := func(e *Executable, n int) string {
		if x := e.packing.operands[n]; x != nil {
			return x.Form
		}
		return ""
	}
	for k := range e.steps {
		step := &e.steps[k]
		for i := range step.call.Args {
			if form(e, step.first+i) != form(o, step.first+i) {
				return k
			}
		}
	}
	return -1
}

// withoutOffsets returns a copy of the plan without the offsets in the arena.
func (e *Executable) withoutOffsets() *plan.Plan {
	d, err := e.Plan()
	if err != nil {
		invariant.Failf("exec: %v", err)
	}
	d = new(*d)
	d.Values = slices.Clone(d.Values)
	for i := range d.Values {
		if v := &d.Values[i]; v.Space == plan.SpaceArena {
			v.Offset = 0
		}
	}
	return d
}

func (s *structure) instance(ctx context.Context, types ir.Types, table ir.Weights) (*Executable, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances.Add(1)
	e, err := s.lower(types, table)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStructure, err)
	}
	if fits, err := s.isLimitedFor(types, table); err != nil {
		return nil, err
	} else if !fits {
		return nil, fmt.Errorf("%w: fewer bytes live if more lies in place", ErrStructure)
	}
	placed, err := s.place(ctx, s.lowering.problem())
	if err != nil {
		return nil, err
	}
	s.settle(e, placed)
	ts, err := s.rebind(e)
	if err != nil {
		return nil, err
	}
	err = s.finish(e, ts)
	var v *check.Violation
	if errors.As(err, &v) {
		return nil, fmt.Errorf("%w: %w", ErrStructure, v)
	}
	return e, err
}

// place places the values of an instance.
func (s *structure) place(ctx context.Context, p *plan.Problem) (plan.Placement, error) {
	if capacity := s.options.Capacity; capacity != nil {
		return s.known.PlaceWithin(ctx, p, *capacity, s.solveOptions())
	}
	return s.known.Place(ctx, p, s.solveOptions())
}

// rebind makes tasks for an instance, which runs the calls of the first
// executable and reads the same panels.
func (s *structure) rebind(e *Executable) (*tasks, error) {
	if !slices.Equal(e.code, s.firstCode) {
		return nil, fmt.Errorf("%w: other calls run", ErrStructure)
	}
	e.code, e.packing = s.firstCode, s.packing
	ts := s.free()
	err := e.bindAll(ts)
	if errors.Is(err, errForms) {
		err = fmt.Errorf("%w: %w", ErrStructure, err)
	}
	return ts, err
}

// InstanceFigures are the costs of the instances of a program.
type InstanceFigures struct {
	Instances int64 // that were made, or were to be made
	Packed    int64 // whose values were placed anew, without a search
	Searched  int64 // whose values were placed by a search
	Rebound   int64 // calls that were bound anew: their sizes want another kernel
}

// InstanceFigures returns the figures of all instances of the executable's
// program.
func (e *Executable) InstanceFigures() InstanceFigures {
	s := e.structure
	s.mu.Lock()
	defer s.mu.Unlock()
	return InstanceFigures{Instances: s.instances.Load(), Packed: int64(s.known.Packed), Searched: int64(s.known.Searched), Rebound: s.rebound.Load()}
}
