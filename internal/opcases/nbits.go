package opcases

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/ref"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/op/optest"
	"github.com/tenure-go/tenure/shape"
)

var _ = family(nbitsCases)

// packedBits are elements of a type of few bits, which count up and wrap.
func packedBits(dt dtype.DType, rows, cols int) optest.Operand {
	o := optest.Operand{Type: op.Type{DType: dt, Shape: shape.MustOf(rows, cols)}}
	o.Data = make([]byte, (rows*cols*dt.Bits()+7)/8)
	for i := range rows * cols {
		at := i * dt.Bits()
		o.Data[at/8] |= byte(i*5+i/7) & (1<<dt.Bits() - 1) << (at % 8)
	}
	return o
}

// fewBits is the product of x with the elements of w less those of zero, or
// less, in blocks of columns.
func fewBits(x, w, scale, zero optest.Operand, block, less int, ints bool) args {
	number := func(o optest.Operand, i int) int {
		bits := o.DType.Bits()
		v := int(o.Data[i*bits/8] >> (i * bits % 8) & (1<<bits - 1))
		if o.DType.IsSigned() && v >= 1<<(bits-1) {
			v -= 1 << bits
		}
		return v
	}
	rows, k, n, depth := x.Shape.Size(0), x.Shape.Size(1), w.Shape.Size(0), w.Shape.Size(1)
	b := ref.Blocked{N: n, K: k, Block: block, Scale: elements[float32](scale)}
	for col := range n {
		for i := range k {
			b.Q = append(b.Q, number(w, col*depth+i))
		}
	}
	for i := range b.Scale {
		z := less
		if !zero.IsZero() {
			z = number(zero, i)
		}
		b.Zero = append(b.Zero, float64(z))
	}
	if ints {
		return args{optest.Of(b.TimesInts(rows, elements[float32](x)), rows, n)}
	}
	sums, _ := b.Times(rows, elements[float32](x))
	c := make([]float32, len(sums))
	for i, v := range sums {
		c[i] = float32(v)
	}
	return args{optest.Of(c, rows, n)}
}

func nbitsCases() map[string][]optest.Case {
	var none optest.Operand
	u2, u4, i4 := packedBits(dtype.U2, 9, 48), packedBits(dtype.U4, 40, 70), packedBits(dtype.I4, 40, 70)
	x, y := num(f32, 3, 70), num(f32, 2, 40)
	u4Zero, i4Zero := packedBits(dtype.U4, 40, 5), packedBits(dtype.I4, 40, 5)
	per := num(f32, 40, 5)
	level := func(pairs ...any) attrs {
		return append(attr(pairs...), attr("block_size", 16, "accuracy_level", 4)...)
	}
	return map[string][]optest.Case{
		"matmul_nbits": {
			{Args: args{x, u4, per, u4Zero}, Attrs: level(), Want: fewBits(x, u4, per, u4Zero, 16, 0, true)},
			{Args: args{x, i4, per, i4Zero}, Attrs: level(), Want: fewBits(x, i4, per, i4Zero, 16, 0, true)},
			{Args: args{x, u4, per}, Attrs: level("zero_point", 8), Want: fewBits(x, u4, per, none, 16, 8, true)},
			{Args: args{y, u2, num(f32, 9, 3)}, Attrs: attr("block_size", 16, "zero_point", 2), Want: fewBits(y, u2, num(f32, 9, 3), none, 16, 2, false), Within: 1e-4},
			{Args: args{x, i4, per}, Attrs: attr("block_size", 16, "zero_point", -8), Want: fewBits(x, i4, per, none, 16, -8, false), Within: 1e-4},
			{Args: args{num(f32, 2, 6, 64), num(u8, 70, 64), num(f16, 70, 2), num(f32, 70, 2), num(f32, 70), num(f32, 2, 6, 70)}, Attrs: attr("block_size", 32, "activation", "relu")},
			{Args: args{num(f32, 70), packedBits(dtype.I4, 70, 33), num(f32, 3, 33), packedBits(dtype.I4, 3, 33)}, Attrs: attr("block_size", 32, "axis", 0)},
			{Args: args{num(f32, 20, 70), packedBits(dtype.I2, 70, 33), num(f32, 3, 33), absent, num(f32, 33)}, Attrs: attr("block_size", 32, "axis", 0, "activation", "silu")},
			{Args: args{num(f32, 0, 70), u4, per}, Attrs: level()}, {Args: args{num(f32, 3, 2, 70), u4, per}, Attrs: level("activation", "gelu")},
		},
	}
}
