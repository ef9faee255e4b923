package contrib

import (
	"bytes"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/onnx/lift"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// nbits are the weights of a MatMulNBits: rows of k elements, cut into blocks
// of which the last one is filled up. The lower bits of a byte come first, as
// in our types.
type nbits struct {
	weights, zeros int // the operands that they are
	dt             dtype.DType
	bits           int64
	rows, k        int64
	block, blocks  int64
	scale, out     *ir.Value
}

// liftMatMulNBits multiplies by weights of 2, 4 or 8 bits in blocks:
// [N, blocks, bytes of a block] are [N, K] elements.
func liftMatMulNBits(n *lift.Node) {
	w := &nbits{weights: 1, zeros: 3, k: lift.TakeOr(n, "K", int64(0)), rows: lift.TakeOr(n, "N", int64(0)), bits: lift.TakeOr(n, "bits", int64(4)), block: lift.TakeOr(n, "block_size", int64(0))}
	level := lift.TakeOr(n, "accuracy_level", int64(0))
	if lift.TakeOr(n, "weight_prepacked", int64(0)) != 0 {
		n.Unsupported("weights packed for a device")
	}
	n.NoMoreAttrs()
	if !n.Operands(3, 6) {
		return
	}
	if !w.findType(n) {
		return
	}
	const most = 1 << 40
	if w.k < 1 || w.rows < 1 || w.block < 1 || w.k > most || w.rows > most || w.block > most || w.block*w.bits%8 != 0 {
		n.Fail("got K %d, N %d and block_size %d, want 1 or more, and blocks of whole bytes", w.k, w.rows, w.block)
		return
	}
	w.blocks = (w.k + w.block - 1) / w.block
	w.scale = w.perBlock(n, n.Args[2])
	zero := n.Arg(3)
	switch {
	case n.Arg(4) == nil && w.block%op.NBitsStep == 0 && w.block <= 1<<16:
		multiplyPacked(n, w, zero, level)
		return
	case n.Arg(4) != nil:
		scaleGroups(n, w, zero)
	case zero == nil || zero.Type.DType == dtype.U8:
		dequantizeBlocks(n, w, zero)
	default:
		scaleBlocks(n, w, zero)
	}
	b := n.Call("transpose", []*ir.Value{w.out})
	if bias := n.Arg(5); bias != nil {
		n.Finish("add", []*ir.Value{n.Call("matmul", []*ir.Value{n.Args[0], b}), bias})
		return
	}
	n.Finish("matmul", []*ir.Value{n.Args[0], b})
}

// multiplyPacked multiplies with weights that stay as they are.
func multiplyPacked(n *lift.Node, w *nbits, zero *ir.Value, level int64) {
	attrs := []op.Attr{lift.IntAttr("axis", 1), lift.IntAttr("block_size", w.block), lift.IntAttr("accuracy_level", level)}
	switch {
	case n.Err != nil:
		return
	case level < 0 || level > 4:
		n.Fail("accuracy_level: got %d, want 0 to 4", level)
		return
	case zero == nil:
		attrs = append(attrs, lift.IntAttr("zero_point", 1<<(w.bits-1)))
	case zero.Type.DType == dtype.U8:
		zero = zeroRows(n, w, zero)
	case zero.Type.DType != n.Args[2].Type.DType:
		n.Unsupported("zeros of %s for scales of %s", zero.Type, n.Args[2].Type)
		return
	default:
		zero = w.perBlock(n, zero)
	}
	weights := bitRows(n, w, w.weights, w.blocks*w.block, w.blocks*w.block)
	x := n.Args[0].Type.DType
	args := []*ir.Value{inSingle(n, n.Args[0]), weights, w.scale, zero, nil}
	if bias := n.Arg(5); bias != nil {
		args[4] = inSingle(n, bias)
	}
	y := n.Call("matmul_nbits", args, attrs...)
	n.Finish("identity", []*ir.Value{as(n, y, x)})
}

// perBlock is v as [rows, blocks]. Of a weight it is one that is copied when it
// is loaded, and unloaded when it has been packed: the result of a reshape
// would stay.
func (w *nbits) perBlock(n *lift.Node, v *ir.Value) *ir.Value {
	if n.Err != nil {
		return nil
	}
	typ := op.Type{DType: v.Type.DType, Shape: shape.MustOf(int(w.rows), int(w.blocks))}
	if v.Type.Shape == typ.Shape {
		return v
	}
	has, err := v.Type.Bytes()
	if want, wrong := typ.Bytes(); !n.Store.Has(v) || err != nil || wrong != nil || has != want {
		return n.Call("reshape", []*ir.Value{v, n.Ints([]int64{w.rows, w.blocks})})
	}
	return w.derived(n, v, typ, func(dst, src []byte) { copy(dst, src) })
}

// derived is a weight that fill makes of the bytes of v, or that shares them.
func (w *nbits) derived(n *lift.Node, v *ir.Value, typ op.Type, fill func(dst, src []byte)) *ir.Value {
	out := n.Program.NewValue(ir.Weight, n.Fresh(v.Name+"."+typ.DType.String()), typ)
	if err := n.Store.Derive(out, v, 0, fill); err != nil {
		n.Fail("%w", err)
		return nil
	}
	n.Program.Weights = append(n.Program.Weights, out)
	return out
}

// findType finds the type of elements of so many bits.
func (w *nbits) findType(n *lift.Node) bool {
	w.dt = map[int64]dtype.DType{2: dtype.U2, 4: dtype.U4, 8: dtype.U8}[w.bits]
	if w.dt == dtype.Invalid {
		n.Unsupported("bits %d", w.bits)
	}
	return w.dt != dtype.Invalid
}

// dequantizeBlocks makes the numbers of the weights, whose zeros are of as many
// bits: in bytes too, where each row begins a byte, or the middle.
func dequantizeBlocks(n *lift.Node, w *nbits, zero *ir.Value) {
	weights := bitRows(n, w, w.weights, w.blocks*w.block, w.k)
	zero = zeroRows(n, w, zero)
	w.out = n.Call("dequantize_linear", []*ir.Value{weights, w.scale, zero}, lift.IntAttr("axis", 1), lift.IntAttr("block_size", w.block))
}

// zeroRows are the zeros of the blocks, [rows, blocks], in as many bits as the
// weights have.
func zeroRows(n *lift.Node, w *nbits, zero *ir.Value) *ir.Value {
	if zero != nil {
		perByte := 8 / w.bits
		return bitRows(n, w, w.zeros, (w.blocks+perByte-1)/perByte*perByte, w.blocks)
	}
	if n.Err != nil { // otherwise there are no more zeros than bytes of weights
		return nil
	}
	count := w.rows * w.blocks * w.bits
	middle := bytes.Repeat([]byte{map[int64]byte{2: 0xaa, 4: 0x88, 8: 0x80}[w.bits]}, int((count+7)/8))
	if rest := count % 8; rest != 0 {
		middle[len(middle)-1] &= 1<<rest - 1
	}
	return n.Weight(n.Fresh(n.Name+".zeros"), op.Type{DType: w.dt, Shape: shape.MustOf(int(w.rows), int(w.blocks))}, middle)
}

// scaleGroups makes the numbers of weights each of whose columns says which
// block's scale and zero it has.
func scaleGroups(n *lift.Node, w *nbits, zero *ir.Value) {
	groups := n.Arg(4)
	if sh := groups.Type.Shape; sh == nil || !sh.IsStatic() || sh.Rank() != 1 || int64(sh.Size(0)) != w.k && int64(sh.Size(0)) != w.blocks*w.block {
		n.Fail("operand 4: got %s, want the groups of %d columns: %w", groups.Type, w.k, shape.ErrShape)
		return
	}
	one := n.Ints([]int64{1})
	groups = n.Call("slice", []*ir.Value{groups, n.Ints([]int64{0}), n.Ints([]int64{w.k}), n.Ints([]int64{0}), one})
	each := func(x *ir.Value) *ir.Value {
		return n.Call("gather", []*ir.Value{x, groups}, lift.IntAttr("axis", 1))
	}
	to := op.Attr{Name: "to", Value: n.Args[2].Type.DType}
	if zero == nil || zero.Type.DType == dtype.U8 {
		zero = n.Call("cast", []*ir.Value{zeroRows(n, w, zero)}, to)
	} else {
		zero = w.perBlock(n, zero)
	}
	weights := n.Call("cast", []*ir.Value{bitRows(n, w, w.weights, w.blocks*w.block, w.k)}, to)
	w.out = n.Call("mul", []*ir.Value{n.Call("sub", []*ir.Value{weights, each(zero)}), each(w.scale)})
}

// scaleBlocks makes the numbers of the weights, whose zeros are floats.
func scaleBlocks(n *lift.Node, w *nbits, zero *ir.Value) {
	dt := n.Args[2].Type.DType
	if zero.Type.DType != dt {
		n.Unsupported("zeros of %s for scales of %s", zero.Type, n.Args[2].Type)
		return
	}
	weights := bitRows(n, w, w.weights, w.blocks*w.block, w.blocks*w.block)
	each := n.Ints([]int64{w.rows, w.blocks, 1})
	x := n.Call("cast", []*ir.Value{weights}, op.Attr{Name: "to", Value: dt})
	x = n.Call("reshape", []*ir.Value{x, n.Ints([]int64{w.rows, w.blocks, w.block})})
	x = n.Call("sub", []*ir.Value{x, n.Call("reshape", []*ir.Value{zero, each})})
	x = n.Call("mul", []*ir.Value{x, n.Call("reshape", []*ir.Value{w.scale, each})})
	w.out = n.Call("reshape", []*ir.Value{x, n.Ints([]int64{w.rows, w.blocks * w.block})})
	if w.k != w.blocks*w.block {
		one := n.Ints([]int64{1})
		w.out = n.Call("slice", []*ir.Value{w.out, n.Ints([]int64{0}), n.Ints([]int64{w.k}), one, one})
	}
}

// bitRows is the weight of operand i, whose bytes hold rows of elements, as
// [rows, kept] of them: the same bytes where all are kept.
func bitRows(n *lift.Node, w *nbits, i int, all, kept int64) *ir.Value {
	v := n.Args[i]
	if n.Err != nil {
		return nil
	}
	data, known := n.Store.Bytes(v)
	if !known {
		n.Unsupported("operand %d that is not known at load", i)
		return nil
	}
	if v.Type.DType != dtype.U8 || int64(len(data))%w.rows != 0 || int64(len(data))/w.rows != all*w.bits/8 {
		n.Fail("operand %d: got %s, want %d by %d elements of %d bits in bytes: %w", i, v.Type, w.rows, all, w.bits, shape.ErrShape)
		return nil
	}
	typ := op.Type{DType: w.dt, Shape: shape.MustOf(int(w.rows), int(kept))}
	if all != kept {
		return n.Weight(n.Fresh(v.Name+"."+w.dt.String()), typ, cutRows(data, int(w.bits), int(w.rows), int(all), int(kept)))
	}
	return w.derived(n, v, typ, nil)
}

// cutRows keeps the first elements of each row, whose bits are packed.
func cutRows(data []byte, bits, rows, all, kept int) []byte {
	out := make([]byte, 0, (rows*kept*bits+7)/8)
	if kept*bits%8 == 0 {
		for ; len(data) > 0; data = data[all*bits/8:] {
			out = append(out, data[:kept*bits/8]...)
		}
		return out
	}
	out = out[:cap(out)]
	clear(out)
	for to := range rows * kept {
		from := to/kept*all + to%kept
		element := data[from*bits/8] >> (from * bits % 8) & (1<<bits - 1)
		out[to*bits/8] |= element << (to * bits % 8)
	}
	return out
}
