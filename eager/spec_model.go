package eager

import (
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// Operations around the layers of models: resampling, attention over a cache,
// quantisation.

var (
	opResize        = builtin("resize")
	opAttention     = builtin("attention")
	opRotary        = builtin("rotary_embedding")
	opTensorScatter = builtin("tensor_scatter")
	opQuantize      = builtin("quantize_linear")
	opDequantize    = builtin("dequantize_linear")
	opMatMulInteger = builtin("matmul_integer")
	opDynamicQuant  = builtin("dynamic_quantize_linear")
)

// Sampling selects how [Resize] computes the elements of the result. The zero
// Sampling selects the nearest element.
type Sampling struct {
	Mode        string // "nearest", "linear" or "cubic"; "" stands for nearest
	Coordinates string // the mapping of positions in the result to positions in x: "half_pixel", as images are scaled, or another of ONNX's
	Antialias   bool   // downscaling averages over all elements that an element of the result covers; linear and cubic only
}

// resize resamples x to the given sizes of its last axes: of images [N,C,H,W],
// height and width in pixels.
func resize(x tensor.Operand, how Sampling, sizes ...int) call {
	attrs := []op.Attr{{Name: "antialias", Value: bit(how.Antialias)}}
	if how.Mode != "" {
		attrs = append(attrs, op.Attr{Name: "mode", Value: how.Mode})
	}
	if how.Coordinates != "" {
		attrs = append(attrs, op.Attr{Name: "coordinate_transformation_mode", Value: how.Coordinates})
	}
	axes := make([]int64, len(sizes))
	for i := range axes {
		axes[i] = int64(i - len(axes))
	}
	attrs = append(attrs, op.Attr{Name: "axes", Value: axes})
	return unary(opResize, x).with(attrs...).ints(3, []int{len(sizes)}, sizes...)
}

// AttentionOptions are the parameters of [Attention].
type AttentionOptions struct {
	Causal  bool    // a query ignores the keys behind its own position
	Scale   float64 // factor of the products of queries and keys; 0 stands for 1 / sqrt(size of a head)
	Softcap float64 // bound of the scores, imposed by tanh; 0 stands for none
	Heads   int     // number of heads of q, where operands are [N,length,heads*size]
	KVHeads int     // number of heads of k and v, where operands are [N,length,heads*size]
}

// attention computes softmax(q * k^T * scale + mask) * v for each head, of
// operands [N,heads,length,size] or [N,length,heads*size]. The mask broadcasts
// to [N,heads,queries,keys]; it is added, or as bool says which keys count.
// lengths [N], as i64, holds the number of valid keys of each sample, in a
// cache that is longer. Mask and lengths may be nil.
func attention(q, k, v, mask, lengths tensor.Operand, o AttentionOptions) call {
	operands := []tensor.Operand{q, k, v, mask, nil, nil, lengths}
	attrs := []op.Attr{
		{Name: "is_causal", Value: bit(o.Causal)}, {Name: "q_num_heads", Value: int64(o.Heads)},
		{Name: "kv_num_heads", Value: int64(o.KVHeads)}, {Name: "softcap", Value: o.Softcap},
	}
	if o.Scale != 0 {
		attrs = append(attrs, op.Attr{Name: "scale", Value: o.Scale})
	}
	return nary(opAttention, operands).with(attrs...)
}

// RotaryOptions say which numbers [RotaryEmbedding] rotates.
type RotaryOptions struct {
	Interleaved bool // a pair is two neighbours, not one number of each half
	Heads       int  // number of heads, where x is [N,length,heads*size]
	Dim         int  // how many numbers of each head are rotated; 0 stands for all
}

// rotaryEmbedding rotates pairs of numbers of each head of x
// [N,heads,length,size] by an angle per position. Cosines and sines of the
// angles are [N,length,size/2], or [positions,size/2] where positions
// [N,length] selects their rows; otherwise positions is nil.
func rotaryEmbedding(x, cosines, sines, positions tensor.Operand, o RotaryOptions) call {
	return nary(opRotary, []tensor.Operand{x, cosines, sines, positions}).with(op.Attr{Name: "interleaved", Value: bit(o.Interleaved)},
		op.Attr{Name: "num_heads", Value: int64(o.Heads)}, op.Attr{Name: "rotary_embedding_dim", Value: int64(o.Dim)})
}

// tensorScatter returns cache with update written along an axis, from the index
// of each sample in indices [N] on, or from 0 if indices is nil. If cache is
// given up the result is written into it, and only the bytes of the update are
// written.
func tensorScatter(cache, update, indices tensor.Operand, axis int) call {
	return ternary(opTensorScatter, cache, update, indices).axis(axis)
}

// quantizeLinear computes x / scale + zero, rounded to nearest even and
// saturated, in the element type of zero, which is u8 if zero is nil. Scale and
// zero are scalars, or hold one number per index of the axis.
func quantizeLinear(x, scale, zero tensor.Operand, axis int) call {
	return ternary(opQuantize, x, scale, zero).axis(axis)
}

// dequantizeLinear computes (x - zero) * scale; zero may be nil. Scale and zero
// are scalars, or hold one number per index of the axis.
func dequantizeLinear(x, scale, zero tensor.Operand, axis int) call {
	return ternary(opDequantize, x, scale, zero).axis(axis)
}

// dynamicQuantizeLinear quantises x, f32, to u8 by a scale and a zero point
// that fit its range. It returns the quantised tensor, the scale and the zero
// point.
func dynamicQuantizeLinear(x tensor.Operand) calls {
	c := unary(opDynamicQuant, x)
	c.results = 3
	return calls(c)
}

// matMulInteger computes the matrix product of a - aZero and b - bZero in i32,
// of operands in i8 or u8. The zero points may be nil.
func matMulInteger(a, b, aZero, bZero tensor.Operand) call {
	return nary(opMatMulInteger, []tensor.Operand{a, b, aZero, bZero})
}
