package tenure

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/internal/ended"
	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/plan"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Inputs are the operands of a run by name: a *tensor.Tensor is borrowed,
// t.Donate() and t.Reuse() are given up.
type Inputs map[string]tensor.Operand

// Outputs are the results of a run by name. They are the caller's to release.
type Outputs map[string]*tensor.Tensor

// Get returns the output of that name, which stays among the outputs. For a
// name that is not there the error is [ErrInput], with the names that are.
func (o Outputs) Get(name string) (*tensor.Tensor, error) {
	if t := o[name]; t != nil {
		return t, nil
	}
	got := slices.Sorted(maps.Keys(o))
	for i, n := range got {
		got[i] = strconv.Quote(n)
	}
	if len(got) == 0 {
		return nil, fmt.Errorf("outputs: got no %q: there are no outputs: %w", name, ErrInput)
	}
	return nil, fmt.Errorf("outputs: got no %q, want one of %s: %w", name, strings.Join(got, ", "), ErrInput)
}

// Release releases every output.
func (o Outputs) Release() error {
	var errs []error
	for _, t := range o {
		errs = append(errs, t.Release())
	}
	return errors.Join(errs...)
}

// Run runs the model. It takes what [Session.Plan] promises for the inputs'
// shapes and may be called from many goroutines.
//
// A borrowed input is only read. A donated one is given up: the run uses its
// bytes for some value of the program, and a state that comes out with the type
// and shape that it went in with comes back in the same bytes; one that is the
// result of a branch whose regions return two shapes is copied once. If the
// bytes cannot be used, the call is an error that says why, before anything
// runs. A reused input is given up too, and overwritten if that is possible.
//
// When ctx ends, the run stops between two steps or between the parts of one. A
// run that stops or fails has consumed nothing, unless it had already written
// into an input that was given up: then all inputs that were given up are dead,
// and the error is [ErrPartlyWritten], with the step. Where the caller's own
// code panics, such as a function given with [Watch], the run ends in the same
// way and the panic goes on. A tensor given with [Into] is the caller's again
// after every run; after one that failed its contents are undefined.
func (s *Session) Run(ctx context.Context, in Inputs, opts ...RunOption) (out Outputs, err error) {
	if err := s.admit("run"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	r := &running{session: s}
	defer func() { out, err = r.end(err) }()
	for i, f := range opts {
		if f == nil {
			return nil, nilOption("run", i)
		}
		f(&r.opts)
	}
	if err := r.takeInputs(ctx, in); err != nil {
		return nil, err
	}
	return nil, r.execute(ctx)
}

// PlanFor says what a run with these inputs will take and keeps the plan for
// it, as [Session.Plan] does for shapes alone. It serves models in which the
// value of an input decides a size, and inputs that are to be donated. It
// consumes nothing.
func (s *Session) PlanFor(ctx context.Context, in Inputs) (*plan.Plan, error) {
	if err := s.admit("plan"); err != nil {
		return nil, err
	}
	defer s.running.Done()
	r := &running{session: s}
	defer r.taken.Rollback()
	if err := r.takeInputs(ctx, in); err != nil {
		return nil, err
	}
	return r.exe.Plan, nil
}

// running is one call of Run, with all that it has taken until now.
type running struct {
	session  *Session
	taken    tensor.Taken
	operands []tensor.Operand
	donated  []bool
	opts     runOptions
	exe      *exec.Executable
	inputs   [][]byte
	outputs  []output
	slot     *exec.Slot
	runner   *exec.Runner
	step     string // that failed
	cause    error  // why
	done     bool   // nothing can fail any more
}

// output is one result under way.
type output struct {
	t     *tensor.Tensor
	bytes tensor.Bytes
	lent  bool // given with Into
	input int  // the donated input whose bytes it comes back in, -1 for none
}

// end is the way out of every run: one that is done, one that was refused or
// failed, and one that panics or whose goroutine ends, which then goes on. It
// gives back the slot and what the run holds, and decides what becomes of the
// outputs and of the inputs that were given up.
func (r *running) end(err error) (Outputs, error) {
	wrote := false
	if r.runner != nil {
		wrote = r.runner.End()
	}
	if r.slot != nil {
		r.session.slots <- r.slot
	}
	for i := range r.outputs {
		r.outputs[i].bytes.Release()
	}
	if r.done {
		return r.results(), nil
	}
	for i := range r.outputs {
		if o := &r.outputs[i]; o.t != nil && !o.lent && o.input < 0 {
			_ = o.t.Release() // nobody else knows it; one in an input's bytes ends with the taking
		}
	}
	if !wrote {
		r.taken.Rollback()
		return nil, err
	}
	return nil, r.taken.Fail(r.step, r.cause)
}

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

// execute waits for a slot, runs, and makes the results ready to be handed over.
func (r *running) execute(ctx context.Context) error {
	if err := r.takeOutputs(); err != nil {
		return err
	}
	if r.cause = r.runProgram(ctx); r.cause != nil {
		var part *exec.PartError
		if errors.As(r.cause, &part) {
			r.step = part.Step()
		}
		return fmt.Errorf("run: %w", r.cause)
	}
	for i := range r.outputs {
		if r.cause = r.complete(i); r.cause != nil {
			r.step = fmt.Sprintf("handing over output %q", r.session.model.outputs[i].Name)
			return fmt.Errorf("run: %s: %w", r.step, r.cause)
		}
	}
	r.done = true
	return nil
}

func (r *running) runProgram(ctx context.Context) (err error) {
	if r.slot, err = r.session.takeSlot(ctx); err != nil {
		return err
	}
	if r.runner, err = r.slot.Runner(r.exe); err != nil {
		return err
	}
	outputs := make([][]byte, len(r.outputs))
	for i := range r.outputs {
		outputs[i] = r.outputs[i].bytes.Data
	}
	r.runner.Watch = r.opts.watch
	if err := r.runner.Run(r.session.pool, ctx.Done(), r.inputs, outputs); err != nil {
		if errors.Is(err, compute.ErrStopped) {
			return fmt.Errorf("%w: %w", err, ended.Error(ctx))
		}
		return err
	}
	return nil
}

// complete makes the tensor of output i, if it has none yet: its bytes are
// those of a donated input, or its size depended on data. One given with Into
// has none of the bytes of such a size yet.
func (r *running) complete(i int) (err error) {
	o, typ := &r.outputs[i], r.exe.Program.Body.Results[i].Type
	if o.input >= 0 {
		o.t, err = r.taken.Keep(o.input, typ.DType, shape.RowMajor(typ.Shape))
		return err
	}
	if typ.IsStatic() {
		return nil
	}
	buf, typ := r.runner.TakeDynamic(i)
	if o.lent {
		return o.fill(buf, typ)
	}
	if buf == nil {
		o.t, err = r.session.newOutput(typ)
		return err
	}
	o.t, err = tensor.FromBuffer(buf, 0, typ.DType, shape.RowMajor(typ.Shape))
	return errors.Join(err, buf.Release()) // the tensor holds it
}

// fill copies a value whose size depended on data into the caller's tensor, and
// gives up its buffer, which is nil for no bytes.
func (o *output) fill(buf *memory.Buffer, typ op.Type) (err error) {
	if got := typeOf(o.t); got != typ {
		err = fmt.Errorf("Into: got %s, want %s, of which the output is in this run: %w", got, typ, ErrShape)
	}
	if buf == nil {
		return err
	}
	if err == nil {
		copy(o.bytes.Data, buf.Bytes())
	}
	return errors.Join(err, buf.Release())
}

func typeOf(t *tensor.Tensor) op.Type { return op.Type{DType: t.DType(), Shape: t.Shape()} }

// output returns the place of an output, -1 for a name that the model has not.
func (m *Model) output(name string) int {
	return slices.IndexFunc(m.outputs, func(info Info) bool { return info.Name == name })
}

// takeOutputs takes the buffers of the outputs: those given with Into, new
// ones for the rest.
func (r *running) takeOutputs() error {
	results := r.exe.Program.Body.Results
	r.outputs = make([]output, len(results))
	for i := range r.outputs {
		r.outputs[i].input = r.exe.OutputInInput(i)
	}
	for _, into := range r.opts.into {
		i := r.session.model.output(into.name)
		if i < 0 {
			return fmt.Errorf("run: Into(%q): want one of the model's outputs %s: %w", into.name, names(r.session.model.outputs), ErrInput)
		}
		if err := r.lend(i, into, results[i].Type); err != nil {
			return fmt.Errorf("run: Into(%q): %w", into.name, err)
		}
	}
	for i, v := range results {
		o := &r.outputs[i]
		if o.t != nil || o.input >= 0 || !v.Type.IsStatic() {
			continue
		}
		var err error
		if o.t, err = r.session.newOutput(v.Type); err == nil {
			o.bytes, err = o.t.Lock()
		}
		if err != nil {
			return fmt.Errorf("run: output %q: %w", r.session.model.outputs[i].Name, err)
		}
	}
	return nil
}

// newOutput makes a tensor for an output that has no bytes yet.
func (s *Session) newOutput(t op.Type) (*tensor.Tensor, error) {
	return tensor.Make(s.opts.outputs, t.DType, t.Shape)
}

// lend takes a tensor of the caller for output i.
func (r *running) lend(i int, into intoOption, want op.Type) error {
	o, possible := &r.outputs[i], r.exe.PossibleTypes(i)
	if want.IsStatic() {
		possible = []op.Type{want}
	}
	switch {
	case into.t.Layout() == nil:
		return fmt.Errorf("got %w: %w", ErrNoTensor, ErrInput)
	case o.t != nil:
		return fmt.Errorf("the output is given twice: %w", ErrInput)
	case possible == nil:
		return fmt.Errorf("the size of the output, %s, depends on data and is known when it is computed: %w", want, ErrUnsupported)
	case o.input >= 0:
		return fmt.Errorf("the output comes back in the bytes of the donated input %q, want that borrowed or reused: %w", r.session.model.inputs[o.input].Name, ErrNotReusable)
	}
	if got := typeOf(into.t); !slices.Contains(possible, got) {
		kind := ErrShape
		if got.DType != want.DType {
			kind = ErrDType
		}
		return fmt.Errorf("got %s, want %s: %w", got, oneOf(possible), kind)
	}
	if l := into.t.Layout(); !l.IsContiguous() {
		return fmt.Errorf("got %s, want a contiguous tensor: %w", l, ErrLayout)
	}
	var err error
	if o.bytes, err = into.t.Lock(); err != nil {
		return r.refusedInto(into.t, err)
	}
	o.t, o.lent = into.t, true
	return nil
}

func oneOf(types []op.Type) string {
	list := make([]string, len(types))
	for i, t := range types {
		list[i] = t.String()
	}
	return strings.Join(list, " or ")
}

// refusedInto says where else in the same run a tensor is that cannot take an
// output.
func (r *running) refusedInto(t *tensor.Tensor, err error) error {
	for i := range r.operands {
		if r.taken.Tensor(i) == t {
			return fmt.Errorf("it is input %q of the same run: %w", r.session.model.inputs[i].Name, err)
		}
	}
	for i := range r.outputs {
		if r.outputs[i].t == t {
			return fmt.Errorf("it takes output %q of the same run: %w", r.session.model.outputs[i].Name, err)
		}
	}
	return err
}

// results ends the inputs that were given up and hands the outputs over.
func (r *running) results() Outputs {
	out := make(Outputs, len(r.outputs))
	for i := range r.outputs {
		if o := &r.outputs[i]; !o.lent {
			out[r.session.model.outputs[i].Name] = o.t
		}
	}
	r.taken.Commit()
	return out
}
