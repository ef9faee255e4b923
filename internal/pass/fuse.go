package pass

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
)

// Fuse joins a convolution of float32 or 16-bit floats, or a product with a
// matrix of these types, with the calls around it, so that intermediate results
// never exist as values:
//
//   - after it: the addition of a residual of the same shape, an activation,
//     and, where there is no residual, a max or average pool, or a depthwise
//     convolution of float32 with its activation;
//   - before it: a per-channel scale and shift by constants and a relu, which
//     are applied while the convolution packs its input;
//   - after a product: a bias per column, the addition of a residual of the
//     same shape, an activation;
//   - before a product of few rows: the transpose of its right operand.
//
// Intermediate results of 16 bits are not rounded where they are joined.
//
// Requires: static types, dce (a dead reader would keep a value alive).
// Guarantees: only values with a single reader disappear, so nothing is
// computed twice by the program; the fused call stands where the convolution
// stood. A residual then lives no longer than before. What is scaled before the
// convolution, or transposed before the product, lives until it, in place of
// the scaled or transposed value of the same size.
//
// Left to other passes: whether the residual's bytes take the result (donate).
var Fuse = Pass{Name: "fuse", Doc: "join convolutions and products with the additions, activations, pools, scales and transposes around them", Run: fuse}

func fuse(ctx *Context) error {
	f := &fuser{ctx: ctx, uses: countUses(ctx.Program), users: map[*ir.Value]*ir.Call{},
		order: map[*ir.Call]int{}, gone: map[*ir.Call]bool{}}
	n := 0
	ctx.Program.Walk(func(b *ir.Block, c *ir.Call) {
		n++
		f.order[c] = n
		for _, a := range c.Args {
			if a.Value != nil {
				f.users[a.Value] = c
			}
		}
	})
	f.block(ctx.Program.Body)
	return f.err
}

type fuser struct {
	ctx   *Context
	uses  map[*ir.Value]int
	users map[*ir.Value]*ir.Call // the last reader of a value: the only one where uses is 1
	order map[*ir.Call]int
	gone  map[*ir.Call]bool // calls that were fused into another
	err   error
}

// isFused reports whether fused calls have kernels for an element type.
func isFused(dt dtype.DType) bool { return dt == dtype.F32 || dt == dtype.F16 || dt == dtype.BF16 }

var fusedConvOp = op.Builtin().Lookup("fused_conv")

func (f *fuser) block(b *ir.Block) {
	local := map[*ir.Call]bool{}
	for _, c := range b.Calls {
		local[c] = true
		for _, region := range c.Regions {
			f.block(region)
		}
	}
	for _, c := range b.Calls {
		if c.Op.Name == "conv" && isFused(c.Results[0].Type.DType) && isStatic(c.Results[0]) {
			f.after(c, local)
		}
		if f.isLinear(c) {
			f.afterProduct(c, local)
		}
		f.beforeProduct(c, local)
	}
	for _, c := range b.Calls {
		if (c.Op.Name == "conv" || c.Op == fusedConvOp) && isFused(c.Results[0].Type.DType) && isStatic(c.Results[0]) && f.err == nil {
			f.beforeConv(c, local)
		}
	}
	for _, c := range b.Calls {
		if !f.gone[c] {
			f.fuseDepthwise(c, local)
		}
	}
	kept := b.Calls[:0]
	for _, c := range b.Calls {
		if !f.gone[c] {
			kept = append(kept, c)
		}
	}
	clear(b.Calls[len(kept):])
	b.Calls = kept
}

// Operands of fused_conv.
const (
	argX = iota
	argW
	argBias
	argResidual
	argPreScale
	argPreShift
	fusedArgs // without those of a depthwise convolution
)

// fused turns a convolution into a fused_conv, and a product into a
// fused_matmul, without anything fused yet.
func fused(conv *ir.Call) {
	if conv.Op == fusedConvOp || conv.Op == fusedProductOp {
		return
	}
	if conv.Op.Name != "conv" {
		fusedProduct(conv)
		return
	}
	args := make([]ir.Operand, fusedArgs)
	copy(args, conv.Args)
	conv.Op, conv.Args = fusedConvOp, args
}

// nextOf returns the only reader of the convolution's result, in its block.
func (f *fuser) nextOf(conv *ir.Call, local map[*ir.Call]bool) *ir.Call {
	r := conv.Results[0]
	next := f.users[r]
	if f.uses[r] != 1 || next == nil || !local[next] || f.gone[next] || len(next.Results) != 1 {
		return nil
	}
	return next
}

// take makes the convolution compute next's result, and next disappear.
func (f *fuser) take(conv, next *ir.Call) {
	f.gone[next] = true
	r := next.Results[0]
	r.Def, r.Index = conv, 0
	conv.Results[0] = r
	if conv.Node == "" {
		conv.Node = next.Node
	}
}

// after fuses the calls after the convolution: residual, activation, pool.
func (f *fuser) after(conv *ir.Call, local map[*ir.Call]bool) {
	next := f.nextOf(conv, local)
	if next != nil && f.fuseResidual(conv, next) {
		next = f.nextOf(conv, local)
	}
	if next != nil && (f.fuseActivation(conv, next) || fuseUnit(conv, next) || fuseHardSwish(conv, next)) {
		f.take(conv, next)
		next = f.nextOf(conv, local)
	}
	if next != nil && fusePool(conv, next) {
		f.take(conv, next)
	}
}

// fuseResidual fuses the addition of a value of the same type that exists
// before the convolution runs.
func (f *fuser) fuseResidual(conv, next *ir.Call) bool {
	if next.Op.Name != "add" && next.Op.Name != "sum" || len(next.Args) != 2 {
		return false
	}
	other := f.addend(conv, next)
	if other == nil || other.Kind == ir.Weight || !f.ctx.sameType(other, conv.Results[0]) {
		return false
	}
	fused(conv)
	conv.Args[argResidual] = ir.Operand{Value: other}
	f.users[other] = conv
	f.take(conv, next)
	return true
}

// addend returns what next adds to the result of c, nil unless it is another
// value that exists before c runs.
func (f *fuser) addend(c, next *ir.Call) *ir.Value {
	other := next.Args[0].Value
	if other == c.Results[0] {
		other = next.Args[1].Value
	}
	if other == c.Results[0] || !f.exists(other, c) {
		return nil
	}
	return other
}

// exists reports whether a value exists before c runs.
func (f *fuser) exists(v *ir.Value, c *ir.Call) bool {
	return v.Def == nil || f.order[v.Def] < f.order[c]
}

func (f *fuser) fuseActivation(conv, next *ir.Call) bool {
	attrs, name := conv.Attrs, next.Op.Name
	switch name {
	case "relu", "sigmoid", "tanh":
	case "leaky_relu":
		attrs = attrs.With("alpha", attrsOf(next).Float("alpha"))
	case "clip":
		low, high, ok := f.clipBounds(conv, next)
		if !ok {
			return false
		}
		attrs = attrs.With("alpha", low).With("beta", high)
	default:
		return false
	}
	fused(conv)
	conv.Attrs = attrs.With("activation", name)
	return true
}

// fuseHardSwish fuses the activation of networks of depthwise convolutions.
func fuseHardSwish(c, next *ir.Call) bool {
	if next.Op.Name != "hard_swish" {
		return false
	}
	fused(c)
	c.Attrs = c.Attrs.With("activation", "hard_swish")
	return true
}

// clipBounds returns the bounds of a clip of the convolution's result if both
// are constants, and numbers.
func (f *fuser) clipBounds(conv, clip *ir.Call) (low, high float64, ok bool) {
	if len(clip.Args) != 3 || clip.Args[0].Value != conv.Results[0] {
		return 0, 0, false
	}
	var bounds [2]float64
	for i := range bounds {
		v := clip.Args[i+1].Value
		if v == nil {
			return 0, 0, false
		}
		data, known := f.ctx.numbers(v)
		if !known || len(data) != 1 || math.IsNaN(float64(data[0])) || math.IsInf(float64(data[0]), 0) {
			return 0, 0, false
		}
		bounds[i] = float64(data[0])
	}
	return bounds[0], bounds[1], true
}

// fusePool fuses a pool of the result. A residual would have to be read at
// full size, so a convolution with one keeps its own result.
func fusePool(conv, next *ir.Call) bool {
	kind := map[string]string{"max_pool": "max", "average_pool": "average"}[next.Op.Name]
	sig := attrsOf(next)
	if kind == "" || conv.Op == fusedConvOp && conv.Args[argResidual].Value != nil {
		return false
	}
	if !allOnes(sig.Ints("dilations")) || !explicitPads(sig.Str("auto_pad")) {
		return false
	}
	spatial := rank(conv.Results[0]) - 2
	fused(conv)
	attrs := conv.Attrs.With("pool", kind).With("pool_kernel", sig.Ints("kernel_shape"))
	attrs = attrs.With("pool_strides", orOnes(sig.Ints("strides"), spatial))
	attrs = attrs.With("pool_pads", orZeros(sig.Ints("pads"), 2*spatial)).With("pool_ceil", sig.Int("ceil_mode"))
	if kind == "average" {
		attrs = attrs.With("count_include_pad", sig.Int("count_include_pad"))
	}
	conv.Attrs = attrs
	return true
}

func explicitPads(autoPad string) bool { return autoPad == "" || autoPad == "NOTSET" }

func allOnes(v []int64) bool {
	for _, x := range v {
		if x != 1 {
			return false
		}
	}
	return true
}

func orOnes(v []int64, n int) []int64 {
	if v != nil {
		return v
	}
	v = make([]int64, n)
	for i := range v {
		v[i] = 1
	}
	return v
}

func orZeros(v []int64, n int) []int64 {
	if v != nil {
		return v
	}
	return make([]int64, n)
}

// beforeConv fuses the relu and the per-channel scales before the convolution.
func (f *fuser) beforeConv(conv *ir.Call, local map[*ir.Call]bool) {
	x := conv.Args[argX].Value
	prev := f.onlyFeeds(x, local)
	relu := prev != nil && prev.Op.Name == "relu"
	var chain []*ir.Call
	if relu {
		chain = append(chain, prev)
		x = prev.Args[0].Value
		prev = f.onlyFeeds(x, local)
	}
	var scale, shift []float32
	for prev != nil {
		a := f.ctx.affineOf(prev)
		if a == nil {
			break
		}
		if scale == nil {
			scale, shift = a.scale, a.shift
		} else {
			scale, shift = compose(scale, shift, a)
		}
		chain = append(chain, prev)
		x = a.x
		prev = f.onlyFeeds(x, local)
	}
	if len(chain) == 0 {
		return
	}
	f.setPrologue(conv, x, relu, scale, shift)
	for _, c := range chain {
		f.gone[c] = true
	}
}

// onlyFeeds returns the call that defines x, if this is x's only reader.
func (f *fuser) onlyFeeds(x *ir.Value, local map[*ir.Call]bool) *ir.Call {
	if x.Def == nil || f.uses[x] != 1 || !local[x.Def] || f.gone[x.Def] {
		return nil
	}
	return x.Def
}

// compose returns the scale and shift of a followed by (scale, shift).
func compose(scale, shift []float32, a *affine) (s, t []float32) {
	s, t = make([]float32, len(scale)), make([]float32, len(scale))
	for i := range s {
		s[i] = scale[i] * a.scale[i]
		t[i] = scale[i]*a.shift[i] + shift[i]
	}
	return s, t
}

func (f *fuser) setPrologue(conv *ir.Call, x *ir.Value, relu bool, scale, shift []float32) {
	fused(conv)
	if relu {
		conv.Attrs = conv.Attrs.With("pre_relu", int64(1))
	}
	conv.Args[argX] = ir.Operand{Value: x}
	if scale == nil {
		return
	}
	name := conv.Results[0].Name
	s, err := f.ctx.addFloats(name+".pre_scale", scale, len(scale))
	if err != nil {
		f.err = err
		return
	}
	t, err := f.ctx.addFloats(name+".pre_shift", shift, len(shift))
	if err != nil {
		f.err = err
		return
	}
	conv.Args[argPreScale], conv.Args[argPreShift] = ir.Operand{Value: s}, ir.Operand{Value: t}
}
