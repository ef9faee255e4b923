package tenure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/internal/invariant"
	"github.com/tenure-go/tenure/internal/pass"
	"github.com/tenure-go/tenure/internal/weights"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
)

// Specialise returns the final program for inputs of the given shapes: the
// program that a run executes and a plan is proved against. After each pass,
// check sees the program; it may be nil.
func (m *Model) Specialise(shapes Shapes, check func(passName string, p *ir.Program) error) (*ir.Program, error) {
	types, err := m.types(shapes)
	if err != nil {
		return nil, err
	}
	var c *specialised
	err = m.withWeights("specialise", func() (err error) {
		c, err = m.verified(target{types: types}, check)
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.Program, nil
}

// target is the set of shapes and values for which a program is specialised.
type target struct {
	types   []op.Type
	donated []bool           // nil: no input is
	value   func(int) []byte // the bytes of an input; nil where no run is under way

	leastMemory bool // see [WithLeastMemory]
}

// specialised is a program for one target.
type specialised struct {
	*pass.Context
	frozen []int // inputs whose values decide a shape and are constants of the program
}

// specialise runs the passes for a target. With record, the context has a
// structure of the program afterwards.
func (m *Model) specialise(t target, check func(string, *ir.Program) error, record bool) (*specialised, error) {
	if err := m.program.CheckTypes(t.types); err != nil {
		return nil, inputError{err}
	}
	p := m.program.Clone()
	for i, v := range p.Body.Params {
		v.Type = t.types[i]
	}
	drop := false
	for i, v := range p.Body.Params {
		donated := t.donated != nil && t.donated[i]
		drop, v.Donated = drop || v.Donated && !donated, donated
	}
	if drop { // the marks of the program's text may need the input; the pass sets those that hold
		p.Walk(func(_ *ir.Block, c *ir.Call) {
			for i := range c.Args {
				c.Args[i].Donate = false
			}
		})
	}
	c := &specialised{Context: &pass.Context{Program: p, Constants: &weights.Overlay{Base: m.file.Weights}, Bound: true, MaxFold: maxFold, LeastMemory: t.leastMemory, Fixed: m.isFixed()}}
	if record {
		c.Record()
	}
	if err := c.freeze(t); err != nil {
		return nil, err
	}
	var after func(pass.Pass, *ir.Program) error
	if check != nil {
		after = func(ps pass.Pass, p *ir.Program) error { return check(ps.Name, p) }
	}
	if err := pass.Run(c.Context, pass.Specialise, after); err != nil {
		return nil, err
	}
	return c, nil
}

// isFixed reports whether the inputs of the model have one set of sizes.
func (m *Model) isFixed() bool {
	return !slices.ContainsFunc(m.program.Body.Params, func(v *ir.Value) bool { return !v.Type.IsStatic() })
}

// fixedAxes says which axes of values are not expected to have several sizes:
// where inputs differ in their first axis alone, all others.
func (m *Model) fixedAxes() compute.Fixed {
	first := 0
	for _, v := range m.program.Body.Params {
		s := v.Type.Shape
		if s == nil {
			return nil
		}
		for axis := range s.Rank() {
			if _, ok := s.Dim(axis).Size(); ok {
				continue
			}
			if axis > 0 {
				return nil
			}
			first = 1
		}
	}
	return func(_, axis int) bool { return axis >= first }
}

// verified returns the verified program for a target, without compiling it.
func (m *Model) verified(t target, check func(string, *ir.Program) error) (*specialised, error) {
	c, err := m.specialise(t, check, false)
	if err != nil {
		return nil, err
	}
	return c, broken(ir.VerifyKnown(c.Program, ir.Known(c.Constants)))
}

// broken makes a fault of Tenure of the verifier's error about a program that
// passes made.
func broken(err error) error {
	var v *ir.Violation
	if errors.As(err, &v) {
		return fmt.Errorf("BUG: the compiled program breaks a rule: %w", err)
	}
	return err
}

// freeze makes constants of the inputs whose values decide a shape, until all
// shapes are known or nothing more can be done.
func (c *specialised) freeze(t target) error {
	for {
		if err := pass.Run(c.Context, []pass.Pass{pass.Fold}, nil); err != nil {
			return err
		}
		deciders := pass.Deciders(c.Context)
		if len(deciders) == 0 {
			return errors.Join(c.Suspended...)
		}
		if t.value == nil {
			return fmt.Errorf("the values of input %q decide the size of values of the program: it can be planned only when they are given to a run: %w", deciders[0].Name, ErrUnsupported)
		}
		for _, v := range deciders {
			if err := pass.Freeze(c.Context, v, t.value(v.Index)); err != nil {
				return err
			}
			c.frozen = append(c.frozen, v.Index)
		}
	}
}

// checkInstance panics unless an instance is the passes' program for its sizes,
// with the same constants, so that lowering makes the same plan.
func (m *Model) checkInstance(t target, p *ir.Program, table ir.Weights) {
	fresh, err := m.specialise(t, nil, false)
	if err != nil {
		invariant.Failf("an instance of a structure for %v, for which the passes fail: %v", t.types, err)
	}
	if got, want := p.String(), fresh.Program.String(); got != want {
		invariant.Failf("an instance of a structure for %v is\n%s\nwant\n%s", t.types, got, want)
	}
	for i, w := range fresh.Program.Weights {
		if m.file.Weights.Has(w) {
			continue // it does not depend on sizes, and would have to be loaded
		}
		want, _ := fresh.Constants.Bytes(w)
		if got, ok := table.Bytes(p.Weights[i]); !ok || !bytes.Equal(got, want) {
			invariant.Failf("an instance of a structure for %v: weight %q is %x, want %x", t.types, w.Name, got, want)
		}
	}
}

// compileAndPack makes the executable for a target and packs the weights.
func (m *Model) compileAndPack(ctx context.Context, t target, o sessionOptions) (exe *exec.Executable, frozen []int, err error) {
	m.compiling.Lock()
	defer m.compiling.Unlock()
	exe, frozen, err = m.compile(ctx, t, o)
	if err != nil {
		return nil, nil, err
	}
	return exe, frozen, exe.Pack(ctx)
}

// planOf returns the plan of an executable. No program is packed while it is
// written down.
func (m *Model) planOf(exe *exec.Executable) (*plan.Plan, error) {
	m.compiling.Lock()
	defer m.compiling.Unlock()
	return exe.Plan()
}

// whyNotTaken says why nothing lies in the bytes of input i.
func (m *Model) whyNotTaken(exe *exec.Executable, i int) string {
	m.compiling.Lock()
	defer m.compiling.Unlock()
	return exe.WhyNotTaken(i)
}

// compile makes the executable for a target, and says which inputs' values it
// is made for. Dimensions of one name may have two sizes where the operators
// admit them.
func (m *Model) compile(ctx context.Context, t target, o sessionOptions) (exe *exec.Executable, frozen []int, err error) {
	t.leastMemory = o.leastMemory
	if err := m.program.CheckTypes(t.types); err != nil {
		return nil, nil, inputError{err}
	}
	name, split := m.twoSizes(t.types)
	if split == nil || o.promise != nil {
		return m.compileChecked(ctx, t, o)
	}
	if m.spreads(t) {
		return nil, nil, inputError{split}
	}
	exe, frozen, err = m.compileChecked(ctx, t, o)
	switch {
	case err == nil:
		m.note(fmt.Sprintf("dimensions named %q have had several sizes in one run: the operators admit it, and the name is not taken for one size", name))
	case errors.Is(err, ErrShape):
		return nil, nil, inputError{split}
	}
	return exe, frozen, err
}

// spreads reports whether dimensions of one name have had two sizes of which
// one is 1, and the operators do not admit another size in its place: they
// would broadcast it, which a wrong input of one row is not meant for.
func (m *Model) spreads(t target) bool {
	apart, any := m.withoutOnes(t.types)
	if !any {
		return false
	}
	_, err := m.specialise(target{types: apart, value: t.value}, nil, false)
	return errors.Is(err, ErrShape)
}

// compileChecked is compile for types of inputs that fit the model's.
func (m *Model) compileChecked(ctx context.Context, t target, o sessionOptions) (exe *exec.Executable, frozen []int, err error) {
	if p := o.promise; p != nil {
		if err := p.sizes.admit(t.types); err != nil {
			return nil, nil, inputError{err}
		}
		if exe := p.known(t); exe != nil {
			return exe, nil, nil
		}
	}
	if exe, frozen, err := m.instance(ctx, t, o); exe != nil || err != nil {
		return exe, frozen, broken(err)
	}
	c, err := m.specialise(t, nil, true)
	if err != nil {
		return nil, nil, err
	}
	exe, err = exec.Compile(ctx, c.Program, c.Constants, m.execOptions(o, c.Declined, c.Copies))
	if err == nil {
		m.keep(t, c, exe, o)
	}
	if err == nil && o.promise != nil {
		err = o.promise.check(t, exe)
	}
	return exe, c.frozen, broken(err)
}

// execOptions are those of executables for sessions of these options.
func (m *Model) execOptions(o sessionOptions, declined []plan.Declined, copies []plan.Copy) exec.Options {
	e := exec.Options{
		Threads: o.threads, MaxConcurrent: o.maxConcurrent, Declined: declined, Copies: copies, Store: m.file.Weights,
		Compressed: m.compressed, Direct: m.direct, Fixed: m.fixedAxes(), LeastMemory: o.leastMemory,
	}
	if o.promise != nil {
		e.Capacity, e.Apart = &o.promise.capacity, o.promise.boxed
	}
	return e
}
