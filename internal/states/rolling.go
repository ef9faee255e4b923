package states

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// window is a state of one size along an axis, of which a run drops the oldest
// rows for those that it adds.
type window struct {
	rows *ir.Value
	axis int
}

// windowOf returns the window that an output is of an input, whose size along
// the axis is known: the last rows of concat(in, rows), as many as the input
// has, or a concat of the rows of the input but the first with as many.
func (r *rewriter) windowOf(in, out *ir.Value) (w window, ok bool) {
	c := out.Def
	if c == nil || in.Type.Shape == nil || len(c.Results) != 1 {
		return w, false
	}
	rank := in.Type.Shape.Rank()
	switch c.Op.Name {
	case "slice":
		all := c.Args[0].Value.Def
		if !r.joins(all, rank) || all.Args[0].Value != in {
			return w, false
		}
		w = window{all.Args[1].Value, axisOf(all, rank)}
		size, sized := dimOf(in, w.axis).Size()
		start, end, one := r.span(c, w.axis, rank)
		return w, one && sized && size > 0 && start == int64(-size) && end == math.MaxInt64
	case "concat":
		if !r.joins(c, rank) {
			return w, false
		}
		w = window{c.Args[1].Value, axisOf(c, rank)}
		old := c.Args[0].Value.Def
		if old == nil || old.Op.Name != "slice" || old.Args[0].Value != in {
			return w, false
		}
		size, sized := dimOf(in, w.axis).Size()
		added, known := dimOf(w.rows, w.axis).Size()
		start, end, one := r.span(old, w.axis, rank)
		return w, one && sized && known && added <= size && start == int64(added) && end >= int64(size)
	}
	return w, false
}

// joins reports whether a call is a concat of two values of a rank.
func (r *rewriter) joins(c *ir.Call, rank int) bool {
	return c != nil && c.Op.Name == "concat" && len(c.Args) == 2 && axisOf(c, rank) >= 0
}

// span returns where a slice of one axis begins and ends, if that is all that
// the call does and both are known. An end past all sizes is the largest
// number.
func (r *rewriter) span(c *ir.Call, axis, rank int) (start, end int64, ok bool) {
	var lists [5][]int64
	for i, a := range c.Args {
		if i > 0 && a.Value != nil {
			if lists[i], ok = r.numbers(a.Value); !ok {
				return 0, 0, false
			}
		}
	}
	starts, ends, axes, steps := lists[1], lists[2], lists[3], lists[4]
	if len(axes) == 0 {
		axes = []int64{0}
	}
	if len(starts) != 1 || len(ends) != 1 || len(axes) != 1 || len(steps) > 1 || len(steps) == 1 && steps[0] != 1 {
		return 0, 0, false
	}
	if axes[0] < 0 {
		axes[0] += int64(rank)
	}
	if ends[0] >= math.MaxInt32 { // exporters write either for no end
		ends[0] = math.MaxInt64
	}
	return starts[0], ends[0], axes[0] == int64(axis)
}

// numbers returns the integers of a value that is known.
func (r *rewriter) numbers(v *ir.Value) (list []int64, ok bool) {
	if c := v.Def; c != nil && c.Op.Name == "constant" {
		list, ok = c.Attrs.Get("ints").([]int64)
		return append([]int64(nil), list...), ok
	}
	if r.known == nil {
		return nil, false
	}
	data, ok := r.known(v)
	if !ok || v.Type.DType != dtype.I64 && v.Type.DType != dtype.I32 {
		return nil, false
	}
	size := v.Type.DType.Size()
	for at := 0; at+size <= len(data); at += size {
		if size == 8 {
			list = append(list, int64(binary.LittleEndian.Uint64(data[at:])))
		} else {
			list = append(list, int64(int32(binary.LittleEndian.Uint32(data[at:]))))
		}
	}
	return list, true
}

// roll makes the output of a window what shift computes of the input, which can
// do so in the input's bytes.
func (r *rewriter) roll(out *ir.Value, i int) {
	w := r.windows[out]
	r.define(out, "shift", op.Attrs{{Name: "axis", Value: int64(w.axis)}}, r.program.Body.Params[r.states[i].Input], r.past(w.rows))
}

// isRolled reports whether a state is a window, and notes it.
func (r *rewriter) isRolled(i int) bool {
	in, out := r.program.Body.Params[r.states[i].Input], r.program.Body.Results[r.states[i].Output]
	w, ok := r.windowOf(in, out)
	if !ok {
		return false
	}
	r.windows[out] = w
	r.at[out.Def] = append(r.at[out.Def], i)
	return true
}
