package contrib

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// gathering is a GatherBlockQuantized while it is put together.
type gathering struct {
	*lift.Node
	axis, along int64 // that of the indices, and that of the blocks
	block, bits int64
}

// liftGatherBlocks gathers slices of a table that is quantised in blocks.
// Slices are gathered as bytes, and become floats after that.
func liftGatherBlocks(n *lift.Node) {
	g := &gathering{Node: n, axis: lift.TakeOr(n, "gather_axis", int64(0)), along: lift.TakeOr(n, "quantize_axis", int64(1)),
		block: lift.TakeOr(n, "block_size", int64(128)), bits: lift.TakeOr(n, "bits", int64(4))}
	n.NoMoreAttrs()
	if !n.Operands(3, 4) || !g.check() {
		return
	}
	indices := n.Args[1]
	data, zero := g.elements(n.Args[0]), n.Arg(3)
	if data == nil { // packed, and not in bytes that can be gathered
		y := n.Call("dequantize_linear", []*ir.Value{n.Args[0], n.Args[2], zero}, lift.IntAttr("axis", g.along), lift.IntAttr("block_size", g.block))
		n.Finish("gather", []*ir.Value{y, indices}, lift.IntAttr("axis", g.axis))
		return
	}
	scale := g.slices(n.Args[2])
	zero = g.zeros(scale, zero)
	if g.along > g.axis {
		g.along += int64(indices.Type.Shape.Rank()) - 1
	}
	n.Finish("dequantize_linear", []*ir.Value{data, scale, zero}, lift.IntAttr("axis", g.along), lift.IntAttr("block_size", g.block))
}

// check checks attributes and ranks, and counts axes from the front.
func (g *gathering) check() bool {
	rank, known := g.Rank(0)
	at, placed := g.Rank(1)
	if !known || !placed || at < 0 {
		g.Unsupported("an operand of unknown rank")
		return false
	}
	for _, axis := range []*int64{&g.axis, &g.along} {
		if *axis < 0 {
			*axis += int64(rank)
		}
		if *axis < 0 || *axis >= int64(rank) {
			g.Fail("gather_axis or quantize_axis: got an axis that %s does not have: %w", g.Args[0].Type, shape.ErrShape)
			return false
		}
	}
	bytes := g.Args[0].Type.DType == dtype.U8
	switch {
	case g.axis == g.along:
		g.Fail("gather_axis and quantize_axis: got %d twice, want two axes", g.axis)
	case g.block < 1 || g.block > 1<<40:
		g.Fail("block_size: got %d, want 1 or more", g.block)
	case bytes && g.bits != 2 && g.bits != 4 && g.bits != 8:
		g.Unsupported("bits %d", g.bits)
	case bytes && g.along != int64(rank-1) && g.bits < 8:
		g.Fail("quantize_axis: got %d, want the last one of %s, in whose bytes %d elements lie", g.along, g.Args[0].Type, 8/g.bits)
	}
	return g.Err == nil
}

// slices are those of x that the indices name.
func (g *gathering) slices(x *ir.Value) *ir.Value {
	return g.Call("gather", []*ir.Value{x, g.Args[1]}, lift.IntAttr("axis", g.axis))
}

// elements are those of the slices, one a byte; nil if their bytes cannot be
// gathered.
func (g *gathering) elements(data *ir.Value) *ir.Value {
	switch {
	case data.Type.DType == dtype.U8:
		return unpackedBits(g.Node, g.slices(data), g.bits)
	case data.Type.DType == dtype.I8:
		return g.slices(data)
	}
	bytes := g.asBytes(data)
	if bytes == nil {
		return nil
	}
	bits := int64(data.Type.DType.Bits())
	x := unpackedBits(g.Node, g.slices(bytes), bits)
	if !data.Type.DType.IsSigned() || g.Err != nil {
		return x
	}
	// Two's complement of a few bits: the bit of the sign is turned round, and
	// counts below zero.
	sign := float64(int64(1) << (bits - 1))
	x = g.Call("bitwise_xor", []*ir.Value{x, g.Scalar(dtype.U8, sign)})
	x = g.Call("cast", []*ir.Value{x}, op.Attr{Name: "to", Value: dtype.I8})
	return g.Call("sub", []*ir.Value{x, g.Scalar(dtype.I8, sign)})
}

// asBytes is a constant of packed elements as bytes [..., size * bits / 8], nil
// for another value and for one whose rows share bytes, or are gathered along.
func (g *gathering) asBytes(x *ir.Value) *ir.Value {
	bits := x.Type.DType.Bits()
	if bits >= 8 || !x.Type.IsStatic() {
		return nil
	}
	if _, known := g.Store.Bytes(x); !known {
		return nil
	}
	sizes := slices.Clone(x.Type.Shape.Sizes())
	last := len(sizes) - 1
	if sizes[last]*bits%8 != 0 || g.axis == int64(last) {
		return nil
	}
	sizes[last] = sizes[last] * bits / 8
	out := g.Program.NewValue(ir.Weight, g.Fresh(x.Name+".bytes"), op.Type{DType: dtype.U8, Shape: shape.MustOf(sizes...)})
	if err := g.Store.Derive(out, x, 0, nil); err != nil {
		g.Fail("%w", err)
		return nil
	}
	g.Program.Weights = append(g.Program.Weights, out)
	return out
}

// zeros are those of the gathered slices, in the type of the elements. Bytes
// without zeros have the middle.
func (g *gathering) zeros(scale, zero *ir.Value) *ir.Value {
	dt := g.Args[0].Type.DType
	switch {
	case zero == nil && dt != dtype.U8:
		return nil
	case zero == nil:
		middle := g.Scalar(dtype.U8, float64(int64(1)<<(g.bits-1)))
		return g.Call("expand", []*ir.Value{middle, g.ShapeOf(scale)})
	case dt != dtype.U8:
		to := dtype.U8
		if dt.IsSigned() {
			to = dtype.I8
		}
		return g.slices(g.Call("cast", []*ir.Value{zero}, op.Attr{Name: "to", Value: to}))
	case g.bits == 8:
		return g.slices(zero)
	}
	zero = unpackedBits(g.Node, g.slices(zero), g.bits)
	if g.Err != nil {
		return nil
	}
	blocks, ok := g.LastSize(scale)
	if !ok {
		return nil
	}
	one := g.Ints([]int64{1})
	return g.Call("slice", []*ir.Value{zero, g.Ints([]int64{0}), g.Ints([]int64{blocks}), g.Ints([]int64{-1}), one})
}

// unpackedBits are the elements of so many bits that lie in bytes [..., size],
// the lowest first, as bytes [..., size * 8 / bits].
func unpackedBits(n *lift.Node, x *ir.Value, bits int64) *ir.Value {
	if bits == 8 || n.Err != nil {
		return x
	}
	var parts []*ir.Value
	end := n.Ints([]int64{-1})
	for at := int64(0); at < 8; at += bits {
		part := x
		if at > 0 {
			part = n.Call("bit_shift", []*ir.Value{x, n.Scalar(dtype.U8, float64(at))}, op.Attr{Name: "direction", Value: "RIGHT"})
		}
		if at+bits < 8 {
			part = n.Call("bitwise_and", []*ir.Value{part, n.Scalar(dtype.U8, float64(int64(1)<<bits-1))})
		}
		parts = append(parts, n.Call("unsqueeze", []*ir.Value{part, end}))
	}
	y := n.Call("concat", parts, lift.IntAttr("axis", -1))
	if n.Err != nil || x.Type.Shape == nil {
		n.Unsupported("an operand of unknown rank")
		return nil
	}
	to := make([]int64, x.Type.Shape.Rank())
	to[len(to)-1] = -1
	return n.Call("reshape", []*ir.Value{y, n.Ints(to)})
}
