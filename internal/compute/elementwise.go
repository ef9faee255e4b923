package compute

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// The functions that have no row in package elementwise.
var _ = register(map[string]binder{
	"pow":   bindPow,
	"mod":   bindMod,
	"max":   variadicOp(kernel.Max, false),
	"min":   variadicOp(kernel.Min, false),
	"sum":   variadicOp(kernel.Add, false),
	"mean":  variadicOp(kernel.Add, true),
	"where": bindWhere,
	"not":   bindNot,
	"gelu":  bindGelu,
	"clip":  bindClip,
})

// unary is a function of operand 0 with two parameters.
type unary struct {
	f    kernel.UnaryOp
	p    [2]float64
	read func(c *op.Call, p *[2]float64) // sets the parameters once per run; nil if they are attributes
	rows
}

func (k *unary) Refill(t *Task) error { return k.rows.Refill(t) }

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
	if !ok || !onIntegers(u.f) {
		return nil, unsupported(c)
	}
	return bind(u), nil
}

// onIntegers reports whether kernel.UnaryInt has the function.
func onIntegers(f kernel.UnaryOp) bool {
	return f == kernel.Relu || f == kernel.Abs || f == kernel.Neg || f == kernel.Sign
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
		t.Scratch = 4 * elementwise.StreamScratchFloats
	}
	return nil
}

func (k *unaryF32) Tile(t *Task, tile int, scratch []byte) { k.each(k, t, tile, scratch) }

func (k *unaryF32) row(t *Task, to, from, n int, scratch []byte) {
	c := t.Call
	dst, src := out[float32](c, 0)[to:to+n], in[float32](c, 0)[from:from+n]
	if k.large && !sameBytes(c.Out[0].Data, c.In[0].Data) {
		elementwise.UnaryStream(t.variant, k.f, dst, src, float32(k.p[0]), float32(k.p[1]), view[float32](scratch[:4*elementwise.StreamScratchFloats]))
		return
	}
	elementwise.UnaryF32(t.variant, k.f, dst, src, float32(k.p[0]), float32(k.p[1]))
}

type unaryF64 struct{ unary }

func (k *unaryF64) Tile(t *Task, tile int, _ []byte) { k.each(k, t, tile, nil) }

func (k *unaryF64) row(t *Task, to, from, n int, _ []byte) {
	elementwise.UnaryF64(t.variant, k.f, out[float64](t.Call, 0)[to:to+n], in[float64](t.Call, 0)[from:from+n], k.p[0], k.p[1])
}

type unaryHalf struct{ unary }

func (k *unaryHalf) Refill(t *Task) error {
	t.Scratch = halfScratch
	return k.unary.Refill(t)
}

func (k *unaryHalf) Tile(t *Task, tile int, scratch []byte) { k.each(k, t, tile, scratch) }

func (k *unaryHalf) row(t *Task, to, from, n int, scratch []byte) {
	c := t.Call
	elementwise.UnaryHalf(t.variant, k.f, c.In[0].DType, out[uint16](c, 0)[to:to+n], in[uint16](c, 0)[from:from+n],
		float32(k.p[0]), float32(k.p[1]), view[float32](scratch[:halfScratch]))
}

type unaryInt[T kernel.Integer] struct{ unary }

func newUnaryInt[T kernel.Integer](u unary) Kernel { return &unaryInt[T]{u} }

func (k *unaryInt[T]) Tile(t *Task, tile int, _ []byte) { k.each(k, t, tile, nil) }

func (k *unaryInt[T]) row(t *Task, to, from, n int, _ []byte) {
	elementwise.UnaryInt(t.variant, k.f, out[T](t.Call, 0)[to:to+n], in[T](t.Call, 0)[from:from+n])
}

func bindGelu(c *op.Call) (Kernel, error) {
	if c.Str("approximate") == "tanh" {
		return unaryOn(c, unary{f: kernel.GeluTanh})
	}
	return unaryOn(c, unary{f: kernel.Gelu})
}

// flat is what kernels know that treat the elements of result 0 alike.
type flat struct{ n int }

func (k *flat) Refill(t *Task) error {
	k.n = elements(&t.Call.Out[0])
	t.Tiles = spans(k.n)
	return nil
}

// rows is flat for kernels of operand 0 and result 0, of one shape, that may
// have gaps between rows of elements that follow each other.
type rows struct {
	flat
	gaps bool
	nest kernel.Nest // result and operand, if there are gaps
}

// rowKernel computes n elements from one of the result and one of the operand
// on.
type rowKernel interface {
	row(t *Task, to, from, n int, scratch []byte)
}

func (k *rows) takesStrides() bool { return true }

func (k *rows) Refill(t *Task) error {
	x, y := &t.Call.In[0], &t.Call.Out[0]
	if k.gaps = hasGaps(x) || hasGaps(y); k.gaps {
		sizes := y.Shape.Sizes()
		if err := checkLoops(sizes); err != nil {
			return err
		}
		k.nest.Prepare(sizes, stridesOf(y), stridesOf(x))
	}
	return k.flat.Refill(t)
}

// each computes the rows of a tile.
func (k *rows) each(of rowKernel, t *Task, tile int, scratch []byte) {
	lo, hi := span(tile, k.n)
	if !k.gaps {
		of.row(t, lo, lo, hi-lo, scratch)
		return
	}
	for r := k.nest.Cursor(lo, hi); r.Next(); {
		of.row(t, r.Off[0], r.Off[1], r.N, scratch)
	}
}

// rowsFollow is for kernels of floats that take rows: the elements of a row
// follow each other.
func rowsFollow(s *op.Sig, in, out []*shape.Layout) bool {
	return s.Args[0].DType.IsFloat() && len(out) == 1 && inRows(in[:1]) && inRows(out)
}

var _ = registerWalkers(rowsFollow, "gelu", "clip")

type notKernel struct{ flat }

func bindNot(*op.Call) (Kernel, error) { return &notKernel{}, nil }

func (k *notKernel) Tile(t *Task, tile int, _ []byte) {
	lo, hi := span(tile, k.n)
	elementwise.Not(t.variant, t.Call.Out[0].Data[lo:hi], t.Call.In[0].Data[lo:hi])
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
	elementwise.Clamp(t.variant, out[T](t.Call, 0)[lo:hi], in[T](t.Call, 0)[lo:hi], k.lower, k.upper)
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
