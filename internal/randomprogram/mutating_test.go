package randomprogram_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/tenure-go/tenure/dtype"
	"github.com/tenure-go/tenure/internal/compute"
	"github.com/tenure-go/tenure/ir"
	"github.com/tenure-go/tenure/op"
	"github.com/tenure-go/tenure/shape"
)

// mutating runs programs that write values, statement by statement, on bytes
// that are written: views are lists of elements of one buffer. It knows nothing
// of ir.Functionalize. Types are static.
type mutating struct {
	weights ir.WeightMap
	env     map[*ir.Value]elements
	moved   int // bytes that statements which only move elements have written
}

// elements are those of a value in a buffer, in their order.
type elements struct {
	typ  op.Type
	data []byte
	at   []int // the positions of the elements
}

func newElements(t op.Type, data []byte) elements {
	e := elements{typ: t, data: data, at: make([]int, t.Shape.NumElements())}
	for i := range e.at {
		e.at[i] = i
	}
	return e
}

func (e elements) arg() op.Arg {
	size := e.typ.DType.Size()
	data := make([]byte, 0, len(e.at)*size)
	for _, i := range e.at {
		data = append(data, e.data[i*size:(i+1)*size]...)
	}
	return op.Arg{Type: e.typ, Layout: shape.RowMajor(e.typ.Shape), Data: data}
}

func (e elements) write(data []byte) {
	size := e.typ.DType.Size()
	for k, i := range e.at {
		copy(e.data[i*size:(i+1)*size], data[k*size:(k+1)*size])
	}
}

func (m *mutating) run(p *ir.Program, inputs [][]byte) ([]op.Arg, error) {
	m.env = map[*ir.Value]elements{}
	for i, v := range p.Body.Params {
		m.env[v] = newElements(v.Type, bytes.Clone(inputs[i]))
	}
	for _, w := range p.Weights {
		m.env[w] = newElements(w.Type, bytes.Clone(m.weights[w.Name]))
	}
	return m.block(p.Body)
}

func (m *mutating) block(b *ir.Block) ([]op.Arg, error) {
	for _, c := range b.Calls {
		if err := m.call(c); err != nil {
			return nil, fmt.Errorf("%s: %w", c, err)
		}
	}
	out := make([]op.Arg, len(b.Results))
	for i, v := range b.Results {
		out[i] = m.env[v].arg()
	}
	return out, nil
}

func (m *mutating) call(c *ir.Call) error {
	in := make([]op.Arg, len(c.Args))
	for i, o := range c.Args {
		if o.Value == nil {
			continue
		}
		if o.View {
			return m.view(c, i)
		}
		in[i] = m.env[o.Value].arg()
	}
	var out []op.Arg
	var err error
	switch {
	case c.Op.Branch:
		out, err = m.block(c.Regions[1-int(in[0].Data[0])])
	case c.Op.Loop:
		out, err = m.loop(c, in)
	default:
		out, err = evaluate(c, in)
	}
	if err != nil {
		return err
	}
	for i, v := range c.Results {
		switch {
		case v == nil:
		case i < len(c.Writes) && c.Writes[i] != nil:
			m.env[c.Writes[i]].write(out[i].Data)
		default:
			m.env[v] = newElements(out[i].Type, out[i].Data)
		}
		if v != nil && isMove(c.Op.Name) {
			m.moved += len(out[i].Data)
		}
	}
	return nil
}

// loop runs a loop that has a limit, and state only.
func (m *mutating) loop(c *ir.Call, in []op.Arg) ([]op.Arg, error) {
	region, state := c.Regions[0], in[ir.LoopArgs:]
	for i := range binary.LittleEndian.Uint64(in[0].Data) {
		m.env[region.Params[ir.LoopIteration]] = newElements(region.Params[ir.LoopIteration].Type, binary.LittleEndian.AppendUint64(nil, i))
		m.env[region.Params[ir.LoopRuns]] = newElements(region.Params[ir.LoopRuns].Type, []byte{1})
		for k, x := range state {
			m.env[region.Params[ir.LoopArgs+k]] = newElements(x.Type, bytes.Clone(x.Data))
		}
		out, err := m.block(region)
		if err != nil {
			return nil, err
		}
		state = out[1:]
	}
	return state, nil
}

// view makes the results of a call views: it moves the positions of the
// elements as the call moves elements.
func (m *mutating) view(c *ir.Call, arg int) error {
	of := m.env[c.Args[arg].Value]
	in := make([]op.Arg, len(c.Args))
	for i, o := range c.Args {
		if o.Value != nil {
			in[i] = m.env[o.Value].arg()
		}
	}
	positions := make([]byte, 0, 8*len(of.at))
	for _, i := range of.at {
		positions = binary.LittleEndian.AppendUint64(positions, uint64(i))
	}
	in[arg] = op.Arg{Type: op.Type{DType: dtype.I64, Shape: of.typ.Shape}, Layout: shape.RowMajor(of.typ.Shape), Data: positions}
	out, err := evaluate(c, in)
	if err != nil {
		return err
	}
	for i, v := range c.Results {
		if v == nil {
			continue
		}
		e := elements{typ: op.Type{DType: of.typ.DType, Shape: out[i].Shape}, data: of.data}
		for data := out[i].Data; len(data) > 0; data = data[8:] {
			e.at = append(e.at, int(binary.LittleEndian.Uint64(data)))
		}
		m.env[v] = e
	}
	return nil
}

// evaluate computes one call by a program of its own.
func evaluate(c *ir.Call, in []op.Arg) ([]op.Arg, error) {
	p := &ir.Program{Name: "call", Body: &ir.Block{}}
	one := &ir.Call{Op: c.Op, Attrs: c.Attrs}
	var given []op.Arg
	for i, o := range c.Args {
		if o.Value == nil {
			one.Args = append(one.Args, ir.Operand{})
			continue
		}
		v := p.NewValue(ir.Param, fmt.Sprintf("p%d", i), in[i].Type)
		v.Index = len(given)
		p.Body.Params = append(p.Body.Params, v)
		one.Args = append(one.Args, ir.Operand{Value: v})
		given = append(given, in[i])
	}
	for i, r := range c.Results {
		v := p.NewValue(ir.Result, fmt.Sprintf("r%d", i), op.Type{})
		if r != nil {
			v.Type.DType = r.Type.DType
			if slices.ContainsFunc(c.Args, func(o ir.Operand) bool { return o.View }) {
				v.Type.DType = dtype.I64
			}
		}
		v.Def, v.Index = one, i
		one.Results = append(one.Results, v)
	}
	p.Body.Calls = []*ir.Call{one}
	p.Body.Results = one.Results
	return (&ir.Interpreter{Eval: compute.Eval}).Run(p, given...)
}
