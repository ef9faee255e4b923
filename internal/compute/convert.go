package compute

import (
	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel/elementwise"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

var _ = register(map[string]binder{"cast": bindCast})

var roundModes = map[string]dtype.RoundMode{"up": dtype.RoundUp, "down": dtype.RoundDown, "nearest": dtype.RoundNearest}

func bindCast(c *op.Call) (Kernel, error) {
	from, to := c.In[0].DType, c.Out[0].DType
	if !elementwise.Castable(from) || !elementwise.Castable(to) {
		return nil, unsupported(c)
	}
	if from == to {
		return &copyFirst{}, nil
	}
	return &castKernel{mode: elementwise.CastMode{Saturate: c.Int("saturate") != 0, Round: roundModes[c.Str("round_mode")]}}, nil
}

type castKernel struct {
	rows
	mode elementwise.CastMode
}

// castsRows is rowsFollow for any types of whole bytes.
func castsRows(s *op.Sig, in, out []*shape.Layout) bool {
	from, to := s.Args[0].DType, s.Results[0].DType
	return from.Size() > 0 && to.Size() > 0 && (from == to || inRows(in) && inRows(out))
}

var _ = registerWalkers(castsRows, "cast")

func (k *castKernel) Tile(t *Task, tile int, _ []byte) {
	if k.gaps {
		k.each(k, t, tile, nil)
		return
	}
	to, from := &t.Call.Out[0], &t.Call.In[0]
	lo, hi := span(tile, k.n)
	elementwise.Cast(t.variant, to.Data, to.DType, from.Data, from.DType, lo, hi, k.mode)
}

func (k *castKernel) row(t *Task, to, from, n int, _ []byte) {
	y, x := &t.Call.Out[0], &t.Call.In[0]
	elementwise.Cast(t.variant, y.Data[to*y.DType.Size():], y.DType, x.Data[from*x.DType.Size():], x.DType, 0, n, k.mode)
}

// halfAsF32 binds a call on 16-bit floats to the float32 kernels of its
// operator, through converted.
func halfAsF32(c *op.Call) (Kernel, error) {
	wide := func(args []op.Arg) []dtype.DType {
		types := make([]dtype.DType, len(args))
		for i := range args {
			if types[i] = args[i].DType; isHalf(types[i]) {
				types[i] = dtype.F32
			}
		}
		return types
	}
	return converted(c, wide(c.In), wide(c.Out))
}

// conversion is an operand or result of an inner call that lies in scratch.
type conversion struct {
	index, offset, bytes int
}

// throughScratch runs an inner call, some of whose operands and results lie in
// scratch, converted from and to those of the call. It is one tile.
type throughScratch struct {
	inner     *Task
	ins, outs []conversion
	bytes     int // of scratch, before that of the inner task
	failed    error
}

// writesItself: the inner call is one for all runs.
func (k *throughScratch) writesItself() {}

// reserve makes place in scratch for an operand or a result.
func (k *throughScratch) reserve(list *[]conversion, index int, a *op.Arg) error {
	n, err := a.Bytes()
	if err != nil {
		return err
	}
	*list = append(*list, conversion{index, k.bytes, n})
	k.bytes += (n + 63) &^ 63
	return nil
}

// sizeInner ends Refill, when the types of the inner call are set.
func (k *throughScratch) sizeInner(t *Task) error {
	k.inner.variant = t.variant
	if err := k.inner.size(); err != nil {
		return err
	}
	t.Tiles, t.Scratch = 1, k.bytes+k.inner.Scratch
	return nil
}

func (k *throughScratch) Tile(t *Task, _ int, scratch []byte) {
	c, inner := t.Call, k.inner.Call
	for i := range c.In {
		inner.In[i].Data = c.In[i].Data
	}
	for i := range c.Out {
		inner.Out[i].Data = c.Out[i].Data
	}
	for _, m := range k.ins {
		to := &inner.In[m.index]
		to.Data = scratch[m.offset : m.offset+m.bytes]
		elementwise.Cast(t.variant, to.Data, to.DType, c.In[m.index].Data, c.In[m.index].DType, 0, elements(to), elementwise.CastMode{})
	}
	for _, m := range k.outs {
		inner.Out[m.index].Data = scratch[m.offset : m.offset+m.bytes]
	}
	if k.failed = k.inner.run(scratch[k.bytes:]); k.failed != nil {
		return
	}
	for _, m := range k.outs {
		from := &inner.Out[m.index]
		if !wanted(c, m.index) {
			continue
		}
		elementwise.Cast(t.variant, c.Out[m.index].Data, c.Out[m.index].DType, from.Data, from.DType, 0, elements(from), elementwise.CastMode{})
	}
}

func (k *throughScratch) Finish(*Task) error { return k.failed }

// unwantedFirst runs an operator whose kernels always write result 0, which is
// not wanted: it goes into scratch.
type unwantedFirst struct{ throughScratch }

// needsFirst wraps a binder whose kernels always write result 0.
func needsFirst(bind binder) binder {
	return func(c *op.Call) (Kernel, error) {
		if wanted(c, 0) {
			return bind(c)
		}
		k := &unwantedFirst{}
		sig := *c.Sig
		inner := &op.Call{Sig: &sig, Node: c.Node, In: make([]op.Arg, len(c.In)), Out: make([]op.Arg, len(c.Out))}
		sig.Results = make([]op.Type, len(c.Out))
		if err := k.retype(c, inner); err != nil {
			return nil, err
		}
		of, err := bind(inner)
		if err != nil {
			return nil, err
		}
		k.inner = newTask(nil, inner, of)
		return k, nil
	}
}

// retype sets the types of the inner call, that of result 0 by the shape rule.
func (k *unwantedFirst) retype(c, inner *op.Call) error {
	copy(inner.In, c.In)
	copy(inner.Out, c.Out)
	inner.Args = c.Args
	if err := inner.Sig.Infer(); err != nil {
		return err
	}
	inner.Out[0] = op.Arg{Type: inner.Results[0]}
	k.bytes, k.outs = 0, k.outs[:0]
	return k.reserve(&k.outs, 0, &inner.Out[0])
}

func (k *unwantedFirst) Refill(t *Task) error {
	if err := k.retype(t.Call, k.inner.Call); err != nil {
		return err
	}
	return k.sizeInner(t)
}
