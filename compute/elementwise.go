package compute

import (
	"math"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
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
	return func(c *op.Call) (*Task, error) {
		p := new([2]float64)
		for i, name := range params {
			p[i] = c.Float(name)
		}
		return unaryTask(c, f, p)
	}
}

// unaryTask binds a function of operand 0 with the parameters in p, which
// Start may still change.
func unaryTask(c *op.Call, f kernel.UnaryOp, p *[2]float64) (*Task, error) {
	n := elements(&c.Out[0])
	t := &Task{Tiles: spans(n)}
	dt := c.In[0].DType
	switch dt {
	case dtype.F32:
		large := 4*n >= streamBytes
		if large {
			t.Scratch = 4 * kernel.StreamScratchFloats
		}
		t.Tile = func(tile int, scratch []byte) {
			lo, hi := span(tile, n)
			dst, src := out[float32](c, 0)[lo:hi], in[float32](c, 0)[lo:hi]
			if large && !sameBytes(c.Out[0].Data, c.In[0].Data) {
				kernel.UnaryStream(machine.Best(), f, dst, src, float32(p[0]), float32(p[1]), view[float32](scratch[:4*kernel.StreamScratchFloats]))
				return
			}
			kernel.UnaryF32(machine.Best(), f, dst, src, float32(p[0]), float32(p[1]))
		}
		return t, nil
	case dtype.F64:
		t.Tile = func(tile int, _ []byte) {
			lo, hi := span(tile, n)
			kernel.UnaryF64(machine.Best(), f, out[float64](c, 0)[lo:hi], in[float64](c, 0)[lo:hi], p[0], p[1])
		}
		return t, nil
	case dtype.F16, dtype.BF16:
		t.Scratch = halfScratch
		t.Tile = func(tile int, scratch []byte) {
			lo, hi := span(tile, n)
			kernel.UnaryHalf(machine.Best(), f, dt, out[uint16](c, 0)[lo:hi], in[uint16](c, 0)[lo:hi],
				float32(p[0]), float32(p[1]), view[float32](scratch[:halfScratch]))
		}
		return t, nil
	}
	bind, ok := intOf(dt, unaryInt[int8], unaryInt[int16], unaryInt[int32], unaryInt[int64],
		unaryInt[uint8], unaryInt[uint16], unaryInt[uint32], unaryInt[uint64])
	if !ok || f != kernel.Relu && f != kernel.Abs && f != kernel.Neg && f != kernel.Sign {
		return nil, unsupported(c)
	}
	return bind(c, f), nil
}

func unaryInt[T kernel.Integer](c *op.Call, f kernel.UnaryOp) *Task {
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.UnaryInt(machine.Best(), f, out[T](c, 0)[lo:hi], in[T](c, 0)[lo:hi])
	}}
}

func bindGelu(c *op.Call) (*Task, error) {
	if c.Str("approximate") == "tanh" {
		return unaryTask(c, kernel.GeluTanh, new([2]float64))
	}
	return unaryTask(c, kernel.Gelu, new([2]float64))
}

func bindSwish(c *op.Call) (*Task, error) {
	if alpha := c.Float("alpha"); alpha != 1 {
		return unaryTask(c, kernel.Swish, &[2]float64{alpha})
	}
	return unaryTask(c, kernel.Silu, new([2]float64))
}

func bindNot(c *op.Call) (*Task, error) {
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.Not(machine.Best(), c.Out[0].Data[lo:hi], c.In[0].Data[lo:hi])
	}}, nil
}

// bindClip reads the limits, which are operands, once per run.
func bindClip(c *op.Call) (*Task, error) {
	if bind, ok := intOf(c.In[0].DType, clipInt[int8], clipInt[int16], clipInt[int32], clipInt[int64],
		clipInt[uint8], clipInt[uint16], clipInt[uint32], clipInt[uint64]); ok {
		return bind(c)
	}
	p := new([2]float64)
	t, err := unaryTask(c, kernel.Clip, p)
	if err != nil {
		return nil, err
	}
	t.Start = func() error {
		*p = [2]float64{math.Inf(-1), math.Inf(1)}
		for i := range p {
			if has(c, i+1) {
				p[i] = floatAt(&c.In[i+1], 0)
			}
		}
		return nil
	}
	return t, nil
}

func clipInt[T kernel.Integer](c *op.Call) (*Task, error) {
	n := elements(&c.Out[0])
	var lower, upper T
	return &Task{
		Tiles: spans(n),
		Start: func() error {
			lower, upper = limits[T]()
			if has(c, 1) {
				lower = in[T](c, 1)[0]
			}
			if has(c, 2) {
				upper = in[T](c, 2)[0]
			}
			return nil
		},
		Tile: func(tile int, _ []byte) {
			lo, hi := span(tile, n)
			kernel.Clamp(machine.Best(), out[T](c, 0)[lo:hi], in[T](c, 0)[lo:hi], lower, upper)
		},
	}, nil
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

// binaryOp binds a function of two operands of one type that broadcast.
func binaryOp(f kernel.BinaryOp) binder {
	return func(c *op.Call) (*Task, error) { return binaryTask(c, f) }
}

func binaryTask(c *op.Call, f kernel.BinaryOp) (*Task, error) {
	nest, err := broadcastNest(c)
	if err != nil {
		return nil, err
	}
	dt := c.In[0].DType
	t := &Task{Tiles: nest.Tiles()}
	switch dt {
	case dtype.F32:
		t.Tile = func(tile int, _ []byte) {
			lo, hi := nest.Range(tile)
			kernel.BinaryF32(machine.Best(), f, nest, lo, hi, out[float32](c, 0), in[float32](c, 0), in[float32](c, 1))
		}
		if 4*nest.Elements() < streamBytes {
			return t, nil
		}
		one := &kernel.Chain{Steps: []kernel.ChainStep{{IsBinary: true, Binary: f, A: 0, B: 1}}}
		if streamed, ok := chainTask(c, one); ok { // it works piece by piece, which in place takes longer
			plain := t.Tile
			t.Scratch = streamed.Scratch
			t.Tile = func(tile int, scratch []byte) {
				if isInPlace(c) {
					plain(tile, scratch)
				} else {
					streamed.Tile(tile, scratch)
				}
			}
		}
		return t, nil
	case dtype.F64:
		t.Tile = func(tile int, _ []byte) {
			lo, hi := nest.Range(tile)
			kernel.BinaryF64(machine.Best(), f, nest, lo, hi, out[float64](c, 0), in[float64](c, 0), in[float64](c, 1))
		}
		return t, nil
	case dtype.F16, dtype.BF16:
		t.Scratch = halfScratch
		t.Tile = func(tile int, scratch []byte) {
			lo, hi := nest.Range(tile)
			kernel.BinaryHalf(machine.Best(), f, nest, lo, hi, dt, out[uint16](c, 0), in[uint16](c, 0), in[uint16](c, 1), view[float32](scratch[:halfScratch]))
		}
		return t, nil
	}
	bind, ok := intOf(dt, binaryInt[int8], binaryInt[int16], binaryInt[int32], binaryInt[int64],
		binaryInt[uint8], binaryInt[uint16], binaryInt[uint32], binaryInt[uint64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, f, nest), nil
}

func binaryInt[T kernel.Integer](c *op.Call, f kernel.BinaryOp, nest *kernel.Nest) *Task {
	return &Task{Tiles: nest.Tiles(), Tile: func(tile int, _ []byte) {
		lo, hi := nest.Range(tile)
		kernel.BinaryInt(machine.Best(), f, nest, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1))
	}}
}

func bindMod(c *op.Call) (*Task, error) {
	if c.Int("fmod") != 0 {
		return binaryTask(c, kernel.FMod)
	}
	return binaryTask(c, kernel.Mod)
}

// bindPow computes in the type of x. An exponent of another type is converted
// first; under an integer base, a float exponent makes both f64.
func bindPow(c *op.Call) (*Task, error) {
	x, y := c.In[0].DType, c.In[1].DType
	switch {
	case x == y:
		return binaryTask(c, kernel.Pow)
	case x.IsFloat() && elements(&c.In[1]) == 1 && c.Out[0].Shape == c.In[0].Shape:
		p := new([2]float64)
		t, err := unaryTask(c, kernel.PowScalar, p)
		if err == nil {
			t.Start = func() error { p[0] = floatAt(&c.In[1], 0); return nil }
		}
		return t, err
	case x.IsInt() && y.IsFloat():
		return converted(c, []dtype.DType{dtype.F64, dtype.F64}, []dtype.DType{dtype.F64})
	}
	return converted(c, []dtype.DType{x, x}, []dtype.DType{x})
}

func predicateOp(f kernel.PredicateOp) binder {
	return func(c *op.Call) (*Task, error) { return predicateTask(c, f) }
}

func predicateTask(c *op.Call, f kernel.PredicateOp) (*Task, error) {
	nest, err := broadcastNest(c)
	if err != nil {
		return nil, err
	}
	dt := c.In[0].DType
	if dt == dtype.Bool {
		return predicateOn[uint8](c, f, nest), nil
	}
	if isHalf(dt) {
		return &Task{Tiles: nest.Tiles(), Scratch: halfScratch, Tile: func(tile int, scratch []byte) {
			lo, hi := nest.Range(tile)
			kernel.PredicateHalf(machine.Best(), f, nest, lo, hi, dt, c.Out[0].Data, in[uint16](c, 0), in[uint16](c, 1), view[float32](scratch[:halfScratch]))
		}}, nil
	}
	bind, ok := floatOf(dt, predicateOn[float32], predicateOn[float64])
	if !ok {
		bind, ok = intOf(dt, predicateOn[int8], predicateOn[int16], predicateOn[int32], predicateOn[int64],
			predicateOn[uint8], predicateOn[uint16], predicateOn[uint32], predicateOn[uint64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(c, f, nest), nil
}

func predicateOn[T kernel.Number](c *op.Call, f kernel.PredicateOp, nest *kernel.Nest) *Task {
	return &Task{Tiles: nest.Tiles(), Tile: func(tile int, _ []byte) {
		lo, hi := nest.Range(tile)
		kernel.Predicate(machine.Best(), f, nest, lo, hi, c.Out[0].Data, in[T](c, 0), in[T](c, 1))
	}}
}

// bindEqual compares bools, of which true has many values, by exclusive or.
func bindEqual(c *op.Call) (*Task, error) {
	if c.In[0].DType != dtype.Bool {
		return predicateTask(c, kernel.Equal)
	}
	nest, err := broadcastNest(c)
	if err != nil {
		return nil, err
	}
	return &Task{Tiles: nest.Tiles(), Tile: func(tile int, _ []byte) {
		lo, hi := nest.Range(tile)
		kernel.Predicate(machine.Best(), kernel.Xor, nest, lo, hi, c.Out[0].Data, c.In[0].Data, c.In[1].Data)
		kernel.Not(machine.Best(), c.Out[0].Data[lo:hi], c.Out[0].Data[lo:hi])
	}}, nil
}

func bindWhere(c *op.Call) (*Task, error) {
	size := c.Out[0].DType.Size()
	if size == 0 {
		return nil, unsupported(c)
	}
	nest, err := broadcastNest(c)
	if err != nil {
		return nil, err
	}
	return &Task{Tiles: nest.Tiles(), Tile: func(tile int, _ []byte) {
		lo, hi := nest.Range(tile)
		kernel.Where(machine.Best(), nest, lo, hi, size, c.Out[0].Data, c.In[0].Data, c.In[1].Data, c.In[2].Data)
	}}, nil
}
