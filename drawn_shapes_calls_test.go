package tenure

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// call draws one call or a few that belong together.
func (d *shapesDrawer) call() {
	x := d.recent()
	choose(d, d.elementwise, d.elementwise, d.elementwise, d.size, d.size, d.reshaped, d.reshaped, d.reshaped, d.cut, d.cut, d.filled, d.filled,
		d.moved, d.moved, d.moved, d.moved, d.reduced, d.products, d.windows, d.windows, d.resizes, d.attended, d.picked)(x)
}

func (d *shapesDrawer) elementwise(x *ir.Value) {
	switch d.IntN(5) {
	case 0:
		d.emit(choose(d, "relu", "exp", "neg", "sigmoid", "identity", "tanh", "sqrt", "erf", "gelu"), nil, x)
	case 1, 2:
		d.emit(choose(d, "add", "mul", "sub", "max", "div"), nil, x, d.any())
	case 3:
		d.emit(choose(d, "add", "mul"), nil, x, d.table(choose(d, []int{1}, []int{}, []int{2}, []int{4}, []int{3, 1}, []int{1, 1, 2})...))
	default:
		d.emit("where", nil, d.emit("greater", nil, x, d.table()), x, d.table(1))
	}
}

func (d *shapesDrawer) reshaped(x *ir.Value) {
	switch d.IntN(6) {
	case 0:
		d.emit("reshape", nil, x, d.list(d.between(1, 4)))
	case 1:
		d.emit("reshape", nil, d.emit("reshape", nil, x, d.ints(-1)), d.list(d.between(1, 4)))
	case 2:
		d.emit("expand", nil, x, d.list(d.between(1, 3)))
	case 3:
		d.emit("unsqueeze", nil, x, d.ints(int64(d.between(0, x.Type.Shape.Rank()))))
		if d.one(2) {
			d.emit("flatten", along(int64(d.between(0, x.Type.Shape.Rank()))), x)
		}
	case 4:
		d.emit("reshape", nil, x, d.ints(choose(d, []int64{-1}, []int64{0, -1}, []int64{2, -1}, []int64{-1, 4}, []int64{0, 0, -1}, []int64{1, -1, 2}, []int64{0, 2, -1})...))
	default:
		d.emit(choose(d, "reshape", "expand"), nil, x, d.emit("shape", nil, d.any()))
	}
}

// cut draws slices and pads, whose bounds are numbers.
func (d *shapesDrawer) cut(x *ir.Value) {
	axis := d.ints(d.axis(x))
	switch d.IntN(4) {
	case 0:
		d.emit("slice", nil, x, d.number(), d.number(), axis, d.ints(choose(d, int64(1), 1, 2, 3, -1)))
	case 1:
		d.emit("slice", nil, x, d.ints(choose(d, int64(0), 1, -3, 5)), d.ints(choose(d, int64(math.MaxInt64), 4, -1, 1<<31-1, -2)), axis)
	case 2:
		d.emit("pad", nil, x, d.emit("concat", along(0), d.number(), d.number()), nil, axis)
	default:
		d.emits("split", along(d.axis(x)), 2, x, d.list(2))
	}
}

// filled draws values that are made from sizes alone.
func (d *shapesDrawer) filled(x *ir.Value) {
	switch d.IntN(3) {
	case 0:
		count := d.emit("reshape", nil, d.number(), d.ints())
		i := d.emit("range", nil, d.scalar(0), count, d.scalar(choose(d, int64(1), 1, 2, 3, -1)))
		if i == nil {
			return
		}
		d.places = append(d.places, i)
		if f := d.emit("cast", with("to", dtype.F32), i); d.one(2) {
			d.emit("mul", nil, x, f)
		}
	case 1:
		if len(d.places) == 0 {
			return
		}
		i := d.places[d.IntN(len(d.places))]
		d.emit("gather", along(0), d.table(choose(d, 9, 33, 3), choose(d, 1, 2, 4)), i)
		if d.one(3) {
			d.emit("gather", along(d.axis(x)), x, i)
		}
	default:
		d.emit("expand", nil, d.table(1), d.list(d.between(1, 3)))
		if d.one(2) {
			d.emit("constant_of_shape", nil, d.list(d.between(1, 3)))
		}
	}
}

func (d *shapesDrawer) moved(x *ir.Value) {
	switch d.IntN(4) {
	case 0:
		d.emit("tile", nil, x, d.list(x.Type.Shape.Rank()))
	case 1:
		d.emit("concat", along(d.axis(x)), x, d.any())
	case 2:
		d.emits("split", along(d.axis(x)).With("num_outputs", int64(3)), 3, x)
	default:
		d.emit("transpose", with("perm", int64sOf(d.Perm(x.Type.Shape.Rank()))), x)
	}
}

func int64sOf(list []int) []int64 {
	out := make([]int64, len(list))
	for i, v := range list {
		out[i] = int64(v)
	}
	return out
}

func (d *shapesDrawer) reduced(x *ir.Value) {
	if d.one(2) {
		d.emit("softmax", along(d.axis(x)), x)
		return
	}
	d.emit(choose(d, "reduce_mean", "reduce_sum", "reduce_max"), with("keepdims", int64(d.between(0, 1))), x, d.ints(d.axis(x)))
}

func (d *shapesDrawer) products(x *ir.Value) {
	y, rank := d.any(), x.Type.Shape.Rank()
	if d.one(2) && rank >= 2 {
		perm := make([]int64, rank)
		for i := range perm {
			perm[i] = int64(i)
		}
		perm[rank-1], perm[rank-2] = perm[rank-2], perm[rank-1]
		y = d.emit("transpose", with("perm", perm), x)
	}
	d.emit("matmul", nil, x, y)
	d.emit("matmul", nil, x, d.table(choose(d, 1, 2, 3, 4), choose(d, 1, 3, 8)))
}

// windows draws convolutions and pools.
func (d *shapesDrawer) windows(x *ir.Value) {
	pair := func(lo, hi int) []int64 { return []int64{int64(d.between(lo, hi)), int64(d.between(lo, hi))} }
	if x.Type.Shape.Rank() == 4 && d.one(2) {
		attrs := with("kernel_shape", pair(1, 4)).With("strides", pair(1, 3)).With("ceil_mode", int64(d.between(0, 1)))
		if d.one(2) {
			attrs = attrs.With("pads", append(pair(0, 1), pair(0, 1)...))
		}
		d.emit(choose(d, "max_pool", "average_pool"), attrs, x)
		return
	}
	channels, attrs := choose(d, 1, 2, 3), op.Attrs(nil)
	if d.one(2) {
		attrs = attrs.With("strides", pair(1, 3))
	}
	if d.one(3) {
		attrs = attrs.With("pads", append(pair(0, 2), pair(0, 2)...))
	} else if d.one(4) {
		attrs = attrs.With("auto_pad", choose(d, "SAME_UPPER", "SAME_LOWER", "VALID"))
	}
	if d.one(4) {
		attrs = attrs.With("dilations", pair(1, 2))
	}
	if x.Type.Shape.Rank() != 4 {
		x = d.emit("reshape", nil, x, d.ints(1, int64(channels), 0, -1))
	}
	if d.one(4) {
		d.emit("conv_transpose", attrs, x, d.table(channels, choose(d, 1, 4), d.between(1, 5), d.between(1, 4)))
		return
	}
	d.emit("conv", attrs, x, d.table(choose(d, 1, 4, 8), channels, d.between(1, 5), d.between(1, 4)))
}

func (d *shapesDrawer) resizes(x *ir.Value) {
	rank := x.Type.Shape.Rank()
	if rank == 0 {
		return
	}
	if d.one(2) {
		d.emit("resize", with("mode", "nearest"), x, nil, nil, d.list(rank))
		return
	}
	var data []byte
	for range rank {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(choose(d, float32(1), 1, 2, 0.5, 1.5, 0.3, 3)))
	}
	scales := d.weight(op.Type{DType: dtype.F32, Shape: shape.MustOf(rank)}, data)
	d.emit("resize", with("mode", choose(d, "nearest", "linear")), x, nil, scales)
}

// attended draws an attention, with or without past keys, or a norm.
func (d *shapesDrawer) attended(x *ir.Value) {
	k := d.any()
	if x.Type.Shape.Rank() != 4 || k.Type.Shape.Rank() != 4 {
		d.emit("layer_normalization", along(-1), x, d.table(choose(d, 1, 2, 4)))
		return
	}
	if past := d.any(); d.one(2) {
		d.emits("attention", nil, 3, x, k, k, nil, past, past)
		return
	}
	d.emit("attention", nil, x, k, k)
}

func (d *shapesDrawer) picked(x *ir.Value) {
	if d.one(2) {
		d.emit("cum_sum", nil, x, d.scalar(d.axis(x)))
		return
	}
	d.emits("top_k", along(d.axis(x)), 2, x, d.number())
}
