package ir

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// Interpreter runs programs as a reference: one call after the other,
// every value in fresh bytes of the Go heap, nothing planned and nothing in
// place. It is the reference that everything faster is compared with.
//
// A donated operand is dead after its call: its bytes are overwritten and a
// later use is an error, so that a program that breaks the rules of donation
// fails here visibly. Types and regions must hold (V1 to V10 of [Verify]).
type Interpreter struct {
	// Eval computes the calls of operators that bring no kernel of their own.
	Eval func(*op.Call) error

	// Weights holds the weights' bytes; it may be nil for a program without.
	Weights Weights

	// MaxBytes bounds the bytes of one result of a call: a larger one is an
	// error, where the Go runtime would end the process. 0 stands for 16 GiB.
	MaxBytes int
}

const defaultMaxBytes = 16 << 30

// most is the number of bytes that a result of a call has at most.
func (in *Interpreter) most() int { return cmp.Or(in.MaxBytes, defaultMaxBytes) }

// poison is written over dead values and over results before they are
// computed.
const poison = 0xDB

// Run runs the program and returns its results, whose bytes the caller owns.
// Inputs are contiguous and are not written, donated or not. The types of the
// program may be symbolic; each call's are inferred from the actual operands.
func (in *Interpreter) Run(p *Program, inputs ...op.Arg) ([]op.Arg, error) {
	if !p.IsPure() {
		return nil, fmt.Errorf("ir: @%s: %w", quoteName(p.Name), violation(20, "the program writes values: Functionalize makes it pure"))
	}
	types := make([]op.Type, len(inputs))
	for i, x := range inputs {
		types[i] = x.Type
	}
	if err := p.CheckInputs(types); err != nil {
		return nil, err
	}
	f := &frame{in: in, env: map[*Value]op.Arg{}, dead: map[*Value]*Call{}}
	for i, v := range p.Body.Params {
		if err := f.bind(v, inputs[i].Type, bytes.Clone(inputs[i].Data)); err != nil {
			return nil, fmt.Errorf("ir: input %s: %w", v, err)
		}
	}
	for _, w := range p.Weights {
		data, ok := Known(in.Weights)(w)
		if !ok {
			return nil, fmt.Errorf("ir: weight %s has no bytes", w)
		}
		if err := f.bind(w, w.Type, data); err != nil {
			return nil, fmt.Errorf("ir: weight %s: %w", w, err)
		}
	}
	return f.block(p.Body)
}

// frame is one run.
type frame struct {
	in   *Interpreter
	env  map[*Value]op.Arg
	dead map[*Value]*Call // by the call that it was donated to
}

// bind sets a value that comes from outside.
func (f *frame) bind(v *Value, t op.Type, data []byte) error {
	n, err := t.Bytes()
	if err != nil {
		return err
	}
	if n != len(data) {
		return fmt.Errorf("got %d bytes, want %d of %s", len(data), n, t)
	}
	f.env[v] = newArg(t, data)
	return nil
}

func newArg(t op.Type, data []byte) op.Arg {
	return op.Arg{Type: t, Layout: shape.RowMajor(t.Shape), Data: data}
}

// block runs the calls and returns copies of the block's results.
func (f *frame) block(b *Block) ([]op.Arg, error) {
	for _, c := range b.Calls {
		if err := f.call(c); err != nil {
			return nil, err
		}
	}
	out := make([]op.Arg, len(b.Results))
	for i, v := range b.Results {
		x, err := f.read(v)
		if err != nil {
			return nil, fmt.Errorf("ir: return: %w", err)
		}
		out[i] = newArg(x.Type, bytes.Clone(x.Data))
	}
	return out, nil
}

// read returns a value that is alive.
func (f *frame) read(v *Value) (op.Arg, error) {
	if c := f.dead[v]; c != nil {
		return op.Arg{}, fmt.Errorf("%s was donated to %s", v, c)
	}
	x, ok := f.env[v]
	if !ok {
		return op.Arg{}, fmt.Errorf("%s is not defined yet", v)
	}
	return x, nil
}

func (f *frame) call(c *Call) error {
	in := make([]op.Arg, len(c.Args))
	for i, o := range c.Args {
		if o.Value == nil {
			continue
		}
		var err error
		if in[i], err = f.read(o.Value); err != nil {
			return fmt.Errorf("ir: %s: %w", c.Where(), err)
		}
		if o.Donate && o.Value.Kind == Weight {
			return fmt.Errorf("ir: %s: %s is a weight, which is never donated", c.Where(), o.Value)
		}
	}
	out, err := f.results(c, in)
	if err != nil {
		return err
	}
	for i, v := range c.Results {
		if v == nil {
			continue
		}
		if !fits(out[i].Type, v.Type) {
			return fmt.Errorf("ir: %s: %s: got %s, want %s", c.Where(), v, out[i].Type, v.Type)
		}
		f.env[v] = out[i]
		delete(f.dead, v) // of the iteration before
	}
	for i, o := range c.Args {
		if o.Donate && o.Value != nil {
			fill(in[i].Data)
			f.dead[o.Value] = c
		}
	}
	return nil
}

// results computes the results of a call in fresh bytes.
func (f *frame) results(c *Call, in []op.Arg) ([]op.Arg, error) {
	switch {
	case c.Op.Branch:
		if err := wantOne(c, in[0]); err != nil {
			return nil, err
		}
		region := 1
		if in[0].Data[0] != 0 {
			region = 0
		}
		return f.block(c.Regions[region])
	case c.Op.Loop:
		return f.loop(c, in)
	case len(c.Regions) > 0:
		return nil, fmt.Errorf("ir: %s: %s has regions of a kind that the interpreter does not run: %w", c.Where(), c.Op.Name, op.ErrUnsupported)
	}
	call, err := f.specialise(c, in)
	if err == nil {
		err = f.compute(call)
	}
	if err == nil {
		err = cut(call)
	}
	if err != nil {
		return nil, fmt.Errorf("ir: %s: %w", c.Where(), err)
	}
	return call.Out, nil
}

// wantOne checks that a condition or a limit that is not absent is one element.
func wantOne(c *Call, x op.Arg) error {
	if !x.IsZero() && x.Shape.NumElements() != 1 {
		return fmt.Errorf("ir: %s: got %s as the condition or the limit, want one element: %w", c.Where(), x.Type, shape.ErrShape)
	}
	return nil
}

// loop runs the region of a loop one iteration after the other.
func (f *frame) loop(c *Call, in []op.Arg) ([]op.Arg, error) {
	for _, x := range in[:min(LoopArgs, len(in))] {
		if err := wantOne(c, x); err != nil {
			return nil, err
		}
	}
	region, carried := c.Regions[0], in[min(LoopArgs, len(in)):]
	limit, runs := int64(math.MaxInt64), true
	if len(in) > 0 && !in[0].IsZero() {
		limit = int64(binary.LittleEndian.Uint64(in[0].Data))
	}
	if len(in) > 1 && !in[1].IsZero() {
		runs = in[1].Data[0] != 0
	}
	stacks := make([][]op.Arg, len(c.Results)-len(carried))
	one := region.Params[LoopRuns].Type
	for iteration := int64(0); iteration < limit && runs; iteration++ {
		f.env[region.Params[LoopIteration]] = newArg(region.Params[LoopIteration].Type, binary.LittleEndian.AppendUint64(nil, uint64(iteration)))
		f.env[region.Params[LoopRuns]] = newArg(one, []byte{1})
		for i, x := range carried {
			f.env[region.Params[LoopArgs+i]] = newArg(x.Type, bytes.Clone(x.Data))
		}
		for _, p := range region.Params {
			delete(f.dead, p)
		}
		out, err := f.block(region)
		if err != nil {
			return nil, err
		}
		if err := wantOne(c, out[0]); err != nil {
			return nil, err
		}
		runs, carried = out[0].Data[0] != 0, out[1:1+len(carried)]
		for i := range stacks {
			x := out[1+len(carried)+i]
			stacks[i] = append(stacks[i], x)
			if held, most := len(stacks[i])*len(x.Data), f.in.most(); held > most {
				return nil, fmt.Errorf("ir: %s: result %d: got %d bytes after %d rounds, want at most %d bytes: %w", c.Where(), len(carried)+i, held, len(stacks[i]), most, shape.ErrShape)
			}
		}
	}
	results := make([]op.Arg, 0, len(c.Results))
	for _, x := range carried {
		results = append(results, newArg(x.Type, bytes.Clone(x.Data)))
	}
	for i, parts := range stacks {
		x, err := stack(c, i, parts)
		if err != nil {
			return nil, fmt.Errorf("ir: %s: %w", c.Where(), err)
		}
		results = append(results, x)
	}
	return results, nil
}

// stack joins the parts that the iterations of a loop returned.
func stack(c *Call, i int, parts []op.Arg) (op.Arg, error) {
	var t op.Type
	if len(parts) > 0 {
		t = parts[0].Type
	} else {
		var err error
		carried := max(0, len(c.Args)-LoopArgs)
		if t, err = c.EmptyPart(i, c.Regions[0].Results[1+carried+i].Type); err != nil {
			return op.Arg{}, err
		}
	}
	s, err := shape.Of(append([]int{len(parts)}, t.Shape.Sizes()...)...)
	if err != nil {
		return op.Arg{}, err
	}
	var data []byte
	for i, x := range parts {
		if x.Type != t {
			return op.Arg{}, fmt.Errorf("got %s in iteration %d and %s in iteration 0, want one type: %w", x.Type, i, t, shape.ErrShape)
		}
		data = append(data, x.Data...)
	}
	return newArg(op.Type{DType: t.DType, Shape: s}, data), nil
}

// specialise infers the types of a call from its actual operands, all of
// which are known.
func (f *frame) specialise(c *Call, in []op.Arg) (*op.Call, error) {
	sig := c.Sig(nil)
	for i := range in {
		sig.Args[i] = in[i].Type
	}
	sig.Known = func(arg int) ([]byte, bool) {
		if !sig.Has(arg) {
			return nil, false
		}
		return in[arg].Data, true
	}
	if err := c.inferSig(sig); err != nil {
		return nil, err
	}
	call := &op.Call{Sig: sig, Node: c.Node, In: in, Out: make([]op.Arg, len(c.Results))}
	types, _, err := sig.Largest()
	if err != nil {
		return nil, err
	}
	for i, t := range types {
		if t.IsZero() {
			continue
		}
		n, err := t.Bytes()
		if err != nil {
			return nil, fmt.Errorf("result %d: %w", i, err)
		}
		if most := f.in.most(); n > most {
			return nil, fmt.Errorf("result %d: got %s, want at most %d bytes: %w", i, t, most, shape.ErrShape)
		}
		call.Out[i] = newArg(t, make([]byte, n))
		fill(call.Out[i].Data)
	}
	return call, nil
}

// cut leaves of each result the bytes that the kernel of an operator with a
// bound has filled.
func cut(call *op.Call) error {
	for i := range call.Out {
		x := &call.Out[i]
		if call.Def.Bound == nil || x.IsZero() {
			continue
		}
		n, err := x.Type.Bytes()
		if err != nil || n > len(x.Data) {
			return fmt.Errorf("BUG: %s: result %d: got %s of a kernel, want at most %d bytes", call.Def.Name, i, x.Type, len(x.Data))
		}
		*x = newArg(x.Type, x.Data[:n:n])
	}
	return nil
}

func (f *frame) compute(call *op.Call) error {
	def := call.Def
	if def.Kernel == nil {
		if f.in.Eval == nil {
			return fmt.Errorf("%s has no kernel: %w", def.Name, op.ErrUnsupported)
		}
		return f.in.Eval(call)
	}
	if def.Scratch != nil {
		n, err := def.Scratch(call.Sig)
		if err != nil {
			return err
		}
		call.Scratch = make([]byte, n)
	}
	return def.Kernel(call)
}

func fill(data []byte) {
	for i := range data {
		data[i] = poison
	}
}
