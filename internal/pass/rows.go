package pass

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Rows makes views of gathers of one constant index along the first axis: a
// slice, and a squeeze where the index has no axis. So the layers of a stacked
// cache, or queries, keys and values of one product, are read where they lie.
//
// Requires: fold (indices are constants). Guarantees: no gather remains of one
// constant index along the first axis, of known size, of a value that is no
// weight and has another axis.
//
// Left to other passes: weights (fold).
var Rows = Pass{Name: "rows", Doc: "read one index of a first axis by a view", Run: rows}

func rows(ctx *Context) error {
	type place struct {
		block *ir.Block
		call  *ir.Call
	}
	var found []place
	ctx.Program.Walk(func(b *ir.Block, c *ir.Call) {
		if c.Op.Name == "gather" && c.Results[0] != nil && !c.Args[0].Donate {
			found = append(found, place{b, c})
		}
	})
	for _, at := range found {
		if err := ctx.row(at.block, at.call); err != nil {
			return err
		}
	}
	return nil
}

// row makes a view of a gather in block b, if it is one.
func (c *Context) row(b *ir.Block, call *ir.Call) error {
	x, index := call.Args[0].Value, call.Args[1].Value
	if x.Kind == ir.Weight || rank(x) < 2 || !isSized(x, 0) || call.Sig(nil).Int("axis") != 0 && call.Sig(nil).Int("axis") != int64(-rank(x)) {
		return nil
	}
	i, ok := c.oneIndex(index)
	n := int64(c.size(x, 0))
	if i < 0 {
		i += n
	}
	if !ok || i < 0 || i >= n {
		return nil
	}
	var args [3]*ir.Value
	for k, v := range []int64{i, i + 1, 0} {
		var err error
		if args[k], err = c.addInt(v); err != nil {
			return err
		}
	}
	part := &ir.Call{Op: op.Builtin().Lookup("slice"), Node: call.Node,
		Args: []ir.Operand{{Value: x}, {Value: args[0]}, {Value: args[1]}, {Value: args[2]}}}
	if rank(index) == 1 {
		call.Op, call.Attrs, call.Args = part.Op, nil, part.Args
		return nil
	}
	dims := x.Type.Shape.Dims()
	dims[0] = shape.N(1)
	s, err := shape.FromDims(dims...)
	if err != nil {
		return err
	}
	v := c.newLike(call.Results[0])
	v.Name = fmt.Sprintf("%s.row%d", call.Results[0].Name, v.ID)
	v.Type, v.Def, part.Results = op.Type{DType: x.Type.DType, Shape: s}, part, []*ir.Value{v}
	call.Op, call.Attrs, call.Args = op.Builtin().Lookup("squeeze"), nil, []ir.Operand{{Value: v}, {Value: args[2]}}
	b.Calls = slices.Insert(b.Calls, slices.Index(b.Calls, call), part)
	return nil
}

// oneIndex returns the only number of a constant.
func (c *Context) oneIndex(v *ir.Value) (int64, bool) {
	if v.Kind != ir.Weight || rank(v) > 1 {
		return 0, false
	}
	switch data, ok := c.constant(v); {
	case ok && v.Type.DType == dtype.I64 && len(data) == 8:
		return int64(binary.LittleEndian.Uint64(data)), true
	case ok && v.Type.DType == dtype.I32 && len(data) == 4:
		return int64(int32(binary.LittleEndian.Uint32(data))), true
	}
	return 0, false
}

// addInt adds a constant i64[1] to the table.
func (c *Context) addInt(n int64) (*ir.Value, error) { return c.addInts([]int64{n}) }

// addInts adds a list of integers to the table.
func (c *Context) addInts(list []int64) (*ir.Value, error) {
	v, data, err := c.newWeight("index", op.Type{DType: dtype.I64, Shape: shape.MustOf(len(list))})
	for i := 0; err == nil && i < len(list); i++ {
		binary.LittleEndian.PutUint64(data[8*i:], uint64(list[i]))
	}
	return v, err
}
