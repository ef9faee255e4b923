package compute

import (
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/kernel"
	"github.com/tenure-go/tenure/internal/kernel/machine"
	"github.com/tenure-go/tenure/op"
)

var _ = register(map[string]binder{"cast": bindCast})

var roundModes = map[string]dtype.RoundMode{"up": dtype.RoundUp, "down": dtype.RoundDown, "nearest": dtype.RoundNearest}

func bindCast(c *op.Call) (*Task, error) {
	from, to := c.In[0].DType, c.Out[0].DType
	if !kernel.Castable(from) || !kernel.Castable(to) {
		return nil, unsupported(c)
	}
	if from == to {
		return copyTask(c), nil
	}
	mode := kernel.CastMode{Saturate: c.Int("saturate") != 0, Round: roundModes[c.Str("round_mode")]}
	n := elements(&c.Out[0])
	return &Task{Tiles: spans(n), Tile: func(tile int, _ []byte) {
		lo, hi := span(tile, n)
		kernel.Cast(machine.Best(), c.Out[0].Data, to, c.In[0].Data, from, lo, hi, mode)
	}}, nil
}

// halfAsF32 binds a call on 16-bit floats to the float32 kernels of its
// operator, through converted.
func halfAsF32(c *op.Call) (*Task, error) {
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

// needsFirst wraps a binder whose kernels always write result 0: where that is
// not wanted, it goes into scratch, and the call is one tile.
func needsFirst(bind binder) binder {
	return func(c *op.Call) (*Task, error) {
		if wanted(c, 0) {
			return bind(c)
		}
		sig := *c.Sig
		sig.Results = make([]op.Type, len(c.Out))
		if err := op.InferTypes(&sig); err != nil {
			return nil, err
		}
		inner := &op.Call{Sig: &sig, Node: c.Node, In: c.In, Out: slices.Clone(c.Out)}
		inner.Out[0] = op.Arg{Type: sig.Results[0]}
		n, err := inner.Out[0].Bytes()
		if err != nil {
			return nil, err
		}
		task, err := bind(inner)
		if err != nil {
			return nil, err
		}
		return convertedTask(c, inner, task, nil, []conversion{{0, 0, n}}, (n+63)&^63), nil
	}
}

// conversion is an operand or result of a converted call that lies in scratch.
type conversion struct {
	index, offset, bytes int
}

// converted binds the call to the kernels of its operator for other element
// types: operands are converted into scratch, the operator runs there, and
// results are converted back. It is one tile and needs the scratch for whole
// operands: a way for types that are rare where they stand.
func converted(c *op.Call, args, results []dtype.DType) (*Task, error) {
	inner, scratchBytes := &op.Call{Sig: &op.Sig{Def: c.Def, Attrs: c.Attrs}, Node: c.Node}, 0
	place := func(from []op.Arg, types []dtype.DType) (to []op.Arg, signature []op.Type, moved []conversion, err error) {
		for i := range from {
			a := op.Arg{Type: op.Type{DType: types[i], Shape: from[i].Shape}}
			if types[i] != from[i].DType {
				n, err := a.Bytes()
				if err != nil {
					return nil, nil, nil, err
				}
				moved = append(moved, conversion{i, scratchBytes, n})
				scratchBytes += (n + 63) &^ 63
			}
			to, signature = append(to, a), append(signature, a.Type)
		}
		return to, signature, moved, nil
	}
	var ins, outs []conversion
	var err error
	if inner.In, inner.Args, ins, err = place(c.In, args); err != nil {
		return nil, err
	}
	if inner.Out, inner.Results, outs, err = place(c.Out, results); err != nil {
		return nil, err
	}
	inner.Sig.Known = func(arg int) ([]byte, bool) {
		if c.Known == nil || inner.In[arg].DType != c.In[arg].DType {
			return nil, false
		}
		return c.Known(arg)
	}
	for i := range c.In {
		if inner.In[i].DType == c.In[i].DType {
			inner.In[i].Data = c.In[i].Data
		}
	}
	task, err := binders[c.Def.Name](inner)
	if err != nil {
		return nil, err
	}
	return convertedTask(c, inner, task, ins, outs, scratchBytes), nil
}

func convertedTask(c, inner *op.Call, task *Task, ins, outs []conversion, scratchBytes int) *Task {
	var failed error
	return &Task{
		Tiles:   1,
		Scratch: scratchBytes + task.Scratch,
		Tile: func(_ int, scratch []byte) {
			for i := range c.In {
				inner.In[i].Data = c.In[i].Data
			}
			for i := range c.Out {
				inner.Out[i].Data = c.Out[i].Data
			}
			for _, m := range ins {
				to := &inner.In[m.index]
				to.Data = scratch[m.offset : m.offset+m.bytes]
				kernel.Cast(machine.Best(), to.Data, to.DType, c.In[m.index].Data, c.In[m.index].DType, 0, elements(to), kernel.CastMode{})
			}
			for _, m := range outs {
				inner.Out[m.index].Data = scratch[m.offset : m.offset+m.bytes]
			}
			if failed = task.run(scratch[scratchBytes:]); failed != nil {
				return
			}
			for _, m := range outs {
				from := &inner.Out[m.index]
				if !wanted(c, m.index) {
					continue
				}
				kernel.Cast(machine.Best(), c.Out[m.index].Data, c.Out[m.index].DType, from.Data, from.DType, 0, elements(from), kernel.CastMode{})
			}
		},
		Finish: func() error { return failed },
	}
}
