package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// broadcasted is what kernels know that walk result 0 and all operands,
// broadcast to it.
type broadcasted struct{ nest kernel.Nest }

func (k *broadcasted) takesStrides() bool { return true }

func (k *broadcasted) Refill(t *Task) error {
	c := t.Call
	sizes := c.Out[0].Shape.Sizes()
	if err := checkLoops(sizes); err != nil {
		return err
	}
	var buf [kernel.MaxOperands - 1][kernel.MaxRank]int
	strides := [kernel.MaxOperands][]int{stridesOf(&c.Out[0])}
	for i := range c.In {
		strides[i+1] = appendBroadcast(buf[i][:0], &c.In[i], sizes)
	}
	k.nest.Prepare(sizes, strides[:len(c.In)+1]...)
	t.Tiles = k.nest.Tiles()
	return nil
}

// binaryOp binds a function of two operands of one type that broadcast.
func binaryOp(f kernel.BinaryOp) binder {
	return func(c *op.Call) (Kernel, error) { return binaryOn(c, f) }
}

// binaryNest is a function of two operands.
type binaryNest struct {
	broadcasted
	f kernel.BinaryOp
}

// binaryOn returns the kernel of a function for the type of operand 0.
func binaryOn(c *op.Call, f kernel.BinaryOp) (Kernel, error) {
	b := binaryNest{f: f}
	switch c.In[0].DType {
	case dtype.F32:
		return &binaryF32{binaryNest: b}, nil
	case dtype.F64:
		return &binaryF64{b}, nil
	case dtype.F16, dtype.BF16:
		return &binaryHalf{b}, nil
	}
	bind, ok := intOf(c.In[0].DType, newBinaryInt[int8], newBinaryInt[int16], newBinaryInt[int32], newBinaryInt[int64],
		newBinaryInt[uint8], newBinaryInt[uint16], newBinaryInt[uint32], newBinaryInt[uint64])
	if !ok {
		return nil, unsupported(c)
	}
	return bind(b), nil
}

type binaryF32 struct {
	binaryNest
	streams bool   // a large result is written as chain does it, piece by piece, which in place takes longer
	chain   *chain // nil before a result was large
}

func (k *binaryF32) Refill(t *Task) error {
	if err := k.binaryNest.Refill(t); err != nil {
		return err
	}
	k.streams = false
	if 4*k.nest.Elements() < streamBytes || anyGaps(t.Call) {
		return nil
	}
	if k.chain == nil {
		k.chain = &chain{}
		k.chain.Steps = []elementwise.ChainStep{{IsBinary: true, Binary: k.f, A: 0, B: 1}}
	}
	if k.streams = k.chain.fill(t.Call); k.streams {
		t.Scratch = 4 * k.chain.ScratchFloats()
	}
	return nil
}

func (k *binaryF32) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	if k.streams && !isInPlace(c) {
		k.chain.Tile(t, tile, scratch)
		return
	}
	lo, hi := k.nest.Range(tile)
	elementwise.BinaryF32(t.variant, k.f, &k.nest, lo, hi, out[float32](c, 0), in[float32](c, 0), in[float32](c, 1))
}

type binaryF64 struct{ binaryNest }

func (k *binaryF64) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.BinaryF64(t.variant, k.f, &k.nest, lo, hi, out[float64](c, 0), in[float64](c, 0), in[float64](c, 1))
}

type binaryHalf struct{ binaryNest }

func (k *binaryHalf) Refill(t *Task) error {
	t.Scratch = halfScratch
	return k.binaryNest.Refill(t)
}

func (k *binaryHalf) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.BinaryHalf(t.variant, k.f, &k.nest, lo, hi, c.In[0].DType, out[uint16](c, 0), in[uint16](c, 0), in[uint16](c, 1), view[float32](scratch[:halfScratch]))
}

type binaryInt[T kernel.Integer] struct{ binaryNest }

func newBinaryInt[T kernel.Integer](b binaryNest) Kernel { return &binaryInt[T]{b} }

func (k *binaryInt[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.BinaryInt(t.variant, k.f, &k.nest, lo, hi, out[T](c, 0), in[T](c, 0), in[T](c, 1))
}

var _ = registerWalkers(oneType, "pow", "mod", "prelu", "max", "min", "sum", "bit_shift")

var _ = registerWalkers(anyLayout, "where")

// oneType is for functions of two operands that are computed in their type.
func oneType(s *op.Sig, _, _ []*shape.Layout) bool {
	return len(s.Args) == 2 && s.Args[0].DType == s.Args[1].DType
}

// oneFloat is for functions of two operands that are computed in their type if
// that is a floating-point one.
func oneFloat(s *op.Sig, _, _ []*shape.Layout) bool {
	return len(s.Args) == 2 && s.Args[0].DType == s.Args[1].DType && s.Args[0].DType.IsFloat()
}

func bindMod(c *op.Call) (Kernel, error) {
	if c.Int("fmod") != 0 {
		return binaryOn(c, kernel.Fmod)
	}
	return binaryOn(c, kernel.Mod)
}

// bindPow computes in the type of x. An exponent of another type is converted
// first; under an integer base, a float exponent makes both f64.
func bindPow(c *op.Call) (Kernel, error) {
	x, y := c.In[0].DType, c.In[1].DType
	switch {
	case x == y:
		return binaryOn(c, kernel.Pow)
	case x.IsInt() && y.IsFloat():
		return converted(c, []dtype.DType{dtype.F64, dtype.F64}, []dtype.DType{dtype.F64})
	}
	all, err := converted(c, []dtype.DType{x, x}, []dtype.DType{x})
	if err != nil || !x.IsFloat() {
		return all, err
	}
	one, err := unaryOn(c, unary{f: kernel.PowScalar, read: readExponent})
	if err != nil {
		return nil, err
	}
	return newChoice(c, isOneExponent, all, one), nil
}

func readExponent(c *op.Call, p *[2]float64) { p[0] = floatAt(&c.In[1], 0) }

// isOneExponent returns 1 where all elements of x have the same exponent.
func isOneExponent(c *op.Call) int {
	if elements(&c.In[1]) == 1 && c.Out[0].Shape == c.In[0].Shape {
		return 1
	}
	return 0
}

// choice runs one of several kernels of a call, by its sizes.
type choice struct {
	pick  func(c *op.Call) int
	tasks []*Task
	task  *Task // the one picked
}

func newChoice(c *op.Call, pick func(c *op.Call) int, kernels ...Kernel) *choice {
	k := &choice{pick: pick}
	for _, one := range kernels {
		k.tasks = append(k.tasks, newTask(nil, c, one))
	}
	return k
}

// writesItself: the kernels that it picks from are tasks of their own.
func (k *choice) writesItself() {}

func (k *choice) Refill(t *Task) error {
	k.task = k.tasks[k.pick(t.Call)]
	k.task.Call, k.task.variant = t.Call, t.variant
	if err := k.task.size(); err != nil {
		return err
	}
	t.Tiles, t.Scratch = k.task.Tiles, k.task.Scratch
	return nil
}

func (k *choice) Start(t *Task) error {
	err := k.task.Start()
	t.Tiles = k.task.Tiles
	return err
}

func (k *choice) Tile(_ *Task, tile int, scratch []byte) { k.task.Tile(tile, scratch) }

func (k *choice) Finish(*Task) error { return k.task.Finish() }

func predicateOp(f kernel.PredicateOp) binder {
	return func(c *op.Call) (Kernel, error) { return predicateOf(c, f) }
}

// predicate is a question about two operands.
type predicate struct {
	broadcasted
	f kernel.PredicateOp
}

func predicateOf(c *op.Call, f kernel.PredicateOp) (Kernel, error) {
	p, dt := predicate{f: f}, c.In[0].DType
	if dt == dtype.Bool {
		if f == kernel.Equal {
			return &equalBools{}, nil
		}
		return newPredicate[uint8](p), nil
	}
	if isHalf(dt) {
		return &predicateHalf{p}, nil
	}
	bind, ok := floatOf(dt, newPredicate[float32], newPredicate[float64])
	if !ok {
		bind, ok = intOf(dt, newPredicate[int8], newPredicate[int16], newPredicate[int32], newPredicate[int64],
			newPredicate[uint8], newPredicate[uint16], newPredicate[uint32], newPredicate[uint64])
	}
	if !ok {
		return nil, unsupported(c)
	}
	return bind(p), nil
}

type predicateHalf struct{ predicate }

func (k *predicateHalf) Refill(t *Task) error {
	t.Scratch = halfScratch
	return k.predicate.Refill(t)
}

func (k *predicateHalf) Tile(t *Task, tile int, scratch []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.PredicateHalf(t.variant, k.f, &k.nest, lo, hi, c.In[0].DType, c.Out[0].Data, in[uint16](c, 0), in[uint16](c, 1), view[float32](scratch[:halfScratch]))
}

type predicateOn[T kernel.Number] struct{ predicate }

func newPredicate[T kernel.Number](p predicate) Kernel { return &predicateOn[T]{p} }

func (k *predicateOn[T]) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.Predicate(t.variant, k.f, &k.nest, lo, hi, c.Out[0].Data, in[T](c, 0), in[T](c, 1))
}

// equalBools compares bools, of which true has many values, by exclusive or.
type equalBools struct{ broadcasted }

func (k *equalBools) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.Predicate(t.variant, kernel.Xor, &k.nest, lo, hi, c.Out[0].Data, c.In[0].Data, c.In[1].Data)
	dst := c.Out[0].Data
	for rows := k.nest.Cursor(lo, hi); rows.Next(); {
		at, n := rows.Off[0], rows.N
		if rows.Step[0] == 1 {
			elementwise.Not(t.variant, dst[at:at+n], dst[at:at+n])
			continue
		}
		for ; n > 0; n-- {
			dst[at] ^= 1
			at += rows.Step[0]
		}
	}
}

type whereKernel struct{ broadcasted }

func bindWhere(c *op.Call) (Kernel, error) {
	if c.Out[0].DType.Size() == 0 {
		return nil, unsupported(c)
	}
	return &whereKernel{}, nil
}

func (k *whereKernel) Tile(t *Task, tile int, _ []byte) {
	c := t.Call
	lo, hi := k.nest.Range(tile)
	elementwise.Where(t.variant, &k.nest, lo, hi, c.Out[0].DType.Size(), c.Out[0].Data, c.In[0].Data, c.In[1].Data, c.In[2].Data)
}
