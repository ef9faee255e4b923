package tenure

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Inputs are the operands of a run by name: a *tensor.Tensor is borrowed,
// t.Donate() and t.Reuse() are given up.
type Inputs map[string]tensor.Operand

// takeInputs takes the operands and finds the plan for them.
func (r *running) takeInputs(ctx context.Context, in Inputs) (err error) {
	if err := ended.Missing(ctx); err != nil {
		return fmt.Errorf("run: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("run: %w", ended.Error(ctx))
	}
	if r.operands, err = r.session.model.operands(in); err != nil {
		return err
	}
	if err := r.taken.Begin(r.session.model.run, r.operands...); err != nil {
		return err
	}
	return r.findPlan(ctx)
}

// operands puts the inputs into the model's order.
func (m *Model) operands(in Inputs) ([]tensor.Operand, error) {
	operands := make([]tensor.Operand, len(m.inputs))
	var missing []string
	for i, info := range m.inputs {
		if o := in[info.Name]; o != nil && o.Tensor() != nil {
			operands[i] = o
			continue
		}
		missing = append(missing, info.String())
	}
	unknown := m.unknown(maps.Keys(in))
	switch {
	case len(missing) > 0 && unknown != "":
		return nil, fmt.Errorf("run: got no value for %s, but one for %s, which is no input of the model: %w", strings.Join(missing, ", "), unknown, ErrInput)
	case len(missing) > 0:
		return nil, fmt.Errorf("run: got no value for %s: %w", strings.Join(missing, ", "), ErrInput)
	case unknown != "":
		return nil, fmt.Errorf("run: got a value for %s, want inputs of the model: %s: %w", unknown, names(m.inputs), ErrInput)
	}
	return operands, nil
}

// findPlan finds the plan for the inputs.
func (r *running) findPlan(ctx context.Context) error {
	m := r.session.model
	types := make([]op.Type, len(r.operands))
	r.donated = make([]bool, len(r.operands))
	r.inputs = make([][]byte, len(r.operands))
	for i := range r.operands {
		t := r.taken.Tensor(i)
		types[i] = op.Type{DType: t.DType(), Shape: t.Shape()}
		// A plan is found by shapes alone: element types are compared with the model's here.
		if err := m.inputs[i].takes(types[i]); err != nil {
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
		r.exe, err = r.session.executable(ctx, target{types: types, donated: r.donated, value: func(i int) []byte { return r.inputs[i] }})
		if err != nil {
			return fmt.Errorf("run: %w", err)
		}
		if !r.forgoReuse() {
			break
		}
	}
	exe := r.exe
	for i, o := range r.operands {
		if o.Semantics() == tensor.DonateInput && !exe.TakesInput(i) {
			return fmt.Errorf("run: input %q is donated, but %s: %w", m.inputs[i].Name, exe.WhyNotTaken(i), ErrNotReusable)
		}
	}
	return nil
}

// forgoReuse keeps the bytes of an input to reuse from an output that the
// caller has other bytes for, which takes another plan.
func (r *running) forgoReuse() (any bool) {
	for _, into := range r.opts.into { // most runs have none
		o := r.session.model.output(into.name)
		if o < 0 {
			continue // takeOutputs says so
		}
		if i := r.exe.OutputInInput(o); i >= 0 && r.operands[i].Semantics() == tensor.ReuseInput {
			r.donated[i], any = false, true
		}
	}
	return any
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
