package tenure

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tenure-go/tenure/memory"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// Outputs are the results of a run by name. They are the caller's to release.
// One that is no tensor in the model's file is several, see [Composite];
// [Outputs.Sequence] and [Outputs.Map] put them together.
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
		if err := t.Release(); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// output is one result under way.
type output struct {
	t     *tensor.Tensor
	bytes tensor.Bytes
	lent  bool // t was there before the run
	input int  // the input that was given up and whose bytes it comes back in, -1 for none

	into  *tensor.Tensor // that is to take it, nil for a new one
	again bool           // into is of an earlier run: where it does not fit a new one takes its place
}

// newOutputs returns the outputs that the caller does not have yet.
func (r *running) newOutputs() Outputs {
	out := make(Outputs, len(r.outputs))
	for i := range r.outputs {
		if o := &r.outputs[i]; !o.lent {
			out[r.session.model.outputs[i].Name] = o.t
		}
	}
	return out
}

// into notes the tensors of the caller for the outputs, by position.
func (r *running) into(out []*tensor.Tensor) error {
	infos := r.session.model.outputs
	if len(out) != len(infos) {
		return fmt.Errorf("run: got %d outputs, want %d (%s; nil for one that the run makes): %w", len(out), len(infos), names(infos), ErrInput)
	}
	for i, t := range out {
		if t == nil {
			continue
		}
		if t.Layout() == nil {
			return fmt.Errorf("run: output %q: got %w: %w", infos[i].Name, ErrNoTensor, ErrInput)
		}
		if r.outputs[i].into != nil {
			return fmt.Errorf("run: Into(%q): the output is given twice: %w", infos[i].Name, ErrInput)
		}
		r.outputs[i].into = t
	}
	return nil
}

// takeOutputs takes the buffers of the outputs: those that are there already,
// new ones for the rest.
func (r *running) takeOutputs() error {
	for i := range r.outputs {
		r.outputs[i].input = r.exe.OutputInInput(i)
	}
	for i := range r.outputs {
		o := &r.outputs[i]
		if o.into == nil {
			continue
		}
		if o.again {
			r.lendAgain(o, r.exe.ResultType(i))
		} else if err := r.lend(i, r.exe.ResultType(i)); err != nil {
			return fmt.Errorf("run: Into(%q): %w", r.session.model.outputs[i].Name, err)
		}
	}
	for i := range r.outputs {
		o, typ := &r.outputs[i], r.exe.ResultType(i)
		if o.t != nil || o.input >= 0 || !typ.IsStatic() {
			continue
		}
		var err error
		if o.t, err = r.session.newOutput(typ); err == nil {
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
	return tensor.MakeOnHost(s.opts.outputs, t.DType, t.Shape)
}

// lend takes the caller's tensor for output i.
func (r *running) lend(i int, want op.Type) error {
	o, possible := &r.outputs[i], r.exe.PossibleTypes(i)
	if want.IsStatic() {
		possible = []op.Type{want}
	}
	stays := r.stays(o)
	switch {
	case possible == nil:
		return fmt.Errorf("the size of the output, %s, depends on data and is known when it is computed: %w", want, ErrUnsupported)
	case o.input >= 0 && !stays:
		return fmt.Errorf("the output comes back in the bytes of the donated input %q, want that borrowed or reused, or its tensor for the output: %w", r.session.model.inputs[o.input].Name, ErrNotReusable)
	}
	if got := typeOf(o.into); !slices.Contains(possible, got) {
		kind := ErrShape
		if got.DType != want.DType {
			kind = ErrDType
		}
		return fmt.Errorf("got %s, want %s: %w", got, oneOf(possible), kind)
	}
	if l := o.into.Layout(); !l.IsContiguous() {
		return fmt.Errorf("got %s, want a contiguous tensor: %w", l, ErrLayout)
	}
	if !stays {
		var err error
		if o.bytes, err = o.into.Lock(); err != nil {
			return r.refusedInto(o.into, err)
		}
	}
	o.t, o.lent = o.into, true
	return nil
}

// lendAgain takes the tensor of an earlier run for an output, if the output
// fits into it and no other code uses it.
func (r *running) lendAgain(o *output, want op.Type) {
	if !want.IsStatic() || typeOf(o.into) != want || o.input >= 0 && !r.stays(o) {
		return
	}
	if o.input < 0 {
		var err error
		if o.bytes, err = o.into.Lock(); err != nil {
			return
		}
	}
	o.t, o.lent = o.into, true
}

// stays reports whether the output comes back in the bytes of the very tensor
// that is to take it: then that tensor lives on.
func (r *running) stays(o *output) bool { return o.input >= 0 && r.taken.Tensor(o.input) == o.into }

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
			return fmt.Errorf("it is input %q of the same run, in whose bytes the output does not come back: %w", r.session.model.inputs[i].Name, err)
		}
	}
	for i := range r.outputs {
		if r.outputs[i].t == t {
			return fmt.Errorf("it takes output %q of the same run: %w", r.session.model.outputs[i].Name, err)
		}
	}
	return err
}

// complete makes the tensor of output i, if it has none yet: its bytes are
// those of a donated input, or its size depended on data. One given with Into
// has none of the bytes of such a size yet.
func (r *running) complete(i int) (err error) {
	o, typ := &r.outputs[i], r.exe.ResultType(i)
	if o.input >= 0 && o.lent {
		return r.taken.Stay(o.input)
	}
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
// releases its buffer, which is nil for no bytes.
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
