package tenure

import (
	"fmt"

	"github.com/tenure-go/tenure/internal/exec"
)

// admit refuses a run, whose plan is known, for whose rows there is no room,
// and makes its outputs those of the states.
func (st *States) admit(r *running) error {
	for _, g := range st.groups {
		n, err := g.admit(r)
		if err != nil {
			return err
		}
		g.next = g.n + n
	}
	if full := st.full(r.exe, r.types); full != nil {
		return full
	}
	for _, g := range st.groups {
		if err := g.admitMasks(r.exe, st.capacity); err != nil {
			return err
		}
	}
	for _, k := range st.kept {
		o := &r.outputs[k.output]
		if o.into != nil {
			return inputError{fmt.Errorf("run: Into(%q): the output is a state", k.Output)}
		}
		switch {
		case k.Kind == StateHeld:
		case st.givesUp(k):
			o.into, o.again = k.t, true
		default:
			o.into, o.again = k.other, k.other != nil
		}
	}
	return nil
}

// admit returns how many rows a run adds, whose plan is known, and makes the
// output that says so the group's.
func (g *stateGroup) admit(r *running) (int, error) {
	n, ok := g.adds(r.exe)
	if !ok {
		return 0, fmt.Errorf("run: how many rows a run adds to states depends on data: %w", ErrUnsupported)
	}
	rows := r.exe.ResultType(g.rows).Shape
	sizes := rows.Sizes()[2:]
	if len(g.masks) > 0 {
		sizes = sizes[:len(sizes)-len(g.masks)]
	}
	for _, other := range sizes {
		if other != n {
			return 0, fmt.Errorf("run: states of one length: got %d rows for one, and %d for another or for the queries, want as many: %w", n, other, ErrShape)
		}
	}
	if r.outputs[g.rows].into != nil {
		return 0, inputError{fmt.Errorf("run: Into(%q): the output is one of the states", r.session.model.outputs[g.rows].Name)}
	}
	r.outputs[g.rows].into, r.outputs[g.rows].again = g.rowsTensor, g.rowsTensor != nil
	return n, nil
}

// adds returns how many rows a run adds, whose plan is known. It is false if
// that depends on data.
func (g *stateGroup) adds(exe *exec.Executable) (n int, ok bool) {
	rows := exe.ResultType(g.rows).Shape
	for i := range rows.Rank() - len(g.masks) {
		if rows.Size(i) < 0 {
			return 0, false
		}
	}
	return rows.Size(0), true
}

// admitMasks refuses masks that have more columns than there are rows, unless
// they have one for each row of the buffers. A size that depends on data is not
// known here: the columns behind the rows are not read.
func (g *stateGroup) admitMasks(exe *exec.Executable, capacity int) error {
	rows := exe.ResultType(g.rows).Shape
	first := rows.Rank() - len(g.masks)
	for i, call := range g.masks {
		if n := rows.Size(first + i); n > g.next && n != capacity {
			return fmt.Errorf("run: %s: got a mask of %d columns for %d rows and %d of the run, want at most %d, or %d, the capacity: %w", call, n, g.n, g.next-g.n, g.next, capacity, ErrShape)
		}
	}
	return nil
}
