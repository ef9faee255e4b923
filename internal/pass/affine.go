package pass

import (
	"encoding/binary"
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// BatchNorm moves per-channel scales and shifts that follow a convolution
// into its weights: batch normalisation, and multiplications and additions
// by a constant per channel.
//
// Requires: fold. Guarantees: no convolution with constant weights whose
// result has one reader is followed by a per-channel scale or shift by
// constants. Sums are associated differently than in the model file: the
// result differs by rounding.
//
// Left to other passes: scales and shifts before a convolution (fuse).
var BatchNorm = Pass{Name: "batchnorm", Doc: "fold per-channel scales and shifts into the convolution before them", Run: batchNorm}

func batchNorm(ctx *Context) error {
	replaced := replacer{}
	uses := countUses(ctx.Program)
	var err error
	ctx.Program.Walk(func(_ *ir.Block, c *ir.Call) {
		for i := range c.Args {
			c.Args[i].Value = replaced.of(c.Args[i].Value)
		}
		if err != nil {
			return
		}
		a := ctx.affineOf(c)
		if a == nil || a.x.Def == nil || a.x.Def.Op.Name != "conv" || uses[a.x] != 1 {
			return
		}
		var done bool
		if done, err = foldIntoConv(ctx, a.x.Def, a); done {
			replaced[c.Results[0]] = a.x
			uses[a.x] = uses[c.Results[0]]
		}
	})
	replaced.apply(ctx.Program.Body)
	return err
}

// affine is y = scale[c]*x + shift[c] over dimension 1 of x.
type affine struct {
	x            *ir.Value
	scale, shift []float32
}

// affineOf reads a call as a per-channel scale and shift by constants; nil
// when it is none.
func (c *Context) affineOf(call *ir.Call) *affine {
	switch call.Op.Name {
	case "batch_normalization":
		return c.affineOfBatchNorm(call)
	case "mul", "add":
		for i := range 2 {
			if a := c.affineOfBinary(call, i); a != nil {
				return a
			}
		}
	}
	return nil
}

func (c *Context) affineOfBatchNorm(call *ir.Call) *affine {
	if len(call.Results) != 1 || attrsOf(call).Int("training_mode") != 0 {
		return nil
	}
	var v [4][]float32 // scale, bias, mean, variance
	for i := range v {
		var ok bool
		if v[i], ok = c.numbers(call.Args[i+1].Value); !ok || len(v[i]) != len(v[0]) {
			return nil
		}
	}
	a := &affine{x: call.Args[0].Value, scale: make([]float32, len(v[0])), shift: make([]float32, len(v[0]))}
	epsilon := attrsOf(call).Float("epsilon")
	for i := range a.scale {
		s := float64(v[0][i]) / math.Sqrt(float64(v[3][i])+epsilon)
		a.scale[i] = float32(s)
		a.shift[i] = float32(float64(v[1][i]) - float64(v[2][i])*s)
	}
	return a
}

func (c *Context) affineOfBinary(call *ir.Call, arg int) *affine {
	x, k := call.Args[arg].Value, call.Args[1-arg].Value
	if !c.isKnown(k) || !c.is(perChannel, k, x, 0, 0) {
		return nil
	}
	data, ok := c.numbers(k)
	if !ok {
		return nil
	}
	a := &affine{x: x, scale: data, shift: make([]float32, len(data))}
	if call.Op.Name == "add" {
		a.shift, a.scale = data, make([]float32, len(data))
		for i := range a.scale {
			a.scale[i] = 1
		}
	}
	return a
}

// addFloats makes a constant of type f32.
func (c *Context) addFloats(name string, data []float32, sizes ...int) (*ir.Value, error) {
	s, err := shape.Of(sizes...)
	if err != nil {
		return nil, err
	}
	v, bytes, err := c.newWeight(name, op.Type{DType: dtype.F32, Shape: s})
	if err != nil {
		return nil, err
	}
	for i, x := range data {
		binary.LittleEndian.PutUint32(bytes[4*i:], math.Float32bits(x))
	}
	return v, nil
}

// foldIntoConv scales the convolution's weights and shifts its bias.
func foldIntoConv(ctx *Context, conv *ir.Call, a *affine) (bool, error) {
	old := conv.Args[1].Value
	if !ctx.isKnown(old) || old.Type.DType != dtype.F32 || len(a.scale) == 0 || ctx.size(old, 0) != len(a.scale) {
		return false, nil
	}
	bias := make([]float32, len(a.scale))
	if len(conv.Args) > 2 && conv.Args[2].Value != nil {
		b, ok := ctx.floats(conv.Args[2].Value)
		if !ok || len(b) != len(bias) {
			return false, nil
		}
		copy(bias, b)
	}
	for i := range bias {
		bias[i] = bias[i]*a.scale[i] + a.shift[i]
	}
	weights, err := ctx.deriveLike(old, func(dst, src []byte) { scaleRows(dst, src, a.scale) })
	if err != nil {
		return false, err
	}
	shift, err := ctx.addFloats(conv.Results[0].Name+".bias", bias, len(bias))
	if err != nil {
		return false, err
	}
	conv.Args = []ir.Operand{conv.Args[0], {Value: weights}, {Value: shift}}
	return true, nil
}

// scaleRows multiplies each row of a matrix by its factor. src may lie at any
// address.
func scaleRows(dst, src []byte, factors []float32) {
	each := len(dst) / len(factors)
	for i, factor := range factors {
		to, from := dst[i*each:(i+1)*each], src[i*each:(i+1)*each]
		for len(to) >= 4 {
			x := math.Float32frombits(binary.LittleEndian.Uint32(from)) * factor
			binary.LittleEndian.PutUint32(to, math.Float32bits(x))
			to, from = to[4:], from[4:]
		}
	}
}

// countUses returns how often each value is an operand or a block's result.
func countUses(p *ir.Program) map[*ir.Value]int {
	uses := map[*ir.Value]int{}
	var count func(b *ir.Block)
	count = func(b *ir.Block) {
		for _, c := range b.Calls {
			for _, a := range c.Args {
				uses[a.Value]++
			}
			for _, region := range c.Regions {
				count(region)
			}
		}
		for _, v := range b.Results {
			uses[v]++
		}
	}
	count(p.Body)
	return uses
}
