package eager

import (
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/tensor"
)

// What models do around their layers: sampling, attention over a cache, numbers of few bits.

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

// Sampling is how [Resize] finds the elements of the result. The zero Sampling takes the nearest.
type Sampling struct {
	Mode        string // "nearest", "linear" or "cubic"; "" stands for nearest
	Coordinates string // which place of x a place of the result stands for: "half_pixel", as pictures are scaled, or another of ONNX
	Antialias   bool   // a smaller result averages over all that it stands for; linear and cubic only
}

// resize is x sampled at the given sizes of its last axes: of images [N,C,H,W], height and width.
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

// AttentionOptions are the numbers of an [Attention].
type AttentionOptions struct {
	Causal  bool    // no query sees a key after its own place
	Scale   float64 // of the products of queries and keys; 0 stands for 1 / sqrt(size of a head)
	Softcap float64 // what scores are held within by tanh; 0 stands for no bound
	Heads   int     // of q, where operands are [N,length,heads*size]
	KVHeads int     // of k and v, where operands are [N,length,heads*size]
}

// attention is softmax(q * k^T * scale + mask) * v per head, of operands [N,heads,length,size] or [N,length,heads*size]. The mask,
// which broadcasts to [N,heads,queries,keys], is added, or says as bool which keys count; lengths [N], as i64, say how many keys of a
// longer cache count. Both may be nil.
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

// RotaryOptions say which numbers a [RotaryEmbedding] turns.
type RotaryOptions struct {
	Interleaved bool // pairs are neighbours, and not one of each half
	Heads       int  // where x is [N,length,heads*size]
	Dim         int  // how many numbers of each head are turned; 0 stands for all
}

// rotaryEmbedding is x [N,heads,length,size] with pairs of numbers of each head turned by an angle, of which cosines and sines are
// given: [N,length,size/2], or [places,size/2] with the positions [N,length] that pick from them, else nil.
func rotaryEmbedding(x, cosines, sines, positions tensor.Operand, o RotaryOptions) call {
	return nary(opRotary, []tensor.Operand{x, cosines, sines, positions}).with(op.Attr{Name: "interleaved", Value: bit(o.Interleaved)},
		op.Attr{Name: "num_heads", Value: int64(o.Heads)}, op.Attr{Name: "rotary_embedding_dim", Value: int64(o.Dim)})
}

// tensorScatter is the cache with the update written along an axis from the index on that each sample [N] has, or from 0 where
// indices is nil; a cache that is given up takes the result, and only the update's bytes are written.
func tensorScatter(cache, update, indices tensor.Operand, axis int) call {
	return ternary(opTensorScatter, cache, update, indices).axis(axis)
}

// quantizeLinear is x / scale + zero, rounded to nearest even and saturated, in the type of zero, which is u8 where it is nil. Scale
// and zero are one for all of x or one per index of the axis.
func quantizeLinear(x, scale, zero tensor.Operand, axis int) call {
	return ternary(opQuantize, x, scale, zero).axis(axis)
}

// dequantizeLinear is (x - zero) * scale, for a zero that may be nil. Scale and zero are one for all of x or one per index of the axis.
func dequantizeLinear(x, scale, zero tensor.Operand, axis int) call {
	return ternary(opDequantize, x, scale, zero).axis(axis)
}

// dynamicQuantizeLinear is x in u8 by a scale and a zero that fit its range: three results, the scale and the zero the last.
func dynamicQuantizeLinear(x tensor.Operand) calls {
	c := unary(opDynamicQuant, x)
	c.results = 3
	return calls(c)
}

// matMulInteger is the matrix product of a - aZero and b - bZero, bytes, in i32. The zeros may be nil.
func matMulInteger(a, b, aZero, bZero tensor.Operand) call {
	return nary(opMatMulInteger, []tensor.Operand{a, b, aZero, bZero})
}
