package tenure

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/plan/check"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
)

// Shapes are the sizes of inputs by name, of bytes where they are text: {2, 8}
// for two strings of up to 8 bytes.
type Shapes map[string][]int

// Plan returns the plan of runs with inputs of these shapes, before any run:
// every byte, and the place and lifetime of each value. Inputs whose declared
// shape has a size for every dimension may be left out.
func (m *Model) Plan(ctx context.Context, shapes Shapes, opts ...SessionOption) (*plan.Plan, error) {
	if err := ended.Missing(ctx); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	types, err := m.types(shapes)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	o, err := configure(opts)
	if err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	if len(o.bounds) > 0 {
		return nil, fmt.Errorf("plan: got bounds (WithUpTo, WithSizes) and one set of sizes, want one of them (PlanUpTo is for bounds): %w", ErrInput)
	}
	donated, err := m.among(o.donated)
	if err != nil {
		return nil, fmt.Errorf("plan: WithDonated: %w", err)
	}
	var planned *plan.Plan
	err = m.withWeights("plan", func() error {
		exe, _, err := m.compile(ctx, target{types: types, donated: donated}, o)
		for i, d := range donated {
			if err == nil && d && !exe.TakesInput(i) {
				err = fmt.Errorf("input %q is donated, but %s: %w", m.inputs[i].Name, exe.WhyNotTaken(i), ErrNotReusable)
			}
		}
		if err == nil {
			planned, err = exe.Plan()
		}
		if err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		return nil
	})
	return planned, err
}

// among says which inputs have one of the names, nil where there are none.
func (m *Model) among(list []string) ([]bool, error) {
	if len(list) == 0 {
		return nil, nil
	}
	out := make([]bool, len(m.inputs))
	for _, name := range list {
		i := slices.IndexFunc(m.inputs, func(in Info) bool { return in.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("got no input %q, want one of %s: %w", name, names(m.inputs), ErrInput)
		}
		out[i] = true
	}
	return out, nil
}

// types completes the shapes with the declared ones.
func (m *Model) types(shapes Shapes) ([]op.Type, error) {
	if m.none() {
		return nil, fmt.Errorf("got no model: %w", ErrClosed)
	}
	types := make([]op.Type, len(m.inputs))
	var open []string
	for i, in := range m.inputs {
		types[i] = op.Type{DType: in.DType, Shape: in.Shape}
		if dims, ok := shapes[in.Name]; ok {
			s, err := shape.Of(dims...)
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", in.Name, err)
			}
			types[i].Shape = s
			continue
		}
		if !types[i].IsStatic() {
			open = append(open, in.String())
		}
	}
	if unknown := m.unknown(maps.Keys(shapes)); unknown != "" {
		return nil, fmt.Errorf("got a shape for %s, want inputs of the model: %s: %w", unknown, names(m.inputs), ErrInput)
	}
	if len(open) > 0 {
		return nil, fmt.Errorf("got no shape for %s, want one for every input with open dimensions: %w", strings.Join(open, ", "), ErrInput)
	}
	return types, nil
}

// unknown lists, in order, the given names that no input has.
func (m *Model) unknown(given iter.Seq[string]) string {
	var list []string
	for name := range given {
		if !slices.ContainsFunc(m.inputs, func(in Info) bool { return in.Name == name }) {
			list = append(list, strconv.Quote(name))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Check proves a plan, which may come from a file, against the model: it
// compiles the program for the plan's shapes and simulates the plan over
// bytes. The error is the first rule that does not hold. The doc of package
// plan/check lists the rules, and the few fields that are not proved.
func (m *Model) Check(p *plan.Plan) error {
	if p == nil {
		return fmt.Errorf("check: got no plan, want one: %w", ErrInput)
	}
	shapes := Shapes{}
	for _, s := range p.Shapes {
		at := strings.IndexByte(s.Type, '[')
		if at < 0 {
			return fmt.Errorf("plan: input %q: got type %q, want an element type and sizes: %w", s.Name, s.Type, ErrCorrupt)
		}
		dims, err := shape.Parse(s.Type[at:])
		if err != nil {
			return fmt.Errorf("plan: input %q: %w", s.Name, err)
		}
		if !dims.IsStatic() {
			return fmt.Errorf("plan: input %q: got type %q, want a size for every dimension: %w", s.Name, s.Type, ErrCorrupt)
		}
		shapes[s.Name] = dims.Sizes()
	}
	types, err := m.types(shapes)
	if err != nil {
		return err
	}
	return m.withWeights("check", func() error {
		donated := make([]bool, len(m.inputs))
		for i := range min(len(donated), len(p.Shapes)) {
			donated[i] = p.Shapes[i].Donated
		}
		var first *specialised
		for _, least := range []bool{false, true} {
			c, err := m.verified(target{types: types, donated: donated, leastMemory: least}, nil)
			if err != nil {
				return err
			}
			if c.Program.Hash() == p.Model {
				return check.Check(c.Program, p, c.Constants)
			}
			if first == nil {
				first = c
			}
		}
		return check.Check(first.Program, p, first.Constants)
	})
}

// CheckRange proves a promise for many sizes, which may come from a file,
// against the model: it makes the promise for the same bounds, threads and
// concurrent runs anew, as [Model.PlanUpTo] does. The error names the first
// figure that is smaller than what some size takes. Scratch and packed weights
// depend on the machine's instruction set.
func (m *Model) CheckRange(ctx context.Context, r *plan.Range) error {
	if r == nil {
		return fmt.Errorf("check: got no promise, want one: %w", ErrInput)
	}
	opts := []SessionOption{WithThreads(r.Threads), WithMaxConcurrent(r.MaxConcurrent)}
	for _, d := range r.Dims {
		if d.Sizes != nil {
			opts = append(opts, WithSizes(d.Name, d.Sizes...))
		} else {
			opts = append(opts, WithUpTo(d.Name, d.Most))
		}
	}
	proved, err := m.PlanUpTo(ctx, opts...)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	for _, f := range []struct {
		name      string
		got, want int64
		at        []int
	}{
		{"arena", r.Arena.Bytes, proved.Arena.Bytes, proved.Arena.At}, {"scratch", r.Scratch.Bytes, proved.Scratch.Bytes, proved.Scratch.At},
		{"io", r.IO.Bytes, proved.IO.Bytes, proved.IO.At}, {"worst", r.Worst.Bytes, proved.Worst.Bytes, proved.Worst.At},
	} {
		if f.got < f.want {
			return fmt.Errorf("check: %s: got a promise of %d bytes, want at least %d, for %s: %w", f.name, f.got, f.want, proved.Where(f.at), ErrLimit)
		}
	}
	if r.WeightBytes < proved.WeightBytes {
		return fmt.Errorf("check: weights: got a promise of %d bytes, want at least %d: %w", r.WeightBytes, proved.WeightBytes, ErrLimit)
	}
	if r.Sizes != proved.Sizes || r.Refused != proved.Refused {
		return fmt.Errorf("check: got %d sizes that are promised and %d that the model refuses, want %d and %d: %w", r.Sizes, r.Refused, proved.Sizes, proved.Refused, ErrShape)
	}
	for _, u := range proved.Unpromised {
		if !slices.ContainsFunc(r.Unpromised, func(known plan.Unpromised) bool { return known.Value == u.Value && known.Node == u.Node }) {
			return fmt.Errorf("check: unpromised: got no entry for value %s of %s, want one: its size depends on data: %w", u.Value, u.Node, ErrLimit)
		}
	}
	return nil
}
