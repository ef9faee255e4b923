package tenure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tenure-go/tenure/internal/exec"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/tensor"
)

// WithRollback makes a failed run leave every state as it was. Appended states
// are left so anyway. Each other one gets a second buffer of its size, into
// which a run writes the new value, and the two change places when the run has
// succeeded: the old value is never written over. A written state is copied by
// every run then.
func WithRollback() StatesOption { return func(o *statesOptions) { o.rollback = true } }

// survive spares the states that a run that failed, after it had written into
// an operand, has left as they were. It reports whether nothing that was given
// up to the run is lost.
func (st *States) survive(r *running) bool { return r.spare(st.kept, st.givesUp) }

// spare spares the tensors of states for a [keeper].
func (r *running) spare(list []*kept, givesUp func(*kept) bool) bool {
	last := r.exe.LastCall()
	if part := (*exec.PartError)(nil); errors.As(r.cause, &part) {
		last = part.Call
	}
	ours, all := 0, true
	for _, k := range list {
		if givesUp(k) {
			ours++
		}
		if k.spoiled(r.exe, last) {
			all = false
		} else {
			r.taken.Spare(k.input)
		}
	}
	for _, o := range r.operands {
		if o.Semantics() != tensor.Borrow {
			ours--
		}
	}
	return all && ours == 0 // otherwise the caller has given up an input, too
}

// spoiled reports whether a run that got as far as call last may have changed
// what the state was.
//
// Of an appended state that is the rows before its length. The output that is
// the state's next value has those rows as they are, so a plan that returns it
// in the bytes of the input, and in which no call but the tensor_scatter or
// block_scatter that computes it writes there, never changes them: the call
// copies nothing over itself, and writes rows behind the length. A branch has
// one in each region, and writes nothing by itself.
func (k *kept) spoiled(exe *exec.Executable, last int) bool {
	calls := exe.WritersOf(k.input, last)
	if k.Kind != StateAppended || exe.OutputInInput(k.output) != k.input {
		return len(calls) > 0
	}
	appends := appendsOf(exe.Program.Body.Results[k.output], nil)
	for _, c := range exe.WritersOf(k.input, exe.LastCall()) {
		if !c.Op.Branch && (!slices.Contains(appends, c) || !exe.InPlace(c)) {
			return true
		}
	}
	return false
}

// appendsOf lists the calls of tensor_scatter or block_scatter that compute a
// value: one for each region of a branch, and one for each part of a stacked
// state.
func appendsOf(v *ir.Value, list []*ir.Call) []*ir.Call {
	switch c := v.Def; {
	case c == nil:
	case c.Op.Name == "tensor_scatter", c.Op.Name == "block_scatter":
		list = append(list, c)
	case c.Op.Branch:
		for _, region := range c.Regions {
			list = appendsOf(region.Results[v.Index], list)
		}
	default: // a view, or a join of parts, if the result lies in the input
		for _, a := range c.Args {
			if a.Value != nil {
				list = appendsOf(a.Value, list)
			}
		}
	}
	return list
}

// givesUp reports whether a run gets the bytes of a state to write into.
func (st *States) givesUp(k *kept) bool {
	return k.Kind == StateAppended || k.Kind != StateHeld && !st.opts.rollback
}

// lost names the states that have no contents: a run failed after it had
// written into them.
func (st *States) lost() (names []string) {
	for _, k := range st.kept {
		if k.t == nil || !k.t.Alive() {
			names = append(names, k.Input)
		}
	}
	return names
}

// whole returns why states have no contents.
func (st *States) whole() error {
	if lost := st.lost(); len(lost) > 0 {
		return fmt.Errorf("the states have no contents of %s, because a run %w; Set with what they were goes on, and Reset begins anew", strings.Join(lost, ", "), ErrPartlyWritten)
	}
	return nil
}

// nameLost adds to the error of a run the states that are lost.
func (st *States) nameLost(err error) error {
	if !errors.Is(err, ErrPartlyWritten) {
		return err
	}
	if lost := st.lost(); len(lost) > 0 {
		return fmt.Errorf("%w (the contents of %s are lost, and those of other states as they were)", err, strings.Join(lost, ", "))
	}
	return err
}
