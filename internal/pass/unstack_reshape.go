package pass

import (
	"slices"

	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// lift makes a reshape that splits axes of a transpose, of which it is the only
// reader, the transpose.
func (u *unstacker) lift(c *ir.Call) error {
	if c.Op.Name != "reshape" || c.Args[0].Donate || !isStatic(c.Results[0]) {
		return nil
	}
	last := def(c.Args[0].Value, "transpose")
	if last == nil || u.uses[last.Results[0]] != 1 || u.blocks[last] != u.blocks[c] || !isStatic(last.Results[0]) {
		return nil
	}
	x, perm := last.Args[0].Value, permOf(last)
	groups := splitAxes(last.Results[0].Type.Shape.Sizes(), c.Results[0].Type.Shape.Sizes())
	if len(groups) == 0 || rank(c.Results[0]) == rank(x) {
		return nil
	}
	var target []int64
	var dims []shape.Dim
	order := make([][]int64, len(groups))
	for axis := range rank(x) {
		i := slices.Index(perm, axis)
		for _, n := range groups[i] {
			order[i] = append(order[i], int64(len(target)))
			target, dims = append(target, int64(n)), append(dims, shape.N(n))
		}
	}
	at, err := u.ctx.addInts(target)
	if err != nil {
		return err
	}
	u.forget(c)
	u.forget(last)
	y, err := u.insert(c, "reshape", nil, c.Results[0], x, dims, ir.Operand{Value: at})
	if err != nil {
		return err
	}
	c.Op, c.Attrs, c.Args = op.Builtin().Lookup("transpose"), op.Attrs{{Name: "perm", Value: slices.Concat(order...)}}, []ir.Operand{{Value: y}}
	u.uses[y], u.readers[y] = 1, []*ir.Call{c}
	return nil
}

// splitAxes returns the sizes that each axis is split into where a reshape
// splits axes and does nothing else, nil where it does.
func splitAxes(from, to []int) (groups [][]int) {
	for i, n := range from {
		k, product := 0, 1
		for k < len(to) && (k == 0 || product < n) {
			product *= to[k]
			k++
		}
		for k < len(to) && to[k] == 1 && len(to)-k > len(from)-i-1 { // no other axis needs it
			k++
		}
		if k == 0 || product != n {
			return nil
		}
		groups = append(groups, to[:k])
		to = to[k:]
	}
	if len(to) > 0 {
		return nil
	}
	return groups
}
