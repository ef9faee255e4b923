package tenure

import (
	"fmt"

	"github.com/tenure-go/tenure/shape"
	"github.com/tenure-go/tenure/tensor"
)

// counted is an axis of an input of the caller whose size was that of the rows
// in every run until now: those that a group of states had before, and those of
// the run, as the columns of masks.
type counted struct {
	input, axis int
	groups      []bool // for which that holds
}

// dropped are rows that a group dropped for a run, for which it would have had
// as many as columns says without.
type dropped struct{ group, rows, columns int }

// countAxes lists the axes of inputs that no state has, whose size is open.
func (st *States) countAxes() {
	m := st.session.model
	ours := make([]bool, len(m.inputs))
	for _, k := range st.kept {
		ours[k.input] = true
	}
	for _, g := range st.groups {
		for _, i := range []int{g.length, g.sizes} {
			if i >= 0 {
				ours[i] = true
			}
		}
	}
	for i, info := range m.inputs {
		if ours[i] || info.Shape == nil || i == m.states.Branch {
			continue
		}
		for axis, d := range info.Shape.Dims() {
			if _, sized := d.Size(); !sized {
				c := counted{i, axis, make([]bool, len(st.groups))}
				for k := range c.groups {
					c.groups[k] = true
				}
				st.counted = append(st.counted, c)
			}
		}
	}
}

// count compares the sizes of a run that has ended well with the rows that
// there are now.
func (st *States) count(r *running) {
	for _, c := range st.counted {
		s := r.types[c.input].Shape
		for k, g := range st.groups {
			c.groups[k] = c.groups[k] && s != nil && s.Size(c.axis) == g.n
		}
	}
}

// without returns the inputs without the columns of rows that were dropped for
// the run. Those that are other ones are in the list, for the caller to
// release.
func (st *States) without(in Inputs, drops []dropped) (_ Inputs, cut []*tensor.Tensor, err error) {
	var list Inputs
	for _, c := range st.counted {
		info := st.session.model.inputs[c.input]
		for _, d := range drops {
			o := in[info.Name]
			if list != nil {
				o = list[info.Name]
			}
			if !c.groups[d.group] || o == nil || o.Tensor() == nil {
				continue
			}
			s := o.Tensor().Shape()
			if c.axis >= s.Rank() || s.Size(c.axis) != d.columns {
				continue
			}
			if o.Semantics() != tensor.Borrow || o.Tensor().DType().Bits() < 8 {
				return in, cut, fmt.Errorf("run: input %s: got %s with axis %d for %d rows, of which %d are dropped, want a borrowed tensor of whole bytes, or one for the rows that are left: %w", info, s, c.axis, d.columns, d.rows, ErrShape)
			}
			t, err := behind(o.Tensor(), d.rows, c.axis)
			if err != nil {
				return in, cut, fmt.Errorf("run: input %s: dropping %d of %d along axis %d: %w", info, d.rows, d.columns, c.axis, err)
			}
			if list == nil {
				list = make(Inputs, len(in))
				for name, o := range in {
					list[name] = o
				}
			}
			list[info.Name], cut = t, append(cut, t)
			break
		}
	}
	if list == nil {
		return in, nil, nil
	}
	return list, cut, nil
}

// behind returns a copy of a tensor without the first n along an axis.
func behind(t *tensor.Tensor, n, axis int) (*tensor.Tensor, error) {
	sizes := append([]int{}, t.Shape().Sizes()...)
	sizes[axis] -= n
	to, err := shape.Of(sizes...)
	if err != nil {
		return nil, err
	}
	x, err := tensor.New(t.DType(), to)
	if err == nil {
		err = copyRows(x, 0, t, n, sizes[axis], axis)
	}
	return x, err
}

// slide drops all rows of a group but the last ones.
func (st *States) slide(g *stateGroup, keep int) error {
	for _, k := range st.kept {
		if k.buffer() && st.groups[k.group] == g {
			if err := copyRows(k.t, 0, k.t, g.n-keep, keep, k.Axis); err != nil {
				return err
			}
		}
	}
	g.n = keep
	return nil
}
