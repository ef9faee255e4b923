package tenure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Inputs are the operands of a run by name: a *tensor.Tensor is borrowed,
// t.Donate() and t.Reuse() are given up. An input that is no tensor in the
// model's file takes a [Sequence], a [Map], or [Absent], see [Composite].
type Inputs map[string]tensor.Operand

// byName puts the inputs into the model's order.
func (r *running) byName(in Inputs) error {
	m := r.session.model
	found := 0
	for i := range m.inputs {
		if o := in[m.inputs[i].Name]; o != nil && o.Tensor() != nil {
			r.operands[i] = o
			found++
		}
	}
	if found == len(m.inputs) && found == len(in) {
		return nil
	}
	if m.composites != nil {
		return r.withComposites(in, found)
	}
	return m.unlike(in)
}

// withComposites adds the inputs that are no tensors, of which in may have the
// whole or the parts.
func (r *running) withComposites(in Inputs, found int) error {
	n, err := r.expand(in)
	if err != nil {
		return err
	}
	m := r.session.model
	if found+n == len(in) && !slices.Contains(r.operands, nil) {
		return nil
	}
	all := maps.Clone(in)
	for _, c := range m.composites {
		if in[c.Name] == nil {
			continue
		}
		delete(all, c.Name)
		for i, info := range m.inputs {
			if info.Of == c {
				all[info.Name] = r.operands[i]
			}
		}
	}
	return m.unlike(all)
}

// unlike is the error for inputs that are not those of the model.
func (m *Model) unlike(in Inputs) error {
	var missing []string
	for _, info := range m.inputs {
		if o := in[info.Name]; o == nil || o.Tensor() == nil {
			text := info.String()
			if info.Of != nil {
				text = info.Of.String()
			}
			if !slices.Contains(missing, text) {
				missing = append(missing, text)
			}
		}
	}
	unknown := m.unknown(maps.Keys(in))
	switch {
	case len(missing) > 0 && unknown != "":
		return fmt.Errorf("run: got no value for %s, but one for %s, which is no input of the model: %w", strings.Join(missing, ", "), unknown, ErrInput)
	case len(missing) > 0:
		return fmt.Errorf("run: got no value for %s: %w", strings.Join(missing, ", "), ErrInput)
	}
	return fmt.Errorf("run: got a value for %s, want inputs of the model: %s: %w", unknown, names(m.inputs), ErrInput)
}

// byPosition takes inputs in the model's order.
func (r *running) byPosition(in []tensor.Operand) error {
	infos := r.session.model.inputs
	if len(in) != len(infos) {
		return fmt.Errorf("run: got %d inputs, want %d (%s): %w", len(in), len(infos), names(infos), ErrInput)
	}
	for i, o := range in {
		if o == nil {
			return fmt.Errorf("run: input %q: got %w: %w", infos[i].Name, ErrNoTensor, ErrInput)
		}
		r.operands[i] = o
	}
	return nil
}

// takeInputs takes the operands and finds the plan for them.
func (r *running) takeInputs(ctx context.Context) error {
	if err := ended.Missing(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run: %w", ended.Error(ctx))
	}
	if err := r.taken.Begin(r.session.model.run, r.operands...); err != nil {
		return err
	}
	return r.findPlan(ctx)
}

// findPlan finds the plan for the inputs.
func (r *running) findPlan(ctx context.Context) error {
	m := r.session.model
	for i := range r.operands {
		t := r.taken.Tensor(i)
		r.types[i] = typeOf(t)
		// A plan is found by shapes alone: element types are compared with the
		// model's here.
		if err := m.inputs[i].takes(r.types[i]); err != nil {
			return inputError{fmt.Errorf("run: %w", err)}
		}
		if !t.Layout().IsContiguous() {
			return fmt.Errorf("run: input %q: got %s, want a contiguous tensor (Contiguous makes one): %w", m.inputs[i].Name, t.Layout(), ErrLayout)
		}
		r.inputs[i], _ = r.taken.Bytes(i)
		r.donated[i] = r.operands[i].Semantics() != tensor.Borrow && r.taken.InPlace(i)
	}
	var err error
	for {
		r.exe, err = r.session.executable(ctx, target{types: r.types, donated: r.donated, value: r.input})
		if errors.Is(err, errBeyondPromise) && r.onlyReleases() {
			continue
		}
		if err != nil {
			r.unplanned = true
			return fmt.Errorf("run: %w", err)
		}
		if !r.forgoReuse() {
			break
		}
	}
	exe := r.exe
	for i, o := range r.operands {
		if o.Semantics() == tensor.DonateInput && !exe.TakesInput(i) {
			return fmt.Errorf("run: input %q is donated, but %s: %w", m.inputs[i].Name, m.whyNotTaken(exe, i), ErrNotReusable)
		}
	}
	return nil
}

// forgoReuse keeps the bytes of an input to reuse from an output that the
// caller has other bytes for, which takes another plan.
func (r *running) forgoReuse() (any bool) {
	for i := range r.outputs {
		o := &r.outputs[i]
		if o.into == nil || o.again {
			continue
		}
		if i := r.exe.OutputInInput(i); i >= 0 && r.operands[i].Semantics() == tensor.ReuseInput && r.taken.Tensor(i) != o.into {
			r.donated[i], any = false, true
		}
	}
	return any
}

// onlyReleases makes inputs to reuse ones that are only released, where all
// that are given up are of that kind.
func (r *running) onlyReleases() bool {
	if slices.ContainsFunc(r.operands, func(o tensor.Operand) bool { return o.Semantics() == tensor.DonateInput }) {
		return false
	}
	clear(r.donated)
	return true
}

// takes returns an error for a value of another element type, and for bytes
// that cannot be strings.
func (i Info) takes(t op.Type) error {
	own := op.Type{DType: i.DType, Shape: i.Shape}
	if t.DType == i.DType && !i.Text {
		return nil
	}
	wanted, kind := own.String(), ErrDType
	if i.Text {
		wanted = fmt.Sprintf("%s as %s (see tensor.OfStrings)", i.typeText(), own)
	}
	if t.DType == i.DType {
		rank := t.Shape.Rank()
		if rank > 0 && (i.Shape == nil || rank == i.Shape.Rank()) && t.Shape.Size(rank-1) > 0 {
			return nil
		}
		kind = ErrShape
	}
	return fmt.Errorf("input %q: got %s, want %s: %w", i.Name, t, wanted, kind)
}
