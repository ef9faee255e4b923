package compute

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{
	"add": binaryOp(kernel.Add),
	"sub": binaryOp(kernel.Sub),
	"mul": binaryOp(kernel.Mul),
	"div": binaryOp(kernel.Div),
	"pow": bindPow,
	"mod": bindMod,

	"max":  variadicOp(kernel.Max, false),
	"min":  variadicOp(kernel.Min, false),
	"sum":  variadicOp(kernel.Add, false),
	"mean": variadicOp(kernel.Add, true),

	"equal":            bindEqual,
	"greater":          predicateOp(kernel.Greater),
	"less":             predicateOp(kernel.Less),
	"greater_or_equal": predicateOp(kernel.GreaterEqual),
	"less_or_equal":    predicateOp(kernel.LessEqual),
	"and":              predicateOp(kernel.And),
	"or":               predicateOp(kernel.Or),
	"xor":              predicateOp(kernel.Xor),
	"where":            bindWhere,
	"not":              bindNot,

	"abs":          unaryOp(kernel.Abs),
	"neg":          unaryOp(kernel.Neg),
	"sign":         unaryOp(kernel.Sign),
	"floor":        unaryOp(kernel.Floor),
	"ceil":         unaryOp(kernel.Ceil),
	"round":        unaryOp(kernel.Round),
	"exp":          unaryOp(kernel.Exp),
	"log":          unaryOp(kernel.Log),
	"sqrt":         unaryOp(kernel.Sqrt),
	"reciprocal":   unaryOp(kernel.Reciprocal),
	"erf":          unaryOp(kernel.Erf),
	"sin":          unaryOp(kernel.Sin),
	"cos":          unaryOp(kernel.Cos),
	"tan":          unaryOp(kernel.Tan),
	"asin":         unaryOp(kernel.Asin),
	"acos":         unaryOp(kernel.Acos),
	"atan":         unaryOp(kernel.Atan),
	"sinh":         unaryOp(kernel.Sinh),
	"cosh":         unaryOp(kernel.Cosh),
	"asinh":        unaryOp(kernel.Asinh),
	"acosh":        unaryOp(kernel.Acosh),
	"atanh":        unaryOp(kernel.Atanh),
	"tanh":         unaryOp(kernel.Tanh),
	"sigmoid":      unaryOp(kernel.Sigmoid),
	"relu":         unaryOp(kernel.Relu),
	"leaky_relu":   unaryOp(kernel.LeakyRelu, "alpha"),
	"elu":          unaryOp(kernel.Elu, "alpha"),
	"selu":         unaryOp(kernel.Selu, "alpha", "gamma"),
	"softplus":     unaryOp(kernel.Softplus),
	"softsign":     unaryOp(kernel.Softsign),
	"hard_sigmoid": unaryOp(kernel.HardSigmoid, "alpha", "beta"),
	"hard_swish":   unaryOp(kernel.HardSwish),
	"swish":        bindSwish,
	"gelu":         bindGelu,
	"clip":         bindClip,
})

// unaryOp binds a function of one operand whose parameters are the named float
// attributes.
func unaryOp(f kernel.UnaryOp, params ...string) binder {
	return func(c *op.Call) (Kernel, error) {
		u := unary{f: f}
		for i, name := range params {
			u.p[i] = c.Float(name)
		}
		return unaryOn(c, u)
	}
}

// unary is a function of operand 0 with two parameters.
type unary struct {
	f    kernel.UnaryOp
	p    [2]float64
	read func(c *op.Call, p *[2]float64) // sets the parameters once per run; nil if they are attributes
	n    int
}

func (k *unary) Refill(t *Task) error {
	k.n = elements(&t.Call.Out[0])
	t.Tiles = spans(k.n)
	return nil
}

func (k *unary) Start(t *Task) error {
	if k.read != nil {
		k.read(t.Call, &k.p)
	}
	return nil
}

// unaryOn returns the kernel of a function for the type of operand 0.
func unaryOn(c *op.Call, u unary) (Kernel, error) {
	switch c.In[0].DType {
	case dtype.F32:
		return &unaryF32{unary: u}, nil
	case dtype.F64:
		return &unaryF64{u}, nil
	case dtype.F16, dtype.BF16:
		return &unaryHalf{u}, nil
	}
	bind, ok := intOf(c.In[0].DType, newUnaryInt[int8], newUnaryInt[int16], newUnaryInt[int32], newUnaryInt[int64],
		newUnaryInt[uint8], newUnaryInt[uint16], newUnaryInt[uint32], newUnaryInt[uint64])
	if f := u.f; !ok || f != kernel.Relu && f != kernel.Abs && f != kernel.Neg && f != kernel.Sign {
		return nil, unsupported(c)
	}
	return bind(u), nil
}

type unaryF32 struct {
	unary
	large bool
}

func (k *unaryF32) Refill(t *Task) error {
	if err := k.unary.Refill(t); err != nil {
		return err
	}
	if k.large = 4*k.n >= streamBytes; k.large {
		t.Scratch = 4 * kernel.StreamScratchFloats
	}
	return nil
}

func (k *unaryF32) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	lo, hi := span(tile, k.n)
	dst, src := out[float32](c, 0)[lo:hi], in[float32](c, 0)[lo:hi]
	if k.large && !sameBytes(c.Out[0].Data, c.In[0].Data) {
		kernel.UnaryStream(t.variant, k.f, dst, src, float32(k.p[0]), float32(k.p[1]), view[float32](scratch[:4*kernel.StreamScratchFloats]))
		return
	}
	kernel.UnaryF32(t.variant, k.f, dst, src, float32(k.p[0]), float32(k.p[1]))
}

type unaryF64 struct{ unary }

func (k *unaryF64) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	kernel.UnaryF64(t.variant, k.f, out[float64](t.Call, 0)[lo:hi], in[float64](t.Call, 0)[lo:hi], k.p[0], k.p[1])
}

type unaryHalf struct{ unary }

func (k *unaryHalf) Refill(t *Task) error {
	t.Scratch = halfScratch
	return k.unary.Refill(t)
}

func (k *unaryHalf) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	lo, hi := span(tile, k.n)
	kernel.UnaryHalf(t.variant, k.f, c.In[0].DType, out[uint16](c, 0)[lo:hi], in[uint16](c, 0)[lo:hi],
		float32(k.p[0]), float32(k.p[1]), view[float32](scratch[:halfScratch]))
}

type unaryInt[T kernel.Integer] struct{ unary }

func newUnaryInt[T kernel.Integer](u unary) Kernel { return &unaryInt[T]{u} }

func (k *unaryInt[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	kernel.UnaryInt(t.variant, k.f, out[T](t.Call, 0)[lo:hi], in[T](t.Call, 0)[lo:hi])
}

func bindGelu(c *op.Call) (Kernel, error) {
	if c.Str("approximate") == "tanh" {
		return unaryOn(c, unary{f: kernel.GeluTanh})
	}
	return unaryOn(c, unary{f: kernel.Gelu})
}

func bindSwish(c *op.Call) (Kernel, error) {
	if alpha := c.Float("alpha"); alpha != 1 {
		return unaryOn(c, unary{f: kernel.Swish, p: [2]float64{alpha}})
	}
	return unaryOn(c, unary{f: kernel.Silu})
}

// flat is what kernels know that treat the elements of result 0 alike.
type flat struct{ n int }

func (k *flat) Refill(t *Task) error {
	k.n = elements(&t.Call.Out[0])
	t.Tiles = spans(k.n)
	return nil
}

type notKernel struct{ flat }

func bindNot(*op.Call) (Kernel, error) { return &notKernel{}, nil }

func (k *notKernel) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	kernel.Not(t.variant, t.Call.Out[0].Data[lo:hi], t.Call.In[0].Data[lo:hi])
}

// bindClip reads the limits, which are operands, once per run.
func bindClip(c *op.Call) (Kernel, error) {
	if bind, ok := intOf(c.In[0].DType, newClipInt[int8], newClipInt[int16], newClipInt[int32], newClipInt[int64],
		newClipInt[uint8], newClipInt[uint16], newClipInt[uint32], newClipInt[uint64]); ok {
		return bind(), nil
	}
	return unaryOn(c, unary{f: kernel.Clip, read: readLimits})
}

func readLimits(c *op.Call, p *[2]float64) {
	*p = [2]float64{math.Inf(-1), math.Inf(1)}
	for i := range p {
		if has(c, i+1) {
			p[i] = floatAt(&c.In[i+1], 0)
		}
	}
}

type clipInt[T kernel.Integer] struct {
	flat
	lower, upper T
}

func newClipInt[T kernel.Integer]() Kernel { return &clipInt[T]{} }

func (k *clipInt[T]) Start(t *Task) error {
	k.lower, k.upper = limits[T]()
	if has(t.Call, 1) {
		k.lower = in[T](t.Call, 1)[0]
	}
	if has(t.Call, 2) {
		k.upper = in[T](t.Call, 2)[0]
	}
	return nil
}

func (k *clipInt[T]) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	kernel.Clamp(t.variant, out[T](t.Call, 0)[lo:hi], in[T](t.Call, 0)[lo:hi], k.lower, k.upper)
}

// limits returns the smallest and the largest number of T.
func limits[T kernel.Integer]() (lo, hi T) {
	hi = ^T(0)
	if hi > 0 {
		return 0, hi
	}
	lo = T(1)
	for lo<<1 != 0 {
		lo <<= 1
	}
	return lo, ^lo
}
